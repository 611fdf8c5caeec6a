package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// secret matches the mark of a tool's owner.
var secret = regexp.MustCompile(`secret(\d\d)`)

// strangers returns the marks in text that belong to another user.
func strangers(text string, user int) []string {
	var list []string
	for _, m := range secret.FindAllStringSubmatch(text, -1) {
		if m[1] != fmt.Sprintf("%02d", user) {
			list = append(list, m[0])
		}
	}
	return list
}

// A neighborhood is a system with users. We watch the first user.
type neighborhood struct {
	t        *testing.T
	m        *Manager
	users    []*Manager
	sessions []*Session
	states   []json.RawMessage
	events   map[*Session]*strings.Builder
}

const neighbors = 4

var (
	commonServers = []string{"mail", "files", "git"}
	commonTools   = []string{"send", "read", "list", "create_issue", "delete"}
)

// meddle changes something that a user has, or the system if user is -1.
func (n *neighborhood) meddle(r *rand.Rand, user int) {
	m, whose := n.m, "the system"
	if user >= 0 {
		m, whose = n.users[user], fmt.Sprintf("secret%02d", user)
	}
	server := commonServers[r.IntN(len(commonServers))]
	if user >= 0 && r.IntN(3) == 0 {
		server += "_" + whose
	}
	if r.IntN(4) == 0 {
		m.RemoveServer(server)
		return
	}
	name := commonTools[r.IntN(len(commonTools))]
	if user >= 0 && r.IntN(3) == 0 {
		name += "_" + whose
	}
	_ = m.AddTools(server, answering(name, fmt.Sprintf("Can %s for %s", name, whose), whose))
}

// someName returns a name that some user may have.
func someName(r *rand.Rand) string {
	name := "mcp_" + commonServers[r.IntN(len(commonServers))]
	whose := fmt.Sprintf("_secret%02d", r.IntN(neighbors))
	if r.IntN(3) == 0 {
		name += whose
	}
	name += "__" + commonTools[r.IntN(len(commonTools))]
	if r.IntN(3) == 0 {
		name += whose
	}
	return name[:len(name)-r.IntN(3)/2]
}

