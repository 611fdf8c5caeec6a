package gateway

//lint:file-ignore SA1019 what the protocol had before 2026-07-28 is served, too

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A line is a message to a client.
type line struct {
	ID     *int   `json:"id"`
	Method string `json:"method"`
	Result struct {
		Instructions string
		Tools        []struct{ Name string }
		Content      []struct{ Text string }
	}
}

func (l line) names() (names []string) {
	for _, tool := range l.Result.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func (l line) text() (text string) {
	for _, c := range l.Result.Content {
		text += c.Text
	}
	return text
}

func parse(t *testing.T, message []byte) (l line) {
	t.Helper()
	require.NoError(t, json.Unmarshal(message, &l), string(message))
	return l
}

// A toldSink is a stream of a client.
type toldSink chan string

func (s toldSink) Notify(method string, _ any) bool {
	s <- method
	return true
}

// slowServer answers nothing until answers is closed.
func slowServer(name string, answers <-chan struct{}, tools ...server.ServerTool) mcphybrid.ServerConfig {
	hooks := &server.Hooks{}
	hooks.AddBeforeAny(func(context.Context, any, mcp.MCPMethod, any) { <-answers })
	s := server.NewMCPServer(name, "1", server.WithHooks(hooks), server.WithToolCapabilities(true))
	s.AddTools(tools...)
	return mcphybrid.ServerConfig{Name: name, InProcess: s}
}

// after returns a channel that is closed then.
func after(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}

// A newcomer is a client in this process that has just connected.
type newcomer struct {
	t    *testing.T
	g    *gateway
	ctx  context.Context
	told toldSink
}

func newNewcomer(t *testing.T, g *gateway, id string) *newcomer {
	s := server.NewInProcessSession(id, nil)
	require.NoError(t, g.front.RegisterSession(t.Context(), s))
	n := &newcomer{t, g, g.front.WithContext(t.Context(), s), make(toldSink, 100)}
	g.open(id).Attach(n.told, true)
	return n
}

// say sends a message and returns the answer.
func (n *newcomer) say(message string) (l line) {
	n.t.Helper()
	answer, err := json.Marshal(n.g.front.HandleMessage(n.ctx, json.RawMessage(message)))
	require.NoError(n.t, err)
	return parse(n.t, answer)
}

const (
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	listTools   = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
)

func quiet(opts gatewayOptions) *gateway {
	opts.logLevel, opts.log = mcp.LoggingLevelInfo, slog.New(slog.DiscardHandler)
	return newGateway(opts)
}

// holding returns the context of a request of who has a token with these rights.
func holding(t *testing.T, may mcphybrid.Access) context.Context {
	ctx, release := tokens.With(t.Context(), &tokens.Holder{Access: may, Over: context.Background()})
	t.Cleanup(release)
	return ctx
}

// A client is greeted at once while a server does not answer. The list of tools waits for
// that, but not longer than the client may, and the client is told of the rest.
func TestInitializeWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = 30 * time.Second
		g := quiet(gatewayOptions{wait: defaultWait, servers: []mcphybrid.ServerConfig{
			{Name: "quick", InProcess: mcptest.Server("quick", mcptest.Echo("one", "The first"))},
			slowServer("silent", after(late), mcptest.Echo("two", "The second")),
		}})
		defer g.close()
		begun := time.Now()
		c := newNewcomer(t, g, "one")
		hello := c.say(ping)
		assert.Zero(t, time.Since(begun))
		assert.Contains(t, hello.Result.Instructions, mcphybrid.SearchToolName)
		assert.Contains(t, hello.Result.Instructions, `"silent"`)
		guest := g.stranger(holding(t, mcphybrid.Access{Allow: []string{"quick/*"}}))
		assert.NotContains(t, g.instructions(guest), "silent", "a server that it may not use")

		c.say(initialized)
		synctest.Wait()
		assert.Zero(t, time.Since(begun))
		for len(c.told) > 0 { // of the quick server
			<-c.told
		}
		list := c.say(listTools).names()
		assert.Equal(t, defaultWait, time.Since(begun))
		assert.Contains(t, list, "mcp_quick__one")
		assert.NotContains(t, list, "mcp_silent__two")
		assert.Empty(t, c.told)

		time.Sleep(late) // of the bubble
		synctest.Wait()
		require.Len(t, c.told, 1)
		assert.Equal(t, mcp.MethodNotificationToolsListChanged, <-c.told)
		waited := time.Now()
		assert.Contains(t, c.say(listTools).names(), "mcp_silent__two")
		assert.Zero(t, time.Since(waited))
	})
}

// A client that lists again when told is greeted before there is anything to search for.
// It reads all the same how it will be found.
func TestFollowerIsGreetedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := quiet(gatewayOptions{wait: defaultWait, follow: []string{"*"}, servers: []mcphybrid.ServerConfig{
			slowServer("silent", after(time.Second), mcptest.Echo("two", "The second")),
		}})
		defer g.close()
		instructions := newNewcomer(t, g, "one").say(ping).Result.Instructions
		assert.Contains(t, instructions, `"silent"`)
		assert.Contains(t, instructions, mcphybrid.SearchToolName)
		time.Sleep(time.Second) // of the bubble: the server does not wait for ever
		synctest.Wait()
	})
}

