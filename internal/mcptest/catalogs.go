// Package mcptest has helpers for the tests of several packages: real MCP servers in
// the process or as children, published catalogs, and checks for leftovers.
package mcptest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
)

// Catalogs returns the tools of published servers, by file name. It reads JSON files
// with an array "tools" from the folder $CATALOGS and skips the test if that is not
// set.
func Catalogs(t testing.TB) map[string][]json.RawMessage {
	t.Helper()
	dir := os.Getenv("CATALOGS")
	files, _ := filepath.Glob(dir + "/*.json")
	if dir == "" || len(files) == 0 {
		t.Skip("CATALOGS names no folder with the catalogs of published servers")
	}
	tools := make(map[string][]json.RawMessage)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var in struct{ Tools []json.RawMessage }
		require.NoError(t, json.Unmarshal(data, &in))
		tools[strings.TrimSuffix(filepath.Base(file), ".json")] = in.Tools
	}
	return tools
}

// CatalogTools returns the tools of [Catalogs] as those of servers that echo.
func CatalogTools(t testing.TB) map[string][]mcpserver.ServerTool {
	t.Helper()
	tools := make(map[string][]mcpserver.ServerTool)
	for server, list := range Catalogs(t) {
		for _, raw := range list {
			var in struct {
				Name, Description string
				InputSchema       json.RawMessage
			}
			require.NoError(t, json.Unmarshal(raw, &in))
			tool := Echo(in.Name, "")
			tool.Tool = mcp.NewToolWithRawSchema(in.Name, in.Description, in.InputSchema)
			tools[server] = append(tools[server], tool)
		}
	}
	return tools
}
