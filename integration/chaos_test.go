package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// chaosSessions is the number of sessions that search and call while
	// servers die.
	chaosSessions = 8

	// chaosLoad is how many calls of each server must be answered after a death
	// before the next one.
	chaosLoad = 10

	// chaosGrace is added to each promised deadline. Three node processes and a
	// race detector run here on two processors, so a goroutine that is due may
	// wait. Without load, the delay is some milliseconds.
	chaosGrace = 500 * time.Millisecond

	// chaosPatience is how long we wait for anything without a deadline.
	chaosPatience = 60 * time.Second

	// reconnect is the default of config.Limits.Reconnect.
	reconnect = 500 * time.Millisecond
)

// A condition says whether calls of a server, or of one tool, must succeed.
type condition struct{ epoch atomic.Int64 } // odd while calls may fail

func (c *condition) hurt() { c.epoch.Add(1) }
func (c *condition) heal() { c.epoch.Add(1) }

// A chaosServer is one of the servers that we kill.
type chaosServer struct {
	name      string
	process   string // part of the command line of its process; "" if it is no child
	condition condition
	answered  atomic.Int64    // calls
	down      atomic.Int64    // calls that found it down
	delays    []time.Duration // the times from when it could be back until it was, minus its start
}

// A chaosCall is a call with a unique answer.
type chaosCall struct {
	server    *chaosServer
	condition *condition
	tool      string
	args      string
	right     func(text string) bool
}

type chaos struct {
	mgr     *mcphybrid.Manager
	servers []*chaosServer // in registration order
	httpSum condition      // calls of the one tool that comes and goes

	gone     atomic.Int64 // calls of it that got this error
	refused  atomic.Int64 // calls of it that reached a server without it
	searches atomic.Int64

	mu       sync.Mutex
	problems []string
}

// The indexes of the servers.
const (
	chaosEverything = iota
	chaosGrafana
	chaosMemory
	chaosHTTP
)

