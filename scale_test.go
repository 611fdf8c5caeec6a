package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An unchanged session's sections cost nothing, also after an item was added to what
// it begins with.
func TestSectionsAreWrittenOnce(t *testing.T) {
	m, _ := newTestManager(t, &Options{Servers: thousandTools(), Prompt: PromptOptions{ListInline: true}})
	s := m.NewSession(nil)
	for range 2 {
		for what, look := range map[string]func() string{
			"all": func() string { return s.PromptSections(PromptFull) }, "inline": s.InlineSection, "search": s.SearchSection,
		} {
			require.NotEmpty(t, look(), what)
			assert.Less(t, testing.AllocsPerRun(10, func() { look() }), 10.0, what)
		}
		s.ActivateTools([]string{"mcp_s9__tool_003"})
		s.Tools()
	}
	before := s.PromptSections(PromptFull)
	require.NoError(t, m.AddTools("more", echoTool("one", "more")))
	after := s.PromptSections(PromptFull)
	assert.Equal(t, before, after[:len(before)])
	assert.Contains(t, after[len(before):], "more (1)")
	assert.Less(t, testing.AllocsPerRun(10, func() { s.PromptSections(PromptFull) }), 25.0, "only what was added is written again")
	assert.NoError(t, check(m, s))
}

// A session that begins anew with active tools begins as others do, so its servers are
// summarized once, and its state refers to what it begins with.
func TestServersAreSummarizedOnce(t *testing.T) {
	m, _ := newTestManager(t, &Options{Servers: thousandTools()})
	s := m.NewSession(nil)
	s.ActivateTools([]string{"mcp_s9__tool_003"})
	s.Compact()
	before := s.PromptSections(PromptFull)
	require.Same(t, s.view().promptPrefix(), s.prefix)
	assert.Less(t, testing.AllocsPerRun(10, func() { s.PromptSections(PromptFull) }), 25.0)
	assert.Equal(t, before, s.PromptSections(PromptFull))
}

// What a session is shown that begins with active tools is what it would be shown if it
// shared nothing.
func TestBeginningWithActiveToolsIsTheSame(t *testing.T) {
	t.Parallel()
	summarize := []Rule{{Name: "some", Patterns: []string{"s3/*", "s9/*"}, Action: RuleSummarize}}
	for name, o := range map[string]*Options{
		"plain": {}, "lines": {Prompt: PromptOptions{ListInline: true}}, "summaries": {Rules: summarize}, "short": {Rules: summarize, Prompt: PromptOptions{MaxListingTokens: 300}},
		"skills": {Skills: someSkills(3)}, "many skills": {Skills: someSkills(200)}, "full": {List: ListOptions{Max: 41}},
	} {
		o.Servers = thousandTools()
		m, _ := newTestManager(t, o)
		for d := range disclosures {
			for _, client := range []bool{false, true} {
				s := m.NewSession(&SessionOptions{Disclosure: d, Client: client})
				s.ActivateTools([]string{"mcp_s9__tool_003", "mcp_s5__tool_009", "mcp_s3__tool_001"})
				v := s.view()
				require.NotEmpty(t, v.active)
				want := v.appendNew(nil)
				assert.Equal(t, want, s.show(), "%s, %s, client %t", name, d, client)
				assert.Equal(t, s.sections(want, true, true), s.PromptSections(PromptFull))
			}
		}
	}
}

// Of sessions that were shown the same, the first finds out which servers are new, and the
// others share that. So they do after Compact.
func TestSessionsShareTheServersThatTheyWereTold(t *testing.T) {
	m, _ := newTestManager(t, &Options{Servers: thousandTools()})
	const n = 60
	var sessions []*Session
	for i := range n {
		s := m.NewSession(nil)
		s.Tools()
		s.ActivateTools([]string{fmt.Sprintf("mcp_s9__tool_%03d", i%40)})
		s.Tools()
		sessions = append(sessions, s)
	}
	for round := range 3 {
		server := fmt.Sprint("more", round)
		require.NoError(t, m.AddTools(server, echoTool("one", "more")))
		first := m.NewSession(nil) // makes the partition, and what was not told at first
		first.Tools()
		sessions[0].Tools()
		next := 0
		took := testing.AllocsPerRun(n-2, func() { next++; sessions[next].Tools() })
		assert.Less(t, took, 60.0, "20 servers, 1,000 tools")
		for _, s := range sessions {
			news := lastServers(s.show())
			require.Same(t, lastServers(sessions[0].shown), news)
			require.Len(t, news.servers, 1)
			require.Equal(t, server, news.servers[0].Server)
		}
	}
	for _, s := range sessions {
		s.Compact()
		s.Tools()
		require.NotEmpty(t, s.view().active)
		require.Same(t, m.def.view().searchableServers(), lastServers(s.shown))
	}
	restored, _, err := m.RestoreSession(sessions[0].Save(), nil)
	require.NoError(t, err)
	assert.Same(t, m.def.view().searchableServers(), lastServers(restored.shown))
	assert.NoError(t, check(m, sessions...))
}

