package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reloading returns a gateway over a file, not served, with its log, and what looks at the file
// as often as it takes to use a change, and waits until the change is done.
func reloading(t *testing.T, path string) (g *gateway, book *mcptest.Log, look func()) {
	t.Helper()
	book = new(mcptest.Log)
	log := slog.New(slog.NewTextHandler(book, nil))
	s := newSource(servers.Sources{Config: path})
	cfg, err := s.load(log)
	require.NoError(t, err)
	g = newGateway(gatewayOptions{servers: cfg.Servers, source: s, grace: time.Minute, log: log})
	t.Cleanup(g.close)
	<-g.all.Done()
	return g, book, func() {
		s.followed.Check(log)
		s.followed.Check(log)
		for _, c := range s.changes {
			<-c.done
		}
	}
}

// states are the states of a gateway's servers, and since when.
func states(g *gateway) map[string]mcphybrid.ServerStatus {
	all := make(map[string]mcphybrid.ServerStatus)
	for _, s := range g.mgr.Servers() {
		all[s.Name] = s
	}
	return all
}

// remote returns the entry of a server over HTTP.
func remote(t *testing.T, tools ...server.ServerTool) string {
	t.Helper()
	return fmt.Sprintf(`{"url": %q}`, mcptest.ServeHTTP(t, server.NewStreamableHTTPServer(mcptest.Server("web", tools...)), "127.0.0.1:0"))
}

func file(entries string) string { return `{"mcpServers": {` + entries + `}}` }

// What the file adds, removes and changes comes, goes and starts anew. All else goes on.
func TestServersChangeWithTheirFile(t *testing.T) {
	t.Parallel()
	a, b, c := remote(t, mcptest.Echo("a", "A")), remote(t, mcptest.Echo("b", "B")), remote(t, mcptest.Echo("c", "C"))
	path := commandtest.WriteFile(t, "mcp.json", file(`"stays": `+a+`, "goes": `+b+`, "turns": `+b))
	g, book, look := reloading(t, path)
	before := states(g)
	require.Len(t, before, 3)

	commandtest.ReplaceFile(t, path, file(`"stays": `+a+`, "turns": `+c+`, "comes": `+b))
	look()
	after := states(g)
	assert.Len(t, after, 3)
	assert.Equal(t, before["stays"], after["stays"], "it was not touched")
	assert.Equal(t, mcphybrid.StateReady, after["comes"].State)
	assert.NotContains(t, after, "goes")
	result, err := g.mgr.Call(within(t), "mcp_turns__c", map[string]any{})
	require.NoError(t, err)
	assert.False(t, result.IsError)
	assert.Contains(t, book.String(), "added=[comes] removed=[goes] changed=[turns]")
	assert.Len(t, *g.servers.Load(), 3)

	commandtest.ReplaceFile(t, path, file(`"stays": `+a+`, "turns": {"url": "http://127.0.0.1:9", "disabled": true}`))
	look()
	assert.Len(t, states(g), 1, "one is switched off, one removed")
	commandtest.ReplaceFile(t, path, file(`"stays": `+a+`, "turns": `+c))
	look()
	assert.Contains(t, states(g), "turns", "it is switched on again")
	lines := strings.Count(book.String(), "is used")
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
	look()
	assert.Equal(t, lines, strings.Count(book.String(), "is used"), "a file that says the same is no news")
}

