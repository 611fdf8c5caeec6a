package mcphybrid

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	walkTime  = flag.Duration("walk", time.Second, "how long each walk of TestWalk is")
	walkSeed  = flag.Uint64("seed", 1, "the seed of the first walk of TestWalk")
	walkSeeds = flag.Int("seeds", 1, "how many walks TestWalk makes, each with the next seed")
)

const (
	walkSessions = 32
	walkPlaces   = "ssshhmmp"             // where the servers are: see newCulprit
	walkTimeout  = 400 * time.Millisecond // of calls, unless the machine is slow
)

// A riot is eight servers that misbehave at random while 32 sessions use them.
// The seed decides what each does; timing decides how their actions meet.
type riot struct {
	t        *testing.T
	m        *Manager
	seed     uint64
	journal  *journal
	timeout  time.Duration // of calls; a start has four times as long
	servers  []*culprit
	sessions []*Session
	changing sync.WaitGroup // servers that come and go

	mu        sync.Mutex
	calls     map[string]*walkCall // by id
	kinds     map[string]int       // how calls ended
	mischiefs map[string]int
}

type walkCall struct{ repeatable, succeeded bool }

// TestWalk walks as long and as often as its flags say. Whatever servers do,
// each call ends in time, with its own answer or an error that names the
// server. No call that must not be repeated is executed twice, and no call
// succeeds without being executed. Afterwards all servers serve all sessions
// again, and nothing is left.
func TestWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("not a quick test: walks of seconds")
	}
	skipUnlessUnix(t)
	kinds, mischiefs := make(map[string]int), make(map[string]int)
	var heaps []uint64
	files := 0
	for i := range *walkSeeds {
		seed := *walkSeed + uint64(i)
		goroutines := runtime.NumGoroutine()
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newRiot(t, seed)
			w.run()
			add(kinds, w.kinds)
			add(mischiefs, w.mischiefs)
		}) {
			t.Fatalf("again with: go test -race -run TestWalk -walk %v -seed %d -seeds 1 .", *walkTime, seed)
		}
		soon(t, func() bool { return runtime.NumGoroutine() <= goroutines+1 }, "goroutines are left") // soon uses one
		if i == 0 {
			files = openFiles() // some are opened only once
		}
		soon(t, func() bool { return openFiles() <= files }, "files are left open")
		runtime.GC()
		runtime.GC() // frees what a sync.Pool held
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		heaps = append(heaps, mem.HeapAlloc)
	}
	calls := 0
	for _, n := range kinds {
		calls += n
	}
	t.Logf("%d seeds of %v: %d calls, %v; mischief %v", *walkSeeds, *walkTime, calls, kinds, mischiefs)
	if len(heaps) > 2 {
		second, last := heaps[1], heaps[len(heaps)-1]
		t.Logf("heap after seed 2: %d KB, after the last: %d KB", second>>10, last>>10)
		assert.Less(t, last, second+second/4+1<<20, "memory is flat")
	}
}

func add(sum, more map[string]int) {
	for key, n := range more {
		sum[key] += n
	}
}

// openFiles returns the number of open file descriptors, or 0 if it is unknown.
func openFiles() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

func newRiot(t *testing.T, seed uint64) *riot {
	w := &riot{
		t: t, seed: seed, journal: &journal{ran: make(map[string]int)}, timeout: max(walkTimeout, timeToStart(t)),
		calls: make(map[string]*walkCall), kinds: make(map[string]int), mischiefs: make(map[string]int),
	}
	opts := &Options{
		Limits: config.Limits{StartTimeout: 4 * w.timeout, CallTimeout: w.timeout, Reconnect: 10 * time.Millisecond, Refresh: 100 * time.Millisecond, MaxMessage: 1 << 20, MaxTools: 100},
		Inline: InlineOptions{Max: 10},
		List:   ListOptions{Max: 25, ServerMax: 15},
	}
	for i, over := range walkPlaces {
		c := newCulprit(t, byte(over), fmt.Sprintf("%c%d", over, i), w.journal)
		w.servers = append(w.servers, c)
		opts.Servers = append(opts.Servers, c.cfg)
	}
	w.m = NewManager(opts)
	_ = w.m.Start(t.Context()) // under load, some may be too slow
	for i := range walkSessions {
		var o SessionOptions
		if i%8 == 1 {
			o.Registry = NewRegistry()
		}
		if i%8 == 2 {
			o.Disclosure = ByBridge
		}
		w.sessions = append(w.sessions, w.m.NewSession(&o))
	}
	return w
}

// timeToStart returns how long a child takes to start that behaves. It shows how slow
// the machine is.
func timeToStart(t *testing.T) time.Duration {
	m := NewManager(&Options{Limits: config.Limits{StartTimeout: time.Minute}, Servers: []ServerConfig{child(t, "first", "plain")}})
	start := time.Now()
	require.NoError(t, m.Start(t.Context()))
	took := time.Since(start)
	require.NoError(t, m.Close())
	return took
}

func (w *riot) random(stream int) *rand.Rand { return rand.New(rand.NewPCG(w.seed, uint64(stream))) }

