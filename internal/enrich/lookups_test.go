package enrich

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/hints"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errEnded = errors.New("ended")

// A tool is a number.
type tool int

func (t tool) RegisteredName() string { return fmt.Sprintf("t%d", t) }

func (t tool) Document() *search.Document {
	return &search.Document{Name: t.RegisteredName(), Hints: "of the server"}
}

// An owner has tools, and counts what is published.
type owner struct {
	Lookups

	mu        sync.Mutex
	tools     []Tool
	looked    []tool
	published int
}

// own returns an owner of the tools 1 to n that looks up the shape of a tool's output by
// look, "" for none. Its life ends with the test.
func own(t *testing.T, n int, look func(ctx context.Context, t tool) (string, error)) *owner {
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		end()
		running.Wait()
	})
	o := new(owner)
	for i := range n {
		o.tools = append(o.tools, tool(1+i))
	}
	o.Lookups = Lookups{
		Look: func(ctx context.Context, t Tool) (hints.Hints, bool, error) {
			o.mu.Lock()
			o.looked = append(o.looked, t.(tool))
			o.mu.Unlock()
			shape, err := look(ctx, t.(tool))
			return hints.Hints{OutputShape: shape}, shape != "", err
		},
		Timeout: time.Second,
		Tools: func() []Tool {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.tools
		},
		Publish: func() { o.published++ },
		Log:     slog.New(slog.DiscardHandler),
		Life:    ctx, Ended: errEnded, Run: running.Go,
	}
	return o
}

func (o *owner) set(tools ...Tool) {
	o.mu.Lock()
	o.tools = tools
	o.mu.Unlock()
	o.Changed()
}

// shapes returns what is known.
func (o *owner) shapes() map[tool]string {
	known := make(map[tool]string)
	for t, k := range o.Known() {
		known[t.(tool)] = k.Hints.OutputShape
	}
	return known
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestEachToolIsLookedUpOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := own(t, 3, func(_ context.Context, n tool) (string, error) {
			if n == 2 {
				return "", nil
			}
			return fmt.Sprint("about ", int(n)), nil
		})
		assert.Nil(t, o.Known())
		o.Changed()
		pass(time.Minute)
		assert.Equal(t, map[tool]string{1: "about 1", 3: "about 3"}, o.shapes())
		assert.Equal(t, search.Document{Name: "t1", Hints: "of the server\nabout 1"}, o.Known()[tool(1)].Document)
		assert.Equal(t, 1, o.published)
		first := o.Known()[tool(3)]

		o.set(tool(3), tool(4))
		pass(time.Minute)
		assert.Equal(t, map[tool]string{3: "about 3", 4: "about 4"}, o.shapes(), "what has left is forgotten")
		assert.Same(t, first, o.Known()[tool(3)])
		assert.ElementsMatch(t, []tool{1, 2, 3, 4}, o.looked)
		o.set()
		synctest.Wait()
		assert.Empty(t, o.Known())
		assert.Equal(t, 2, o.published)

		pass(time.Minute)
		o.Changed()
		synctest.Wait()
		o.set(tool(5))
		synctest.Wait()
		assert.Equal(t, map[tool]string{5: "about 5"}, o.shapes(), "what finds nothing delays nothing")
	})
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shapes := map[tool]string{1: "one", 2: "two", 3: "three"}
		o := own(t, 3, func(_ context.Context, n tool) (string, error) {
			if shapes[n] == "fails" {
				return "", fmt.Errorf("no %d", n)
			}
			return shapes[n], nil
		})
		o.Changed()
		require.NoError(t, o.Refresh(t.Context()))
		assert.Equal(t, shapes, o.shapes())
		published := o.published
		require.NoError(t, o.Refresh(t.Context()))
		assert.Equal(t, published, o.published, "nothing has changed")

		before := o.Known()
		shapes[1], shapes[2] = "eins", "" // no lookup is under way
		require.NoError(t, o.Refresh(t.Context()))
		assert.Equal(t, map[tool]string{1: "eins", 3: "three"}, o.shapes())
		assert.Same(t, before[tool(3)], o.Known()[tool(3)], "what says the same stays")

		shapes[1], shapes[3] = "fails", "fails"
		assert.EqualError(t, o.Refresh(t.Context()), `looking up those of 2 tools failed: tool "t1": no 1`)
		assert.Equal(t, map[tool]string{1: "eins", 3: "three"}, o.shapes(), "they keep what they had")
	})
}

// A refresh does not take the outcome of a lookup that began before it.
func TestRefreshAsksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		n := 0
		o := own(t, 1, func(context.Context, tool) (string, error) {
			n++
			shape := fmt.Sprint(n)
			<-release
			return shape, nil
		})
		o.Changed()
		synctest.Wait()
		refreshed := make(chan error)
		go func() { refreshed <- o.Refresh(t.Context()) }()
		synctest.Wait()
		close(release)
		require.NoError(t, <-refreshed)
		assert.Equal(t, map[tool]string{1: "2"}, o.shapes())
	})
}

