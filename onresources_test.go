package mcphybrid

import (
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Nothing waits for OnResources, so that it may hang, and close or remove what it is
// told of.
func TestOnResourcesMayDoAnything(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	for name, act := range map[string]func(m *Manager){
		"close":  func(m *Manager) { assert.NoError(t, m.Close()) },
		"remove": func(m *Manager) { assert.True(t, m.RemoveServer("archive")) },
		"hang":   func(*Manager) { <-release },
	} {
		var m *Manager
		var made, calls atomic.Int32
		done := make(chan struct{})
		archive := newArchive()
		m = NewManager(&Options{Servers: []ServerConfig{{Name: "archive", InProcess: archive}}, OnResources: func(string) {
			if made.Load() > 0 && calls.Add(1) == 1 {
				act(m)
				close(done)
			}
		}})
		require.NoError(t, m.Start(t.Context()))
		made.Store(1)
		archive.AddResources(textResource("mem://letters/2", "second letter", ""))
		soon(t, func() bool { return calls.Load() > 0 })
		if name == "hang" {
			archive.AddResources(textResource("mem://letters/3", "third letter", ""))
			soon(t, func() bool { return len(m.Default().Resources()) == 4 })
			require.NoError(t, m.Close())
			assert.Equal(t, int32(1), calls.Load(), "one call follows the other")
			close(release)
		}
		<-done
		require.NoError(t, m.Close(), name)
	}
}

// A host is told of tools that are for apps only: no registry has them.
func TestOnResourcesTellsOfToolsForApps(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	m, _ := newTestManager(t, &Options{OnResources: func(string) { calls.Add(1) }})
	tool := echoTool("polls", "Polls")
	require.NoError(t, m.AddTools("s", tool))
	require.NoError(t, m.AddTools("t", echoTool("other", "Another")))
	assert.Zero(t, calls.Load())
	tool.Tool.Meta = mcp.NewMetaFromMap(map[string]any{"ui": map[string]any{"visibility": []string{"app"}}})
	require.NoError(t, m.AddTools("app", tool))
	soon(t, func() bool { return calls.Load() == 1 })
	require.NoError(t, m.AddTools("u", echoTool("third", "A third")))
	require.True(t, m.RemoveServer("app"))
	soon(t, func() bool { return calls.Load() == 2 })
}