func (w *riot) run() {
	t := w.t
	start := time.Now()
	defer func() { // even if it fails
		ended := time.Now()
		assert.NoError(t, w.m.Close())
		assert.Less(t, time.Since(ended), endOfChild+14*w.timeout, "Close takes too long")
		for _, c := range w.servers {
			soon(t, func() bool { return c.running() == 0 }, "processes are left")
		}
		if !t.Failed() {
			w.count()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), *walkTime)
	defer cancel()
	var running sync.WaitGroup
	for i, s := range w.sessions {
		running.Go(func() { w.use(ctx, s, i) })
	}
	running.Go(func() { w.misbehave(ctx) })
	running.Wait()
	defer w.changing.Wait()
	if w.seed%4 == 0 { // closed during the last mischief
		return
	}

	for _, c := range w.servers {
		c.set(mischief{})
	}
	w.changing.Wait()
	for _, c := range w.servers { // some may be away
		soon(t, func() bool {
			err := w.m.AddServer(t.Context(), c.cfg)
			return err == nil || errors.Is(err, ErrDuplicate)
		}, c.cfg.Name, "is back")
	}
	for i, s := range w.sessions {
		for _, c := range w.servers {
			n := 0
			soon(t, func() bool {
				n++
				return w.call(s, c, "echo", fmt.Sprintf("%d-end-%d-%s-%d", w.seed, i, c.cfg.Name, n))
			}, c.cfg.Name, "serves again")
		}
	}
	require.NoError(t, check(w.m, w.sessions...))
	for _, s := range w.sessions {
		if s.registrar != nil {
			assert.NoError(t, checkRegistry(s, s.registrar.reg.(*ToolRegistry)))
		}
	}
	for i := range w.servers {
		soon(t, func() bool { return w.m.Servers()[i].State == StateReady }, "ready again")
	}
	t.Logf("seed %d: %v, %v", w.seed, time.Since(start).Round(time.Millisecond), w.kinds)
}

