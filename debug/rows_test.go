package debug

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/assert"
)

// A duration is in the largest unit of which it has two, but for the smallest ones.
func TestShortDurations(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 µs", 999 * time.Microsecond: "999 µs", time.Millisecond: "1 ms", time.Second - 1: "1000 ms", time.Second: "1 s", 2*time.Minute - time.Second: "119 s", 2 * time.Minute: "2 min",
		2*time.Hour - time.Minute: "119 min", 2 * time.Hour: "2 h", 48*time.Hour - time.Hour: "47 h", 48 * time.Hour: "2 days", 73 * 24 * time.Hour: "73 days",
	} {
		assert.Equal(t, want, strings.ReplaceAll(short(d), "\u00a0", " "), d)
	}
}

// Which servers need attention, how much, and what a person can do.
func TestServersThatNeedAttention(t *testing.T) {
	t.Parallel()
	of := func(state mcphybrid.State) snapshot.Server {
		return snapshot.Server{Name: "s", State: string(state), Err: "no disk", Since: time.Unix(1, 0), Retry: time.Unix(2, 0)}
	}
	for state, want := range map[mcphybrid.State]matter{
		mcphybrid.StateDown:         {What: "Server s is down", Class: "bad", rank: rankDown, Call: `mgr.Restart(ctx, "s")`, Button: &deed{Do: "restart", Server: "s", Label: "Restart"}},
		mcphybrid.StateUnauthorized: {What: "Server s is waiting for a login", Class: "bad", rank: rankUnauthorized, Call: `mgr.Login(ctx, "s")`, Button: &deed{Do: "login", Server: "s", Label: "Log in"}},
		mcphybrid.StateDegraded:     {What: "Server s is degraded", Class: "warn", rank: rankDegraded, Call: `mgr.Restart(ctx, "s")`, Button: &deed{Do: "restart", Server: "s", Label: "Restart"}},
	} {
		want.Server, want.Why, want.Since, want.Next = "s", "no disk", time.Unix(1, 0), time.Unix(2, 0)
		got, ok := serverMatter(of(state), nil)
		assert.True(t, ok, state)
		assert.Equal(t, want, got)
		hidden := of(state)
		hidden.Hidden = true
		got, ok = serverMatter(hidden, nil)
		assert.True(t, ok)
		assert.Empty(t, got.Server, "what is hidden has no page")
		assert.Nil(t, got.Button)
		for _, guide := range []*Guide{nil, new(Guide)} {
			got, _ = serverMatter(hidden, guide)
			assert.Empty(t, got.Call, "nobody can call by that name")
			assert.Contains(t, got.Do, "Its name is hidden here: mgr.")
		}
	}
	again := of(mcphybrid.StateConnecting)
	again.Failures = 1
	got, ok := serverMatter(again, nil)
	assert.True(t, ok, "it stays while it is tried again")
	assert.Equal(t, "Server s is down, and is being tried again", got.What)
	assert.Equal(t, rankDown, got.rank)
	for _, state := range []mcphybrid.State{mcphybrid.StateReady, mcphybrid.StateConnecting, mcphybrid.StateCached} {
		_, ok := serverMatter(of(state), nil)
		assert.False(t, ok, state)
	}
}

// A server has resources, templates or prompts if it has any of these.
func TestWhatAServerHasToRead(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	defer mgr.Close()
	snap, _ := mgr.Snapshot(0)
	for _, test := range []struct {
		server snapshot.Server
		reads  bool
		bare   bool
	}{
		{snapshot.Server{}, false, true},
		{snapshot.Server{Resources: 1}, true, false},
		{snapshot.Server{Templates: 1}, true, false},
		{snapshot.Server{Prompts: 1}, true, false},
		{snapshot.Server{Resources: 1, Templates: 1}, true, false},
		{snapshot.Server{Templates: 1, Prompts: 1}, true, false},
		{snapshot.Server{Figures: snapshot.Figures{Tools: 1}}, false, false},
		{snapshot.Server{Figures: snapshot.Figures{Usage: snapshot.Usage{Calls: 1}}}, false, false},
		{snapshot.Server{Figures: snapshot.Figures{Tools: 1, Usage: snapshot.Usage{Calls: 1}}, Resources: 1}, true, false},
	} {
		o, _ := newOverview(having{snap, []snapshot.Server{{}, test.server, {}}}, nil, 0)
		assert.Equal(t, test.reads, o.Reads, test.server)
		assert.Equal(t, test.bare, o.Servers[1].Bare(), test.server)
		assert.Zero(t, o.Sessions, "but for the Manager's own")
	}
}

