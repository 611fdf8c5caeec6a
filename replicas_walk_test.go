package mcphybrid

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var replicasTime = flag.Duration("replicas", time.Second, "how long TestReplicas walks")

// A fleet is two Managers that share a trust store and see different servers. What
// happens is drawn from a seed: servers come, go and change their lists, users and
// sessions begin and end, and conversations move between the replicas. The user's
// servers have the names of the system's and lists of their own.
type fleet struct {
	t        *testing.T
	rnd      *rand.Rand
	replicas [2]*Manager
	users    [2]*User
	servers  []*mcpserver.MCPServer // the system's, then as many of the user's
	tools    []map[string]string    // descriptions by own name, by server
	configs  []ServerConfig
	talks    []*talk
	counts   map[string]int
}

// A talk is one conversation: what its model has been told stays true.
type talk struct {
	s       *Session
	opts    *SessionOptions
	user    bool
	replica int
	told    []string          // the names of the tools that it was sent, in order
	owners  map[string]string // user, server and own name by the names that it was told, as originOf gives them
}

// originOf returns a text that identifies a tool.
func originOf(user, server, own string) string { return fmt.Sprintf("%q %q %q", user, server, own) }

var (
	fleetServers  = []string{"s-0", "s_0", "s", "t", "s.0", "s__b"}
	fleetPrefixes = []string{"", "", "p", "p", "s_0", ""}
	fleetTools    = []string{"run", "read", "write", "_run", "b__run", "find it", "find_it", "delete"}
)

func newFleet(t *testing.T, seed uint64) *fleet {
	f := &fleet{t: t, rnd: rand.New(rand.NewPCG(seed, 9)), counts: make(map[string]int)}
	for i := range 2 * len(fleetServers) {
		name := fleetServers[i%len(fleetServers)]
		srv := mcpserver.NewMCPServer(name, "1", mcpserver.WithToolCapabilities(true))
		f.servers = append(f.servers, srv)
		f.configs = append(f.configs, ServerConfig{Name: name, Prefix: fleetPrefixes[i%len(fleetServers)], InProcess: srv})
		f.tools = append(f.tools, nil)
		f.list(i)
	}
	policy := []TrustPolicy{TrustOff, TrustWarn, TrustQuarantine, TrustApprove}[f.rnd.IntN(4)]
	list := []ListOptions{{}, {Max: 9, ServerMax: 5}}[seed%2]
	store, cache := new(mcptest.Store), new(mcptest.Store)
	// Who owns which prefix is agreed on before: replicas that begin together with
	// an empty store, and servers in different orders, may give one prefix twice.
	first := NewManager(&Options{Cache: cache, TrustStore: store, Servers: f.configs[:len(fleetServers)]})
	require.NoError(t, first.Start(t.Context()))
	require.NoError(t, first.Close())
	for i := range f.replicas {
		f.replicas[i] = NewManager(&Options{
			Trust: policy, TrustStore: store, Cache: cache, Inline: InlineOptions{Max: 4}, List: list, Prompt: PromptOptions{ListInline: seed%2 == 0},
			Rules: []Rule{{Name: "no delete", Intent: "careful", Patterns: []string{"delete"}, Action: RuleExclude}, {Name: "sum", Intent: "sum*", Patterns: []string{"*read*"}, Action: RuleSummarize}},
		})
		require.NoError(t, f.replicas[i].Start(t.Context()))
		u, err := f.replicas[i].NewUser("u", nil)
		require.NoError(t, err)
		f.users[i] = u
	}
	return f
}

// userOf returns whose the i-th server is: "" is the system.
func (f *fleet) userOf(i int) string {
	if i < len(fleetServers) {
		return ""
	}
	return "u"
}

// list gives a server other tools.
func (f *fleet) list(i int) {
	var tools []mcpserver.ServerTool
	names := slices.Clone(fleetTools)
	for _, talk := range f.talks { // or the end of a name that a model knows
		if len(talk.told) > 0 {
			name := talk.told[f.rnd.IntN(len(talk.told))]
			names = append(names, name[f.rnd.IntN(len(name)):])
		}
	}
	for _, name := range names {
		if f.rnd.IntN(2) == 0 {
			continue
		}
		tool := mcp.NewTool(name, mcp.WithDescription(fmt.Sprint("Does something ", f.rnd.IntN(3))))
		answer := originOf(f.userOf(i), f.configs[i].Name, name)
		tools = append(tools, mcpserver.ServerTool{Tool: tool, Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(answer), nil
		}})
	}
	f.servers[i].SetTools(tools...)
	f.tools[i] = make(map[string]string)
	for _, tool := range tools {
		f.tools[i][tool.Tool.Name] = tool.Tool.Description
	}
	f.settle(i)
}