// use runs a session until ctx ends.
func (w *riot) use(ctx context.Context, s *Session, stream int) {
	random := w.random(stream)
	for n := 0; ctx.Err() == nil; n++ {
		c := w.servers[random.IntN(len(w.servers))]
		own := []string{"echo", "keep", "look", "extra", "new"}[random.IntN(5)]
		pause := time.Duration(random.IntN(10)) * time.Millisecond
		switch random.IntN(12) {
		case 0:
			for _, hit := range s.Search("keeps a text of "+c.cfg.Name, 5) {
				assert.NotEmpty(w.t, hit.Tool.Server())
			}
		case 1:
			s.ActivateTools([]string{toolName(c, own), toolName(c, "echo")})
		case 2:
			s.PromptSections(PromptFull)
			s.NextTurn()
			s.Compact()
		case 3:
			assert.NoError(w.t, check(w.m, s))
		default:
			w.call(s, c, own, fmt.Sprintf("%d-%d-%d", w.seed, stream, n))
		}
		select { // thinking time
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func toolName(c *culprit, own string) string { return names.Alone(c.cfg.Name, "").Name(own) }

// call makes a call and reports whether it succeeded. It checks how the call
// ended; count checks that again.
func (w *riot) call(s *Session, c *culprit, own, id string) bool {
	known := &walkCall{repeatable: own == "keep" || own == "look"}
	w.mu.Lock()
	w.calls[id] = known
	w.mu.Unlock()
	start := time.Now()
	r, err := s.Call(context.Background(), toolName(c, own), map[string]any{"text": id})
	took := time.Since(start)

	assert.Less(w.t, took, 14*w.timeout, "seed %d: %s %s took too long: %v", w.seed, c.cfg.Name, own, err)
	kind := "ok"
	if err != nil {
		kind = outcome(err)
		assert.NotEqual(w.t, "?", kind, "seed %d: %s %s: of no known kind: %v", w.seed, c.cfg.Name, own, err)
		named := strings.Contains(err.Error(), fmt.Sprintf("server %q", c.cfg.Name)) || strings.Contains(err.Error(), toolName(c, own))
		assert.True(w.t, named, "seed %d: the error of %s %s does not name it: %v", w.seed, c.cfg.Name, own, err)
		shown := mcp.GetTextFromContent(r.Content[0])
		assert.True(w.t, r.IsError && len(shown) < 4*maxErrorLength && !strings.Contains(shown, "\n"), shown)
	} else {
		assert.Equal(w.t, echoed(c.cfg.Name, own, id), mcp.GetTextFromContent(r.Content[0]), "seed %d: the answer to another call", w.seed)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	known.succeeded = err == nil
	w.kinds[kind]++
	return err == nil
}

// outcome returns the name of the documented error that err is, or "?".
func outcome(err error) string {
	var unknown *UnknownToolError
	switch {
	case errors.Is(err, ErrServerDown):
		return "down"
	case errors.As(err, &unknown) && unknown.Connecting != "":
		return "connecting"
	case errors.As(err, &unknown) && !unknown.Gone.IsZero():
		return "gone"
	case errors.Is(err, ErrUnknownTool):
		return "unknown"
	case errors.Is(err, context.DeadlineExceeded):
		return "late"
	}
	for kind, texts := range map[string][]string{
		"malformed": {"cannot unmarshal", "content is missing", "failed to decode response", "unexpected nil response"},
		"too large": {"a message has more bytes than the limit of "},
		"status":    {"request failed with status 500", "the user has to log in"},
		"its own":   {"panic: an invariant", "no such luck", "' not found"},
	} {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(err.Error(), text) }) {
			return kind
		}
	}
	return "?"
}

// The mischiefs by name and by place. A Late in them is random.
var walkMischiefs = []struct {
	name string
	over string
	does mischief
}{
	{"mute", "shmp", mischief{Mute: true}},
	{"mute calls", "shmp", mischief{At: call, Mute: true}},
	{"late", "shmp", mischief{At: call, Late: 1}},
	{"late list", "shmp", mischief{At: list, Late: 1, Push: listChanged, Pushes: 1}},
	{"dies", "shmp", mischief{At: call, Die: true}},
	{"dies listing", "shmp", mischief{At: list, Die: true, Push: listChanged, Pushes: 1}},
	{"half", "shm", mischief{At: call, Data: halfLine}},
	{"garbage", "shm", mischief{Data: "{garbage\n"}},
	{"wrong types", "shm", mischief{At: call, Data: `{"jsonrpc":"2.0","id":$ID,"result":[17]}`}},
	{"error", "shm", mischief{At: call, Data: `{"jsonrpc":"2.0","id":$ID,"error":{"code":-1,"message":"no such luck"}}`}},
	{"large", "shm", mischief{At: call, N: 2 << 20, Data: `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"$BIG"}]}}`}},
	{"twice", "s", mischief{Data: "$ANSWER\n$ANSWER"}},
	{"other id", "s", mischief{Data: `{"jsonrpc":"2.0","id":99999,"result":$RESULT}`}},
	{"deaf", "s", mischief{Deaf: true}},
	{"stubborn", "s", mischief{At: call, Die: true, Stubborn: true}},
	{"stubborn and mute", "s", mischief{Mute: true, Stubborn: true}},
	{"family", "s", mischief{At: call, Die: true, Family: true}},
	{"stdout", "s", mischief{Push: "Listening!\n{half", Pushes: 1000}},
	{"stderr", "s", mischief{Stderr: 1 << 20}},
	{"storm", "smp", mischief{Push: listChanged, Pushes: 1000}},
	{"changes", "shmp", mischief{List: `{"name":"new"}`, Push: listChanged, Pushes: 1}},
	{"tools go", "shmp", mischief{List: `-{"name":"new"}`, Push: listChanged, Pushes: 1}},
	{"pages", "shm", mischief{List: "endless", Push: listChanged, Pushes: 1}},
	{"forgets", "h", mischief{Reset: 404}},
	{"401", "hm", mischief{Status: 401, Data: "sorry"}},
	{"404", "hm", mischief{Status: 404, Data: "sorry"}},
	{"500", "hm", mischief{Status: 500, Data: "sorry"}},
	{"stream", "hm", mischief{At: call, Type: events, Data: ": nothing\n\n"}},
	{"killed", "shm", mischief{}},
	{"removed", "shmp", mischief{}},
}

// misbehave picks servers and mischiefs until ctx ends.
func (w *riot) misbehave(ctx context.Context) {
	random := w.random(walkSessions)
	for ctx.Err() == nil {
		i := random.IntN(len(w.servers))
		c, over := w.servers[i], walkPlaces[i]
		next := walkMischiefs[random.IntN(len(walkMischiefs))]
		behaves := random.IntN(2) == 0
		late := time.Duration(random.IntN(600)) * time.Millisecond
		pause := time.Duration(random.IntN(60)) * time.Millisecond
		switch {
		case behaves:
			c.set(mischief{})
			w.changing.Go(func() { _ = w.m.AddServer(ctx, c.cfg) }) // if it was removed
		case strings.IndexByte(next.over, over) < 0:
			continue
		case next.name == "killed":
			c.end()
		case next.name == "removed":
			w.changing.Go(func() { w.m.RemoveServer(c.cfg.Name) })
		default:
			if next.does.Late > 0 {
				next.does.Late = late
			}
			c.set(next.does)
		}
		if !behaves {
			w.mischiefs[next.name]++
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// count compares the callers' results with the servers' journals in the end.
func (w *riot) count() {
	w.journal.mu.Lock()
	ran := maps.Clone(w.journal.ran)
	w.journal.mu.Unlock()
	for id, c := range w.calls {
		most := 1
		if c.repeatable {
			most = 2
		}
		assert.LessOrEqual(w.t, ran[id], most, "seed %d: call %s was executed too often", w.seed, id)
		if c.succeeded {
			assert.Positive(w.t, ran[id], "seed %d: call %s succeeded and was not executed", w.seed, id)
		}
		if ran[id] > 1 {
			w.kinds["repeated"]++
		}
		delete(ran, id)
	}
	assert.Empty(w.t, ran, "seed %d: executed, and never called", w.seed)
}
