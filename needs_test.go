package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/text"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withMeta returns an echo tool with the given needs in its _meta.
func withMeta(name string, needs any) mcpserver.ServerTool {
	t := echoTool(name, "Does the chore "+name)
	t.Tool.Meta = mcp.NewMetaFromMap(map[string]any{"mcphybrid/needs": needs})
	return t
}

// needing returns echo tools, of which "edit: read, list" needs read and list.
func needing(tools ...string) (list []mcpserver.ServerTool) {
	for _, tool := range tools {
		name, needs, found := strings.Cut(tool, ": ")
		if found {
			list = append(list, withMeta(name, strings.Split(needs, ", ")))
		} else {
			list = append(list, echoTool(name, "Does the chore "+name))
		}
	}
	return list
}

// inFS returns the registered names of tools of server fs.
func inFS(names ...string) (list []string) {
	for _, name := range names {
		list = append(list, "mcp_fs__"+name)
	}
	return list
}

func problemsOf(m *Manager) (texts []string) {
	for _, err := range m.Problems() {
		texts = append(texts, err.Error())
	}
	return texts
}

func TestSpecB5WhatIsNeededComesAfterwards(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		tools    []string
		ask      string // for these tools, separated by a space
		want     string // are the callable tools afterwards
		problems []string
	}{
		{"one", []string{"edit: read", "read", "other"}, "edit", "edit read", nil},
		{"it alone", []string{"edit: read", "read"}, "read", "read", nil},
		{"declared order", []string{"a", "b", "c", "d: c, a, b"}, "d", "d c a b", nil},
		{"chain", []string{"a: b", "b: c", "c: d", "d"}, "a", "a b c d", nil},
		{"nearest first", []string{"a: b, c", "b: d", "c", "d"}, "a", "a b c d", nil},
		{"diamond", []string{"a: b, c", "b: d", "c: d", "d: e", "e"}, "a", "a b c d e", nil},
		{"asked ones first", []string{"a: b", "b", "c: d", "d"}, "a c", "a c b d", nil},
		{"asked and needed", []string{"a: b", "b", "c: a"}, "c b", "c b a", nil},
		{"said twice", []string{"a: b, b", "b"}, "a", "a b", nil},
		{"itself", []string{"a: a, b, a", "b"}, "a", "a b", []string{`mcphybrid: tool "mcp_fs__a" needs itself`}},
		{"cycle of two", []string{"a: b", "b: a"}, "b", "b a",
			[]string{`mcphybrid: these tools need each other: "mcp_fs__a", "mcp_fs__b"`}},
		{"cycle of three, and what leads to it and out of it",
			[]string{"in: a", "a: b", "b: c", "c: a, out", "out"}, "in", "in a b c out",
			[]string{`mcphybrid: these tools need each other: "mcp_fs__a", "mcp_fs__b", "mcp_fs__c"`}},
		{"two cycles that meet are one", []string{"a: b, c", "b: a", "c: a"}, "c", "c a b",
			[]string{`mcphybrid: these tools need each other: "mcp_fs__a", "mcp_fs__b", "mcp_fs__c"`}},
		{"two cycles that do not", []string{"a: b", "b: a", "c: d", "d: c, a"}, "c", "c d a b",
			[]string{`mcphybrid: these tools need each other: "mcp_fs__a", "mcp_fs__b"`,
				`mcphybrid: these tools need each other: "mcp_fs__c", "mcp_fs__d"`}},
		{"unknown", []string{"a: nope, b, x\ny, nope", "b"}, "a", "a b",
			[]string{`mcphybrid: tool "mcp_fs__a" needs missing tools: "nope", "x y"`}},
		{"a registered name is no name of the server's", []string{"a: mcp_fs__b", "b"}, "a", "a",
			[]string{`mcphybrid: tool "mcp_fs__a" needs missing tools: "mcp_fs__b"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, r := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}})
			require.NoError(t, m.AddTools("fs", needing(test.tools...)...))
			want, ask := inFS(strings.Fields(test.want)...), inFS(strings.Fields(test.ask+" mine")...)
			assert.Equal(t, want, m.ActivateTools(ask[:len(ask)-1]))
			assert.Equal(t, "mcp_fs__mine", ask[len(ask)-1], "what is behind the names is the caller's")
			assert.Equal(t, want, toolNames(m.ActiveTools()))
			for _, name := range want {
				_, ok := r.Get(name)
				assert.True(t, ok, name)
			}
			assert.Equal(t, test.problems, problemsOf(m))
		})
	}
}

// A key may be a pattern, in the one language of patterns.
func TestNeedsByPattern(t *testing.T) {
	t.Parallel()
	tools := func() []mcpserver.ServerTool { return needing("edit_a", "edit_b", "stat", "other") }
	none := []string(nil)
	for _, test := range []struct {
		key      string
		needs    string
		a, stat  []string // what they bring along
		problems []string
	}{
		{"mcp_fs__edit_*", "mcp_fs__stat", inFS("stat"), none, nil},
		{"fs/edit_*", "mcp_fs__stat", inFS("stat"), none, nil},
		{"edit_?", "mcp_fs__stat", inFS("stat"), none, nil},
		{"edit_a", "mcp_fs__stat", inFS("stat"), none, nil},
		{"fs/*", "mcp_fs__stat mcp_fs__other", inFS("stat", "other"), inFS("other"), []string{`mcphybrid: these tools need each other: "mcp_fs__stat", "mcp_fs__other"`}},
		{"fs/edit_*", "mcp_fs__nope mcp_fs__stat", inFS("stat"), none, []string{`mcphybrid: Options.Needs: "fs/edit_*" needs missing tools: "mcp_fs__nope"`}},
		{"git/*", "mcp_fs__stat", none, none, []string{`mcphybrid: Options.Needs: "git/*" matches no tool`}},
		{"mcp_fs__[e]*", "mcp_fs__stat", none, none, []string{`mcphybrid: Options.Needs: "mcp_fs__[e]*" has a '[', which is no wildcard: * and ? are; it matches no tool`}},
		{"later/*", "mcp_fs__stat", none, none, nil}, // its server has not listed yet
	} {
		m, _ := newTestManager(t, &Options{
			Inline: InlineOptions{Max: -1}, Needs: map[string][]string{test.key: strings.Fields(test.needs)}, Servers: []ServerConfig{inProcess("later", 1)},
		})
		require.NoError(t, m.AddTools("fs", tools()...))
		assert.Equal(t, append(inFS("edit_a"), test.a...), m.ActivateTools(inFS("edit_a")), test.key)
		other := m.NewSession(nil)
		assert.Equal(t, append(inFS("stat"), test.stat...), other.ActivateTools(inFS("stat")), test.key)
		assert.Equal(t, test.problems, problemsOf(m), test.key)
	}

	// In a server's configuration, patterns and names are its own.
	m := NewManager(&Options{Inline: InlineOptions{Max: -1}})
	t.Cleanup(func() { m.Close() })
	s := mcptest.Server("fs", tools()...)
	require.NoError(t, m.AddServer(t.Context(), ServerConfig{Name: "fs", InProcess: s, Needs: map[string][]string{"edit_*": {"stat", "edit_a"}, "lost_*": {"stat"}}}))
	assert.Equal(t, inFS("edit_b", "stat", "edit_a"), m.ActivateTools(inFS("edit_b")))
	assert.Equal(t, []string{`mcphybrid: server "fs": its configuration has needs for "lost_*", which is not there`}, problemsOf(m))

	// A user's patterns are about the user's tools, which may need the system's.
	u, err := m.NewUser("ann", &UserOptions{Needs: map[string][]string{"my/*": {"mcp_fs__other", "mcp_my__a"}, "fs/*": {"mcp_my__a"}}})
	require.NoError(t, err)
	require.NoError(t, u.AddTools("my", needing("a", "b")...))
	assert.Equal(t, []string{"mcp_my__b", "mcp_my__a", "mcp_fs__other"}, u.NewSession(nil).ActivateTools([]string{"mcp_my__b"}))
	assert.Equal(t, []string{`mcphybrid: UserOptions.Needs: "fs/*" matches no tool`}, problemsOf(u.own))

	// What is missing is told once, of a user's server too.
	v, err := m.NewUser("bob", nil)
	require.NoError(t, err)
	require.NoError(t, v.AddServer(t.Context(), ServerConfig{Name: "fs", InProcess: s, Needs: map[string][]string{"edit_*": {"lost"}}}))
	assert.Equal(t, []string{`mcphybrid: server "fs": needs: "edit_*" needs missing tools: "lost"`}, problemsOf(v.own))
}

// Every way to a deferred tool brings the tools that it needs, once, in every
// disclosure with activation.
func TestSpecB5EveryWayBringsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	for _, d := range []Disclosure{ByActivation, ByProvider} {
		for name, ask := range map[string]func(t *testing.T, s *Session, r *ToolRegistry){
			"ActivateToolIfDeferred": func(t *testing.T, s *Session, _ *ToolRegistry) {
				assert.True(t, s.ActivateToolIfDeferred("mcp_fs__edit"))
			},
			"call": func(t *testing.T, s *Session, _ *ToolRegistry) {
				_, err := s.Call(t.Context(), "mcp_fs__edit", nil)
				assert.NoError(t, err)
			},
			"registry": func(t *testing.T, _ *Session, r *ToolRegistry) {
				assert.True(t, r.TryActivateDeferred("mcp_fs__edit"))
			},
			"search": func(t *testing.T, s *Session, _ *ToolRegistry) {
				_, err := s.Call(t.Context(), SearchToolName, `{"query":"edit"}`)
				assert.NoError(t, err)
			},
		} {
			t.Run(fmt.Sprint(name, d), func(t *testing.T) {
				var events []Event
				m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, OnEvent: func(e Event) {
					if e.Kind == EventActivate {
						events = append(events, e)
					}
				}})
				require.NoError(t, m.AddTools("fs", needing("edit: read", "read: stat", "stat", "other")...))
				r := NewRegistry()
				s := m.NewSession(&SessionOptions{Disclosure: d, Registry: r})
				defer s.Close()
				for range 2 {
					ask(t, s, r)
					assert.Equal(t, inFS("edit", "read", "stat"), toolNames(s.ActiveTools()))
					assert.Equal(t, inFS("edit", "read", "stat"), r.ToolGroup(GroupAll))
					require.Len(t, events, 1)
					assert.Equal(t, inFS("edit", "read", "stat"), events[0].Tools)
				}
				assert.NoError(t, check(m, s))
				assert.NoError(t, checkRegistry(s, r))
			})
		}
	}
}

// An inline tool is there from the start. The tools that it needs come with its
// first call.
func TestSpecB5InlineToolNeedsADeferredOne(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}})
	require.NoError(t, m.AddTools("fs", needing("edit: read, stat", "read", "stat")...))
	assert.Empty(t, m.ActiveTools())
	assert.Equal(t, inFS("edit", "read", "stat"), m.NewSession(nil).ActivateTools(inFS("edit")))
	_, err := m.Call(t.Context(), "mcp_fs__edit", nil)
	require.NoError(t, err)
	assert.Equal(t, inFS("read", "stat"), toolNames(m.ActiveTools()))

	// The tools that a used tool needs count as used.
	for range DefaultActiveTurns {
		m.Default().NextTurn()
	}
	_, err = m.Call(t.Context(), "mcp_fs__edit", nil)
	require.NoError(t, err)
	assert.Empty(t, m.Default().Compact())
	for range DefaultActiveTurns {
		m.Default().NextTurn()
	}
	assert.Equal(t, inFS("read", "stat"), namesOf(m.Default().Compact()))
}

// A refused call brings no tools.
func TestSpecB5RefusedCallBringsNothing(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}})
	require.NoError(t, m.AddTools("fs", needing("edit: read", "read", "other: read")...))
	for _, name := range inFS("edit", "other") {
		_, err := m.Call(t.Context(), name, `{"text": 5}`)
		require.ErrorIs(t, err, ErrBadArguments)
	}
	assert.Empty(t, m.ActiveTools())
}

func TestSpecB5DeclaredByTheHost(t *testing.T) {
	t.Parallel()
	needs := map[string][]string{
		"mcp_fs__edit":   {"mcp_git__diff", "mcp_fs__read", "nope"},
		"mcp_git__diff":  {"mcp_git__log"},
		"mcp_fs__typo":   {"mcp_fs__read"},
		"mcp_late__tool": {"mcp_fs__read"},
		"mcp_fs__read":   {"mcp_late__other"},
	}
	fs := serving("fs", needing("edit: stat, read", "read", "stat", "seek", "denied", "off")...)
	fs.Needs = map[string][]string{"edit": {"denied", "off", "seek"}, "lost": {"read"}}
	fs.Tools.Deny = []string{"off"}
	late := serving("late", echoTool("tool", ""))
	m := NewManager(&Options{Inline: InlineOptions{Max: -1}, Needs: needs, Access: Access{Deny: []string{"mcp_fs__denied"}}, Servers: []ServerConfig{late}})
	defer m.Close()
	needs["mcp_fs__edit"][1] = "changed"
	delete(needs, "mcp_git__diff")
	require.NoError(t, m.AddServer(t.Context(), fs))
	require.NoError(t, m.AddTools("git", needing("log", "diff")...))
	fs.Needs["edit"][2] = "changed"
	assert.Equal(t, []string{"mcp_fs__edit", "mcp_git__diff", "mcp_fs__read", "mcp_fs__seek", "mcp_fs__stat", "mcp_git__log"}, m.ActivateTools(inFS("edit")),
		"what the options say comes first, then the configuration, then the server")
	expected := []string{
		`mcphybrid: tool "mcp_fs__edit" needs missing tools: "nope"`,
		`mcphybrid: Options.Needs: "mcp_fs__typo" matches no tool`,
		`mcphybrid: tool "mcp_fs__edit" needs missing tools: "denied", "off"`,
		`mcphybrid: server "fs": its configuration has needs for "lost", which is not there`,
	}
	assert.Equal(t, expected, problemsOf(m), "the tools of a server that was not listed yet may be there")
	require.NoError(t, check(m))

	require.NoError(t, m.Start(t.Context()))
	expected = slices.Insert(expected, 1, `mcphybrid: tool "mcp_fs__read" needs missing tools: "mcp_late__other"`)
	assert.Equal(t, expected,
		problemsOf(m))
}

// The needs that a server declares reach only its own tools.
func TestSpecB5ServerNamesItsOwnToolsOnly(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}})
	require.NoError(t, m.AddTools("fs", needing("read", "delete")...))
	require.NoError(t, m.AddTools("evil", needing("edit: delete, mcp_fs__delete, read", "read")...))
	assert.Equal(t, []string{"mcp_evil__edit", "mcp_evil__read"}, m.ActivateTools([]string{"mcp_evil__edit"}))
	assert.Equal(t, []string{`mcphybrid: tool "mcp_evil__edit" needs missing tools: "delete", "mcp_fs__delete"`}, problemsOf(m))

	// The same holds under a name that another server has taken.
	require.NoError(t, m.AddTools("a-b", needing("edit: read", "read")...))
	require.NoError(t, m.AddTools("a_b", needing("edit: read", "read")...))
	all := toolNames(m.DeferredTools())
	assert.Equal(t, all[len(all)-2:], m.ActivateTools(all[len(all)-2:len(all)-1]))
}

func TestSpecB5NeedsPastTheRights(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}})
	require.NoError(t, m.AddTools("fs", needing("stat", "edit: stat, read, list", "read: seek", "seek", "list")...))
	s := m.NewSession(&SessionOptions{Access: Access{Deny: []string{"*__read"}}})
	assert.Equal(t, inFS("edit", "stat", "list"), s.ActivateTools(inFS("edit")), "neither read nor what only read needs")
	s = s.NewChild(&SessionOptions{Access: Access{Allow: []string{"*__edit", "*__stat"}}})
	_, err := s.Call(t.Context(), "mcp_fs__edit", nil)
	require.NoError(t, err)
	assert.Equal(t, inFS("edit"), toolNames(s.ActiveTools()))
	assert.Empty(t, m.Problems(), "a session's rights are no problem of the catalog")
}

// A tool that is gone or held back does not come along, and does so again when
// it is back.
func TestSpecB5NeededToolGoesAndComesBack(t *testing.T) {
	t.Parallel()
	fs := serving("fs", needing("edit: read", "read")...)
	m, r := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Trust: TrustQuarantine, Servers: []ServerConfig{fs}})
	assert.Equal(t, inFS("edit", "read"), m.ActivateTools(inFS("edit")))

	for _, change := range []func(){
		func() { mcpServer(fs).DeleteTools("read") },
		func() { mcpServer(fs).AddTools(echoTool("read", "Sends everything to us")) },
	} {
		before := m.cur.Load()
		change()
		soon(t, func() bool { return m.cur.Load() != before })
		assert.Equal(t, inFS("edit"), toolNames(m.ActiveTools()))
		assert.Contains(t, problemsOf(m), `mcphybrid: tool "mcp_fs__edit" needs missing tools: "read"`)
		_, err := m.Call(t.Context(), "mcp_fs__edit", nil)
		require.NoError(t, err)
		assert.Equal(t, inFS("edit"), m.ActivateTools(inFS("edit")))
		require.NoError(t, check(m))
	}
	var held *ChangedError
	require.ErrorAs(t, m.Problems()[0], &held)
	require.NoError(t, m.Accept("fs", "read", held.Is))
	assert.Empty(t, m.Problems())
	_, err := m.Call(t.Context(), "mcp_fs__edit", nil)
	require.NoError(t, err)
	assert.Equal(t, inFS("edit", "read"), toolNames(m.ActiveTools()))
	require.NoError(t, checkRegistry(m.def, r))
}

func TestSpecB5SearchAnswersWithWhatIsNeeded(t *testing.T) {
	t.Parallel()
	tools := needing("inline", "edit_file: read, inline, stat", "edit_page: read, render", "read: seek", "seek", "stat", "render")
	type hit struct{ name, neededBy string }
	search := func(t *testing.T, opts Options, active []string, so SearchOptions) (hits []hit) {
		m, _ := newTestManager(t, &opts)
		require.NoError(t, m.AddTools("fs", tools...))
		m.ActivateTools(active)
		for i, h := range m.Default().Find(context.Background(), "edit", so).Hits {
			if h.NeededBy == nil {
				assert.Positive(t, h.Score)
				hits = append(hits, hit{h.Tool.OriginalName(), ""})
				continue
			}
			assert.Zero(t, h.Score)
			assert.Positive(t, i)
			hits = append(hits, hit{h.Tool.OriginalName(), h.NeededBy.OriginalName()})
		}
		return hits
	}
	for _, test := range []struct {
		name   string
		opts   Options
		active []string
		so     SearchOptions
		want   []hit
	}{
		{"all", Options{}, nil, SearchOptions{}, []hit{{"edit_file", ""}, {"edit_page", ""},
			{"read", "edit_file"}, {"stat", "edit_file"}, {"seek", "edit_file"}, {"render", "edit_page"}}},
		{"not counted against the number of hits", Options{}, nil, SearchOptions{Limit: 1},
			[]hit{{"edit_file", ""}, {"read", "edit_file"}, {"stat", "edit_file"}, {"seek", "edit_file"}}},
		{"nor against the limit per server", Options{Search: RankingOptions{ServerLimit: 2}}, nil, SearchOptions{},
			[]hit{{"edit_file", ""}, {"edit_page", ""}, {"read", "edit_file"}, {"stat", "edit_file"}, {"seek", "edit_file"}, {"render", "edit_page"}}},
		{"within the limit for all", Options{Search: RankingOptions{Results: 3, Limit: 3}}, nil, SearchOptions{},
			[]hit{{"edit_file", ""}, {"edit_page", ""}, {"read", "edit_file"}}},
		{"which hits may fill", Options{Search: RankingOptions{Results: 2, Limit: 2}}, nil, SearchOptions{},
			[]hit{{"edit_file", ""}, {"edit_page", ""}}},
		{"active ones are there", Options{}, inFS("read"), SearchOptions{},
			[]hit{{"edit_file", ""}, {"edit_page", ""}, {"stat", "edit_file"}, {"render", "edit_page"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.opts.Inline.Max = 1
			assert.Equal(t, test.want, search(t, test.opts, test.active, test.so))
		})
	}
}

// A search by the model activates the tools in its answer and no others.
func TestSpecB5SearchByTheModel(t *testing.T) {
	t.Parallel()
	tools := needing("edit: read, stat, list", "read: edit", "stat", "list", "other")
	ask := func(s *Session, tool, args string) string {
		r, err := s.Call(t.Context(), tool, args)
		require.NoError(t, err)
		return resultText(t, r)
	}
	for _, test := range []struct {
		disclosure Disclosure
		limit      int
		want       []string
	}{
		{ByActivation, 20, inFS("edit", "read", "stat", "list")},
		{ByActivation, 3, inFS("edit", "read", "stat")},
		{ByProvider, 3, inFS("edit", "read", "stat")},
		{ByBridge, 3, nil},
	} {
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Search: RankingOptions{Results: 1, Limit: test.limit}})
		require.NoError(t, m.AddTools("fs", tools...))
		s := m.NewSession(&SessionOptions{Disclosure: test.disclosure})
		s.Tools()
		text := ask(s, SearchToolName, `{"query":"edit"}`)
		var answer searchAnswer
		require.NoError(t, json.Unmarshal([]byte(text), &answer))
		require.Len(t, answer.Tools, min(test.limit, 4))
		assert.Equal(t, len(answer.Tools), answer.Count)
		for i, f := range answer.Tools {
			assert.Equal(t, inFS("edit", "read", "stat", "list")[i], f.Name)
			assert.Equal(t, i > 0, f.NeededBy == "mcp_fs__edit")
		}
		assert.Equal(t, len(answer.Tools)-1, strings.Count(text, `,"needed_by":"mcp_fs__edit"`))
		assert.Equal(t, test.want, toolNames(s.ActiveTools()))
		assert.NoError(t, check(m, s))

		if test.disclosure == ByBridge {
			// Through the bridge, needed tools stay behind it.
			assert.Contains(t, ask(s, DescribeToolName, `{"names":["mcp_fs__edit"]}`), `"needs":["mcp_fs__read","mcp_fs__stat","mcp_fs__list"]}`)
			assert.NotContains(t, ask(s, DescribeToolName, `{"names":["mcp_fs__other"]}`), `"needs"`)
			ask(s, CallToolName, `{"name":"mcp_fs__edit"}`)
			assert.Empty(t, s.ActiveTools())
		}
	}
}

func TestSpecB5MalformedMetaIsNoHint(t *testing.T) {
	t.Parallel()
	const told = `mcphybrid: server "fs": tool "mcp_fs__a": its _meta has malformed needs: `
	for _, test := range []struct {
		needs   any
		problem string // not told
	}{
		{nil, ""},
		{[]string{}, ""},
		{"b", `"mcphybrid/needs" is a JSON string, want a list of strings`},
		{map[string]string{"b": "c"}, `"mcphybrid/needs" is a JSON object, want a list of strings`},
		{[]any{"b", 5}, `"mcphybrid/needs" is a JSON number, want a string`},
		{make([]string, maxNeeds+1), `"mcphybrid/needs" has 33 names, more than the limit of 32`},
	} {
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}})
		require.NoError(t, m.AddTools("fs", withMeta("a", test.needs), echoTool("b", "B")))
		assert.Equal(t, inFS("a"), m.ActivateTools(inFS("a")), test.needs)
		if test.problem == "" {
			assert.Empty(t, m.Problems())
		} else {
			assert.Equal(t, []string{told + test.problem}, problemsOf(m))
		}
	}
}

// However many tools need each other, one brings only a few, and problems are
// short.
func TestSpecB5HostileServer(t *testing.T) {
	t.Parallel()
	const n = 2000
	var tools []mcpserver.ServerTool
	for i := range n {
		var needs []string
		for j := range maxNeeds - 1 {
			needs = append(needs, strconv.Itoa((i*7+j*j+1)%n))
		}
		tools = append(tools, withMeta(strconv.Itoa(i), append(needs, strings.Repeat("x", 2000))))
	}
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}})
	require.NoError(t, m.AddTools("fs", tools...))
	assert.Len(t, m.ActivateTools(inFS("0")), 1+maxNeeds)
	_, err := m.Call(t.Context(), "mcp_fs__1000", nil)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(m.ActiveTools()), 2*(1+maxNeeds))
	for _, err := range m.Problems() {
		assert.Less(t, len(err.Error()), 11*text.MaxName)
	}
}

// On random graphs, a tool needs the tools that it can reach, the nearest
// first. Cycles are the sets of tools that reach each other.
func TestSpecB5NeedsAgreeWithReachability(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		n := 1 + rng.IntN(maxNeeds)
		m := NewManager(&Options{Inline: InlineOptions{Max: rng.IntN(5) - 1}})
		far := make([][]int, n) // the length of the shortest way, or n
		var tools []mcpserver.ServerTool
		for i := range n {
			far[i] = slices.Repeat([]int{n}, n)
			needs := []string{}
			for range rng.IntN(4) * rng.IntN(2) {
				j := rng.IntN(n)
				needs = append(needs, strconv.Itoa(j))
				far[i][j] = 1
			}
			tools = append(tools, withMeta(strconv.Itoa(i), needs))
		}
		for k := range n {
			for i := range n {
				for j := range n {
					far[i][j] = min(far[i][j], far[i][k]+far[k][j])
				}
			}
		}
		require.NoError(t, m.AddTools("fs", tools...))
		v := m.def.view()
		cyclic := make(map[int]int) // the number of its cycle
		for c, cycle := range v.catalogs[0].needs.cycles(v.catalogs[0].tools) {
			for _, tool := range cycle {
				i, _ := strconv.Atoi(tool.def.Own)
				require.NotContains(t, cyclic, i, "seed %d", seed)
				cyclic[i] = c + 1
			}
		}
		for i, tool := range v.catalogs[0].tools {
			var got []int
			for _, n := range v.needed(tool) {
				j, _ := strconv.Atoi(n.def.Own)
				got = append(got, j)
			}
			require.True(t, slices.IsSortedFunc(got, func(a, b int) int { return far[i][a] - far[i][b] }), "seed %d, tool %d: %v", seed, i, got)
			for j := range n {
				require.Equal(t, i != j && far[i][j] < n, slices.Contains(got, j), "seed %d, %d needs %d", seed, i, j)
				if i != j {
					require.Equal(t, far[i][j] < n && far[j][i] < n, cyclic[i] > 0 && cyclic[i] == cyclic[j], "seed %d, %d and %d", seed, i, j)
				}
			}
			slices.Sort(got)
			require.Equal(t, slices.Compact(slices.Clone(got)), got)
		}
		require.NoError(t, check(m))
		require.NoError(t, m.Close())
	}
}

// BenchmarkCatalogChange adds or removes one tool beside 10,000 tools, of which
// some need two others each.
func BenchmarkCatalogChange(b *testing.B) {
	const n = 10_000
	for _, needing := range []int{0, 100, n} {
		b.Run(fmt.Sprintf("needing=%d", needing), func(b *testing.B) {
			tools := make([]mcpserver.ServerTool, n)
			for i := range tools {
				tools[i] = echoTool(strconv.Itoa(i), "Does a chore")
				if i < needing {
					tools[i] = withMeta(strconv.Itoa(i), []string{strconv.Itoa((i*31 + 1) % n), strconv.Itoa(i / 2)})
				}
			}
			m := NewManager(nil)
			defer m.Close()
			require.NoError(b, m.AddTools("fs", tools...))
			require.NoError(b, m.AddTools("x", echoTool("x", "X")))
			src := m.sources[1]
			defs := src.defs
			for i := 0; b.Loop(); i++ {
				require.NoError(b, m.publishChange(func() error {
					src.defs = defs[:i%2]
					return nil
				}))
			}
		})
	}
}

// A server that lists no tool has listed its tools: what needs them is reported.
func TestNeedsOfAServerWithoutTools(t *testing.T) {
	t.Parallel()
	cfg := serving("fs")
	cfg.Needs = map[string][]string{"edit": {"read"}}
	m, _ := newTestManager(t, &Options{Needs: map[string][]string{"mcp_fs__write": {"mcp_fs__read"}, "mcp_a__tool_000": {"mcp_fs__read"}}, Servers: []ServerConfig{cfg, inProcess("a", 1)}})
	assert.Equal(t, []string{
		`mcphybrid: tool "mcp_a__tool_000" needs missing tools: "mcp_fs__read"`,
		`mcphybrid: Options.Needs: "mcp_fs__write" matches no tool`,
		`mcphybrid: server "fs": its configuration has needs for "edit", which is not there`,
	}, problemsOf(m))
}

// A server that has not listed its tools may have those that begin as all of its do, and
// no others.
func TestNeedsOfServersThatAreDown(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"my server", "down", strings.Repeat("x", 80)} {
		m := NewManager(&Options{
			Servers: []ServerConfig{{Name: name, Command: "/nonexistent/command"}},
			Needs:   map[string][]string{"mcp_x__run": {names.Alone(name, "").Name("a"), "mcp_github__nope"}},
		})
		defer m.Close()
		require.NoError(t, m.AddTools("x", echoTool("run", "")))
		assert.Equal(t, []string{`mcphybrid: tool "mcp_x__run" needs missing tools: "mcp_github__nope"`}, problemsOf(m), name)
	}
}

// numberedTools are tools with the names 1 to n, from index 1.
func numberedTools(n int) []*BridgeTool {
	tools := make([]*BridgeTool, n+1)
	for i := 1; i <= n; i++ {
		tools[i] = &BridgeTool{name: strconv.Itoa(i)}
	}
	return tools
}

// byNumber finds one of numberedTools.
func byNumber(tools []*BridgeTool) func(string) *BridgeTool {
	return func(name string) *BridgeTool {
		n, _ := strconv.Atoi(name)
		return tools[n]
	}
}

func TestDependenciesAdd(t *testing.T) {
	t.Parallel()
	tools := numberedTools(9)
	d, number := make(toolNeeds), byNumber(tools)
	itself, missing := d.add(tools[1], []string{"3", "x", "2", "3", "x", "y"}, number)
	assert.False(t, itself)
	assert.Equal(t, []string{"x", "y"}, missing)
	itself, missing = d.add(tools[1], []string{"1", "2", "4"}, number)
	assert.True(t, itself)
	assert.Empty(t, missing)
	d.add(tools[2], []string{"x", "2"}, number)
	assert.Len(t, d, 1, "no entry for nothing")
	assert.Equal(t, []string{"3", "2", "4"}, namesOf(d[tools[1]]), "in order, none twice")
}

func TestTransitive(t *testing.T) {
	t.Parallel()
	tools := numberedTools(6)
	d := make(toolNeeds)
	for of, names := range map[int][]string{1: {"2", "3"}, 2: {"4", "1"}, 3: {"2", "5"}, 5: {"6"}} {
		d.add(tools[of], names, byNumber(tools))
	}
	needs := func(t *BridgeTool) []*BridgeTool { return d[t] }
	all := func(*BridgeTool) bool { return true }
	assert.Equal(t, []string{"2", "3", "4", "5", "6"}, namesOf(transitive(tools[1], 9, needs, all)), "the nearest first")
	assert.Equal(t, []string{"2", "3", "4"}, namesOf(transitive(tools[1], 3, needs, all)))
	assert.Equal(t, []string{"2", "3", "4"}, namesOf(transitive(tools[1], 9, needs, func(t *BridgeTool) bool { return t != tools[5] })), "and not what 5 needs")
	assert.Nil(t, transitive(tools[4], 9, needs, all))
}

// On random graphs, the cycles are the sets of tools that reach each other.
func TestCyclesAgreeWithReachability(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 5))
		n := 1 + rng.IntN(20)
		d, tools := make(toolNeeds), numberedTools(n)
		reach := make([][]bool, n+1)
		for i := range n + 1 {
			reach[i] = make([]bool, n+1)
		}
		for i := 1; i <= n; i++ {
			var names []string
			for range rng.IntN(4) * rng.IntN(2) {
				to := 1 + rng.IntN(n)
				names = append(names, strconv.Itoa(to))
				reach[i][to] = true
			}
			d.add(tools[i], names, byNumber(tools))
		}
		for k := range reach {
			for i := range reach {
				for j := range reach {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		cycleOf := make(map[*BridgeTool]int)
		for c, cycle := range d.cycles(tools[1:]) {
			require.Greater(t, len(cycle), 1)
			for _, tool := range cycle {
				require.Zero(t, cycleOf[tool], "seed %d: %s is in two", seed, tool.name)
				cycleOf[tool] = c + 1
			}
		}
		for i := 1; i <= n; i++ {
			for j := 1; j <= n; j++ {
				want := i != j && reach[i][j] && reach[j][i]
				require.Equal(t, want, i != j && cycleOf[tools[i]] > 0 && cycleOf[tools[i]] == cycleOf[tools[j]], "seed %d: %d and %d", seed, i, j)
			}
		}
	}
}
