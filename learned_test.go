package mcphybrid

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reports returns a tool for the weather and five others that answer "report" as well as each
// other.
func reports() []mcpserver.ServerTool {
	tools := []mcpserver.ServerTool{echoTool("weather_report", "Makes a weather report.")}
	for _, of := range []string{"alpha", "bravo", "delta", "kappa", "omega"} {
		tools = append(tools, echoTool(of+"_report", "Makes a report."))
	}
	return tools
}

// learning returns options for a Manager with reports.
func learning(l *LearnOptions) *Options {
	return &Options{Inline: InlineOptions{Max: -1}, Search: RankingOptions{Threshold: -1}, Learn: l, Servers: []ServerConfig{serving("r", reports()...)}}
}

// useIn has n new sessions of m call a tool, three times each.
func useIn(t *testing.T, m *Manager, n int, tool string) {
	t.Helper()
	for range n {
		s := m.NewSession(nil)
		for range 3 {
			_, err := s.Call(t.Context(), tool, nil)
			require.NoError(t, err)
		}
		s.Close()
	}
}

// found returns the own names of the first n hits for "weather report", without "_report".
func found(m *Manager, n int) string {
	var names []string
	for _, h := range m.NewSession(nil).Search("weather report", n) {
		names = append(names, strings.TrimSuffix(h.Tool.OriginalName(), "_report"))
	}
	return strings.Join(names, " ")
}

func TestUsedToolsComeSooner(t *testing.T) {
	t.Parallel()
	const before = "weather alpha bravo delta kappa omega"
	m, _ := newTestManager(t, learning(new(LearnOptions)))
	without, _ := newTestManager(t, learning(nil))
	for _, n := range []int{1, 3, 6, 20} {
		assert.Equal(t, without.Search("weather report", n)[0].Score, m.Search("weather report", n)[0].Score)
		assert.Equal(t, found(without, n), found(m, n), "nothing is learned")
	}
	useIn(t, m, 1, "mcp_r__omega_report")
	assert.Equal(t, before, found(m, 6), "one session tells nothing, however often it calls")
	useIn(t, m, 1, "mcp_r__omega_report")
	assert.Equal(t, "weather omega alpha bravo delta kappa", found(m, 6))
	for n := range 6 {
		assert.Equal(t, strings.Join(strings.Fields("weather omega alpha bravo delta kappa")[:n+1], " "), found(m, n+1), "whatever number is asked for")
	}
	useIn(t, m, 4, "mcp_r__kappa_report")
	assert.Equal(t, "weather kappa omega alpha bravo delta", found(m, 6), "what more sessions used first")
	useIn(t, m, 100, "mcp_r__kappa_report")
	assert.Equal(t, "weather kappa omega alpha bravo delta", found(m, 6), "never before the first")
	hits := m.Search("weather report", 6)
	for i := range hits[1:] {
		assert.GreaterOrEqual(t, hits[i].Score, hits[i+1].Score)
	}
	assert.Equal(t, hits[2].Words, hits[3].Words, "the words weigh as before")

	useIn(t, without, 3, "mcp_r__omega_report")
	assert.Equal(t, before, found(without, 6), "nobody asked it to learn")
}

// Of tools that are as good as the first, the used ones come next.
func TestUsedToolsComeSoonerOfEqualOnes(t *testing.T) {
	t.Parallel()
	opts := learning(new(LearnOptions))
	opts.Servers = []ServerConfig{serving("r", reports()[1:]...)}
	m, _ := newTestManager(t, opts)
	require.Equal(t, "alpha bravo delta kappa omega", found(m, 5))
	useIn(t, m, 2, "mcp_r__omega_report")
	assert.Equal(t, "alpha omega bravo delta kappa", found(m, 5))
	useIn(t, m, 3, "mcp_r__kappa_report")
	assert.Equal(t, "alpha kappa omega bravo delta", found(m, 5))
}

// A call that fails is no use.
func TestFailedCallsTeachNothing(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, learning(new(LearnOptions)))
	for range 3 {
		_, err := m.NewSession(nil).Call(t.Context(), "mcp_r__omega_report", `{"text":7}`)
		require.Error(t, err)
	}
	assert.Equal(t, "weather alpha bravo", found(m, 3))
}