// A file that is not right changes nothing, and the log says once why. One that is being
// written is left alone until two looks see the same.
func TestWrongFilesAreIgnored(t *testing.T) {
	t.Parallel()
	a, b := remote(t, mcptest.Echo("a", "A")), remote(t, mcptest.Echo("b", "B"))
	path := commandtest.WriteFile(t, "mcp.json", file(`"a": `+a+`, "broken": {"command": "x", "timeout": "soon"}`))
	g, book, look := reloading(t, path)
	before := states(g)
	for text, says := range map[string]string{
		"":                           "JSON",
		`{"mcpServers": {"b"`:        "JSON",
		`{"servrs": {}}`:             `mcpServers`,
		file(`"b": {"comand": "x"}`): "command",
		file(`"a": ` + a + `, "b": {"args": 5}, "c": ` + b): "args",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		look()
		look()
		assert.Equal(t, before, states(g), text)
		_, said, found := strings.Cut(book.String(), "a changed file is not used")
		assert.True(t, found, text)
		assert.Contains(t, said, says, text)
		assert.Contains(t, said, "the servers stay as they were")
	}
	assert.Equal(t, 5, strings.Count(book.String(), "a changed file is not used"), "each once")
	assert.Equal(t, 1, strings.Count(book.String(), "is not known here and has no effect; did you mean"), "as at the start")
	page := func() string {
		w := httptest.NewRecorder()
		g.page().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/", nil))
		return w.Body.String()
	}
	assert.Contains(t, page(), "A change of ")
	assert.Contains(t, page(), "the servers stay as they were")
	require.NoError(t, os.Remove(path))
	look()
	assert.Equal(t, before, states(g), "it was removed")

	commandtest.ReplaceFile(t, path, file(`"a": `+a))
	f := g.opts.source.followed
	f.Check(g.opts.log)
	commandtest.ReplaceFile(t, path, file(`"a": `+a+`, "b": `+b+`, "broken": {"command": "x", "timeout": "soon"}`))
	f.Check(g.opts.log)
	assert.Equal(t, before, states(g), "it is still being written")
	look()
	assert.Len(t, states(g), 2, "what was wrong from the start keeps nothing back")
	assert.NotContains(t, page(), "A change of ")
	assert.Equal(t, 1, strings.Count(book.String(), "what was wrong with the file is mended"))

	require.NoError(t, os.WriteFile(path, []byte(file(`"a": `+a+`, "c": {"command": "x", "args": ["${THIS_ONE_IS_NOT_SET}"]}`)), 0o600))
	look()
	look()
	assert.Contains(t, page(), "Set them where this program is started, and start it again.")
}

// A pipe that takes the place of the file is not opened, which would wait for who writes to it. A
// file that takes its place is used.
func TestPipesAreNotOpened(t *testing.T) {
	t.Parallel()
	mcptest.SkipUnlessUnix(t)
	a, b := remote(t, mcptest.Echo("a", "A")), remote(t, mcptest.Echo("b", "B"))
	path := commandtest.WriteFile(t, "mcp.json", file(`"a": `+a))
	g, book, look := reloading(t, path)
	before := states(g)
	require.NoError(t, os.Remove(path))
	require.NoError(t, exec.Command("mkfifo", path).Run())
	look()
	assert.Equal(t, before, states(g))
	assert.Contains(t, book.String(), "is not a regular file; the servers stay as they were")
	commandtest.ReplaceFile(t, path, file(`"a": `+a+`, "b": `+b))
	look()
	assert.Len(t, states(g), 2)
}

// A server that the file removes ends when its calls have ended, and they have their answers.
func TestCallsOfRemovedServers(t *testing.T) {
	t.Parallel()
	reached, release := make(chan bool), make(chan bool)
	slow := server.ServerTool{Tool: mcp.NewTool("stir"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		reached <- true
		<-release
		return mcp.NewToolResultText("stirred"), nil
	}}
	cfg, err := mcphybrid.LoadConfig(commandtest.WriteFile(t, "mcp.json", file(`"x": `+remote(t, slow))))
	require.NoError(t, err)
	g, url, _ := startHTTP(t, gatewayOptions{servers: cfg.Servers}, web.Options{})
	g.opts.grace = patience
	c, _ := connect(t, overHTTP(url), "test")
	answer := make(chan string, 1)
	go func() {
		result, err := call(within(t), c, "mcp_x__stir", map[string]any{})
		if err != nil {
			answer <- err.Error()
			return
		}
		answer <- textOf(result)
	}()
	<-reached
	removed := make(chan bool)
	go func() {
		g.replace(within(t), "x", nil)
		close(removed)
	}()
	select {
	case <-removed:
		t.Error("it did not wait")
	default:
	}
	assert.True(t, g.hasServer("x"))
	close(release)
	assert.Equal(t, "stirred", <-answer)
	<-removed
	assert.True(t, g.hasServer("x"), "the file has it: it could begin anew")
	g.servers.Store(new([]mcphybrid.ServerConfig))
	assert.False(t, g.hasServer("x"))
	assert.Empty(t, g.book.running.calls)
}

