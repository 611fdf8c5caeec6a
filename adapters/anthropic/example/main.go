// Example answers a question with the tools of the servers in mcp.json.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/mcphybrid/mcphybrid"
	mcpanthropic "github.com/mcphybrid/mcphybrid/adapters/anthropic"
)

func main() {
	ctx := context.Background()
	cfg, err := mcphybrid.LoadConfig("mcp.json")
	check(err)
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: cfg.Servers})
	defer mgr.Close()
	check(mgr.Start(ctx))
	client := anthropic.NewClient() // with the key in ANTHROPIC_API_KEY
	params := anthropic.BetaToolRunnerParams{BetaMessageNewParams: anthropic.BetaMessageNewParams{
		Model: anthropic.ModelClaudeSonnet5_5, MaxTokens: 16_000,
		Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(os.Args[1]))},
	}}
	for event, err := range mcpanthropic.NewToolRunnerStreaming(&client, mgr.NewSession(nil), params).All(ctx) {
		check(err)
		fmt.Print(event.Delta.Text)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
