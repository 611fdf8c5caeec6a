// Example answers a question with the tools of the servers in mcp.json.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/compat_oai/openai"
	"github.com/mcphybrid/mcphybrid"
	mcpgenkit "github.com/mcphybrid/mcphybrid/adapters/genkit"
)

func main() {
	ctx := context.Background()
	cfg, err := mcphybrid.LoadConfig("mcp.json")
	check(err)
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: cfg.Servers})
	defer mgr.Close()
	check(mgr.Start(ctx))
	g := genkit.Init(ctx, genkit.WithPlugins(&openai.OpenAI{})) // the key is in OPENAI_API_KEY

	resp, err := genkit.Generate(ctx, g, ai.WithModelName("openai/gpt-5.4-mini"), ai.WithPrompt(os.Args[1]),
		ai.WithUse(mcpgenkit.Use(mgr.NewSession(nil), nil)), ai.WithMaxTurns(50))
	check(err)
	fmt.Println(resp.Text())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