// settle waits until all who are connected to a server have its tools.
func (f *fleet) settle(i int) {
	for r, m := range f.replicas {
		if m == nil {
			return // it is not begun yet
		}
		if f.userOf(i) != "" {
			m = f.users[r].own
		}
		soon(f.t, func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			src := m.sourceNamed(f.configs[i].Name)
			if src == nil {
				return true
			}
			listed := make(map[string]string)
			for _, d := range src.listed {
				listed[d.Own] = d.Description
			}
			return maps.Equal(listed, f.tools[i])
		})
	}
}

// begin starts a conversation.
func (f *fleet) begin() {
	replica, user := f.rnd.IntN(2), f.rnd.IntN(2) == 0
	opts := &SessionOptions{Disclosure: []Disclosure{ByActivation, ByActivation, ByProvider, ByBridge}[f.rnd.IntN(4)]}
	switch f.rnd.IntN(4) {
	case 0:
		opts.Access.Deny = []string{fleetTools[f.rnd.IntN(len(fleetTools))], "s/*"}
	case 1:
		opts.Access.Allow = []string{"s-0/*", "t/*", "mcp_p__*"}
	}
	tk := &talk{opts: opts, user: user, replica: replica, owners: make(map[string]string)}
	if user {
		tk.s = f.users[replica].NewSession(opts)
	} else {
		tk.s = f.replicas[replica].NewSession(opts)
	}
	f.talks = append(f.talks, tk)
}

// look asks what the model would be sent and compares it with what it was sent.
func (f *fleet) look(tk *talk) {
	names := toolNames(tk.s.Tools())
	owners := make(map[string]string)
	tk.s.PromptSections(PromptFull)
	tk.s.mu.Lock()
	for _, e := range tk.s.shown { // summaries too
		if e.tool != nil {
			owners[e.tool.name] = originOf(e.tool.owner.user, e.tool.def.Server, e.tool.def.Own)
		}
	}
	tk.s.mu.Unlock()
	for name, owner := range owners {
		if before, ok := tk.owners[name]; ok {
			require.Equal(f.t, before, owner, "%s means another tool", name)
		}
		tk.owners[name] = owner
	}
	tk.told = names
}

// call calls a tool by a name that the model knows, also if the tool has been held
// back since, and sees who answers.
func (f *fleet) call(tk *talk) {
	names := slices.Sorted(maps.Keys(tk.owners))
	if len(names) == 0 {
		return
	}
	name := names[f.rnd.IntN(len(names))]
	r, err := tk.s.Call(f.t.Context(), name, nil)
	require.NotNil(f.t, r)
	owner, known := tk.owners[name]
	if err == nil && known && !r.IsError {
		require.Equal(f.t, owner, resultText(f.t, r), "%s was answered by another tool", name)
		f.counts["answered"]++
	}
}

// move restores a conversation on the other replica, or on its own.
func (f *fleet) move(tk *talk) {
	f.look(tk)
	sections, told := tk.s.PromptSections(PromptFull), slices.Clone(tk.told)
	state := tk.s.Save()
	require.True(f.t, json.Valid(state))
	tk.replica = f.rnd.IntN(2)
	var s *Session
	var err error
	if tk.user {
		s, _, err = f.users[tk.replica].RestoreSession(state, tk.opts)
	} else {
		s, _, err = f.replicas[tk.replica].RestoreSession(state, tk.opts)
	}
	require.NoError(f.t, err)
	tk.s.Close()
	tk.s = s
	f.look(tk)
	f.stays(tk, sections, told)
	f.counts["moved"]++
}

