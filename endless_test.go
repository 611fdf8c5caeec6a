package mcphybrid

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func mean(list []float64) (m float64) {
	for _, x := range list {
		m += x / float64(len(list))
	}
	return m
}

// A session beside a server that lists 40 other tools each time it is asked, half of
// them with new names, half with new texts, keeps its memory, its tool list and the
// speed of its calls of another server. The whole form has 10,000 lists.
func TestEndlessLists(t *testing.T) {
	if testing.Short() {
		t.Skip("not a quick test: 12 s")
	}
	lists := mcptest.Long(10_000, 160)
	if mcptest.Race() { // which takes five times as long
		lists = mcptest.Long(1000, 80)
	}
	for range 3 {
		heapInUse() // what other tests had is freed now, not meanwhile
	}
	var listed atomic.Int64
	var still atomic.Bool
	srv := mcpserver.NewMCPServer("endless", "1", mcpserver.WithToolFilter(func(context.Context, []mcp.Tool) (tools []mcp.Tool) {
		list := listed.Load()
		if !still.Load() {
			list = listed.Add(1)
		}
		for i := range 20 {
			tools = append(tools,
				mcp.NewTool(fmt.Sprintf("tool%d_%d", i, list), mcp.WithDescription(fmt.Sprintf("Does chore%d of day%d", i, list))),
				mcp.NewTool(fmt.Sprint("tool", i), mcp.WithDescription(fmt.Sprintf("Does chore%d, as of day%d", i, list))))
		}
		return tools
	}))
	srv.AddTools(echoTool("any", ""))
	m, _ := newTestManager(t, &Options{
		Limits:  config.Limits{Refresh: time.Millisecond, MaxTools: 60}, // so that what is kept of each tool for ever is soon full
		Servers: []ServerConfig{{Name: "endless", InProcess: srv}, inProcess("good", 30)},
	})
	s := m.NewSession(nil)

	const steps = 20
	heap := make([][]float64, 4)
	var slower []float64 // calls beside changing lists, against calls beside a list that stays, for each step
	times := make([]time.Duration, 0, 1000)
	// calls calls a tool while more holds and returns the median time.
	calls := func(more func(n int) bool) float64 {
		times = times[:0]
		for n := 0; more(n); n++ {
			start := time.Now()
			_, err := s.Call(t.Context(), "mcp_good__tool_007", nil)
			if took := time.Since(start); len(times) < cap(times) {
				times = append(times, took)
			}
			require.NoError(t, err)
		}
		slices.Sort(times)
		return times[len(times)/2].Seconds()
	}
	for step := range steps {
		still.Store(false)
		until := int64((step + 1) * lists / steps)
		busy := calls(func(n int) bool { return n < 100 || listed.Load() < until })
		still.Store(true)
		slower = append(slower, busy/calls(func(n int) bool { return n < 200 }))

		tools := s.Tools()
		assert.LessOrEqual(t, len(tools), defaultMaxListed+int(metaKinds))
		tokens := len(s.PromptSections(PromptFull)) / 4
		for _, tool := range tools {
			tokens += (len(tool.Name()) + len(tool.Description()) + len(tool.InputSchema())) / 4
		}
		assert.Less(t, tokens, 20_000)
		for _, found := range s.Search("chore", 3) {
			s.ActivateToolIfDeferred(found.Tool.Name())
		}
		s.NextTurn()
		heap[4*step/steps] = append(heap[4*step/steps], float64(min(heapInUse(), heapInUse(), heapInUse()))) // a listing may be under way
	}
	slices.Sort(slower)
	second, last := mean(heap[1]), mean(heap[3])
	t.Logf("heap %.0f, %.0f, %.0f, %.0f KB; calls %.2f times as long beside %d lists",
		mean(heap[0])/1024, second/1024, mean(heap[2])/1024, last/1024, slower[steps/2], lists)
	assert.LessOrEqual(t, last/second, 1+mcptest.Long(0.05, 0.15)) // 40 lists that stay are half as much again
	assert.Less(t, slower[steps/2], 1.5)
	assert.NoError(t, check(m, s))
}
