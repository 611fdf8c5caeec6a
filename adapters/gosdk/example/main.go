// Example offers the tools of the servers in mcp.json, and one written with the SDK.
package main

import (
	"context"
	"log"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/gosdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type guest struct{ Name string }

func greet(_ context.Context, _ *mcp.CallToolRequest, in guest) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name}}}, nil, nil
}

func main() {
	ctx := context.Background()
	cfg, err := mcphybrid.LoadConfig("mcp.json")
	check(err)
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: cfg.Servers})
	defer mgr.Close()
	check(mgr.Start(ctx))
	impl := &mcp.Implementation{Name: "example", Version: "1"}
	own := mcp.NewServer(impl, nil)
	mcp.AddTool(own, &mcp.Tool{Name: "greet", Description: "Greets a guest."}, greet)
	_, err = gosdk.AddServer(ctx, mgr, mcphybrid.ServerConfig{Name: "own"}, own)
	check(err)
	server, err := gosdk.NewServer(mgr.NewSession(&mcphybrid.SessionOptions{Client: true}), impl, nil)
	check(err)
	check(server.Run(ctx, &mcp.StdioTransport{}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