// Codex begins its first turn after a second and never lists the tools again. It has the
// search by then, in each of 20 starts without a cache, and its model finds the tools of
// slow servers.
func TestToolsInTheFirstTurn(t *testing.T) {
	const limit, slow = time.Second, 3 * time.Second
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			servers := []mcphybrid.ServerConfig{{Name: "quick", InProcess: mcptest.Server("quick", mcptest.Echo("one", "The first"))}}
			for i := range 4 {
				servers = append(servers, slowServer(fmt.Sprint("s", i), after(slow), mcptest.Echo("two", "The second")))
			}
			g := quiet(gatewayOptions{wait: defaultWait, servers: servers})
			defer g.close()
			begun := time.Now()
			c := newNewcomer(t, g, "one")
			c.say(strings.Replace(ping, `"name":"test"`, `"name":"codex-mcp-client"`, 1))
			c.say(initialized)
			list := c.say(listTools).names()
			assert.Less(t, time.Since(begun), limit)
			assert.Subset(t, list, []string{"mcp_quick__one", mcphybrid.SearchToolName, mcphybrid.CallToolName})
			found := c.say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"mcp_tool_search","arguments":{"query":"the second"}}}`).text()
			assert.Equal(t, slow, time.Since(begun))
			for i := range 4 {
				assert.Contains(t, found, fmt.Sprintf("mcp_s%d__two", i))
			}
			call := `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"mcp_tool_call","arguments":{"name":"mcp_s3__two","arguments":{}}}}`
			assert.NotContains(t, c.say(call).text(), "no tool")
		})
	}
}

// A wait that the user gives holds for Codex, too, also if it is the default.
func TestGivenWaitHoldsForCodex(t *testing.T) {
	for _, args := range [][]string{{"-wait", "4s"}, {"-wait", defaultWait.String()}, {"-wait", "3s"}} {
		synctest.Test(t, func(t *testing.T) {
			flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
			wait := flags.Duration("wait", defaultWait, "")
			require.NoError(t, flags.Parse(args))
			g := quiet(gatewayOptions{wait: *wait, insists: given(flags)["wait"], servers: []mcphybrid.ServerConfig{slowServer("slow", after(2*time.Second), mcptest.Echo("one", "The first"))}})
			defer g.close()
			c := newNewcomer(t, g, "one")
			c.say(strings.Replace(ping, `"name":"test"`, `"name":"codex-mcp-client"`, 1))
			c.say(initialized)
			assert.Contains(t, c.say(listTools).names(), "mcp_slow__one", "%v", args)
		})
	}
}

// A client's side of a connection: say returns the answer, if any, and told has all that
// came besides.
type rawClient struct {
	say  func(message string) line
	told chan line
}

// rawStdio talks to a gateway that runs as a child.
func rawStdio(t *testing.T) rawClient {
	cmd := exec.Command(self(t), "-config", writeConfig(t, "kitchen"))
	cmd.Env = append(os.Environ(), gatewayEnv()...)
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	answers, told := make(chan line), make(chan line, 1000)
	go func() {
		defer close(answers)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if l := (line{}); json.Unmarshal(lines.Bytes(), &l) != nil || l.ID == nil {
				told <- l
			} else {
				answers <- l
			}
		}
	}()
	t.Cleanup(func() {
		in.Close()
		for range answers {
		}
		assert.NoError(t, cmd.Wait())
	})
	return rawClient{func(message string) line {
		_, err := fmt.Fprintln(in, message)
		require.NoError(t, err)
		if !strings.Contains(message, `"id"`) {
			return line{}
		}
		return <-answers
	}, told}
}

// rawHTTP talks to a gateway in this process. It listens from the beginning.
func rawHTTP(t *testing.T) rawClient {
	_, url, _ := startHTTP(t, gatewayOptions{}, web.Options{})
	var session string
	told := make(chan line, 1000)
	request := func(method, body string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set(server.HeaderKeySessionID, session)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		require.NoError(t, err)
		return resp
	}
	read := func(body io.Reader, each func(line)) {
		for lines := bufio.NewScanner(body); lines.Scan(); {
			text := strings.TrimPrefix(lines.Text(), "data: ")
			if l := (line{}); json.Unmarshal([]byte(text), &l) == nil {
				each(l)
			}
		}
	}
	return rawClient{func(message string) (answer line) {
		resp := request(http.MethodPost, message)
		defer resp.Body.Close()
		read(resp.Body, func(l line) {
			if l.ID == nil {
				told <- l
			} else {
				answer = l
			}
		})
		if id := resp.Header.Get(server.HeaderKeySessionID); id != "" {
			session = id
			stream := request(http.MethodGet, "")
			require.Equal(t, http.StatusOK, stream.StatusCode)
			done := make(chan struct{})
			go func() {
				defer close(done)
				read(stream.Body, func(l line) { told <- l })
			}()
			t.Cleanup(func() {
				stream.Body.Close()
				<-done
			})
		}
		return answer
	}, told}
}

// A client is told nothing before it says that it is ready, whatever servers change and
// log. Then it is told that lists have changed.
func TestNothingBeforeInitialized(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) rawClient{"stdio": rawStdio, "http": rawHTTP} {
		t.Run(name, func(t *testing.T) {
			c := open(t)
			c.say(ping)
			call := func(name, args string) string {
				return c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, args)).text()
			}
			require.Equal(t, "changed", call("mcp_kitchen__a_change", `{"text":"early"}`))
			for ctx := within(t); !strings.Contains(call(mcphybrid.SearchToolName, `{"query":"ride a zebra"}`), "mcp_kitchen__zebra"); {
				require.NoError(t, ctx.Err(), "the change is not there")
			}
			assert.Empty(t, c.told)
			c.say(initialized)
			next := func() string {
				select {
				case l := <-c.told:
					return l.Method
				case <-within(t).Done():
					return "nothing"
				}
			}
			assert.Equal(t, mcp.MethodNotificationToolsListChanged, next())
			require.Equal(t, "changed", call("mcp_kitchen__a_change", `{"text":"now"}`))
			for method := next(); method != logMessage; method = next() {
				require.NotEqual(t, "nothing", method, "log messages come, too")
			}
		})
	}
}