var sinceWhen = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[0-9:.+Z-]*`)

// ask does something random as a user and returns everything that it got,
// without the name that it asked for and without times.
func (n *neighborhood) ask(r *rand.Rand, user int) string {
	u, s := n.users[user], n.sessions[user]
	ctx := n.t.Context()
	name := someName(r)
	var b strings.Builder
	result := func(res *mcp.CallToolResult, err error) {
		fmt.Fprintln(&b, text.JSON(res), err)
		var unknown *UnknownToolError
		if errors.As(err, &unknown) {
			fmt.Fprintln(&b, unknown.Nearest, unknown.Connecting, unknown.Gone.IsZero())
		}
	}
	tool := func(t Tool) {
		fmt.Fprintln(&b, t.Name(), t.Description(), string(t.InputSchema()))
		if own, ok := t.(*BridgeTool); ok {
			fmt.Fprintln(&b, own.Server(), own.OriginalName())
		}
	}
	switch r.IntN(14) {
	case 0:
		result(s.Call(ctx, name, nil))
	case 1:
		result(s.Call(ctx, SearchToolName, fmt.Sprintf(`{"query":%q,"max_results":%d}`, name, 1+r.IntN(20))))
	case 2:
		result(s.Call(ctx, DescribeToolName, fmt.Sprintf(`{"names":[%q,%q]}`, name, name+"x")))
	case 3:
		result(s.Call(ctx, CallToolName, fmt.Sprintf(`{"name":%q}`, name)))
	case 4:
		a := s.Find(ctx, []string{"send mail", "select:" + name, name, "secret03 can read", "files"}[r.IntN(5)], SearchOptions{Limit: r.IntN(10)})
		for _, h := range a.Hits {
			tool(h.Tool)
			fmt.Fprintln(&b, h.Score, h.NeededBy)
		}
		fmt.Fprintln(&b, a.Words, a.Err)
	case 5:
		fmt.Fprintln(&b, s.ActivateTools([]string{name, someName(r)}), namesOf(s.SelectFor(ctx, name)))
	case 6:
		fmt.Fprintln(&b, s.PromptSections(PromptFull))
	case 7:
		list, err := s.Export([]provider.Format{provider.MCP, provider.Anthropic, provider.Gemini}[r.IntN(3)])
		fmt.Fprintln(&b, err)
		for _, e := range list {
			fmt.Fprintln(&b, string(e.JSON), e.Losses)
		}
	case 8:
		for _, t := range s.Tools() {
			tool(t)
		}
	case 9:
		st := s.Stats()
		st.Usage.Latency = 0
		fmt.Fprintf(&b, "%+v %v %+v\n", st, s.Explain("send", name), figuresOf(u))
		for _, st := range u.Servers() {
			st.Usage.Latency = 0
			fmt.Fprintf(&b, "%+v\n", st)
		}
	case 10:
		for _, t := range slices.Concat(s.InlineTools(), s.DeferredTools(), s.ActiveTools()) {
			tool(t)
		}
	case 11:
		fmt.Fprintln(&b, u.Problems())
		fmt.Fprintln(&b, u.Marks())
	case 12:
		state := s.Save()
		restored, changed, err := u.RestoreSession(state, &SessionOptions{Disclosure: s.asked.disclosure})
		require.NoError(n.t, err)
		fmt.Fprintln(&b, string(state), changed)
		s.Close()
		n.sessions[user], n.states[user] = restored, state
	case 13:
		fmt.Fprintln(&b, namesOf(s.Compact()))
	}
	if e := n.events[s]; e != nil {
		b.WriteString(e.String())
		e.Reset()
	}
	return sinceWhen.ReplaceAllString(strings.ReplaceAll(b.String(), name, "NAME"), "TIME")
}

// live runs the first user's life, which the seed decides, alone or with
// neighbors. It returns what the user saw.
func live(t *testing.T, seed uint64, alone bool) []string {
	n := &neighborhood{t: t, events: make(map[*Session]*strings.Builder), states: make([]json.RawMessage, neighbors)}
	opts := &Options{Inline: InlineOptions{Max: []int{-1, 5, 40}[seed%3]}, OnEvent: ofSessions(func(e Event) {
		if n.events[e.Session] == nil {
			n.events[e.Session] = new(strings.Builder)
		}
		fmt.Fprintln(n.events[e.Session], e.Kind, e.Tools, e.Server, e.Query, e.Err)
	})}
	if seed%5 == 0 {
		opts.Search.Ranker = RankerClassic
	}
	n.m, _ = newTestManager(t, opts)
	r, rest := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	for user := range neighbors {
		if user > 0 && alone {
			break
		}
		u := newUser(t, n.m, fmt.Sprintf("secret%02d", user), nil)
		n.users = append(n.users, u)
		n.sessions = append(n.sessions, u.NewSession(&SessionOptions{Disclosure: Disclosure(seed / 3 % uint64(disclosures))}))
	}
	var seen []string
	for range 60 {
		if r.IntN(4) == 0 {
			n.meddle(r, -1)
		}
		if r.IntN(3) == 0 {
			n.meddle(r, 0)
		}
		for user := 1; user < len(n.users); user++ {
			n.meddle(rest, user)
			if bad := strangers(n.ask(rest, user), user); bad != nil {
				t.Fatalf("seed %d: user %d sees %v", seed, user, bad)
			}
			if state := n.states[user]; state != nil {
				_, changed, err := n.users[0].RestoreSession(state, nil)
				require.Error(t, err)
				assert.Empty(t, strangers(fmt.Sprint(changed, err), 0))
			}
		}
		text := n.ask(r, 0)
		if bad := strangers(text, 0); bad != nil {
			t.Fatalf("seed %d: the first user sees %v in\n%s", seed, bad, text)
		}
		seen = append(seen, text)
	}
	system := n.m.PromptSections(PromptFull) + fmt.Sprint(namesOf(n.m.Default().Tools()), namesOf(n.m.DeferredTools()), n.m.Problems(), hitNames(n.m.Search("secret send read", 20)))
	require.Empty(t, strangers(system, -1), "seed %d: the system sees", seed)
	require.NoError(t, check(n.m))
	return seen
}

// What a user sees has no byte of another user and does not depend on whether
// there are others.
func TestUsersKnowNothingOfEachOther(t *testing.T) {
	t.Parallel()
	for seed := range mcptest.Long[uint64](18, 6) {
		alone, among := live(t, seed, true), live(t, seed, false)
		for i := range alone {
			require.Equal(t, alone[i], among[i], "seed %d, step %d", seed, i)
		}
	}
}

// Users come and go while the system changes and sessions search and call. Each
// successful call was made once, of the user's own tool or of the system's, and
// nothing is left.
func TestUsersHammer(t *testing.T) {
	if testing.Short() {
		t.Skip("not a quick test: goroutines for seconds")
	}
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 5}, Semantic: &SemanticOptions{Embedder: newConcepts()}})
	require.NoError(t, m.AddTools("sys", errands("secret99", 20)...))
	var made, answered, lives atomic.Int64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			name := fmt.Sprint("more", i%3)
			if i%2 == 0 {
				_ = m.AddTools(name, answering("errand_00", "Keeps a note", "secret99"))
			} else {
				m.RemoveServer(name)
			}
		}
	})
	for user := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(3, uint64(user)))
			whose := fmt.Sprintf("secret%02d", user)
			for range 25 {
				u, err := m.newUser(whose, nil)
				if !assert.NoError(t, err) {
					return
				}
				tool := answering("errand_07", "Keeps the dog of "+whose, whose)
				handle := tool.Handler
				tool.Handler = func(ctx context.Context, c mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					made.Add(1)
					return handle(ctx, c)
				}
				assert.NoError(t, u.AddTools("sys", tool))
				reg := NewRegistry()
				s, plain := u.NewSession(&SessionOptions{Registry: reg}), u.NewSession(nil)
				var both sync.WaitGroup
				for _, s := range []*Session{s, plain} {
					both.Go(func() {
						for range 5 {
							res, err := s.Call(context.Background(), "mcp_sys__errand_07", nil)
							if assert.NoError(t, err) && assert.Equal(t, whose, mcp.GetTextFromContent(res.Content[0])) {
								answered.Add(1)
							}
							for _, h := range s.Search("dog errand", 0) {
								assert.Empty(t, slices.DeleteFunc(strangers(h.Tool.Description(), user), func(w string) bool { return w == "secret99" }))
							}
							_, err = s.Call(context.Background(), "mcp_sys__errand_03", nil)
							assert.NoError(t, err)
							s.PromptSections(PromptFull)
						}
					})
				}
				both.Wait()
				assert.NoError(t, check(u, s, plain))
				if r.IntN(2) == 0 {
					s.Close()
				}
				if r.IntN(3) == 0 {
					assert.NoError(t, m.DropUser(context.Background(), whose))
				} else {
					assert.NoError(t, u.Close())
				}
				assert.Empty(t, reg.List())
				assert.Empty(t, s.Tools())
				lives.Add(1)
			}
		})
	}
	wg.Wait()
	close(stop)
	changing.Wait()
	assert.EqualValues(t, 8*25, lives.Load())
	assert.EqualValues(t, 8*25*2*5, answered.Load())
	assert.Equal(t, made.Load(), answered.Load())
	assert.Empty(t, m.users)
	assert.NoError(t, check(m))
	calls := 0
	for _, u := range m.serverUsage {
		calls += u.Calls
	}
	assert.Equal(t, 8*25*2*5, calls, "of the system's tools")
}

// The system closes while users come.
func TestUsersWhileTheSystemCloses(t *testing.T) {
	t.Parallel()
	for range 20 {
		m := NewManager(nil)
		var wg sync.WaitGroup
		for user := range 6 {
			wg.Go(func() {
				reg := NewRegistry()
				u, err := m.newUser(fmt.Sprint(user), &UserOptions{Registry: reg, Servers: []ServerConfig{inProcess("s", 3)}})
				if err != nil {
					assert.ErrorIs(t, err, ErrClosed)
					return
				}
				_ = u.Start(context.Background())
				s := u.NewSession(&SessionOptions{Registry: NewRegistry()})
				_ = u.AddTools("own", errands("x", 3)...)
				_ = m.Close()
				assert.Empty(t, s.Tools())
				assert.Empty(t, reg.List())
				assert.Empty(t, u.Servers())
			})
		}
		wg.Go(func() { _ = m.Close() })
		wg.Wait()
		assert.Empty(t, m.users)
	}
}

// heap returns the bytes in use.
func heap() int {
	for range 3 { // a sync.Pool keeps its values over one collection
		runtime.GC()
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return int(mem.HeapAlloc)
}

// A Manager keeps little more of its tools than their definitions and the index, also
// after they were called.
func TestToolsAreCheap(t *testing.T) {
	if mcptest.Race() {
		t.Skip("the race detector takes memory")
	}
	var tools []mcpserver.ServerTool
	size := 0
	for _, tool := range errands("system", 1200) {
		properties := make(map[string]any)
		for _, p := range strings.Fields(tool.Tool.Description) {
			properties[p] = map[string]any{"type": "string", "description": "The " + p + " that is meant, in the words of who asks, at most one line"}
		}
		schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
		require.NoError(t, err)
		tool.Tool = mcp.NewToolWithRawSchema(tool.Tool.Name, tool.Tool.Description, schema)
		raw, err := json.Marshal(tool.Tool)
		require.NoError(t, err)
		tools, size = append(tools, tool), size+len(raw)
	}
	warm, _ := newTestManager(t, nil) // makes what all Managers share
	require.NoError(t, warm.AddTools("sys", tools[0]))
	warm.Search("errand 7", 0)

	before := heap()
	m, _ := newTestManager(t, nil)
	require.NoError(t, m.AddTools("sys", tools...))
	m.Search("errand 7", 0)
	held := float64(heap()-before) / float64(size)
	t.Logf("%d bytes a tool; %.2f times as much in memory", size/len(tools), held)
	assert.Less(t, held, 4.0)

	for _, tool := range m.DeferredTools() {
		_, err := m.NewSession(nil).Call(t.Context(), tool.Name(), `{"unknown":1}`)
		require.NoError(t, err)
	}
	called := heap() - before - int(held*float64(size))
	t.Logf("once they are called, %d KB more", called>>10)
	assert.Less(t, called, 12*schema.MaxRecent/10)
	runtime.KeepAlive(tools)
}

// A user is cheap, and a change of the system's tools does not look at users' sessions
// without a registry.
func TestUserIsCheap(t *testing.T) {
	if testing.Short() {
		t.Skip("not a quick test: many users")
	}
	m, _ := newTestManager(t, nil)
	require.NoError(t, m.AddTools("sys", errands("system", 1000)...))
	users := make([]*Manager, 100)
	before := heap()
	for i := range users {
		users[i] = newUser(t, m, fmt.Sprint(i), nil, errands("user", 50)...)
		users[i].Default().Tools()
		users[i].Search("errand 7", 0)
	}
	each := (heap() - before) / len(users)
	t.Logf("%d bytes per user", each)
	assert.Less(t, each, 100<<10)
	made := func() (n uint64) {
		for _, u := range users {
			n += u.partitions.Load()
		}
		return n
	}
	partitions := made()
	require.NoError(t, m.AddTools("more", errands("system", 1)...))
	assert.Equal(t, partitions, made())
	assert.Len(t, m.DeferredTools(), 961)
}
