package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The most used tools are inline, as recorded in earlier runs, until Reorder.
func TestMostUsedAreInline(t *testing.T) {
	t.Parallel()
	doc := store.File(filepath.Join(t.TempDir(), "usage.json"))
	run := func(opts UsageOptions, f func(*Manager)) []string {
		opts.Store = doc
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, Pins: []string{"*_005"}, Usage: &opts, Servers: []ServerConfig{inProcess("a", 6)}})
		inline := toolNames(m.InlineTools())
		if f != nil {
			f(m)
		}
		require.NoError(t, m.Close())
		return inline
	}
	call := func(m *Manager, name string, times int) {
		for range times {
			_, err := m.Call(t.Context(), name, nil)
			require.NoError(t, err)
		}
	}
	first := run(UsageOptions{}, func(m *Manager) {
		before, _ := sentBytes(m.def)
		call(m, "mcp_a__tool_003", 3)
		call(m, "mcp_a__tool_002", 2)
		_, err := m.Call(t.Context(), "mcp_a__tool_001", `{"text":7}`)
		require.Error(t, err, "which is no use of it")
		assert.Equal(t, []string{"mcp_a__tool_000", "mcp_a__tool_005"}, toolNames(m.InlineTools()), "nothing moves by itself")
		after, _ := sentBytes(m.def)
		assert.Equal(t, before, after)
		require.NoError(t, m.Reorder())
		assert.Equal(t, []string{"mcp_a__tool_003", "mcp_a__tool_005"}, toolNames(m.InlineTools()))
		assert.Equal(t, "it ranks 1 among the most used", m.Default().Placements()[3].Reason)
		now := m.cur.Load()
		require.NoError(t, m.Reorder())
		assert.Same(t, now, m.cur.Load(), "nothing has changed")
	})
	assert.Equal(t, []string{"mcp_a__tool_000", "mcp_a__tool_005"}, first)
	assert.Equal(t, []string{"mcp_a__tool_003", "mcp_a__tool_005"}, run(UsageOptions{}, nil))
	assert.Equal(t, []string{"mcp_a__tool_004", "mcp_a__tool_005"}, run(UsageOptions{Counts: map[string]float64{"mcp_a__tool_004": 3.5, "mcp_a__tool_001": -1}}, nil))
}

func TestHalfLifeIsChecked(t *testing.T) {
	t.Parallel()
	assert.PanicsWithValue(t, "mcphybrid: UsageOptions.HalfLife is -1ns, must not be negative", func() {
		NewManager(&Options{Usage: &UsageOptions{HalfLife: -1}})
	})
}

func TestUsageIsCountedByMany(t *testing.T) {
	t.Parallel()
	doc := new(mcptest.Store)
	m, _ := newTestManager(t, &Options{Usage: &UsageOptions{Store: doc}, Servers: []ServerConfig{inProcess("a", 3)}})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for range 50 {
				_, err := m.Call(t.Context(), fmt.Sprintf("mcp_a__tool_%03d", g%3), nil)
				assert.NoError(t, err)
			}
			assert.NoError(t, m.Reorder())
		})
	}
	wg.Wait()
	require.NoError(t, m.Reorder(), "which stores them all")
	var stored struct {
		Tools map[string]struct{ Count float64 }
	}
	require.NoError(t, json.Unmarshal(doc.Data, &stored))
	total := 0.0
	for _, u := range stored.Tools {
		total += u.Count
	}
	assert.InDelta(t, 400, math.Round(total), 1)
}

// A failed call does not count as use.
func TestFailedCallsAreNoUse(t *testing.T) {
	t.Parallel()
	failing := echoTool("failing", "")
	failing.Handler = func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("no"), nil
	}
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Usage: new(UsageOptions), Servers: []ServerConfig{serving("s", echoTool("a", ""), failing)}})
	for range 3 {
		_, err := m.Call(t.Context(), "mcp_s__failing", nil)
		require.NoError(t, err)
	}
	require.NoError(t, m.Reorder())
	assert.Equal(t, []string{"mcp_s__a"}, toolNames(m.InlineTools()))
}

// The record has the system's tools only, not a user's own.
func TestUsersToolsAreNotRecorded(t *testing.T) {
	t.Parallel()
	doc := new(mcptest.Store)
	m, _ := newTestManager(t, &Options{Usage: &UsageOptions{Store: doc}, Servers: []ServerConfig{inProcess("a", 2)}})
	u := newUser(t, m, "u", nil, echoTool("mine", ""))
	require.NoError(t, u.Start(t.Context()))
	for _, name := range []string{"mcp_own__mine", "mcp_a__tool_001"} {
		_, err := u.Default().Call(t.Context(), name, nil)
		require.NoError(t, err)
	}
	require.NoError(t, u.Close())
	assert.NotContains(t, string(doc.Data), "mine", "written when the user ends")
	require.NoError(t, m.Close())
	assert.Contains(t, string(doc.Data), "mcp_a__tool_001")
	assert.NotContains(t, string(doc.Data), "mine")
}

// The first Turn may begin with another list than the host showed before.
func TestFirstTurnIsNoCompact(t *testing.T) {
	t.Parallel()
	var losses []snapshot.Loss
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 5), inProcess("b", 5)}, OnEvent: func(e Event) {
		if e.Kind == EventCacheLost {
			losses = append(losses, e.Loss)
		}
	}})
	s := m.NewSession(nil)
	s.Tools()
	s.CountUsage(provider.Usage{Input: 5000, Written: 5000})
	turnOf(t, s, provider.OpenAIChat, "")
	s.CountUsage(provider.Usage{Input: 5000, Written: 5000})
	require.Len(t, losses, 1)
	require.Equal(t, snapshot.LossTools, losses[0].Cause)
}
