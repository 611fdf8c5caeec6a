package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// configure writes the mcp.json that the pages take for granted. Its server is this
// program.
func (v *visitor) configure(dir string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"tracker": map[string]any{"command": program, "args": []string{"serve"}},
	}})
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, "mcp.json"), string(config))
}

// serve serves more tools than are inline over standard input and output. They are listed
// by name, so that the one that a program on a page looks for is deferred.
func serve() error {
	s := server.NewMCPServer("tracker", "1")
	names := make([]string, 0, 61)
	for i := range cap(names) - 1 {
		names = append(names, fmt.Sprintf("archive_%d", i))
	}
	for _, name := range append(names, "create_issue") {
		s.AddTool(mcp.NewTool(name, mcp.WithDescription("Does "+name+".")), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(name), nil
		})
	}
	return server.ServeStdio(s)
}
