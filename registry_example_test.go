package mcphybrid_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
)

// table is a host's own table of tools.
type table struct {
	mu       sync.Mutex
	tools    map[string]mcphybrid.Tool
	activate func(name string) bool
}

func (t *table) Register(tool mcphybrid.Tool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tools[tool.Name()] = tool
}

func (t *table) Unregister(tool mcphybrid.Tool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tools[tool.Name()] == tool {
		delete(t.tools, tool.Name())
	}
}

func (t *table) Get(name string) (mcphybrid.Tool, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tool, ok := t.tools[name]
	return tool, ok
}

func (t *table) RegisterToolGroup(string, []string) {} // this host has no groups

func (t *table) SetDeferredActivator(activate func(name string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.activate = activate
}

// run runs the tool that the model called. A tool that is missing in the table
// may be deferred. Activating it calls Register, so run must hold no lock.
func (t *table) run(ctx context.Context, name, args string) (*mcp.CallToolResult, error) {
	tool, ok := t.Get(name)
	if !ok {
		t.mu.Lock()
		activate := t.activate
		t.mu.Unlock()
		if activate != nil && activate(name) {
			tool, ok = t.Get(name)
		}
	}
	if !ok {
		return nil, fmt.Errorf("no tool %q", name)
	}
	return tool.Call(ctx, []byte(args))
}

// The Manager keeps a host's own table in step with the tools that the model
// may call.
func ExampleRegistry() {
	host := &table{tools: make(map[string]mcphybrid.Tool)}
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Registry: host, Inline: mcphybrid.InlineOptions{Max: -1}})
	defer mgr.Close()
	err := mgr.AddTools("local", server.ServerTool{
		Tool: mcp.NewTool("echo", mcp.WithString("text")),
		Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(r.GetString("text", "")), nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_, ok := host.Get("mcp_local__echo")
	fmt.Println("before the call:", ok)
	res, err := host.run(context.Background(), "mcp_local__echo", `{"text": "hi"}`)
	fmt.Println(mcp.GetTextFromContent(res.Content[0]), err)
	_, ok = host.Get("mcp_local__echo")
	fmt.Println("after the call:", ok)
	// Output:
	// before the call: false
	// hi <nil>
	// after the call: true
}
