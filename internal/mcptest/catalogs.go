// Package mcptest has what the tests of several packages share: real MCP
// servers in the process, published catalogs, and a look at what is left over.
package mcptest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Catalogs returns the tools of published servers by file: those in the folder
// that $CATALOGS names, JSON files with an array "tools" each. The test is
// skipped without it.
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