// A having is a Manager with these servers.
type having struct {
	snapshot.Manager
	servers []snapshot.Server
}

func (h having) Servers() []snapshot.Server { return h.servers }

// Why a file is not used comes first, and what to do about it depends on why.
func TestUnusedFilesNeedAttention(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	defer mgr.Close()
	snap, _ := mgr.Snapshot(0)
	for why, do := range map[string]string{
		"line 3: it is not JSON":                           "Correct it. The file is read again at once.",
		`server "a": environment variables not set: TOKEN`: "Set them where the gateway is started, and start it again. Or write the value into /etc/mcp.json. The file is read again at once.",
	} {
		g := &Guide{Program: "the gateway", File: "/etc/mcp.json", Watched: true, Unused: func() string { return why }}
		got := matters(snap, g, []snapshot.Server{{Name: "s", State: "down", Err: "no"}})
		assert.Len(t, got, 2)
		assert.Equal(t, matter{What: "A change of /etc/mcp.json is not used", Class: "bad", Why: why, Do: do, rank: rankFile}, got[0])
		g.Unused = func() string { return "" }
		assert.Len(t, matters(snap, g, nil), 0)
	}
	assert.Empty(t, matters(snap, new(Guide), nil))
}

// Why a button failed, without what stands before it.
func TestFailuresOfButtons(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		do   string
		err  error
		want string
	}{
		{"login", context.DeadlineExceeded, "nobody logged in within 5 minutes: press the button again"},
		{"login", fmt.Errorf("mcphybrid: login to server %q: %w", "s", context.DeadlineExceeded), "nobody logged in within 5 minutes: press the button again"},
		{"accept", context.DeadlineExceeded, "context deadline exceeded"},
		{"login", errors.New(`mcphybrid: login to server "s": no`), "no"},
		{"login", errors.New(`mcphybrid: login to server "other": no`), `login to server "other": no`},
		{"restart", errors.New(`mcphybrid: restart of server "s": no`), "no"},
		{"accept", errors.New("mcphybrid: accept: no"), "no"},
		{"accept", errors.New("no"), "no"},
	} {
		o := &outcome{deed: deed{Do: test.do, Server: "s"}, err: test.err}
		assert.Equal(t, test.want, o.failure(), "%s: %v", test.do, test.err)
	}
}

// What a changed definition needs: what was there, whether it may be used, and who can accept it.
func TestChangesThatNeedAttention(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	defer mgr.Close()
	snap, _ := mgr.Snapshot(0)
	at := time.Unix(1, 0)
	for _, test := range []struct {
		change snapshot.Change
		guide  *Guide
		want   matter
	}{
		{snapshot.Change{Server: "s", Tool: "t", Kind: "tool", Name: "mcp_s__t", Was: "1", Is: "2", Since: at}, nil,
			matter{What: "Changed tool t of server s", Why: "It may be used all the same.", Class: "warn", rank: rankChanged, Known: at, Tool: "mcp_s__t", Call: `mgr.Accept("s", "t", "2")`}},
		{snapshot.Change{Server: "s", Tool: "t", Kind: "tool", Name: "mcp_s__t", Added: true, Quarantined: true, Is: "2", Since: at}, new(Guide),
			matter{What: "New tool t of server s", Why: "It is held back until somebody accepts it.", Class: "bad", rank: rankHeld, Tool: "mcp_s__t", Do: "Read its definition, and accept it there if it is fine."}},
		{snapshot.Change{Server: "s", Tool: "mem://a", Kind: "resource", Is: "2", Since: at}, &Guide{Approve: "approve it"},
			matter{What: "Server s has more resources than are remembered: mem://a", Why: "It may be used all the same.", Class: "warn", rank: rankChanged, Do: "Read it, and accept it if it is fine: approve it"}},
		{snapshot.Change{Server: "s [hidden]", Tool: "t", Hidden: true, Kind: "tool", Name: "mcp_s__t", Was: "1", Is: "2", Since: at}, nil,
			matter{What: "Changed tool t of server s [hidden]", Why: "It may be used all the same.", Class: "warn", rank: rankChanged, Known: at, Tool: "mcp_s__t", Do: "A name is hidden here: mgr.Accept takes what stands in its place."}},
		{snapshot.Change{Server: "s", Tool: "mem://a", Kind: "resource", Added: true}, new(Guide),
			matter{What: "New resource mem://a of server s", Why: "It may be used all the same.", Class: "warn", rank: rankChanged}},
	} {
		assert.Equal(t, test.want, changeMatter(snap, test.guide, test.change))
	}
}