// What sessions were told of servers has a limit for each partition, and those beyond it
// take the place of others.
func TestMoreServersHaveALimit(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: thousandTools()})
	v := m.def.view()
	for i := range maxMoreMentions + 10 {
		told := &mentions{servers: v.searchableServers().servers[:i%3]}
		more := v.moreServers([]listItem{{slot: asMeta, meta: metaSearch, section: searchText, mentions: told}})
		require.Equal(t, v.searchableServers().servers[i%3:], more.servers)
	}
	assert.Len(t, v.serverMentions.more, maxMoreMentions)
}

// A state can be forged. What it lists before all servers that there are hides none of them from
// other sessions.
func TestAForgedListHidesNoServer(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: thousandTools()})
	s := m.NewSession(nil)
	s.ActivateTools([]string{"mcp_s9__tool_003"})
	s.Compact()
	s.Tools()
	own := slices.Clone(s.shown)
	i := slices.IndexFunc(own, func(e listItem) bool { return e.section == searchText })
	require.GreaterOrEqual(t, i, 0)
	before := &mentions{servers: serverList{{Server: "later", Tools: 1, Tool: rules.Subject{Name: "mcp_later__one", Server: "later", Own: "one"}}}}
	s.mu.Lock()
	s.setShown(slices.Insert(own, i, listItem{section: searchText, mentions: before}), nil)
	s.mu.Unlock()
	forged, _, err := m.RestoreSession(s.Save(), nil)
	require.NoError(t, err)
	honest := m.NewSession(nil)
	honest.Tools()
	require.NoError(t, m.AddTools("later", echoTool("one", "more")))
	forged.Tools()
	assert.Equal(t, 1, strings.Count(forged.SearchSection(), "later (1"))
	assert.Contains(t, honest.SearchSection(), "later (1")
}

// What is kept of sessions with different rights has a limit, and those beyond it take
// the place of others.
func TestPromptPrefixesHaveALimit(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Skills: someSkills(3)})
	require.NoError(t, m.AddTools("a", echoTool("one", "")))
	count := func() (n int) {
		m.def.view().promptPrefixes[Automatic].all.Range(func(any, any) bool { n++; return true })
		return n
	}
	for i := range maxPromptPrefixes + 40 {
		s := m.NewSession(&SessionOptions{Skills: Access{Deny: []string{fmt.Sprint("other", i)}}})
		require.NotEmpty(t, s.PromptSections(PromptFull))
		require.Same(t, s.prefix, s.view().promptPrefix(), "the newest is kept")
	}
	assert.Equal(t, maxPromptPrefixes, count())
}

// Sessions of 400 customers, each with other rights, take turns. Each set of rights is
// judged once.
func TestRightsAreJudgedOnce(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: thousandTools()})
	made := m.partitions.Load()
	for range 3 {
		for i := range 400 {
			s := m.NewSession(&SessionOptions{Access: Access{Deny: []string{fmt.Sprint("customer", i)}}})
			require.NotEmpty(t, s.PromptSections(PromptFull))
		}
		runtime.GC() // nothing but the Manager keeps them
	}
	assert.EqualValues(t, 400, m.partitions.Load()-made)
}

// Partitions have a limit, and those beyond it take the place of others.
func TestSelectionsHaveALimit(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	for i := range maxPartitions + 40 {
		m.NewSession(&SessionOptions{Intent: fmt.Sprint(i)}).Tools()
	}
	assert.Len(t, m.partitioned.byKey, maxPartitions)
	none := &partitionSet{catalogs: []*catalog{{tools: make([]*BridgeTool, maxVerdicts/500)}}}
	assert.Equal(t, 499, none.most())
	none.catalogs[0].tools = make([]*BridgeTool, maxVerdicts/10)
	assert.Equal(t, maxPromptPrefixes, none.most())
}

// A change looks at what changed, not at all tools.
func TestAChangeCostsWhatChanged(t *testing.T) {
	m, _ := newTestManager(t, &Options{Servers: thousandTools()})
	m.Search("chore", 5)
	assert.Equal(t, 1000, m.deferredIndexer.last.Len(), "that of the deferred tools waits for a model")
	made := m.deferredIndexer.last
	change := func() {
		require.NoError(t, m.AddTools("more", echoTool("one", "more")))
		require.True(t, m.RemoveServer("more"))
	}
	change()
	assert.Less(t, testing.AllocsPerRun(10, change), 800.0, "of 1,000 tools")
	assert.Same(t, made, m.deferredIndexer.last, "the index waits for a search")
	before := m.cur.Load()
	change()
	assert.Equal(t, before.list.servers, m.cur.Load().list.servers)
	for i, b := range before.list.servers {
		assert.Same(t, b, m.cur.Load().list.servers[i])
	}
	require.NoError(t, m.AddTools("more", echoTool("zeppelin", "more")))
	assert.Equal(t, "mcp_more__zeppelin", m.Search("zeppelin", 5)[0].Tool.Name())
	assert.NotSame(t, made, m.deferredIndexer.last)
}