// Who waits for the end of a server's calls waits for all of them, and no longer than its context.
func TestRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r running
		r.wait(t.Context(), "x")
		one, two := r.begin("x"), r.begin("x")
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.wait(short, "x")
		assert.Error(t, short.Err())
		ended := false
		go func() { r.wait(t.Context(), "x"); ended = true }()
		synctest.Wait()
		one()
		synctest.Wait()
		assert.False(t, ended)
		two()
		synctest.Wait()
		assert.True(t, ended)
		assert.Empty(t, r.calls)
		assert.Empty(t, r.waiting)
	})
}

// A server that fails when it comes, or that changes so that it fails, stays listed with its
// cause, and is tried again until the file has another. The log tells its failure once.
func TestServersThatFailWhenTheyChangeStay(t *testing.T) {
	t.Parallel()
	ok := make(chan bool, 1)
	real := server.NewStreamableHTTPServer(mcptest.Server("web", mcptest.Echo("a", "A")))
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-ok:
			ok <- true
			real.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(h.Close)
	a := remote(t, mcptest.Echo("a", "A"))
	path := commandtest.WriteFile(t, "mcp.json", file(`"a": `+a+`, "turns": `+a))
	g, book, look := reloading(t, path)
	commandtest.ReplaceFile(t, path, file(`"a": `+a+`, "turns": {"command": "/no/such/program"}, "comes": {"url": "`+h.URL+`"}`))
	look()
	after := states(g)
	require.Len(t, after, 3)
	for name, cause := range map[string]string{"turns": "no such file", "comes": "404"} {
		assert.Contains(t, []mcphybrid.State{mcphybrid.StateDown, mcphybrid.StateConnecting}, after[name].State, name)
		assert.ErrorContains(t, after[name].Err, cause)
		assert.Positive(t, after[name].Failures, name)
	}
	for name, cause := range map[string]string{"turns": "no such file", "comes": "404"} {
		mcptest.Soon(t, func() bool { return strings.Contains(book.String(), cause) }, name) // the log follows the state
		told := 0
		for line := range strings.Lines(book.String()) {
			if strings.Contains(line, cause) && !strings.Contains(line, "failures=") { // not a later attempt
				told++
				assert.Contains(t, line, "a server is down")
				assert.Contains(t, line, "retry=")
			}
		}
		assert.Equal(t, 1, told, name)
	}

	ok <- true
	mcptest.Soon(t, func() bool { return states(g)["comes"].State == mcphybrid.StateReady })
	commandtest.ReplaceFile(t, path, file(`"a": `+a+`, "turns": `+a))
	look()
	after = states(g)
	assert.Len(t, after, 2)
	assert.Equal(t, mcphybrid.StateReady, after["turns"].State)
	assert.NoError(t, after["turns"].Err)
}

// A server that fails at the start is one line of the log: its state. An error that is none is
// told, too.
func TestFailuresOfTheStartAreLoggedOnce(t *testing.T) {
	t.Parallel()
	path := commandtest.WriteFile(t, "mcp.json", file(`"a": `+remote(t, mcptest.Echo("a", "A"))+`, "gone": {"command": "no-such-program"}, "lacks": {"command": "${GATEWAY_UNSET}"}`))
	g, book, _ := reloading(t, path)
	g.started.Wait()
	for _, cause := range []string{"no-such-program", "GATEWAY_UNSET"} { // the log follows the state
		mcptest.Soon(t, func() bool { return strings.Contains(book.String(), cause) })
	}
	assert.NotContains(t, book.String(), `server \"gone\"`)
	assert.NotContains(t, book.String(), `server \"lacks\"`)
	assert.Equal(t, 1, strings.Count(book.String(), "environment variables not set: GATEWAY_UNSET"))
	assert.Contains(t, book.String(), "a server is down")

	g.logUntold(errors.Join(errors.New("mcphybrid: server \"gone\": no"), errors.New("mcphybrid: server \"other\": its name is taken")))
	assert.NotContains(t, book.String(), `server \"gone\"`)
	assert.Contains(t, book.String(), `server \"other\": its name is taken`)
}