// What a user's sessions use, nobody else's searches know, and the other way round. That holds
// for the stores, too.
func TestLearningIsPrivate(t *testing.T) {
	t.Parallel()
	stores := map[string]*mcptest.Store{"system": {}, "ann": {}, "bob": {}}
	m, _ := newTestManager(t, learning(&LearnOptions{Store: stores["system"]}))
	of := map[string]*Manager{"system": m}
	for _, id := range []string{"ann", "bob"} {
		of[id] = newUser(t, m, id, &UserOptions{LearnStore: stores[id], SystemResults: 20})
		require.NoError(t, of[id].Start(t.Context()))
	}
	uses := map[string]string{"system": "bravo", "ann": "omega", "bob": "kappa"}
	for who, tool := range uses {
		useIn(t, of[who], 2, "mcp_r__"+tool+"_report")
	}
	for who, tool := range uses {
		assert.Equal(t, "weather "+tool, found(of[who], 2), who)
		require.NoError(t, of[who].Refresh())
		for other, theirs := range uses {
			assert.Equal(t, other == who, strings.Contains(string(stores[who].Data), theirs), "%s in the store of %s", theirs, who)
		}
	}
	assert.NotContains(t, string(stores["ann"].Data), "weather", "which was found and not called")
}

func TestLearningDecays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		opts := learning(&LearnOptions{HalfLife: time.Hour})
		opts.Servers = nil
		m := NewManager(opts)
		defer m.Close()
		require.NoError(t, m.AddTools("r", reports()...))
		useIn(t, m, 4, "mcp_r__omega_report")
		assert.Equal(t, "weather omega", found(m, 2))
		time.Sleep(time.Hour)
		assert.Equal(t, "weather omega", found(m, 2), "as two")
		time.Sleep(time.Hour)
		assert.Equal(t, "weather alpha", found(m, 2), "as one")
		useIn(t, m, 1, "mcp_r__omega_report")
		assert.Equal(t, "weather omega", found(m, 2))
	})
}

// What was learned outlives the Manager, several add to it, and a damaged store costs what is
// damaged.
func TestLearningIsKept(t *testing.T) {
	t.Parallel()
	doc := new(mcptest.Store)
	start := func() *Manager {
		m, _ := newTestManager(t, learning(&LearnOptions{Store: doc}))
		return m
	}
	one, other := start(), start()
	useIn(t, one, 1, "mcp_r__omega_report")
	useIn(t, other, 1, "mcp_r__omega_report")
	assert.Equal(t, "weather alpha", found(other, 2))
	require.NoError(t, one.Refresh())
	require.NoError(t, other.Refresh())
	assert.Equal(t, "weather omega", found(other, 2), "it knows of both")
	require.NoError(t, one.Close())
	assert.Equal(t, "weather omega", found(start(), 2))

	useIn(t, other, 2, "mcp_r__kappa_report")
	require.NoError(t, other.Close(), "which stores it")
	assert.Contains(t, string(doc.Data), "kappa")

	now := time.Now().Format(time.RFC3339)
	doc.Data = fmt.Appendf(nil, `{"version":1,"tools":{"mcp_r__omega_report":{"count":3,"at":%q},"mcp_r__kappa_report":{"count":-2,"at":%q}}}`, now, now)
	assert.Equal(t, "weather omega alpha", found(start(), 3), "without the bad one")
	for _, data := range []string{"{", "null", `{"version":1,"tools":{"mcp_r__omega_report":{"count":1e300}}}`, `{"version":9}`, strings.Repeat("[", 1000)} {
		doc.Data = []byte(data)
		m := start()
		assert.Equal(t, "weather alpha bravo", found(m, 3), data)
		useIn(t, m, 2, "mcp_r__omega_report")
		assert.Equal(t, "weather omega alpha", found(m, 3), "it learns anew")
	}
}

func TestManySessionsLearn(t *testing.T) {
	t.Parallel()
	doc := new(mcptest.Store)
	m, _ := newTestManager(t, learning(&LearnOptions{Store: doc}))
	shared := m.NewSession(nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				useIn(t, m, 1, "mcp_r__omega_report")
				_, err := shared.Call(t.Context(), "mcp_r__kappa_report", nil)
				assert.NoError(t, err)
				assert.Len(t, m.Search("weather report", 5), 5)
				assert.NoError(t, m.Refresh())
			}
		})
	}
	wg.Wait()
	assert.InDelta(t, 80, m.learnRecord.Count("mcp_r__omega_report", time.Now()), 0.01, "one for each session")
	assert.InDelta(t, 1, m.learnRecord.Count("mcp_r__kappa_report", time.Now()), 0.01, "one for all calls of a session")
}

func TestLearningIsBounded(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Learn: new(LearnOptions)})
	var tools []mcpserver.ServerTool
	for i := range maxLearned + 200 {
		tools = append(tools, echoTool(fmt.Sprintf("tool_%04d", i), ""))
	}
	require.NoError(t, m.AddTools("many", tools...))
	for range 2 {
		s := m.NewSession(nil)
		for _, tool := range m.DeferredTools() {
			s.learn(tool)
		}
		assert.Len(t, s.learned, maxLearned)
		s.Close()
		assert.Nil(t, s.learned)
	}
	assert.PanicsWithValue(t, "mcphybrid: LearnOptions.HalfLife is -1ns, must not be negative", func() { NewManager(&Options{Learn: &LearnOptions{HalfLife: -1}}) })
}
