package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With all tools inline, a request has at most 3 % more tokens than the definitions.
func TestInventedServers(t *testing.T) {
	var out bytes.Buffer
	corpus := "../../testdata/corpus/tools.jsonl"
	require.NoError(t, run(t.Context(), []string{corpus}, "", 1, &out))
	rows := 0
	for line := range strings.Lines(out.String()) {
		fields := strings.Fields(line)
		if len(fields) == 10 && fields[1] == fields[2] {
			rows++
			assert.Regexp(t, `^\+[0-2]\.`, fields[5], line)
		}
	}
	assert.Equal(t, 27, rows, out.String())
	assert.Contains(t, out.String(), "all 27, 40 tools inline")
	assert.Contains(t, out.String(), "all 27, 0 tools inline")

	assert.ErrorContains(t, run(t.Context(), []string{corpus}, "nobody", 1, &out), "there is no server")
}

func TestFilesOfOneServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"tools":[{"name":"buy","description":"Buys","inputSchema":{"type":"object"}}]}`), 0o600))
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{file}, "shop", 1, &out))
	assert.Contains(t, out.String(), "\nshop  ")
	assert.Contains(t, out.String(), "no tool is deferred")
}