// problem records a problem. Most problems occur often.
func (c *chaos) problem(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// memoryNodes is the number of nodes that each session can ask for.
const memoryNodes = 25

// call returns the i-th call of a session.
func (c *chaos) call(session, i int, random *rand.Rand) chaosCall {
	id := fmt.Sprintf("%d-%d", session, i)
	is := func(want string) func(string) bool { return func(got string) bool { return got == want } }
	echo := func(s *chaosServer, prefix string) chaosCall {
		return chaosCall{s, &s.condition, prefix + "echo", fmt.Sprintf(`{"message": %q}`, id), is("Echo: " + id)}
	}
	sum := func(s *chaosServer, cond *condition, prefix string) chaosCall {
		return chaosCall{s, cond, prefix + "get-sum", fmt.Sprintf(`{"a": %d, "b": %d}`, i, session),
			is(fmt.Sprintf("The sum of %d and %d is %d.", i, session, i+session))}
	}
	everything, http := c.servers[chaosEverything], c.servers[chaosHTTP]
	switch random.IntN(6) {
	case 0:
		return echo(everything, "mcp_everything__")
	case 1:
		return echo(http, "mcp_everything_http__")
	case 2:
		return sum(everything, &everything.condition, "mcp_everything__")
	case 3:
		return sum(http, &c.httpSum, "mcp_everything_http__")
	case 4:
		s := c.servers[chaosGrafana]
		return chaosCall{s, &s.condition, "mcp_grafana__get_datasource", fmt.Sprintf(`{"uid": %q}`, id),
			func(text string) bool { // there is no Grafana; the server says so in two ways
				return strings.HasPrefix(text, "get datasource by uid "+id+": ") || strings.HasPrefix(text, "datasource with UID '"+id+"' ")
			}}
	default:
		s := c.servers[chaosMemory]
		node := session*memoryNodes + i%memoryNodes
		return chaosCall{s, &s.condition, "mcp_memory__open_nodes", fmt.Sprintf(`{"names": ["node %d"]}`, node),
			func(text string) bool {
				return strings.Contains(text, fmt.Sprintf(`"node %d"`, node)) && strings.Count(text, "entityType") == 1
			}}
	}
}

// session searches and calls until ctx ends.
func (c *chaos) session(ctx context.Context, number int) {
	random := rand.New(rand.NewPCG(1, uint64(number)))
	for i := 0; ctx.Err() == nil; {
		s := c.mgr.NewSession(nil)
		var sections, tools string
		for range 100 {
			c.make(s, c.call(number, i, random))
			if i%5 == 0 {
				c.search(s)
			}
			if i%20 == 0 {
				result, err := s.Call(context.Background(), mcphybrid.SearchToolName, `{"query": "prometheus query", "max_results": 2}`)
				if err != nil || result.IsError {
					c.problem("the search tool: %v: %s", err, text(result))
				}
				nowSections, nowTools := sent(s)
				if !strings.HasPrefix(nowSections, sections) || !strings.HasPrefix(nowTools, tools) {
					c.problem("what the model was sent has changed from\n%s%s\nto\n%s%s", sections, tools, nowSections, nowTools)
				}
				sections, tools = nowSections, nowTools
			}
			if i++; ctx.Err() != nil {
				break
			}
		}
	}
}

// search searches for tools that are always there.
func (c *chaos) search(s *mcphybrid.Session) {
	hits := s.Find(context.Background(), "prometheus query", mcphybrid.SearchOptions{Limit: 5, DeferredOnly: true}).Hits
	seen := make(map[string]bool)
	for _, h := range hits {
		if h.Tool.Server() != "grafana" || seen[h.Tool.Name()] {
			c.problem("a search found %s", h.Tool.Name())
		}
		seen[h.Tool.Name()] = true
	}
	if len(hits) == 0 {
		c.problem("a search found nothing")
	}
	if hits := s.Search("select:mcp_memory__open_nodes", 1); len(hits) != 1 && !slices.Contains(names(s.ActiveTools()), "mcp_memory__open_nodes") {
		c.problem("a tool that is there was not found by its name")
	}
	c.searches.Add(2)
}

// make makes a call and checks the result.
func (c *chaos) make(s *mcphybrid.Session, call chaosCall) {
	before := call.condition.epoch.Load()
	result, err := s.Call(context.Background(), call.tool, call.args)
	well := before%2 == 0 && call.condition.epoch.Load() == before
	if err == nil {
		if got := text(result); !call.right(got) {
			c.problem("%s of %s was answered %q", call.tool, call.args, got)
		}
		call.server.answered.Add(1)
		return
	}
	if well {
		c.problem("%s, whose server is well: %v", call.tool, err)
		return
	}
	if !result.IsError || !strings.Contains(text(result), call.tool) {
		c.problem("%s: the model was told %q", call.tool, text(result))
	}
	var unknown *mcphybrid.UnknownToolError
	switch {
	case errors.Is(err, mcphybrid.ErrServerDown):
		call.server.down.Add(1)
		if !strings.Contains(err.Error(), fmt.Sprintf("server %q", call.server.name)) {
			c.problem("%s: the error does not name its server: %v", call.tool, err)
		}
	case call.condition == &c.httpSum && errors.As(err, &unknown):
		c.gone.Add(1)
		if unknown.Gone.IsZero() {
			// A call that found its tool just as it left may not know since
			// when it is gone. The next call does.
			_, err = s.Call(context.Background(), call.tool, call.args)
		}
		if errors.As(err, &unknown) && unknown.Gone.IsZero() {
			c.problem("%s, which was there: %v", call.tool, err)
		}
	case call.condition == &c.httpSum && errors.Is(err, mcp.ErrInvalidParams):
		// The tool was found while the server was down. The call waited for the
		// other server.
		c.refused.Add(1)
	case call.server == c.servers[chaosHTTP] && errors.Is(err, mcphybrid.ErrChanged):
		// Likewise, and the other server defines that tool in another way.
		c.refused.Add(1)
	default:
		c.problem("%s: %v", call.tool, err)
	}
}

// kill kills the server's process, and again as it starts, that many times. It
// waits until the server is back.
func (c *chaos) kill(t *testing.T, s *chaosServer, times int) {
	t.Helper()
	s.condition.hurt()
	var killed time.Time
	last := process{}
	for range times {
		require.Eventually(t, func() bool {
			for _, p := range children() {
				if strings.Contains(p.command, s.process) && p.pid != last.pid {
					last = p
					return true
				}
			}
			return false
		}, chaosPatience, time.Millisecond)
		killed = time.Now()
		require.NoError(t, syscall.Kill(last.pid, syscall.SIGKILL))
	}
	c.back(t, s, killed, killed, reconnect)
	s.condition.heal()
}

// back waits until a lost server is ready. It asserts that this took at most
// wait after it was possible, plus the server's own start.
func (c *chaos) back(t *testing.T, s *chaosServer, lost, could time.Time, wait time.Duration) {
	t.Helper()
	var status mcphybrid.ServerStatus
	require.Eventually(t, func() bool {
		status = c.status(s)
		return status.State == mcphybrid.StateReady && status.Since.After(lost)
	}, chaosPatience, time.Millisecond, "%s does not come back", s.name)
	delay := status.Since.Sub(could) - status.Took
	assert.LessOrEqual(t, delay, wait+chaosGrace, "%s, which took %v to start", s.name, status.Took)
	s.delays = append(s.delays, delay.Round(time.Millisecond))
}

func (c *chaos) status(s *chaosServer) mcphybrid.ServerStatus {
	i := slices.Index(c.servers, s)
	return c.mgr.Servers()[i]
}

// step returns the library's delay before the planned attempt, or before the
// next one if an attempt failed now. It doubles while the server can't be
// reached.
func (c *chaos) step(s *chaosServer) time.Duration {
	return reconnect << max(c.status(s).Failures-1, 0)
}

// loaded waits until each server has answered calls under load.
func (c *chaos) loaded(t *testing.T) {
	t.Helper()
	var served []int64
	for _, s := range c.servers {
		served = append(served, s.answered.Load())
	}
	require.Eventually(t, func() bool {
		for i, s := range c.servers {
			if s.answered.Load() < served[i]+chaosLoad {
				return false
			}
		}
		return true
	}, chaosPatience, time.Millisecond, "calls are not answered")
}

// startOther starts another server with other tools at an address.
func startOther(t *testing.T, address string) (srv *mcpserver.MCPServer, kill func()) {
	t.Helper()
	srv = mcpserver.NewMCPServer("other", "1", mcpserver.WithToolCapabilities(true))
	srv.AddTools(
		mcpserver.ServerTool{
			Tool: mcp.NewTool("echo", mcp.WithDescription("Echoes back the input string"), mcp.WithString("message", mcp.Required()),
				mcp.WithReadOnlyHintAnnotation(true)),
			Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("Echo: " + r.GetString("message", "")), nil
			},
		},
		otherTool("xylophone"),
	)
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcpserver.NewStreamableHTTPServer(srv))
	web := &http.Server{Handler: mux}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = web.Serve(listener) // until it is closed
	}()
	kill = sync.OnceFunc(func() {
		_ = web.Close()
		<-served
	})
	t.Cleanup(kill)
	return srv, kill
}