func TestAgo(t *testing.T) {
	t.Parallel()
	now := time.Unix(100, 0)
	for d, want := range map[time.Duration]string{-time.Second: "in 1\u00a0s", 0: "0\u00a0s ago", time.Second - 1: "0\u00a0s ago", 1 - time.Second: "in 0\u00a0s", time.Second: "1\u00a0s ago", time.Minute: "60\u00a0s ago"} {
		assert.Equal(t, want, ago(now, now.Add(-d)))
	}
}

// Thousands are set apart, also those of what is negative.
func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1 000", 12_345: "12 345", 100_000: "100 000", 1_234_567: "1 234 567", -1: "-1", -999: "-999", -1000: "-1 000", -100_000: "-100 000"} {
		assert.Equal(t, want, strings.ReplaceAll(count(n), "\u202f", " "))
	}
}

// Examples are whole, each once, and not many.
func TestExamples(t *testing.T) {
	t.Parallel()
	var list []example
	for _, text := range []string{"a", "b", "a", "", "c […]", "d…", "c", "d", "e", "f", "g"} {
		list = add(list, example{Text: text})
	}
	assert.Equal(t, []example{{Text: "a"}, {Text: "b"}, {Text: "c"}, {Text: "d"}, {Text: "e"}, {Text: "f"}}, list)
}

// The greatest part of all scores on a page has the longest bar.
func TestBarsOfScores(t *testing.T) {
	t.Parallel()
	most := new(float64)
	part := func(score float64) search.ScorePart { return search.ScorePart{Score: score} }
	p := newParts([]search.ScorePart{part(1), part(4)}, most)
	newParts([]search.ScorePart{part(2)}, most)
	assert.Equal(t, []float64{25, 100, 100, 0}, []float64{p.Width(part(1)), p.Width(part(4)), p.Width(part(5)), p.Width(part(-1))})
	assert.Zero(t, newParts(nil, new(float64)).Width(part(0)))
	for n, more := range map[int]int{60: 0, 60 + 1: 1} {
		p = newParts(make([]search.ScorePart, n), new(float64))
		assert.Len(t, p.Parts, 60)
		assert.Equal(t, more, p.MoreParts)
	}
}

// A session says how the model reaches deferred tools, and what deferring has saved or cost.
func TestSessionRows(t *testing.T) {
	t.Parallel()
	var r sessionRow
	for saved, want := range map[int]string{1500: count(1500), 0: "0", -1500: "it cost " + count(1500)} {
		r.Stats.EstimatedSaved = saved
		assert.Equal(t, want, r.Estimated())
	}
	r.Disclosure = mcphybrid.Automatic.String()
	assert.Equal(t, "by activation", r.How())
	r.Disclosure = "something"
	assert.Equal(t, "by something", r.How())
	r.Why = "a reason"
	assert.Equal(t, "by something: a reason", r.How())
	assert.Zero(t, r.Share(), "nothing was measured")
	r.Stats.Measured.Input, r.Stats.Measured.Cached = 8, 3
	assert.Equal(t, 38, r.Share())
	assert.Equal(t, "", capital(""))
	assert.Equal(t, "Éa", capital("éa"))
	for calls, want := range map[int]time.Duration{0: 12, 1: 12, 2: 6, 4: 3} {
		assert.Equal(t, want, mean(snapshot.Usage{Calls: calls, Latency: 12}), calls)
	}
	assert.Equal(t, 8, new(overviewPage).Columns())
	assert.Equal(t, 11, (&overviewPage{Reads: true}).Columns())
}
