package mcphybrid_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
)

// The list of tools begins with the inline tools and the search tool. Each tool
// that the model finds is appended.
func ExampleSession_Tools() {
	mgr := newManager()
	defer mgr.Close()
	sess := mgr.NewSession(nil)
	for _, t := range sess.Tools() {
		fmt.Println(t.Name())
	}

	// The model searches.
	if _, err := sess.Call(context.Background(), mcphybrid.SearchToolName, `{"query": "weather in Quito"}`); err != nil {
		log.Fatal(err)
	}
	fmt.Println("then:")
	for _, t := range sess.Tools() {
		fmt.Println(t.Name())
	}
	// Output:
	// mcp_weather__weather_in_Hanoi
	// mcp_tool_search
	// then:
	// mcp_weather__weather_in_Hanoi
	// mcp_tool_search
	// mcp_weather__weather_in_Quito
	// mcp_weather__weather_in_Oslo
}

// The result is for the model, whatever happened. The error is for the host.
func ExampleSession_Call() {
	mgr := mcphybrid.NewManager(nil)
	defer mgr.Close()
	err := mgr.AddTools("math", server.ServerTool{
		Tool: mcp.NewTool("double", mcp.WithNumber("n", mcp.Required())),
		Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(fmt.Sprint(2 * r.GetInt("n", 0))), nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	sess := mgr.NewSession(nil)

	for _, call := range [][2]string{
		{"mcp_math__double", `{"n": 21}`},
		{"mcp_math__double", `{"n": "x"}`},
		{"mcp_math__doubel", `{"n": 21}`},
	} {
		res, err := sess.Call(context.Background(), call[0], call[1])
		fmt.Println(mcp.GetTextFromContent(res.Content[0])) // the host sends it to the model
		switch {
		case errors.Is(err, mcphybrid.ErrBadArguments):
			fmt.Println("== bad arguments")
		case errors.Is(err, mcphybrid.ErrUnknownTool):
			fmt.Println("== unknown tool")
		}
	}
	// Output:
	// 42
	// mcp_math__double was not called, because its arguments do not fit its schema:
	// - /n is a string, but must be a number
	// The schema: {"properties":{"n":{"type":"number"}},"required":["n"],"type":"object"}
	// Correct the arguments and call it again.
	// == bad arguments
	// There is no tool named "mcp_math__doubel". Did you mean mcp_math__double?
	// == unknown tool
}

// The same list of tools for three providers. Losses say what a provider does
// not take.
func ExampleSession_Export() {
	mgr := mcphybrid.NewManager(nil)
	defer mgr.Close()
	err := mgr.AddTools("math", server.ServerTool{Tool: mcp.NewTool("double",
		mcp.WithDescription("Doubles a number"),
		mcp.WithNumber("n", mcp.Required(), mcp.Min(0), mcp.MultipleOf(2)))})
	if err != nil {
		log.Fatal(err)
	}
	sess := mgr.NewSession(nil)
	for _, format := range []provider.Format{
		provider.OpenAIChat, provider.Anthropic, provider.Gemini,
	} {
		tools, err := sess.Export(format)
		if err != nil {
			log.Fatal(err)
		}
		for _, t := range tools {
			fmt.Printf("%s\n%q\n", t.JSON, t.Losses)
		}
	}
	// Output:
	// {"type":"function","function":{"name":"mcp_math__double","description":"Doubles a number","parameters":{"properties":{"n":{"minimum":0,"multipleOf":2,"type":"number"}},"required":["n"],"type":"object"}}}
	// []
	// {"name":"mcp_math__double","description":"Doubles a number","input_schema":{"properties":{"n":{"minimum":0,"multipleOf":2,"type":"number"}},"required":["n"],"type":"object"}}
	// []
	// {"name":"mcp_math__double","description":"Doubles a number","parametersJsonSchema":{"properties":{"n":{"minimum":0,"type":"number"}},"required":["n"],"type":"object"}}
	// ["/properties/n/multipleOf: not taken, left out"]
}

// A session continues in another process, where the servers have the same
// tools.
func ExampleSession_Save() {
	mgr := newManager()
	defer mgr.Close()
	sess := mgr.NewSession(nil)
	sess.ActivateTools([]string{"mcp_weather__weather_in_Oslo"})
	state := sess.Save() // JSON, for the host to keep with the conversation

	other := newManager() // in the other process
	defer other.Close()
	restored, changed, err := other.RestoreSession(state, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(names(restored.ActiveTools()), changed)
	fmt.Println(restored.PromptSections(mcphybrid.PromptFull) == sess.PromptSections(mcphybrid.PromptFull))
	// Output:
	// [mcp_weather__weather_in_Oslo] []
	// true
}

// A tool is gone when a session is restored. The host learns its name.
func ExampleManager_RestoreSession() {
	mgr := newManager()
	defer mgr.Close()
	if err := mgr.AddTools("clock", server.ServerTool{Tool: mcp.NewTool("time")}); err != nil {
		log.Fatal(err)
	}
	sess := mgr.NewSession(nil)
	sess.ActivateTools([]string{"mcp_clock__time", "mcp_weather__weather_in_Oslo"})
	state := sess.Save()

	other := newManager() // has no clock
	defer other.Close()
	restored, changed, err := other.RestoreSession(state, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("active:", names(restored.ActiveTools()))
	fmt.Println("changed:", changed)
	// Output:
	// active: [mcp_weather__weather_in_Oslo]
	// changed: [mcp_clock__time]
}

// Compact drops the active tools that were not used for 20 turns, which is the
// default.
func ExampleSession_Compact() {
	mgr := newManager()
	defer mgr.Close()
	sess := mgr.NewSession(nil)
	sess.ActivateTools([]string{"mcp_weather__weather_in_Oslo"})
	for range mcphybrid.DefaultActiveTurns + 1 {
		sess.NextTurn() // the user wrote something
	}
	if _, err := sess.Call(context.Background(), "mcp_weather__weather_in_Quito", nil); err != nil {
		log.Fatal(err)
	}
	fmt.Println("before:", names(sess.ActiveTools()))
	fmt.Println("given up:", names(sess.Compact()))
	fmt.Println("after:", names(sess.ActiveTools()))
	// Output:
	// before: [mcp_weather__weather_in_Oslo mcp_weather__weather_in_Quito]
	// given up: [mcp_weather__weather_in_Oslo]
	// after: [mcp_weather__weather_in_Quito]
}

// A subagent gets a session that may use fewer tools than its parent's.
func ExampleSession_NewChild() {
	mgr := newManager()
	defer mgr.Close()
	parent := mgr.NewSession(nil)
	child := parent.NewChild(&mcphybrid.SessionOptions{
		Access: mcphybrid.Access{Allow: []string{"*_Oslo", "*_Quito"}},
	})
	child.ActivateTools([]string{"mcp_weather__weather_in_Oslo"})
	fmt.Println(names(child.Tools()))
	fmt.Println(names(parent.ActiveTools()))
	// Output:
	// [mcp_weather__weather_in_Oslo mcp_tool_search]
	// []
}

// The host selects tools for a message before it calls the model, so the model
// need not search.
func ExampleSession_SelectFor() {
	mgr := newManager()
	defer mgr.Close()
	sess := mgr.NewSession(nil)
	fmt.Println(names(sess.SelectFor(context.Background(), "Do I need an umbrella in Oslo?")))
	fmt.Println(names(sess.Tools()))
	// Output:
	// [mcp_weather__weather_in_Oslo mcp_weather__weather_in_Quito]
	// [mcp_weather__weather_in_Hanoi mcp_tool_search mcp_weather__weather_in_Oslo mcp_weather__weather_in_Quito]
}

// Placements tells people how each tool stands in a session, and why.
func ExampleSession_Placements() {
	mgr := newManager()
	defer mgr.Close()
	sess := mgr.NewSession(&mcphybrid.SessionOptions{
		Access: mcphybrid.Access{Deny: []string{"*_Quito"}},
	})
	for _, p := range sess.Placements() {
		fmt.Println(p)
	}
	// Output:
	// inline mcp_weather__weather_in_Hanoi: there is room
	// deferred mcp_weather__weather_in_Oslo: 1 tool before it is inline
	// hidden mcp_weather__weather_in_Quito: an access list does not permit it: it denies "*_Quito"
}

func ExampleSession_ReadResource() {
	notes := server.NewMCPServer("notes", "1", server.WithResourceCapabilities(false, true))
	notes.AddResource(mcp.NewResource("note:///today", "today"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: "note:///today", Text: "Buy milk"}}, nil
	})
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: []mcphybrid.ServerConfig{{Name: "notes", InProcess: notes}}})
	defer mgr.Close()
	if err := mgr.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	sess := mgr.NewSession(nil)
	for _, r := range sess.Resources() {
		result, err := sess.ReadResource(context.Background(), r.Server, r.URI)
		if err != nil {
			log.Fatal(err)
		}
		for _, c := range result.Contents {
			if text, ok := c.(mcp.TextResourceContents); ok {
				fmt.Println(r.Server, r.Name, text.Text)
			}
		}
	}
	// Output: notes today Buy milk
}