// The index for a host's search reads the inline tools only: it shares the others.
func TestASearchOfAHostReadsTheInlineTools(t *testing.T) {
	m, _ := newTestManager(t, &Options{Servers: thousandTools()})
	deferredHits(m.def, "chore", 5)
	c := m.cur.Load()
	search := func() {
		m.deferredIndexer.index(c, c.tools)
		m.deferredIndexer.index(c, c.documents())
	}
	search()
	assert.Less(t, testing.AllocsPerRun(10, search), 1000.0, "of 1,000 tools")
}

// The first look of new rights finds no words of the servers that all rights have.
func TestAFirstLookCostsWhatIsNew(t *testing.T) {
	m, _ := newTestManager(t, &Options{Servers: thousandTools()})
	next := 0
	look := func() {
		next++
		s := m.NewSession(&SessionOptions{Access: Access{Deny: []string{fmt.Sprintf("s%d/*", next%20), fmt.Sprint(next)}}})
		require.NotEmpty(t, s.PromptSections(PromptFull))
	}
	look()
	assert.Less(t, testing.AllocsPerRun(10, look), 2000.0, "of 1,000 tools")
}

// A search in some servers looks at their tools only, and finds what one in all servers
// finds of them.
func TestASearchInAServerLooksAtItsTools(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: thousandTools(), Search: RankingOptions{Limit: 1000}})
	s := m.NewSession(nil)
	all := s.Search("chore", 1000)
	require.Greater(t, len(all), 900)
	for _, servers := range [][]string{{"s17"}, {"s1?"}, {"s3", "s0"}, {"nobody"}, {"s3", "s*"}} {
		var want []string
		for _, h := range all {
			if rules.MatchAny(servers, h.Tool.Server()) {
				want = append(want, h.Tool.Name())
			}
		}
		var got []string
		for _, h := range s.Find(context.Background(), "chore", SearchOptions{Limit: 1000, Servers: servers}).Hits {
			got = append(got, h.Tool.Name())
		}
		assert.Equal(t, want, got, servers)
	}
	looked := 0
	v := s.view()
	parts := v.parts(func(t *BridgeTool, st standing) bool { looked++; return st.Searchable() }, "s17")
	require.Len(t, parts, 1)
	assert.Len(t, parts[0].index().Search("chore", 5, parts[0].keep), 5)
	assert.Less(t, looked, 200, "50 tools in each of some passes")
}

// A server that is configured twice, with names that collide, keeps its tools: the
// second has nothing but that problem.
func TestTwiceInTheConfiguration(t *testing.T) {
	twice := serving("my_server", echoTool("a", "underscore"))
	m := NewManager(&Options{Servers: []ServerConfig{serving("my-server", echoTool("a", "dash")), twice, twice}})
	defer m.Close()
	require.ErrorIs(t, m.Start(t.Context()), ErrDuplicate)
	for _, tool := range m.InlineTools() {
		assert.Same(t, tool, m.cur.Load().tool(tool.Name()))
	}
	assert.Len(t, m.InlineTools(), 2)
	require.NoError(t, check(m))
	require.True(t, m.RemoveServer("my_server"))
	assert.Equal(t, []string{"mcp_my_server__a"}, namesOf(m.InlineTools()))
	require.NoError(t, check(m))
	assert.True(t, m.RemoveServer("my_server"), "the second")
	assert.False(t, m.RemoveServer("my_server"))
	require.NoError(t, check(m))
}

// A change of all servers copies the list of their blocks once, and no catalog sees it.
func TestAChangeOfAllServers(t *testing.T) {
	t.Parallel()
	m := NewManager(nil)
	defer m.Close()
	for i := range 50 {
		require.NoError(t, m.AddTools(fmt.Sprint("s", i), echoTool("a", "")))
	}
	for range 2 {
		before, moved := m.cur.Load().list.servers, 0
		had := slices.Clone(before)
		require.NoError(t, m.publishChange(func() error {
			for _, src := range m.sources {
				at := &m.perServer[0]
				src.problems = append(src.problems, errors.New("changed"))
				m.stageSource(src)
				if &m.perServer[0] != at {
					moved++
				}
			}
			return nil
		}))
		assert.Equal(t, 1, moved)
		assert.True(t, slices.Equal(had, before))
		assert.False(t, slices.Equal(had, m.cur.Load().list.servers))
	}
	require.NoError(t, check(m))
}
