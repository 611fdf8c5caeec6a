package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newUser returns the Manager of a user with its own tools. It is closed when
// the test ends.
func newUser(t *testing.T, m *Manager, id string, opts *UserOptions, tools ...mcpserver.ServerTool) *Manager {
	t.Helper()
	u, err := m.newUser(id, opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, check(u))
		assert.NoError(t, u.Close())
	})
	if len(tools) > 0 {
		require.NoError(t, u.AddTools("own", tools...))
	}
	return u
}

// errands returns n tools that name their owner.
func errands(whose string, n int) []mcpserver.ServerTool {
	list := make([]mcpserver.ServerTool, n)
	for i := range list {
		list[i] = answering(fmt.Sprintf("errand_%02d", i), fmt.Sprintf("Does errand %d of %s", i, whose), whose)
	}
	return list
}

func answering(name, description, answer string) mcpserver.ServerTool {
	return mcpserver.ServerTool{
		Tool: mcp.NewTool(name, mcp.WithDescription(description)),
		Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(answer), nil
		},
	}
}

// SPEC D3: the system's tools and each user's are in separate indexes. A search
// finds at most three of the system's and five of the user's.
func TestSpecD3Scopes(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}})
	require.NoError(t, m.AddTools("sys", errands("system", 30)...))
	a := newUser(t, m, "a", nil, errands("alice", 30)...)
	b := newUser(t, m, "b", nil, errands("bob", 30)...)
	assert.Equal(t, "a", a.NewSession(nil).tenant.user.id)
	assert.Empty(t, m.Default().tenant.user.id)

	whose := func(hits []Hit) (list []string) {
		for _, h := range hits {
			list = append(list, map[*owner]string{m.owner: "s", a.owner: "a", b.owner: "b"}[h.Tool.owner])
		}
		return list
	}
	for _, u := range []*Manager{a, b} {
		own := u.Default().tenant.user.id
		assert.Equal(t, []string{own, "s", own, "s", own, "s", own, own}, whose(u.Search("errand", 0)))
		assert.Equal(t, []string{own, "s", own}, whose(u.Search("errand", 3)))
		assert.Len(t, u.Search("errand", 20), 8)
		assert.Equal(t, 60, u.Stats().Tools)
		assert.Equal(t, 30, u.cur.Load().index().Len())
		assert.Equal(t, []string{"own"}, slices.Sorted(maps.Keys(figuresOf(u))))
	}
	assert.Equal(t, []string{"s", "s", "s", "s", "s"}, whose(m.Search("errand", 0)))
	assert.Empty(t, m.Search("alice", 0))
	assert.Equal(t, 30, m.cur.Load().index().Len())

	// Other limits, and no limits.
	for _, test := range []struct {
		opts      UserOptions
		ask       int
		sys, user int
	}{
		{UserOptions{SystemResults: 1}, 0, 1, 5},
		{UserOptions{UserResults: 2}, 0, 3, 2},
		{UserOptions{SystemResults: -1, UserResults: 1}, 0, 5, 1},
		{UserOptions{SystemResults: -1, UserResults: 1}, 20, 19, 1},
		{UserOptions{SystemResults: -1, UserResults: -1}, 0, 5, 5},
		{UserOptions{SystemResults: 100, UserResults: 100}, 0, 10, 10}, // SearchLimit
	} {
		c := newUser(t, m, fmt.Sprint("c", test), &test.opts, errands("carol", 30)...)
		sys := 0
		hits := c.Search("errand", test.ask)
		for _, h := range hits {
			if h.Tool.owner == m.owner {
				sys++
			}
		}
		assert.Equal(t, []int{test.sys, test.user}, []int{sys, len(hits) - sys}, "%+v", test)
	}
	var schema struct{ Properties map[string]json.RawMessage }
	require.NoError(t, json.Unmarshal(a.SearchTool().InputSchema(), &schema))
	assert.Contains(t, string(schema.Properties["max_results"]), "8", "the model is told what it gets")

	// ServerLimit applies separately to two servers with the same name.
	require.NoError(t, a.AddTools("sys", errands("alice", 9)...))
	hits := a.Default().Find(context.Background(), "errand", SearchOptions{ServerLimit: 1, Servers: []string{"sys"}}).Hits
	assert.Equal(t, []string{"a", "s"}, whose(hits))
}