// A tool that leaves and comes back while it is looked up has the outcome of a lookup
// since then, and no refresh waits for what has left.
func TestToolsComeAndGoMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		o := own(t, 2, func(_ context.Context, t tool) (string, error) {
			if t == 2 {
				return "two", nil
			}
			n++
			shape := fmt.Sprint(n)
			time.Sleep(100 * time.Millisecond)
			return shape, nil
		})
		o.Changed()
		refreshed := make(chan error)
		go func() { refreshed <- o.Refresh(t.Context()) }()
		synctest.Wait()
		o.set(tool(2))
		require.NoError(t, <-refreshed)
		assert.Equal(t, map[tool]string{2: "two"}, o.shapes())
		o.set(tool(2), tool(1))
		synctest.Wait()
		assert.Equal(t, 2, n)
		pass(time.Minute)
		assert.Equal(t, map[tool]string{1: "2", 2: "two"}, o.shapes())
		assert.Zero(t, o.running)
	})
}

func TestHangingLookupsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		o := own(t, 3*64, func(context.Context, tool) (string, error) {
			<-release // whatever its context says
			return "late", nil
		})
		log := new(mcptest.Log)
		o.Log = slog.New(slog.NewTextHandler(log, nil))
		o.Changed()
		pass(time.Hour)
		assert.Len(t, o.looked, 64)
		o.Changed()
		pass(time.Hour)
		assert.Equal(t, 1, strings.Count(log.String(), "too many lookups of hints hang"))
		close(release)
		pass(time.Minute)
		assert.Len(t, o.looked, 3*64)
		assert.Len(t, o.shapes(), 2*64, "those that timed out have none until a refresh")
		require.NoError(t, o.Refresh(t.Context()))
		assert.Len(t, o.shapes(), 3*64)
	})
}

// As long as one lookup works, those that hang are no reason to warn.
func TestOneLookupWorksBesideThoseThatHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		o := own(t, 100, func(_ context.Context, n tool) (string, error) {
			if n < MaxInside {
				<-release
				return "", nil
			}
			time.Sleep(700 * time.Millisecond)
			return "found", nil
		})
		log := new(mcptest.Log)
		o.Log = slog.New(slog.NewTextHandler(log, nil))
		o.Changed()
		pass(time.Hour)
		close(release)
		synctest.Wait()
		assert.Len(t, o.shapes(), 100-MaxInside+1)
		assert.NotContains(t, log.String(), "too many lookups")
	})
}

func TestRefreshEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var none *Lookups
		none.Changed()
		assert.Nil(t, none.Known())

		o := own(t, 1, func(ctx context.Context, _ tool) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		life, end := context.WithCancel(o.Life)
		o.Life = life
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		assert.ErrorIs(t, o.Refresh(gone), context.Canceled, "nothing has begun")
		o.Changed()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, o.Refresh(short), context.DeadlineExceeded)
		refreshed := make(chan error)
		go func() { refreshed <- o.Refresh(t.Context()) }()
		synctest.Wait()
		end()
		assert.Equal(t, errEnded, <-refreshed)
		synctest.Wait()
		assert.Equal(t, errEnded, o.Refresh(t.Context()), "it is over")
	})
}

// A tool that comes while a refresh is looked at is one of the next.
func TestToolsComeDuringARefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := own(t, 2, func(_ context.Context, n tool) (string, error) { return fmt.Sprint(int(n)), nil })
		calls := 0
		o.Tools = func() []Tool {
			calls++
			return o.tools[:1+calls/3] // the second comes with the third call: after the refresh has seen the first
		}
		o.Changed()
		synctest.Wait()
		require.NoError(t, o.Refresh(t.Context()))
		assert.Equal(t, 3, calls)
		assert.Equal(t, map[tool]string{1: "1"}, o.shapes())
		o.Changed()
		pass(time.Minute)
		assert.Equal(t, map[tool]string{1: "1", 2: "2"}, o.shapes())
	})
}

func TestKnown(t *testing.T) {
	t.Parallel()
	h := hints.Hints{Preconditions: []string{"Log\nin"}, AntiPatterns: []string{"twice"}, ChainsWith: []string{"b"}, OutputShape: "ids"}
	k := newKnown(h, new(search.Document))
	assert.Equal(t, "Log in\nb\nids", k.Words())
	h.AntiPatterns[0] = "thrice"
	assert.Equal(t, "twice", k.Hints.AntiPatterns[0], "it shares nothing")
	assert.False(t, k.says(newKnown(h, new(search.Document))))
	h.AntiPatterns[0] = "twice"
	assert.True(t, k.says(newKnown(h, new(search.Document))))
	for _, change := range []func(*hints.Hints){
		func(h *hints.Hints) { h.Preconditions = []string{"Log in"} }, func(h *hints.Hints) { h.AntiPatterns = nil },
		func(h *hints.Hints) { h.ChainsWith = []string{"b", "c"} }, func(h *hints.Hints) { h.OutputShape = "" },
	} {
		other := h
		change(&other)
		assert.False(t, k.says(newKnown(other, new(search.Document))), "%+v", other)
	}
	h.OutputShape = ""
	assert.False(t, k.says(newKnown(h, new(search.Document))))
	assert.False(t, k.says(nil))
	assert.True(t, (*Known)(nil).says(nil))
}

