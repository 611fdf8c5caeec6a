package mcphybrid_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
)

// weather is a small MCP server in this process.
func weather() *server.MCPServer {
	s := server.NewMCPServer("weather", "1.0")
	for _, city := range []string{"Hanoi", "Oslo", "Quito"} {
		s.AddTool(mcp.NewTool("weather_in_"+city, mcp.WithDescription("Tells the weather in "+city)),
			func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("It is fine in " + city + "."), nil
			})
	}
	return s
}

// newManager returns a Manager with that server: one of its tools is inline,
// two are deferred.
func newManager() *mcphybrid.Manager {
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Servers: []mcphybrid.ServerConfig{{Name: "weather", InProcess: weather()}},
		Inline:  mcphybrid.InlineOptions{Max: 1},
	})
	if err := mgr.Start(context.Background()); err != nil {
		log.Print(err)
	}
	return mgr
}

func names[T mcphybrid.Tool](tools []T) (list []string) {
	for _, t := range tools {
		list = append(list, t.Name())
	}
	return list
}

func Example() {
	mgr := newManager()
	defer mgr.Close()
	sess := mgr.NewSession(nil)
	fmt.Println(names(sess.Tools()))

	// The model calls a tool that it was never shown.
	res, err := sess.Call(context.Background(), "mcp_weather__weather_in_Quito", `{}`)
	fmt.Println(mcp.GetTextFromContent(res.Content[0]), err)
	fmt.Println(names(sess.Tools()))
	// Output:
	// [mcp_weather__weather_in_Hanoi mcp_tool_search]
	// It is fine in Quito. <nil>
	// [mcp_weather__weather_in_Hanoi mcp_tool_search mcp_weather__weather_in_Quito]
}

// A search for the host finds inline and deferred tools, and activates nothing.
func ExampleSession_Search() {
	mgr := newManager()
	defer mgr.Close()
	sess := mgr.NewSession(nil)
	for _, hit := range sess.Search("weather Oslo", 5) {
		fmt.Printf("%s %s %.2f\n", hit.Tool.Name(), hit.Standing, hit.Score)
	}
	// Output:
	// mcp_weather__weather_in_Oslo deferred 2.39
	// mcp_weather__weather_in_Hanoi inline 0.39
	// mcp_weather__weather_in_Quito deferred 0.39
}

// The host activates tools by name. Names that it does not know are left out.
func ExampleSession_ActivateTools() {
	mgr := newManager()
	defer mgr.Close()
	sess := mgr.NewSession(nil)
	fmt.Println(sess.ActivateTools([]string{"mcp_weather__weather_in_Oslo", "mcp_weather__no_such_tool"}))
	fmt.Println(names(sess.ActiveTools()), names(sess.DeferredTools()))
	// Output:
	// [mcp_weather__weather_in_Oslo]
	// [mcp_weather__weather_in_Oslo] [mcp_weather__weather_in_Quito]
}

// The host appends the sections to its system prompt. They say nothing that the
// definitions of the inline tools do.
func ExampleSession_PromptSections() {
	mgr := newManager()
	defer mgr.Close()
	sess := mgr.NewSession(nil)
	fmt.Print("You are helpful." + sess.PromptSections(mcphybrid.PromptFull))
	// Output:
	// You are helpful.
	//
	// ## Additional MCP Tools (use mcp_tool_search to discover)
	//
	// 2 more tools are available from these MCP servers: weather (2: oslo, quito).
	// Their definitions are not shown here. `mcp_tool_search` finds them:
	// 1. Before you do something outside this conversation for which no listed tool is made, call `mcp_tool_search` with a few descriptive keywords, in English unless the tools are described in another language.
	// 2. The tools it returns are active at once: call them by the returned name, in this same turn.
	// 3. If it finds nothing, go on with the tools you have.
}

// Activating a tool also activates the tools that it needs.
func ExampleOptions_needs() {
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Inline: mcphybrid.InlineOptions{Max: -1},
		Needs:  map[string][]string{"mcp_files__edit_file": {"mcp_files__read_file"}},
	})
	defer mgr.Close()
	err := mgr.AddTools("files",
		server.ServerTool{Tool: mcp.NewTool("read_file", mcp.WithDescription("Returns what a file holds"))},
		server.ServerTool{Tool: mcp.NewTool("edit_file", mcp.WithDescription("Changes some lines"))})
	if err != nil {
		log.Print(err)
	}
	for _, hit := range mgr.Search("change lines", 5) {
		fmt.Println(hit.Tool.Name(), hit.NeededBy != nil)
	}
	fmt.Println(mgr.ActivateTools([]string{"mcp_files__edit_file"}))
	// Output:
	// mcp_files__edit_file false
	// mcp_files__read_file true
	// [mcp_files__edit_file mcp_files__read_file]
}

// A host with its own table of tools passes it as a registry. The session keeps the
// callable tools registered there.
func ExampleToolRegistry() {
	registry := mcphybrid.NewRegistry()
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Registry: registry, Inline: mcphybrid.InlineOptions{Max: 1}})
	defer mgr.Close()
	echo := func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(r.GetString("text", "")), nil
	}
	err := mgr.AddTools("local",
		server.ServerTool{Tool: mcp.NewTool("echo", mcp.WithString("text")), Handler: echo},
		server.ServerTool{Tool: mcp.NewTool("repeat", mcp.WithString("text")), Handler: echo})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(names(registry.List()), registry.ToolGroup(mcphybrid.GroupAll))
	res, err := registry.Execute(context.Background(), "mcp_local__repeat", []byte(`{"text":"hi"}`))
	fmt.Println(mcp.GetTextFromContent(res.Content[0]), err)
	fmt.Println(registry.ToolGroup(mcphybrid.GroupAll))
	// Output:
	// [mcp_local__echo mcp_tool_search] [mcp_local__echo]
	// hi <nil>
	// [mcp_local__echo mcp_local__repeat]
}

// NewBM25Index is the plain BM25 of RankerClassic.
func ExampleNewBM25Index() {
	index := mcphybrid.NewBM25Index([]string{
		"github create_issue Creates an issue in a repository",
		"github list_issues Lists the issues of a repository",
		"slack send_message Sends a message to a channel",
	}, nil)
	for _, match := range index.Search("create an issue", 2, nil) {
		fmt.Printf("document %d: %.2f\n", match.Doc, match.Score)
	}
	// Output:
	// document 0: 3.26
}
