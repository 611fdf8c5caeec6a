// Example answers a question with the tools of the servers in mcp.json.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/mcphybrid/mcphybrid"
	mcpopenai "github.com/mcphybrid/mcphybrid/adapters/openai"
	"github.com/openai/openai-go/v3"
)

func main() {
	ctx := context.Background()
	cfg, err := mcphybrid.LoadConfig("mcp.json")
	check(err)
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: cfg.Servers})
	defer mgr.Close()
	check(mgr.Start(ctx))
	client := openai.NewClient() // with the key in OPENAI_API_KEY
	chat := mcpopenai.NewChat(&client, mgr.NewSession(nil), openai.ChatCompletionNewParams{Model: "gpt-5.4-mini"})
	chat.Instructions = "Answer briefly."
	chat.OnChunk = func(c openai.ChatCompletionChunk) {
		for _, choice := range c.Choices {
			fmt.Print(choice.Delta.Content)
		}
	}
	_, err = chat.Run(ctx, openai.UserMessage(os.Args[1]))
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
