package gateway

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/mcphybrid/mcphybrid/internal/terminal/terminaltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// In a terminal a person reads what starts, where the page is and what came of it.
func TestStartInATerminal(t *testing.T) {
	t.Parallel()
	path := commandtest.WriteFile(t, "mcp.json", file(`"a": `+remote(t, mcptest.Echo("a", "A"))+`, "gone": {"command": "no-such-program"}, "off": {"command": "x", "disabled": true}`))
	g, _, _ := reloading(t, path)
	book := new(mcptest.Log)
	g.showStart(terminal.Paper(book, 80), "mcp.json", "http://127.0.0.1:1/mcp", "http://127.0.0.1:1/debug")
	g.started.Wait()
	assert.Regexp(t, `^2 servers of mcp.json start, 1 switched off; the file is read again when it\s+changes
clients connect to  http://127.0.0.1:\d+/mcp
the page is at      http://127.0.0.1:\d+/debug
✓ a  +\d\.\d\ds  ready, 1 tool
✗ gone +\d\.\d\ds  failed: program not found: no-such-program
1 of 2 servers are ready after \d\.\d\ds, with 1 tool
$`, book.String())
}

// Beside a screen, the log has the states of servers only once all have started.
func TestLogBesideAScreen(t *testing.T) {
	t.Parallel()
	book := new(mcptest.Log)
	all, ready := context.WithCancel(t.Context())
	log := slog.New(withoutStarts{slog.NewTextHandler(book, nil), all}).With("a", "b").WithGroup("g")
	log.Warn("mcphybrid: a server is down")
	assert.Empty(t, book.String())
	log.Warn("mcphybrid: nothing is cached")
	ready()
	log.Warn("mcphybrid: a server is down")
	assert.Equal(t, 1, strings.Count(book.String(), "a server is down"))
	assert.Contains(t, book.String(), "nothing is cached")
}

// A gateway that is told to end while its servers start says nothing of what became of them.
func TestEndDuringTheStartInATerminal(t *testing.T) {
	t.Parallel()
	path := commandtest.WriteFile(t, "mcp.json", file(`"silent": `+commandtest.Child(t, "silent")))
	cfg, err := mcphybrid.LoadConfig(path)
	require.NoError(t, err)
	g := newGateway(gatewayOptions{servers: cfg.Servers, log: slog.New(slog.DiscardHandler)})
	book := new(mcptest.Log)
	g.showStart(terminal.Paper(book, 80), "mcp.json", "", "")
	g.close()
	assert.Equal(t, "1 server of mcp.json starts; the file is read again when it changes\nit waits for one client on standard input; -http serves any number\n", book.String())
}

// In a pipe there are lines of the log only.
func TestScreenIsATerminal(t *testing.T) {
	t.Parallel()
	tty, written := terminaltest.Open(t, 60, 20)
	assert.NotNil(t, screenOf(tty, io.Discard))
	written()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	assert.Nil(t, screenOf(w, io.Discard))
	assert.Nil(t, screenOf(new(mcptest.Log), io.Discard))
}
