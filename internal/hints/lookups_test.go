package hints

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errEnded = errors.New("ended")

// An owner has tools, which are numbers, and counts what is published.
type owner struct {
	Lookups[int, string]

	mu        sync.Mutex
	tools     []int
	looked    []int
	published int
}

// own returns an owner of tools that looks up hints by look. Its life ends with the
// test.
func own(t *testing.T, look func(ctx context.Context, tool int) (string, error), tools ...int) *owner {
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		end()
		running.Wait()
	})
	o := &owner{tools: tools}
	o.Lookups = Lookups[int, string]{
		Look: func(ctx context.Context, tool int) (*string, error) {
			o.mu.Lock()
			o.looked = append(o.looked, tool)
			o.mu.Unlock()
			text, err := look(ctx, tool)
			if text == "" || err != nil {
				return nil, err
			}
			return &text, nil
		},
		Timeout: time.Second,
		Equal:   func(a, b *string) bool { return *a == *b },
		Name:    func(tool int) string { return fmt.Sprintf("t%d", tool) },
		Tools:   func() iter.Seq[int] { return slices.Values(o.has()) },
		Publish: func() { o.published++ },
		Log:     slog.New(slog.DiscardHandler),
		Life:    ctx, Ended: errEnded, Run: running.Go,
	}
	return o
}

func (o *owner) has() []int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.tools)
}

func (o *owner) set(tools ...int) {
	o.mu.Lock()
	o.tools = tools
	o.mu.Unlock()
	o.Changed()
}

// texts returns the known hints.
func (o *owner) texts() map[int]string {
	known := make(map[int]string)
	for tool, text := range o.Known() {
		known[tool] = *text
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
		o := own(t, func(_ context.Context, tool int) (string, error) {
			if tool == 2 {
				return "", nil
			}
			return fmt.Sprint("about ", tool), nil
		}, 1, 2, 3)
		assert.Nil(t, o.Known())
		o.Changed()
		pass(time.Minute)
		assert.Equal(t, map[int]string{1: "about 1", 3: "about 3"}, o.texts())
		assert.Equal(t, 1, o.published)
		first := o.Known()[3]

		o.set(3, 4)
		pass(time.Minute)
		assert.Equal(t, map[int]string{3: "about 3", 4: "about 4"}, o.texts(), "what has left is forgotten")
		assert.Same(t, first, o.Known()[3])
		assert.ElementsMatch(t, []int{1, 2, 3, 4}, o.looked)
		o.set()
		synctest.Wait()
		assert.Empty(t, o.Known())
		assert.Equal(t, 2, o.published)
	})
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		texts := map[int]string{1: "one", 2: "two", 3: "three"}
		o := own(t, func(_ context.Context, tool int) (string, error) {
			if texts[tool] == "fails" {
				return "", fmt.Errorf("no %d", tool)
			}
			return texts[tool], nil
		}, 1, 2, 3)
		o.Changed()
		require.NoError(t, o.Refresh(t.Context()))
		assert.Equal(t, texts, o.texts())
		published := o.published
		require.NoError(t, o.Refresh(t.Context()))
		assert.Equal(t, published, o.published, "nothing has changed")

		before := maps.Clone(o.Known())
		texts[1], texts[2] = "eins", "" // no lookup is under way
		require.NoError(t, o.Refresh(t.Context()))
		assert.Equal(t, map[int]string{1: "eins", 3: "three"}, o.texts())
		assert.Same(t, before[3], o.Known()[3], "what says the same stays")

		texts[1], texts[3] = "fails", "fails"
		assert.EqualError(t, o.Refresh(t.Context()), `looking up those of 2 tools failed: tool "t1": no 1`)
		assert.Equal(t, map[int]string{1: "eins", 3: "three"}, o.texts(), "they keep what they had")
	})
}

// A refresh does not take the outcome of a lookup that began before it.
func TestRefreshAsksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		n := 0
		o := own(t, func(context.Context, int) (string, error) {
			n++
			text := fmt.Sprint(n)
			<-release
			return text, nil
		}, 1)
		o.Changed()
		synctest.Wait()
		refreshed := make(chan error)
		go func() { refreshed <- o.Refresh(t.Context()) }()
		synctest.Wait()
		close(release)
		require.NoError(t, <-refreshed)
		assert.Equal(t, map[int]string{1: "2"}, o.texts())
	})
}

func TestHangingLookupsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var tools []int
		for tool := range 3 * MaxInside {
			tools = append(tools, tool)
		}
		o := own(t, func(_ context.Context, tool int) (string, error) {
			<-release // whatever its context says
			return "late", nil
		}, tools...)
		o.Changed()
		pass(time.Hour)
		assert.Len(t, o.looked, MaxInside)
		close(release)
		pass(time.Minute)
		assert.Len(t, o.looked, 3*MaxInside)
		assert.Len(t, o.texts(), 2*MaxInside, "those that timed out have none until a refresh")
		require.NoError(t, o.Refresh(t.Context()))
		assert.Len(t, o.texts(), 3*MaxInside)
	})
}

func TestRefreshEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var none *Lookups[int, string]
		none.Changed()
		assert.Nil(t, none.Known())

		o := own(t, func(ctx context.Context, _ int) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, 1)
		life, end := context.WithCancel(o.Life)
		o.Life = life
		o.Changed()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, o.Refresh(short), context.DeadlineExceeded)
		refreshed := make(chan error)
		go func() { refreshed <- o.Refresh(t.Context()) }()
		synctest.Wait()
		end()
		assert.Equal(t, errEnded, <-refreshed)
	})
}
