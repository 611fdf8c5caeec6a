package mcphybrid_test

import (
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/search"
)

// Rules select the tools of a session by its intent. Prune cuts the rest to a
// number of tokens.
func ExampleRule() {
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Rules: []mcphybrid.Rule{
		{Name: "hide noisy build tools", Intent: "*", Priority: 10, Patterns: []string{"build_*"}, Action: mcphybrid.RuleExclude},
		{Name: "show tasks to who plans", Intent: "plan", Priority: 20, Patterns: []string{"tasks_*", "build_*"}, Action: mcphybrid.RuleInclude},
	}})
	defer mgr.Close()
	for _, t := range []struct{ server, name, description string }{
		{"tasks", "tasks_list", "List tasks"},
		{"tasks", "tasks_create", "Create a task"},
		{"ci", "build_go_project", "Build a Go project"},
		{"ci", "deploy", "Deploy a build"},
	} {
		tool := mcp.NewTool(t.name, mcp.WithDescription(t.description))
		if err := mgr.AddTools(t.server, mcpserver.ServerTool{Tool: tool}); err != nil {
			fmt.Println(err)
		}
	}

	words := []search.IntentWords{{Intent: "plan", Keywords: []string{"task", "backlog"}}}
	intents := search.DetectIntents("create a new task for the backend", words)
	sess := mgr.NewSession(nil)
	sess.SetIntent(intents[0].Name)
	for _, p := range sess.Placements() {
		fmt.Println(p)
	}
	tools := sess.InlineTools()
	fmt.Println(len(tools), "tools,", len(mcphybrid.Prune(tools, 40, nil)), "of them within 40 tokens")
	// Output:
	// inline mcp_tasks__tasks_list: there is room
	// inline mcp_tasks__tasks_create: there is room
	// hidden mcp_ci__build_go_project: rule "hide noisy build tools" excludes it
	// hidden mcp_ci__deploy: rules include only other tools: "show tasks to who plans"
	// 2 tools, 1 of them within 40 tokens
}
