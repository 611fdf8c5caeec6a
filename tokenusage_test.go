package mcphybrid_test

import (
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// losing returns a Manager of 20 tools, 2 of them inline, and the losses that it tells.
func losing(t *testing.T, o mcphybrid.Options) (*mcphybrid.Manager, *[]snapshot.Loss) {
	var mu sync.Mutex
	losses := new([]snapshot.Loss)
	o.Inline = mcphybrid.InlineOptions{Max: 2}
	o.OnEvent = func(e mcphybrid.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == mcphybrid.EventCacheLost {
			e.Session.Stats() // no lock is held
			assert.WithinDuration(t, time.Now(), e.Loss.At, time.Minute)
			e.Loss.At = time.Time{}
			*losses = append(*losses, e.Loss)
		} else {
			assert.Zero(t, e.Loss)
		}
	}
	m, _ := newTestManager(t, &o)
	require.NoError(t, m.AddTools("a", mcptest.Chores("a", 20)...))
	return m, losses
}

// wrote is a response of Anthropic's to a request that read and wrote so much.
func wrote(cached, written int) provider.Usage {
	return provider.Usage{Input: cached + written + 10, Cached: cached, Written: written, Output: 5}
}

// The session has what providers counted, and what it estimates apart from that.
func TestCountUsageSums(t *testing.T) {
	t.Parallel()
	m, losses := losing(t, mcphybrid.Options{})
	s := m.NewSession(nil)
	assert.Zero(t, s.Stats().Measured)
	s.CountUsage(wrote(0, 3000))
	s.CountUsage(wrote(3000, 500))
	st := s.Stats()
	assert.Equal(t, snapshot.Measured{Requests: 2, Input: 6520, Cached: 3000, Written: 3500, Output: 10}, st.Measured)
	assert.Equal(t, 2*(st.Tokens.All-st.Tokens.Sent()), st.EstimatedSaved)
	assert.NotZero(t, st.EstimatedSaved)
	assert.Zero(t, m.Stats().Measured, "of another session")
	assert.Empty(t, *losses)

	child := s.NewChild(nil)
	assert.Zero(t, child.Stats().Measured)

	s.CountUsage(provider.Usage{Input: -1, Cached: 7, Written: -7, Output: math.MaxInt})
	now := s.Stats().Measured
	assert.Equal(t, []int{3, 6520, 3000, 3500, 10 + 1_000_000_000}, []int{now.Requests, now.Input, now.Cached, now.Written, now.Output}, "what can't be is the nearest that can")
	s.Close()
	s.CountUsage(wrote(0, 3000))
	assert.Equal(t, 3, s.Stats().Measured.Requests)
}

// A loss is what could have been read from the cache and was not, beyond a tolerance.
func TestCacheLoss(t *testing.T) {
	t.Parallel()
	type usages = []provider.Usage
	auto := func(input, cached int) provider.Usage {
		return provider.Usage{Input: input, Cached: cached, Automatic: true}
	}
	parse := func(response string) provider.Usage {
		u, err := provider.ParseUsage(provider.Anthropic, []byte(response))
		require.NoError(t, err)
		return u
	}
	searched := parse(`{"usage":{"input_tokens":9,"cache_read_input_tokens":18000,"cache_creation_input_tokens":400,"iterations":[
		{"type":"message","cache_read_input_tokens":8900,"cache_creation_input_tokens":200},{"type":"message","cache_read_input_tokens":9100,"cache_creation_input_tokens":200}]}}`)
	for _, test := range []struct {
		name   string
		usages usages
		lost   []int
	}{
		{"the first request", usages{wrote(0, 9000)}, nil},
		{"all is read", usages{wrote(0, 9000), wrote(9000, 500), wrote(9500, 500)}, nil},
		{"nothing is read", usages{wrote(0, 9000), wrote(0, 9500), wrote(9500, 500)}, []int{9000}},
		{"what was read before is lost too", usages{wrote(8000, 1000), wrote(3000, 7000)}, []int{6000}},
		{"at the tolerance", usages{wrote(0, 9000), wrote(9000-1152, 2000)}, nil},
		{"beyond it", usages{wrote(0, 9000), wrote(9000-1153, 2000)}, []int{1153}},
		{"a shorter conversation can read no more", usages{wrote(0, 9000), wrote(1000, 990)}, nil},
		{"but it could read itself", usages{wrote(0, 9000), wrote(0, 2000)}, []int{2010}},
		{"Anthropic without a mark for the cache", usages{{Input: 9000}, {Input: 9500}}, nil},
		{"it wrote nothing, and says so", usages{{Input: 9000, Cached: 5000}, {Input: 20000, Cached: 5000}, {Input: 30000, Cached: 5000}}, nil},
		{"a provider without a cache", usages{auto(9000, 0), auto(9500, 0), auto(9900, 0)}, nil},
		{"OpenAI", usages{auto(9000, 0), auto(9500, 8960), auto(9900, 9472)}, nil},
		{"OpenAI, lost", usages{auto(9000, 0), auto(9500, 8960), auto(9900, 0), auto(9950, 9856)}, []int{9500}},
		{"OpenAI, from the middle on", usages{auto(9000, 4096), auto(12000, 4096)}, []int{4904}},
		{"OpenAI, each time", usages{auto(5000, 4992), auto(5500, 0), auto(6000, 0)}, []int{5000, 5500}},
		{"the first one is not known to cache", usages{auto(9000, 0), auto(9500, 0), auto(9900, 9472)}, nil},
		{"a response of several requests", usages{searched, wrote(9300, 5000)}, nil},
		{"a response of several requests, lost", usages{searched, wrote(0, 12000)}, []int{9300}},
	} {
		m, losses := losing(t, mcphybrid.Options{})
		s := m.NewSession(nil)
		for _, u := range test.usages {
			s.CountUsage(u)
		}
		var lost []int
		sum := 0
		for _, l := range *losses {
			assert.Equal(t, snapshot.LossUnknown, l.Cause, test.name)
			lost = append(lost, l.Tokens)
			sum += l.Tokens
		}
		assert.Equal(t, test.lost, lost, test.name)
		now := s.Stats().Measured
		assert.Equal(t, []int{len(lost), sum}, []int{now.Losses, now.Lost}, test.name)
	}
}

// The session tells what it knows of, unless the provider knows better.
func TestCacheLossCause(t *testing.T) {
	t.Parallel()
	const (
		activates = 1 << iota
		compacts
		summarizes // a server whose tools are told of in the sections
		pauses
	)
	for _, test := range []struct {
		does  int
		miss  string
		cause snapshot.LossCause
		why   string
	}{
		{0, "", snapshot.LossUnknown, "the host changed the conversation, or the provider evicted it"},
		{activates, "", snapshot.LossTools, "the list of tools has changed"},
		{summarizes, "", snapshot.LossSections, "the prompt sections have changed"},
		{compacts, "", snapshot.LossCompact, "Compact was called"},
		{pauses, "", snapshot.LossPause, "the response before is more than 5 minutes ago"},
		{activates | pauses, "", snapshot.LossTools, ""},
		{activates | compacts | pauses, "", snapshot.LossCompact, ""},
		{activates, "tools_changed", snapshot.LossTools, `the list of tools has changed; the provider says "tools_changed"`},
		{activates | summarizes, "system_changed", snapshot.LossSections, ""},
		{compacts, "messages_changed", snapshot.LossCompact, ""},
		{activates | pauses, "messages_changed", snapshot.LossProvider, `the provider says "messages_changed"`},
		{pauses, "tools_changed", snapshot.LossProvider, ""},
		{activates | compacts, "model_changed", snapshot.LossProvider, ""},
		{activates, "something_new", snapshot.LossProvider, ""},
		{pauses, "previous_message_not_found", snapshot.LossPause, ""},
		{0, "unavailable", snapshot.LossUnknown, `the host changed the conversation, or the provider evicted it; the provider says "unavailable"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			m, losses := losing(t, mcphybrid.Options{})
			s := m.NewSession(nil)
			request := func() { s.Tools(); s.PromptSections(mcphybrid.PromptFull) }
			request()
			s.CountUsage(wrote(0, 9000))
			if test.does&activates != 0 {
				assert.True(t, s.ActivateToolIfDeferred("mcp_a__tool_007"))
			}
			if test.does&summarizes != 0 {
				require.NoError(t, m.AddTools("b", mcptest.Chores("b", 3)...))
			}
			if test.does&compacts != 0 {
				s.Compact()
			}
			time.Sleep(5 * time.Minute) // of the bubble's clock
			if test.does&pauses != 0 {
				time.Sleep(1 * time.Nanosecond)
			}
			request()
			u := wrote(0, 9500)
			u.Miss = test.miss
			s.CountUsage(u)
			require.Len(t, *losses, 1)
			loss := (*losses)[0]
			assert.Equal(t, snapshot.Loss{Tokens: 9000, Cause: test.cause, Miss: test.miss}, loss, test)
			if test.why != "" {
				assert.Equal(t, test.why, loss.Why())
			}

			request()
			s.CountUsage(wrote(0, 9500))
			require.Len(t, *losses, 2)
			assert.Equal(t, snapshot.LossUnknown, (*losses)[1].Cause, "what was before the request before is no cause")
		})
	}
}

// A tool that is held back leaves the list.
func TestCacheLossByQuarantine(t *testing.T) {
	t.Parallel()
	git := mcptest.Server("git", echoTool("log", "Shows the history"), echoTool("push", "Sends commits"))
	m, losses := losing(t, mcphybrid.Options{Trust: mcphybrid.TrustQuarantine, Servers: []mcphybrid.ServerConfig{{Name: "git", InProcess: git}}})
	s := m.NewSession(nil)
	s.Tools()
	s.CountUsage(wrote(0, 9000))
	git.AddTools(echoTool("log", "Sends all you have"))
	soon(t, func() bool { return len(m.Problems()) == 1 })
	s.Tools()
	s.CountUsage(wrote(0, 9000))
	require.Len(t, *losses, 1)
	assert.Equal(t, snapshot.LossTools, (*losses)[0].Cause)
}

// A host may take its list from its registry, and a bridge's list never changes.
func TestCacheLossByOtherLists(t *testing.T) {
	t.Parallel()
	m, losses := losing(t, mcphybrid.Options{})
	s := m.NewSession(&mcphybrid.SessionOptions{Registry: mcphybrid.NewRegistry()})
	s.CountUsage(wrote(0, 9000))
	assert.True(t, s.ActivateToolIfDeferred("mcp_a__tool_007"))
	require.NoError(t, m.AddTools("b", mcptest.Chores("b", 3)...))
	s.Stats()
	s.CountUsage(wrote(0, 9000))
	bridged := m.NewSession(&mcphybrid.SessionOptions{Disclosure: mcphybrid.ByBridge})
	bridged.Tools()
	bridged.CountUsage(wrote(0, 9000))
	_, err := bridged.Call(t.Context(), mcphybrid.CallToolName, `{"name": "mcp_a__tool_008", "arguments": {}}`)
	require.NoError(t, err)
	bridged.Tools()
	bridged.CountUsage(wrote(0, 9000))
	require.Len(t, *losses, 2)
	assert.Equal(t, snapshot.LossTools, (*losses)[0].Cause)
	assert.Equal(t, snapshot.LossUnknown, (*losses)[1].Cause, "its list never changes")
}

// A state has no figures, and what it restores has nothing to lose.
func TestRestoredSessionLosesNothing(t *testing.T) {
	t.Parallel()
	m, losses := losing(t, mcphybrid.Options{})
	s := m.NewSession(nil)
	s.Tools()
	before := s.Save()
	s.CountUsage(wrote(0, 9000))
	assert.Equal(t, string(before), string(s.Save()))
	restored, _, err := m.RestoreSession(s.Save(), nil)
	require.NoError(t, err)
	assert.Zero(t, restored.Stats().Measured)
	restored.Tools()
	restored.CountUsage(wrote(0, 9500))
	assert.Empty(t, *losses)
	restored.CountUsage(wrote(0, 9500))
	assert.Len(t, *losses, 1)
}

func TestLogCacheLoss(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	log := mcphybrid.LogEvents(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), slog.LevelDebug)
	log(mcphybrid.Event{Kind: mcphybrid.EventCacheLost, Label: "ticket 7", Loss: snapshot.Loss{Tokens: 9000, Cause: snapshot.LossTools, Miss: "tools_changed"}})
	log(mcphybrid.Event{Kind: mcphybrid.EventCacheLost, Loss: snapshot.Loss{Tokens: 9000, Cause: snapshot.LossPause}})
	assert.Equal(t, `level=WARN msg="mcphybrid: cache lost" session="ticket 7" tokens=9000 cause=tools miss=tools_changed
level=WARN msg="mcphybrid: cache lost" tokens=9000 cause=pause
`, b.String())
}

// What people are shown is bounded, the newest first, and has no secret.
func TestLossesOfASnapshot(t *testing.T) {
	t.Parallel()
	m := mcphybrid.NewManager(&mcphybrid.Options{Limits: config.Limits{Reconnect: -1}, Servers: []mcphybrid.ServerConfig{
		{Name: "web", URL: "http://127.0.0.1:1/", Headers: map[string]string{"X-Api-Key": "quiteunlikely-73f2a9"}},
	}})
	defer m.Close()
	require.Error(t, m.Start(t.Context()))
	m.Watch()
	s := m.NewSession(nil)
	lose := func(i int) {
		u := wrote(0, 9000+i)
		u.Miss = "quiteunlikely-73f2a9\n" + strings.Repeat("x", 500)
		s.CountUsage(u)
	}
	for i := range 20 {
		lose(i)
	}
	snap, err := m.Snapshot(1)
	require.NoError(t, err)
	shown := snap.Session()
	assert.Equal(t, 19, shown.Stats.Measured.Losses)
	require.Len(t, shown.Losses, 8)
	lose(20)
	assert.Equal(t, []int{9018, 9011}, []int{shown.Losses[0].Tokens, shown.Losses[7].Tokens}, "a snapshot stays as it is")
	events := snap.Events()
	of := slices.IndexFunc(events, func(e snapshot.Event) bool { return e.Kind == string(mcphybrid.EventCacheLost) })
	require.GreaterOrEqual(t, of, 0) // what happened to the server may be told later
	for _, l := range append(shown.Losses, events[of].Loss) {
		assert.NotContains(t, l.Miss, "quiteunlikely")
		assert.LessOrEqual(t, len(l.Miss), 110)
		assert.Contains(t, l.Miss, "xxx")
	}
}

// Figures add up, whatever else happens in the session.
func TestCountUsageConcurrently(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	told, tokens := 0, 0
	m, _ := newTestManager(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 1}, Servers: []mcphybrid.ServerConfig{inProcess("a", 9)}, OnEvent: func(e mcphybrid.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == mcphybrid.EventCacheLost {
			told, tokens = told+1, tokens+e.Loss.Tokens
		}
	}})
	m.Watch()
	s := m.NewSession(nil)
	const workers, times = 4, 100
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range times {
				s.CountUsage(wrote(i%2*4000, 5000))
				switch (i + w) % 4 {
				case 0:
					s.Compact()
				case 1:
					s.Tools()
					s.ActivateTools([]string{"mcp_a__tool_005"})
				case 2:
					s.Save()
					s.Stats()
				case 3:
					snap, err := m.Snapshot(0)
					if assert.NoError(t, err) {
						snap.Sessions(0, 9)
					}
				}
			}
		})
	}
	wg.Wait()
	now := s.Stats().Measured
	assert.Equal(t, snapshot.Measured{
		Requests: workers * times, Input: workers * times * 7010, Cached: workers * times * 2000, Written: workers * times * 5000, Output: workers * times * 5, Losses: told, Lost: tokens,
	}, now)
	assert.NotZero(t, told)
}