// SPEC D4: if a name exists in both, the user's tool wins for that user.
func TestSpecD4UserWins(t *testing.T) {
	t.Parallel()
	for _, inline := range []int{40, -1} {
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: inline}})
		require.NoError(t, m.AddTools("mail", answering("send", "Sends mail by the system", "system"), answering("read", "Reads mail", "system")))
		a, b := newUser(t, m, "a", nil), newUser(t, m, "b", nil)
		s := a.NewSession(nil)
		call := func(s *Session, name string) string {
			r, err := s.Call(t.Context(), name, nil)
			require.NoError(t, err)
			return resultText(t, r)
		}
		assert.Equal(t, "system", call(s, "mcp_mail__send"))
		require.NoError(t, a.AddTools("mail", answering("send", "Sends mail by alice", "alice")))
		assert.Equal(t, "alice", call(s, "mcp_mail__send"))
		assert.Equal(t, "system", call(s, "mcp_mail__read"))
		assert.Equal(t, "system", call(m.def, "mcp_mail__send"))
		assert.Equal(t, "system", call(b.def, "mcp_mail__send"))
		fresh := a.NewSession(nil)
		assert.Equal(t, 2, fresh.Stats().Tools)
		assert.Equal(t, 2, fresh.Stats().Servers, "two servers of one name")
		if inline < 0 {
			hits := fresh.Search("sends mail", 5)
			require.NotEmpty(t, hits)
			assert.Same(t, a.owner, hits[0].Tool.owner)
			assert.Len(t, slices.Compact(hitNames(hits)), len(hits))
			assert.Equal(t, []string{"mcp_mail__send"}, fresh.ActivateTools([]string{"mcp_mail__send", "mcp_mail__send"}))
			assert.Positive(t, fresh.Explain("alice", "mcp_mail__send").Score)
			assert.Zero(t, b.Default().Explain("alice", "mcp_mail__send").Score)
		}
		list := fresh.Tools()
		i := slices.IndexFunc(list, func(t Tool) bool { return t.Name() == "mcp_mail__send" })
		assert.Equal(t, "Sends mail by alice", list[i].Description())

		assert.True(t, a.RemoveServer("mail"))
		assert.Equal(t, "system", call(s, "mcp_mail__send"))
		assert.NoError(t, check(a, s, fresh))
	}
}

// If a user's tool is held back, the system's tool of the same name does not
// replace it.
func TestUserToolHeldBack(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Trust: TrustQuarantine, Prompt: PromptOptions{ListInline: true}})
	require.NoError(t, m.AddTools("mail", answering("send", "By the system", "system")))
	srv := mcpserver.NewMCPServer("mail", "1", mcpserver.WithToolCapabilities(true))
	srv.AddTools(answering("send", "By alice", "alice"))
	a := newUser(t, m, "a", &UserOptions{Servers: []ServerConfig{{Name: "mail", InProcess: srv}}})
	require.NoError(t, a.Start(t.Context()))
	s := a.NewSession(nil)
	assert.Contains(t, s.PromptSections(PromptFull), "By alice")
	srv.AddTools(answering("send", "By mallory", "mallory"))
	soon(t, func() bool { return len(a.Problems()) == 1 })
	r, err := s.Call(t.Context(), "mcp_mail__send", nil)
	require.ErrorIs(t, err, ErrQuarantined)
	assert.NotContains(t, resultText(t, r), "system")
	assert.Empty(t, s.Tools())
	assert.Empty(t, a.NewSession(nil).Tools())
	assert.NoError(t, check(a, s))
	assert.Empty(t, m.Problems())
	assert.Len(t, m.Default().Tools(), 1)
}

