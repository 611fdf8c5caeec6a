package integration

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Servers of the Go SDK with its default options have sessions, so they don't speak
// protocol 2026-07-28. They answer its server/discover all the same, and refuse all that
// follows, each version in its own way.
func TestGoSDKServers(t *testing.T) {
	for version, flags := range map[string][]string{
		"v1.7.0": {"-modfile", "servers/gosdk/v1.7.0.mod"},
		"v1.8.0": nil, // of this module
	} {
		t.Run(version, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "gosdk")
			require.NoError(t, command(".", nil, "go", append(append([]string{"build", "-o", program}, flags...), "./servers/gosdk")...))
			url, sdk, _ := strings.Cut(startPrinting(t, exec.Command(program)), " ")
			require.Equal(t, version, sdk)
			mgr := startManager(t, server{name: "go", URL: url})
			assert.Equal(t, mcphybrid.StateReady, mgr.Servers()[0].State)
			assert.Equal(t, 1, mgr.Servers()[0].Tools)
			assert.Equal(t, "Hi Ann", call(t, mgr, "mcp_go__greet", map[string]any{"name": "Ann"}))
		})
	}
}

// A server of the TypeScript SDK that has prompts only answers what it lacks with status
// 404, as protocol 2026-07-28 demands.
func TestPromptsOnly(t *testing.T) {
	folder, err := installMore("typescript")
	require.NoError(t, err)
	url := startPrinting(t, exec.Command("node", "servers/typescript/prompts.mjs", folder))
	mgr := startManager(t, server{name: "prompts", URL: url})
	assert.Equal(t, mcphybrid.StateReady, mgr.Servers()[0].State)
	assert.Zero(t, mgr.Servers()[0].Tools)
	assert.Empty(t, mgr.Problems())
	s := mgr.NewSession(nil)
	require.Len(t, s.Prompts(), 1)
	got, err := s.GetPrompt(t.Context(), "prompts", "greet", nil)
	require.NoError(t, err)
	require.Len(t, got.Messages, 1)
	_, err = s.Call(t.Context(), "mcp_prompts__greet", nil)
	require.Error(t, err)
	assert.Equal(t, mcphybrid.StateReady, mgr.Servers()[0].State)
}