// A refresh is published as soon as it is complete, however short ago the last one was.
func TestRefreshIsPublishedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n, slow atomic.Int64
		o := own(t, 2, func(_ context.Context, which tool) (string, error) {
			if which == 2 {
				time.Sleep(time.Duration(slow.Load()))
			}
			return fmt.Sprint(n.Add(1)), nil
		})
		o.Changed()
		require.NoError(t, o.Refresh(t.Context()))
		begun := time.Now()
		require.NoError(t, o.Refresh(t.Context()))
		assert.Zero(t, time.Since(begun))

		// One that is half done waits for what is left, or for its turn to be published.
		published := o.published
		slow.Store(int64(100 * time.Millisecond))
		require.NoError(t, o.Refresh(t.Context()))
		assert.Equal(t, published+1, o.published)
		assert.Equal(t, 100*time.Millisecond, time.Since(begun))
		slow.Store(int64(900 * time.Millisecond))
		require.NoError(t, o.Refresh(t.Context()))
		assert.Equal(t, published+3, o.published, "half of it after half a second")
	})
}

// What is found while others take long is published every half second.
func TestFoundIsPublishedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := own(t, 3, func(_ context.Context, n tool) (string, error) {
			time.Sleep(time.Duration(n-1) * 300 * time.Millisecond)
			return fmt.Sprint(int(n)), nil
		})
		o.Timeout = time.Minute
		o.last = time.Now()
		begun := time.Now()
		o.Changed()
		pass(499 * time.Millisecond)
		assert.Empty(t, o.shapes())
		pass(2 * time.Millisecond)
		assert.Len(t, o.shapes(), 2, time.Since(begun))
		pass(time.Second)
		assert.Len(t, o.shapes(), 3)
		assert.Equal(t, 2, o.published)
	})
}

// What was found of a tool that has left since is not published.
func TestFoundOfWhatHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := own(t, 2, func(_ context.Context, n tool) (string, error) {
			time.Sleep(time.Duration(n-1) * 700 * time.Millisecond)
			return fmt.Sprint(int(n)), nil
		})
		var published atomic.Int64
		o.Publish = func() { published.Add(1) }
		o.last = time.Now()
		o.Changed()
		pass(100 * time.Millisecond)
		o.set(tool(2))
		pass(500 * time.Millisecond)
		assert.Zero(t, published.Load())
		assert.Empty(t, o.shapes())
		pass(time.Minute)
		assert.EqualValues(t, 1, published.Load())
		assert.Equal(t, map[tool]string{2: "2"}, o.shapes())
	})
}

// The first failures of a batch are logged, and how many more there are.
func TestFailuresAreLoggedShortly(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][2]int{9: {9, 0}, 10: {10, 0}, 11: {10, 1}, 25: {10, 15}} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			o := own(t, n, func(context.Context, tool) (string, error) { return "", errors.New("broken") })
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
			o.Changed()
			pass(time.Minute)
			assert.Equal(t, want[0], strings.Count(log.String(), "looking up the hints of a tool failed"), n)
			if want[1] == 0 {
				assert.NotContains(t, log.String(), "more tools")
			} else {
				assert.Contains(t, log.String(), fmt.Sprintf("looking up the hints of more tools failed\" tools=%d\n", want[1]))
			}
			assert.Zero(t, o.published)
		})
	}
}

// Hints that come with an error, or that are too long, don't count. Where there are none, nobody
// looks at what comes.
func TestHintsThatDontCount(t *testing.T) {
	t.Parallel()
	long := hints.Hints{OutputShape: strings.Repeat("x", 100_000)}
	for _, test := range []struct {
		hints hints.Hints
		ok    bool
		err   error
		want  string
	}{
		{hints.Hints{OutputShape: "half of it"}, true, errors.New("broken"), "broken"},
		{long, true, nil, long.Check().Error()},
		{long, false, nil, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := own(t, 1, nil)
			o.Look = func(context.Context, Tool) (hints.Hints, bool, error) { return test.hints, test.ok, test.err }
			o.Changed()
			err := o.Refresh(t.Context())
			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.want)
			}
			assert.Empty(t, o.Known())
		})
	}
}

// What hangs at the end is waited for, but not for long.
func TestTheEndIsSoon(t *testing.T) {
	t.Parallel()
	for hangs, want := range map[time.Duration]time.Duration{300 * time.Millisecond: 300 * time.Millisecond, time.Minute: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			o := own(t, 1, func(ctx context.Context, _ tool) (string, error) {
				<-ctx.Done()
				time.Sleep(hangs)
				return "", ctx.Err()
			})
			life, end := context.WithCancel(t.Context())
			var running sync.WaitGroup
			o.Life, o.Run, o.Timeout = life, running.Go, time.Hour
			o.Changed()
			synctest.Wait()
			end()
			begun := time.Now()
			running.Wait()
			assert.Equal(t, want, time.Since(begun))
			time.Sleep(hangs)
		})
	}
}
