package inspect

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/exit"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A login lasts from one run to the next, until the logout.
func TestInspectLogin(t *testing.T) {
	a := mcptest.NewAuthority(t, server.NewStreamableHTTPServer(mcptest.Server("web", mcptest.Echo("echo", "Echoes"))))
	dir := t.TempDir()
	config := filepath.Join(dir, "mcp.json")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {"web": {"url": %q}}}`, a.Server), 0o600))
	args := []string{"-config", config, "-tokens", filepath.Join(dir, "tokens"), "-call", "mcp_web__echo", "-args", `{"text": "soup"}`}
	stdout, stderr, err := inspect.Run(t, args...)
	require.ErrorIs(t, err, exit.ErrFound, "the call failed")
	assert.Contains(t, stdout+stderr, "unauthorized")

	out, err := os.Create(filepath.Join(dir, "out"))
	require.NoError(t, err)
	defer out.Close()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "http://") {
				mcptest.Browse(t, lines.Text())
			}
		}
	}()
	err = run(t.Context(), append(args, "-login", "web"), out, w)
	require.NoError(t, w.Close())
	<-done
	require.NoError(t, err)

	stdout, stderr, err = inspect.Run(t, args...)
	require.NoError(t, err)
	assert.Empty(t, withoutWaits(stderr))
	assert.Contains(t, stdout, "ready")
	stdout, stderr, err = inspect.Run(t, append(args, "-logout", "web")...)
	require.ErrorIs(t, err, exit.ErrFound, "the call failed")
	assert.Contains(t, stdout+stderr, "unauthorized")
	assert.Equal(t, 1, a.Count().Revoked)
	stdout, stderr, err = inspect.Run(t, args...)
	require.ErrorIs(t, err, exit.ErrFound, "the call failed")
	assert.Contains(t, stdout+stderr, "unauthorized")
	_, _, err = inspect.Run(t, append(args, "-logout", "none")...)
	assert.ErrorContains(t, err, "there is no such server")
	_, _, err = inspect.Run(t, append(args, "-login", "none")...)
	assert.ErrorContains(t, err, "there is no such server")
}