func otherTool(instrument string) mcpserver.ServerTool {
	return mcpserver.ServerTool{
		Tool: mcp.NewTool("tune_"+instrument, mcp.WithDescription("Tunes a "+instrument)),
		Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(instrument + " tuned"), nil
		},
	}
}

// assertGone checks that a tool is gone.
func assertGone(t *testing.T, c caller, name string, after time.Time) {
	t.Helper()
	result, err := c.Call(t.Context(), name, `{}`)
	var unknown *mcphybrid.UnknownToolError
	if !assert.ErrorAs(t, err, &unknown) {
		return
	}
	assert.WithinRange(t, unknown.Gone, after, time.Now())
	assert.True(t, result.IsError)
	assert.Regexp(t, "^"+name+` is gone: its server removed it at \S+\. Go on without it\.$`, text(result))
}

// freeAddress returns a free address of 127.0.0.1. No outgoing connection gets
// its port, so it stays free while its server is dead.
func freeAddress(t *testing.T) string {
	t.Helper()
	var low int
	_, err := fmt.Sscan(read("/proc/sys/net/ipv4/ip_local_port_range"), &low)
	require.NoError(t, err)
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", low/2+rand.IntN(low-low/2))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// descriptors returns the number of open files of this process.
func descriptors() int { return len(glob("/proc/self/fd/*")) }

// While sessions search and call, we kill servers, one after the other and
// again as they start, and replace one by another. No call gets another's
// answer. No call of a healthy server fails. The others fail in the documented
// ways. In the end everything is as before.
func TestChaos(t *testing.T) {
	dir := t.TempDir()
	var graph strings.Builder
	for i := range chaosSessions * memoryNodes {
		fmt.Fprintf(&graph, `{"type":"entity","name":"node %d","entityType":"node","observations":[]}`+"\n", i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "memory.jsonl"), []byte(graph.String()), 0o600))
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	http, killHTTP := startEverythingHTTPAt(t, port)
	path := writeConfig(t, everything(), grafana(), memory(filepath.Join(dir, "memory.jsonl")), http)
	open := descriptors()
	mgr := loadManagerThat(t, path, mcphybrid.Options{})
	require.NoError(t, mgr.Start(t.Context()))
	before := everyByte(mgr)

	c := &chaos{mgr: mgr}
	for _, s := range mgr.Servers() {
		c.servers = append(c.servers, &chaosServer{name: s.Name})
	}
	c.servers[chaosEverything].process = "server-everything"
	c.servers[chaosGrafana].process = "mcp-grafana"
	c.servers[chaosMemory].process = "server-memory"
	victim := c.servers[chaosHTTP]
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range chaosSessions {
		wg.Go(func() { c.session(ctx, i) })
	}
	defer wg.Wait()
	defer cancel()

	// restart starts the real server again at a free address.
	restart := func(t *testing.T, lost time.Time) {
		t.Helper()
		_, killHTTP = startEverythingHTTPAt(t, port)
		c.back(t, victim, lost, time.Now(), c.step(victim))
	}
	var steps []func(t *testing.T)
	for _, s := range c.servers[:chaosHTTP] {
		for _, times := range []int{1, 1, 2} {
			steps = append(steps, func(t *testing.T) { c.kill(t, s, times) })
		}
	}
	for range 2 {
		steps = append(steps, func(t *testing.T) {
			victim.condition.hurt()
			c.httpSum.hurt()
			lost := time.Now()
			killHTTP()
			restart(t, lost)
			victim.condition.heal()
			c.httpSum.heal()
		}, func(t *testing.T) {
			const prefix = "mcp_everything_http__"
			s := mgr.NewSession(nil)
			sum := func() string { return call(t, s, prefix+"get-sum", `{"a": 1, "b": 2}`) }
			assert.Contains(t, sum(), "3")
			victim.condition.hurt()
			c.httpSum.hurt()
			lost := time.Now()
			killHTTP()
			other, killOther := startOther(t, address)
			c.back(t, victim, lost, time.Now(), reconnect)
			victim.condition.heal()

			// The other server's tools are there, and no others.
			assert.Equal(t, "Echo: here", call(t, s, prefix+"echo", `{"message": "here"}`))
			assertGone(t, s, prefix+"get-sum", lost)
			var changed *mcphybrid.ChangedError
			if problems := mgr.Problems(); assert.Len(t, problems, 1) && assert.ErrorAs(t, problems[0], &changed) {
				assert.Equal(t, prefix+"echo", changed.Name)
			}
			if hits := s.Search("tune a xylophone", 1); assert.Len(t, hits, 1) {
				assert.Equal(t, "xylophone tuned", call(t, s, hits[0].Tool.Name(), nil))
			}
			c.loaded(t)

			// It changes its list.
			told := time.Now()
			other.AddTools(otherTool("bassoon"))
			other.DeleteTools("tune_xylophone")
			require.Eventually(t, func() bool {
				hits := s.Search("select:"+prefix+"tune_bassoon,"+prefix+"tune_xylophone", 2)
				return len(hits) == 1 && strings.HasSuffix(hits[0].Tool.Name(), "bassoon")
			}, chaosPatience, time.Millisecond, "the change is not noticed")
			assert.Equal(t, "bassoon tuned", call(t, s, prefix+"tune_bassoon", nil))
			assertGone(t, s, prefix+"tune_xylophone", told)

			// The real one again.
			victim.condition.hurt()
			lost = time.Now()
			killOther()
			restart(t, lost)
			victim.condition.heal()
			c.httpSum.heal()
			assert.Contains(t, sum(), "3")
			assertGone(t, s, prefix+"tune_bassoon", lost)
			assertGone(t, s, prefix+"tune_xylophone", told)
			assert.Empty(t, s.Search("bassoon", 1))
		})
	}
	random := rand.New(rand.NewPCG(1, 1))
	random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for _, step := range steps {
		c.loaded(t)
		step(t)
	}
	c.loaded(t)
	cancel()
	wg.Wait()

	for _, s := range c.servers {
		t.Logf("%s: %d calls answered, %d found it down; each time it could be back, it was after its start and %v",
			s.name, s.answered.Load(), s.down.Load(), s.delays)
		assert.Equal(t, mcphybrid.StateReady, c.status(s).State, s.name)
	}
	t.Logf("%d calls of a tool that was gone, %d refused by the server that had replaced its own; %d searches", c.gone.Load(), c.refused.Load(), c.searches.Load())
	assert.Empty(t, c.problems[:min(len(c.problems), 10)], "and so on, %d in all", len(c.problems))
	assert.Equal(t, before, everyByte(mgr), "the same tools, to the byte")
	assert.Empty(t, mgr.Problems())

	require.NoError(t, mgr.Close()) // no goroutine, no process: see loadManagerThat
	assert.Eventually(t, func() bool { return descriptors() <= open }, 10*time.Second, time.Millisecond, "files are left open")
}
