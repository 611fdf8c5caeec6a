// Gosdk is a server of the official Go SDK.
//
//	gosdk stdio|http|stateless tools|quiet|prompts|resources|updates|refusing
//
// Over HTTP, it has the SDK's default options, or is stateless. It offers tools, prompts or
// resources only, one of which, add, adds another, or tools and a resource to which one can
// subscribe: updates. A quiet one offers tools and does not
// announce that they change. A refusing one announces it to subscribers and knows no way to
// subscribe.
package main

import (
	"context"
	"log"
	"net/http"
	"os"

	"github.com/mcphybrid/mcphybrid/integration/servers/loopback"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	transport, offers := os.Args[1], os.Args[2]
	var options mcp.ServerOptions
	if offers == "quiet" {
		options.Capabilities = &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}
	}
	if offers == "updates" {
		options.SubscribeHandler = func(context.Context, *mcp.SubscribeRequest) error { return nil }
		options.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, &options)
	switch offers {
	case "prompts":
		addPrompt(server, "add")
	case "resources":
		addResource(server, "add")
	case "updates":
		addResource(server, "hello")
		addTool(server, "add")
	default:
		addTool(server, "greet")
		addTool(server, "add")
	}
	if offers == "refusing" {
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
				if method == "subscriptions/listen" {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + method}
				}
				return next(ctx, method, r)
			}
		})
	}
	if transport == "stdio" {
		if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
		return
	}
	var web *mcp.StreamableHTTPOptions
	if transport == "stateless" {
		web = &mcp.StreamableHTTPOptions{Stateless: true}
	}
	loopback.Serve(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, web))
}

type person struct {
	Name string `json:"name,omitempty"`
}

func addTool(server *mcp.Server, name string) {
	mcp.AddTool(server, &mcp.Tool{Name: name, Description: "Greets somebody."}, func(_ context.Context, _ *mcp.CallToolRequest, in person) (*mcp.CallToolResult, any, error) {
		if name == "add" {
			addTool(server, "added")
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hi " + in.Name}}}, nil, nil
	})
}

func addPrompt(server *mcp.Server, name string) {
	server.AddPrompt(&mcp.Prompt{Name: name, Description: "Greets."}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if name == "add" {
			addPrompt(server, "added")
		}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Hi"}}}}, nil
	})
}

func addResource(server *mcp.Server, name string) {
	server.AddResource(&mcp.Resource{Name: name, URI: "greeting://" + name}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		if name == "add" {
			addResource(server, "added")
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "greeting://" + name, Text: "Hi"}}}, nil
	})
}
