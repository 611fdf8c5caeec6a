package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// How many tools the server of the pages' mcp.json has: all inline, or some deferred.
const (
	fewTools  = 3
	manyTools = 61
)

// configure writes the mcp.json that the pages take for granted. Its server is this
// program, with so many tools.
func (v *visitor) configure(dir string, tools int) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"tracker": map[string]any{"command": program, "args": []string{"serve", strconv.Itoa(tools)}},
	}})
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, "mcp.json"), string(config))
}

// serve serves so many tools over standard input and output. They are listed
// by name, so that the one that a program on a page looks for is the last one.
func serve(tools string) error {
	n, err := strconv.Atoi(tools)
	if err != nil {
		return err
	}
	s := server.NewMCPServer("tracker", "1")
	var names []string
	for i := range n - 1 {
		names = append(names, fmt.Sprintf("archive_%d", i))
	}
	for _, name := range append(names, "create_issue") {
		s.AddTool(mcp.NewTool(name, mcp.WithDescription("Does "+name+".")), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(name), nil
		})
	}
	return server.ServeStdio(s)
}
