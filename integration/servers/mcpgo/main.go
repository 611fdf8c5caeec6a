// Mcpgo is a server of mcp-go.
//
//	mcpgo stdio|http|stateless tools|quiet|prompts|resources
//
// It offers what servers/gosdk does.
package main

import (
	"context"
	"log"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/integration/servers/loopback"
)

func main() {
	transport, offers := os.Args[1], os.Args[2]
	var s *server.MCPServer
	switch offers {
	case "prompts":
		s = server.NewMCPServer("greeter", "1", server.WithPromptCapabilities(true))
		addPrompt(s, "add")
	case "resources":
		s = server.NewMCPServer("greeter", "1", server.WithResourceCapabilities(false, true))
		addResource(s, "add")
	default:
		s = server.NewMCPServer("greeter", "1", server.WithToolCapabilities(offers != "quiet"))
		addTool(s, "greet")
		addTool(s, "add")
	}
	if transport == "stdio" {
		if err := server.ServeStdio(s); err != nil {
			log.Fatal(err)
		}
		return
	}
	loopback.Serve(server.NewStreamableHTTPServer(s, server.WithStateLess(transport == "stateless")))
}

func addTool(s *server.MCPServer, name string) {
	s.AddTool(mcp.NewTool(name, mcp.WithDescription("Greets somebody."), mcp.WithString("name")), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if name == "add" {
			addTool(s, "added")
		}
		return mcp.NewToolResultText("Hi " + r.GetString("name", "")), nil
	})
}

func addPrompt(s *server.MCPServer, name string) {
	s.AddPrompt(mcp.NewPrompt(name), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if name == "add" {
			addPrompt(s, "added")
		}
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("Hi"))}), nil
	})
}

func addResource(s *server.MCPServer, name string) {
	s.AddResource(mcp.NewResource("greeting://"+name, name), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		if name == "add" {
			addResource(s, "added")
		}
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: "greeting://" + name, Text: "Hi"}}, nil
	})
}
