// Example answers a question with the tools of the servers in mcp.json.
package main

import (
	"context"
	"log"
	"os"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/eino"
)

func main() {
	ctx := context.Background()
	cfg, err := mcphybrid.LoadConfig("mcp.json")
	check(err)
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: cfg.Servers})
	defer mgr.Close()
	check(mgr.Start(ctx))
	chat, err := openai.NewChatModel(ctx, &openai.ChatModelConfig{APIKey: os.Getenv("OPENAI_API_KEY"), Model: "gpt-5.4-mini"})
	check(err)
	sess := mgr.NewSession(nil)
	agent, err := react.NewAgent(ctx, &react.AgentConfig{
		ToolCallingModel: eino.Model(sess, chat), ToolsConfig: eino.ToolsNode(sess),
		StreamToolCallChecker: eino.HasCall, MaxStep: 60,
	})
	check(err)
	answer, err := agent.Generate(ctx, []*schema.Message{schema.UserMessage(os.Args[1])})
	check(err)
	log.Print(answer.Content)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