// stays asserts that the model is told what it was told before: to the byte, unless
// a tool is held back here.
func (f *fleet) stays(tk *talk, sections string, told []string) {
	waiting := make(map[string]bool)
	for _, c := range tk.s.view().catalogs {
		for _, e := range c.quarantined {
			waiting[originOf(c.owner.user, e.Server, e.Tool)] = true
		}
	}
	held := func(name string) bool { return waiting[tk.owners[name]] }
	now := tk.s.PromptSections(PromptFull)
	anyHeld := slices.ContainsFunc(told, held)
	for line := range strings.Lines(sections) {
		if name, ok := strings.CutPrefix(line, "- mcp_"); ok {
			name, _, _ = strings.Cut("mcp_"+name, ":")
			if held(name) {
				anyHeld = true
			} else {
				require.Contains(f.t, now, line)
			}
		}
	}
	if !anyHeld {
		require.True(f.t, strings.HasPrefix(now, sections) || len(now) >= len(sections), "%s\n---\n%s", sections, now)
		f.counts["nothing held"]++
	}
	told = slices.DeleteFunc(told, held)
	require.Truef(f.t, len(told) <= len(tk.told) && slices.Equal(told, tk.told[:len(told)]), "what was shown stays shown, in its order: %q, then %q", told, tk.told)
}

func (f *fleet) step() {
	i, replica := f.rnd.IntN(len(f.servers)), f.rnd.IntN(2)
	m := f.replicas[replica]
	if f.userOf(i) != "" {
		m = f.users[replica].own
	}
	if len(f.talks) == 0 {
		f.begin()
	}
	tk := f.talks[f.rnd.IntN(len(f.talks))]
	switch f.rnd.IntN(16) {
	case 0:
		_ = m.AddServer(f.t.Context(), f.configs[i]) // it may be there
	case 1:
		if f.rnd.IntN(3) == 0 {
			m.RemoveServer(f.configs[i].Name)
		}
	case 2, 3:
		f.list(i)
	case 4, 5:
		if len(f.talks) < 12 {
			f.begin()
		}
	case 6:
		tk.opts.Intent = []string{"", "careful", "summary"}[f.rnd.IntN(3)]
		tk.s.SetIntent(tk.opts.Intent)
	case 7:
		tk.s.Compact()
		tk.told, tk.owners = nil, make(map[string]string) // what is sent now replaces what was sent
	case 8, 9:
		f.move(tk)
	case 10:
		for _, change := range m.Problems() {
			if e, ok := change.(*ChangedError); ok && e.Quarantined && f.rnd.IntN(2) == 0 {
				_ = m.Accept(e.Server, e.Tool, e.Is)
			}
		}
	case 11:
		tk.s.NextTurn()
		for _, h := range tk.s.Search("something "+fleetTools[f.rnd.IntN(len(fleetTools))], 3) {
			tk.s.ActivateTools([]string{h.Tool.Name()})
		}
	case 12:
		if f.rnd.IntN(8) == 0 {
			f.talks = slices.DeleteFunc(f.talks, func(other *talk) bool { return other == tk })
			tk.s.Close()
			return
		}
	default:
		f.call(tk)
	}
	f.look(tk)
	f.counts["steps"]++
}

// TestReplicas walks over everything at once: servers, users, sessions, intents,
// and conversations that move between two replicas which see different servers.
// The invariants hold after every step, and also while others look.
func TestReplicas(t *testing.T) {
	t.Parallel()
	counts := make(map[string]int)
	var second, last uint64
	end := time.Now().Add(*replicasTime)
	for seed := *walkSeed; time.Now().Before(end); seed++ {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFleet(t, seed)
			done := make(chan struct{})
			var looking sync.WaitGroup
			looking.Go(func() { // others use the same Managers
				s := f.replicas[0].NewSession(nil)
				for {
					select {
					case <-done:
						return
					default:
						s.Search("something", 3)
						s.Tools()
						assert.NoError(t, check(f.replicas[1]))
					}
				}
			})
			for range mcptest.Long(300, 100) {
				f.step()
				for _, m := range []*Manager{f.replicas[0], f.replicas[1], f.users[0].own, f.users[1].own} {
					var sessions []*Session
					for _, tk := range f.talks {
						if tk.s.tenant.manager == sessionManager(m) {
							sessions = append(sessions, tk.s)
						}
					}
					require.NoError(t, check(m, sessions...), "seed %d", seed)
				}
			}
			close(done)
			looking.Wait()
			for i := range f.replicas {
				require.NoError(t, f.replicas[i].Close())
			}
			add(counts, f.counts)
		}) {
			t.Fatalf("again with: go test -race -run TestReplicas -seed %d .", seed)
		}
		runtime.GC()
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		if last = mem.HeapAlloc; seed == *walkSeed+1 {
			second = last
		}
	}
	t.Logf("%v; heap after seed 2: %d KB, after the last: %d KB", counts, second>>10, last>>10)
}