// Two servers with the same name have separate figures and statuses.
func TestUserServerOfTheSameName(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Limits: config.Limits{Reconnect: -1}, Servers: []ServerConfig{inProcess("s", 2)}})
	fail := errors.New("out of order")
	down := mcpserver.ServerTool{Tool: mcp.NewTool("own"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, fail }}
	a := newUser(t, m, "a", &UserOptions{Servers: []ServerConfig{serving("s", down)}})
	require.ErrorIs(t, m.AddTools("s", down), ErrDuplicate)
	require.NoError(t, a.Start(t.Context()))
	assert.Equal(t, 1, a.Servers()[0].Tools)
	assert.Equal(t, 2, m.Servers()[0].Tools)

	s := a.NewSession(nil)
	_, err := s.Call(t.Context(), "mcp_s__tool_000", nil)
	require.NoError(t, err)
	_, _ = s.Call(t.Context(), "mcp_s__own", nil)
	assert.Equal(t, snapshot.Usage{Calls: 1}, figuresOf(m)["s"].Usage)
	assert.Equal(t, snapshot.Usage{Calls: 1, Errors: 1}, figuresOf(a)["s"].Usage)

	// The system's server is down, the user's is not.
	m.sources[0].server.Close()
	assert.NotContains(t, s.refusalFor(s.view(), "mcp_s__own", ErrServerDown), "since")
	assert.Contains(t, s.refusalFor(s.view(), "mcp_s__tool_000", ErrServerDown), "since")

	// Only those who may know learn about servers that are still connecting.
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest) { <-ctx.Done() })
	stuck := mcpserver.NewMCPServer("stuck", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
	connecting := func(m *Manager) {
		src := m.sources[0]
		src.server.Close()
		src.cfg.InProcess = stuck
		src.server = upstream.New(m.upstreamConfig(src), src.limits(&m.opts), nil)
		src.server.Begin()
	}
	b := newUser(t, m, "b", nil)
	connecting(a)
	for _, test := range []struct {
		m    *Manager
		want string
	}{{m, ""}, {a, "s"}, {b, ""}} {
		_, err := test.m.Call(t.Context(), "mcp_s__new", nil)
		var unknown *UnknownToolError
		require.ErrorAs(t, err, &unknown)
		assert.Equal(t, test.want, unknown.Connecting)
	}
	connecting(m)
	assert.Equal(t, []string{"s"}, a.connectingServers(nil))
	assert.Equal(t, []string{"s"}, b.connectingServers(nil))
	assert.Empty(t, b.connectingServers(rules.Rights{{Deny: []string{"*"}}}))
}

func TestUserErrors(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	_, err := m.newUser("", nil)
	assert.EqualError(t, err, `mcphybrid: user "": the id is empty`)
	_, err = m.NewUser("\x8f\x12", nil)
	assert.ErrorContains(t, err, `the id "\x8f\x12" is not UTF-8`, "its states would open for the user \ufffd\x12")
	a := newUser(t, m, "a", nil)
	_, err = m.newUser("a", nil)
	assert.ErrorIs(t, err, ErrDuplicate)
	require.NoError(t, a.Close())
	a = newUser(t, m, "a", nil)
	require.NoError(t, m.DropUser(t.Context(), "a"))
	assert.ErrorIs(t, a.AddTools("x", echoTool("y", "")), ErrClosed)
	require.NoError(t, m.DropUser(t.Context(), "nobody"))
	assert.Empty(t, m.users)
	m.users = users{"a": nil}
	_, err = m.newUser("a", nil)
	assert.ErrorIs(t, err, ErrDuplicate)
	assert.EqualError(t, m.DropUser(t.Context(), "a"), `mcphybrid: user "a" is being removed already`)
	delete(m.users, "a")
	require.NoError(t, m.Close())
	_, err = m.newUser("c", nil)
	assert.ErrorIs(t, err, ErrClosed)
}

