// Example answers a question with the tools of the servers in mcp.json.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/langchaingo"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"
)

func main() {
	ctx := context.Background()
	cfg, err := mcphybrid.LoadConfig("mcp.json")
	check(err)
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: cfg.Servers})
	defer mgr.Close()
	check(mgr.Start(ctx))
	llm, err := openai.New(openai.WithModel("gpt-5.4-mini")) // the key is in OPENAI_API_KEY
	check(err)

	agent := langchaingo.Agent{Session: mgr.NewSession(nil), Model: llm}
	question := llms.TextParts(llms.ChatMessageTypeHuman, os.Args[1])
	messages, err := agent.Run(ctx, []llms.MessageContent{question})
	check(err)
	fmt.Println(messages[len(messages)-1].Parts[0])
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
