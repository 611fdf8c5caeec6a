package mcphybrid_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
)

// A server is printed without its secrets.
func ExampleLoadConfig() {
	dir, err := os.MkdirTemp("", "mcphybrid")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "mcp.json")
	err = os.WriteFile(path, []byte(`{"mcpServers": {
		"files":  {"command": "mcp-files", "args": ["/tmp"]},
		"github": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN:-none}"}}
	}}`), 0o600)
	if err != nil {
		log.Fatal(err)
	}

	cfg, err := mcphybrid.LoadConfig(path)
	if err != nil {
		log.Print(err) // names each server that is wrong; cfg has the others
	}
	for _, s := range cfg.Servers {
		fmt.Println(s)
	}
	// Output:
	// server "files" by "mcp-files" with 1 arguments, environment []
	// server "github" at https://example.com, headers ["Authorization"]
}

// One server does not start. The other one works.
func ExampleManager_Start() {
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Servers: []mcphybrid.ServerConfig{
			{Name: "files", Command: "no-such-program"},
			{Name: "weather", InProcess: weather()},
		},
		Limits: config.Limits{Reconnect: -1}, // do not try again
	})
	defer mgr.Close()
	if err := mgr.Start(context.Background()); err != nil {
		fmt.Println("not all servers started") // err says which and why
	}
	for _, s := range mgr.Servers() {
		fmt.Println(s.Name, s.State, s.Tools)
	}
	// Output:
	// not all servers started
	// files down 0
	// weather ready 3
}

// The host adds its own tool. A session that began before has it too, after the
// tools that its model was sent.
func ExampleManager_AddTools() {
	mgr := newManager()
	defer mgr.Close()
	sess := mgr.NewSession(nil)
	fmt.Println(len(sess.Tools()), "tools")

	err := mgr.AddTools("clock", server.ServerTool{
		Tool: mcp.NewTool("time_in", mcp.WithDescription("Tells the time"), mcp.WithString("city", mcp.Required())),
		Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("It is noon in " + r.GetString("city", "") + "."), nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range sess.Search("time", 1) {
		res, err := sess.Call(context.Background(), hit.Tool.Name(), `{"city": "Oslo"}`)
		fmt.Println(mcp.GetTextFromContent(res.Content[0]), err)
	}
	fmt.Println(names(sess.Tools()))
	// Output:
	// 2 tools
	// It is noon in Oslo. <nil>
	// [mcp_weather__weather_in_Hanoi mcp_tool_search mcp_clock__time_in]
}

// Each of two conversations has its own active tools, and one may use fewer.
func ExampleManager_NewSession() {
	mgr := newManager()
	defer mgr.Close()
	one := mgr.NewSession(nil)
	two := mgr.NewSession(&mcphybrid.SessionOptions{
		Access: mcphybrid.Access{Deny: []string{"*_Quito"}},
	})
	for _, sess := range []*mcphybrid.Session{one, two} {
		_, err := sess.Call(context.Background(), "mcp_weather__weather_in_Quito", nil)
		fmt.Println(names(sess.ActiveTools()), err)
	}
	// Output:
	// [mcp_weather__weather_in_Quito] <nil>
	// [] mcphybrid: tool "mcp_weather__weather_in_Quito": not permitted
}