// No user has what the system's Options deny. A user's Access applies to both.
func TestUserAccess(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Access: Access{Deny: []string{"*delete*", DescribeToolName}}})
	require.NoError(t, m.AddTools("sys", echoTool("read", ""), echoTool("write", "")))
	a := newUser(t, m, "a", &UserOptions{Access: Access{Deny: []string{"*write"}}},
		echoTool("delete_all", ""), echoTool("own_write", ""), echoTool("keep", ""))
	assert.ElementsMatch(t, []string{"mcp_sys__read", "mcp_own__keep"}, toolNames(a.DeferredTools()))
	_, err := a.Call(t.Context(), "mcp_sys__write", nil)
	assert.ErrorIs(t, err, ErrNotPermitted)
	child := a.NewSession(nil).NewChild(&SessionOptions{Disclosure: ByBridge})
	_, err = child.Call(t.Context(), "mcp_own__own_write", nil)
	assert.ErrorIs(t, err, ErrNotPermitted)
	assert.NotContains(t, namesOf(child.Tools()), DescribeToolName)
	b := newUser(t, m, "b", nil)
	assert.Len(t, b.DeferredTools(), 2)
}

// A user's tool may need a tool of the system, by its current name. A system's
// tool never brings a user's.
func TestUserNeeds(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Needs: map[string][]string{"mcp_sys__edit": {"mcp_own__read"}}})
	require.NoError(t, m.AddTools("sys", echoTool("edit", "")))
	a := newUser(t, m, "a", &UserOptions{Needs: map[string][]string{"mcp_own__save": {"mcp_sys__lock", "mcp_own__read"}}},
		echoTool("save", ""), echoTool("read", ""))
	assert.Empty(t, a.Problems())
	assert.Equal(t, []string{"mcp_sys__edit"}, a.NewSession(nil).ActivateTools([]string{"mcp_sys__edit"}))
	assert.Equal(t, []string{"mcp_own__save", "mcp_own__read"}, a.NewSession(nil).ActivateTools([]string{"mcp_own__save"}))
	require.NoError(t, m.AddTools("sys", echoTool("lock", "")))
	assert.Equal(t, []string{"mcp_own__save", "mcp_own__read", "mcp_sys__lock"}, a.NewSession(nil).ActivateTools([]string{"mcp_own__save"}))
	assert.Equal(t, []string{"mcp_own__save", "mcp_own__read", "mcp_sys__lock"}, hitNames(a.Search("mcp_own__save", 1)))
}

// All tools are inline while they fit. How a user's tools stand depends on the
// system's. A tool that is no longer inline can be found.
func TestUserToolsFollowTheSystem(t *testing.T) {
	t.Parallel()
	m, r := newTestManager(t, &Options{Inline: InlineOptions{Max: 10}})
	own := NewRegistry()
	a := newUser(t, m, "a", &UserOptions{Registry: own}, errands("alice", 6)...)
	other := newUser(t, m, "b", nil, errands("bob", 6)...)
	reg := NewRegistry()
	s := a.NewSession(&SessionOptions{Registry: reg})
	assert.Len(t, s.InlineTools(), 6)
	assert.False(t, s.IsSearchMode())
	other.Default().Tools()
	require.NoError(t, m.AddTools("sys", errands("system", 8)...))
	assert.Nil(t, other.partitioned, "who is not looked at keeps no old catalog")
	assert.Len(t, s.InlineTools(), 10, "the system's first")
	assert.Len(t, s.DeferredTools(), 4)
	assert.Equal(t, "mcp_own__errand_05", s.Search("errand 5 of alice", 1)[0].Tool.Name())
	assert.Len(t, m.InlineTools(), 8)
	assert.NoError(t, checkRegistry(s, reg))
	assert.NoError(t, checkRegistry(a.def, own))
	assert.Len(t, r.List(), 8)
	m.RemoveServer("sys")
	assert.Len(t, s.InlineTools(), 6)
	assert.NoError(t, checkRegistry(s, reg))

	// Each user ends separately; the system ends all.
	require.NoError(t, other.Close())
	assert.Empty(t, other.Default().Tools())
	assert.Len(t, s.InlineTools(), 6)
	assert.Len(t, m.users, 1)
	require.NoError(t, m.Close())
	assert.Empty(t, s.InlineTools())
	assert.Empty(t, reg.List())
	assert.Empty(t, own.List())
	assert.Empty(t, m.users)
	_, err := s.Call(t.Context(), "mcp_own__errand_00", nil)
	assert.ErrorIs(t, err, ErrClosed)
}

