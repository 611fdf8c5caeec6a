package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client's model takes a part of a long result, and of a tool's results gets what the file selects.
func TestSelections(t *testing.T) {
	var rows []map[string]any
	for i := range 2000 {
		rows = append(rows, map[string]any{"id": i, "name": fmt.Sprintf("row %d of the table", i)})
	}
	data, err := json.Marshal(map[string]any{"rows": rows})
	require.NoError(t, err)
	s := server.NewMCPServer("db", "1", server.WithToolCapabilities(true))
	for _, name := range []string{"query", "count"} {
		s.AddTool(mcp.NewTool(name), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(string(data)), nil
		})
	}
	cfg := mcphybrid.ServerConfig{Name: "db", InProcess: s, ResultSelect: map[string]string{"count": ".rows | length"}}
	_, url, end := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{cfg}}, web.Options{})
	defer end()
	c, _ := connect(t, overHTTP(url), "test", generations["legacy"]...)
	defer c.Close()

	result, err := call(t.Context(), c, "mcp_db__query", map[string]any{})
	require.NoError(t, err)
	shown := ""
	for _, content := range result.Content {
		shown += mcp.GetTextFromContent(content)
	}
	assert.Contains(t, shown, "{rows: [2000 × {id: number, name: string}]}")
	assert.Less(t, len(shown), 5000)
	assert.Equal(t, `"row 1234 of the table"`, say(t, c, mcphybrid.PageToolName, map[string]any{"id": "r1", "select": ".rows[1234].name"}))

	result, err = call(t.Context(), c, "mcp_db__count", map[string]any{})
	require.NoError(t, err)
	assert.Equal(t, "2000", mcp.GetTextFromContent(result.Content[0]))
}

// Selections of many clients take no more memory than one. Who waits too long is told, and a long
// result is then cut without its shape.
func TestSelectionsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSelections()
		require.True(t, s.begin(t.Context(), time.Second))
		begun := time.Now()
		_, err := s.Select(t.Context(), ".", "1")
		assert.Equal(t, errBusy, err)
		assert.Equal(t, selectWait, time.Since(begun))
		assert.Empty(t, s.Shape("[1]"))
		assert.Equal(t, selectWait+shapeWait, time.Since(begun))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = s.Select(ctx, ".", "1")
		assert.Error(t, err)
		s.end()
		got, err := s.Select(t.Context(), ".", "1")
		require.NoError(t, err)
		assert.Equal(t, "1", got)
		assert.Equal(t, "[1 × number]", s.Shape("[1]"))
	})

	s := newSelections()
	text := "[" + strings.TrimSuffix(strings.Repeat("12345,", 100_000), ",") + "]"
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, uint64(0)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { _, _ = s.Select(t.Context(), `reduce range(1e9) as $i (""; . + "xxxxxxxxxxxxxxxx")`, text) })
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	for {
		select {
		case <-over:
			assert.Less(t, most, uint64(200<<20))
			return
		case <-time.After(5 * time.Millisecond):
			runtime.ReadMemStats(&m)
			if m.HeapAlloc > before {
				most = max(most, m.HeapAlloc-before)
			}
		}
	}
}