// Only its user's Manager can restore a saved session.
func TestUserSessionsAreRestored(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}})
	require.NoError(t, m.AddTools("sys", errands("system", 3)...))
	a := newUser(t, m, "a", nil, errands("alice", 3)...)
	b := newUser(t, m, "b", nil, errands("bob", 3)...)
	s := a.NewSession(nil)
	s.ActivateTools([]string{"mcp_own__errand_01", "mcp_sys__errand_01"})
	s.Tools()
	state := s.Save()
	again, changed, err := a.RestoreSession(state, nil)
	require.NoError(t, err)
	assert.Empty(t, changed)
	assert.Equal(t, namesOf(s.Tools()), namesOf(again.Tools()))
	assert.Equal(t, s.PromptSections(PromptFull), again.PromptSections(PromptFull))
	for _, other := range []*Manager{m, b} {
		_, changed, err := other.RestoreSession(state, nil)
		assert.EqualError(t, err, "mcphybrid: the state belongs to a session of another user")
		assert.Empty(t, changed)
	}
	_, _, err = b.RestoreSession(m.Default().Save(), nil)
	assert.Error(t, err)
}

// The system decides which tools are inline, and its skills apply.
func TestUsersHaveTheSystemsPolicy(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Skills: []Skill{{Name: "release", Description: "How to release", Body: "Carefully"}}})
	require.NoError(t, m.AddTools("shared", echoTool("x", ""), echoTool("y", "")))
	u, err := m.newUser("alice", nil)
	require.NoError(t, err)
	require.NoError(t, u.AddTools("own", echoTool("x", ""), echoTool("z", "")))
	rules := []Rule{{Name: "r", Patterns: []string{"x"}, Action: RuleExclude}}
	assert.Len(t, u.InlineTools(), 4)
	require.NoError(t, m.SetRules(rules))
	assert.Equal(t, []string{"mcp_shared__y", "mcp_own__z"}, toolNames(u.InlineTools()))
	assert.Contains(t, skillsSection(u.Default()), "release")
	require.NoError(t, m.SetSkills(nil))
	assert.NotContains(t, skillsSection(u.NewSession(nil)), "release")
	require.NoError(t, u.Close())
	require.NoError(t, check(m))
}

// Nobody inherits the name of a user's server that is gone.
func TestSystemInheritsNoNameOfAUser(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	u := newUser(t, m, "alice", nil)
	require.NoError(t, u.AddServer(t.Context(), serving("a__b", echoTool("run", "mine"))))
	s := u.NewSession(nil)
	name := s.Tools()[0].Name()
	require.NoError(t, m.AddServer(t.Context(), serving("a", echoTool("b__run", "another's"))))
	require.True(t, u.RemoveServer("a__b"))
	_, err := s.Call(t.Context(), name, nil)
	assert.ErrorIs(t, err, ErrUnknownTool, name)
	assert.Empty(t, s.InlineTools())
	assert.Len(t, m.NewSession(nil).InlineTools(), 1)
}

// A call that was approved for a user's tool is not made with the system's, even if
// both have the same definition.
func TestApprovedCallStaysWithItsOwner(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	m, _ := newTestManager(t, &Options{Middleware: []Middleware{func(next Handler) Handler {
		return func(ctx context.Context, c ToolCall) (*mcp.CallToolResult, error) {
			close(asked)
			<-answer
			return next(ctx, c)
		}
	}}})
	require.NoError(t, m.AddTools("git", answering("delete", "Deletes", "system")))
	a := newUser(t, m, "a", nil)
	require.NoError(t, a.AddTools("git", answering("delete", "Deletes", "alice")))
	s := a.NewSession(nil)
	called := make(chan error)
	go func() {
		_, err := s.Call(t.Context(), "mcp_git__delete", nil)
		called <- err
	}()
	<-asked
	require.True(t, a.RemoveServer("git"))
	close(answer)
	assert.ErrorIs(t, <-called, ErrChanged)
}
