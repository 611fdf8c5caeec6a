package meaning

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// picky is an embedder that notes its batches and when they came.
type picky struct {
	lengths
	fails func(texts []string) error

	mu      sync.Mutex
	batches []int
	at      []time.Time
}

func (e *picky) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.mu.Lock()
	e.batches, e.at = append(e.batches, len(texts)), append(e.at, time.Now())
	e.mu.Unlock()
	if e.fails != nil {
		if err := e.fails(texts); err != nil {
			return nil, err
		}
	}
	return e.lengths.Embed(ctx, texts)
}

// noted is a store that notes what it is asked for.
type noted struct {
	vector.MemoryStore
	calls []string
	fails map[string]error
}

func (s *noted) note(call string) error {
	s.calls = append(s.calls, call)
	return s.fails[call]
}

func (s *noted) Upsert(ctx context.Context, scope string, records []vector.Record) error {
	if err := s.note("upsert"); err != nil {
		return err
	}
	return s.MemoryStore.Upsert(ctx, scope, records)
}

func (s *noted) Delete(ctx context.Context, scope string, ids []string) error {
	if err := s.note("delete " + strings.Join(ids, " ")); err != nil {
		return err
	}
	return s.MemoryStore.Delete(ctx, scope, ids)
}

func (s *noted) Sums(ctx context.Context, scope string) (map[string]string, error) {
	if err := s.note("sums"); err != nil {
		return nil, err
	}
	return s.MemoryStore.Sums(ctx, scope)
}

func (s *noted) Get(ctx context.Context, scope string, ids []string) ([]vector.Record, error) {
	if err := s.note("get"); err != nil {
		return nil, err
	}
	return s.MemoryStore.Get(ctx, scope, ids)
}

func (s *noted) Drop(ctx context.Context, scope string) error {
	if err := s.note("drop"); err != nil {
		return err
	}
	return s.MemoryStore.Drop(ctx, scope)
}

// A desk keeps the texts of server s, which are called by their texts.
type desk struct {
	*Keeper
	t      *testing.T
	ctx    context.Context
	e      *picky
	s      *noted
	texts  []*Text
	listed map[string][]string
	done   []string
}

// at runs test in a bubble of time, with a desk of these options.
func at(t *testing.T, change func(*Options), test func(*desk)) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{t: t, e: new(picky), s: &noted{fails: make(map[string]error)}}
		o := Options{Embedder: d.e, Model: "lengths", Store: d.s, Scope: "x", Timeout: time.Second, Trust: time.Hour, Grace: time.Hour, Budget: math.MaxInt,
			Log:      slog.New(slog.DiscardHandler),
			Progress: func(done, total int) { d.done = append(d.done, fmt.Sprintf("%d/%d", done, total)) },
			Current: func() ([]*Text, func() map[string][]string) {
				return d.texts, func() map[string][]string { return d.listed }
			}}
		if change != nil {
			change(&o)
		}
		d.Keeper = New(o, nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		d.ctx = ctx
		test(d)
	})
}

// set makes these the texts, and waits for as long.
func (d *desk) set(wait time.Duration, texts ...string) {
	d.texts = nil
	for _, text := range texts {
		d.texts = append(d.texts, d.NewText(Source{ID: "id " + text, Server: "s", Name: text, Text: text}))
	}
	d.Changed(func(run func(context.Context)) { go run(d.ctx) })
	time.Sleep(wait)
	synctest.Wait()
}

func (d *desk) ids() (ids []string) {
	sums, err := d.s.MemoryStore.Sums(d.ctx, "x")
	require.NoError(d.t, err)
	for id := range sums {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func many(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf("%03d", i))
	}
	return texts
}

// Texts are embedded 64 at once, and the host is told of each step.
func TestBatches(t *testing.T) {
	at(t, nil, func(d *desk) {
		d.set(0, many(130)...)
		assert.Equal(t, []int{64, 64, 2}, d.e.batches)
		assert.Equal(t, []string{"64/130", "128/130", "130/130"}, d.done)
		assert.True(t, d.InStep())
		assert.True(t, d.Idle())
		assert.Equal(t, []string{"sums", "upsert", "upsert", "upsert"}, d.s.calls)
	})
}

// After a failure the batch is half as large, and twice after each success. A text that is
// refused is alone in the end, and the others are embedded.
func TestARefusedTextIsAlone(t *testing.T) {
	at(t, nil, func(d *desk) {
		d.e.fails = func(texts []string) error {
			if slices.Contains(texts, "002") {
				return errors.New("refused")
			}
			return nil
		}
		d.set(time.Minute-time.Second, many(8)...)
		assert.Equal(t, []int{8, 4, 2, 4, 2, 1, 1, 2, 2, 1}, d.e.batches)
		assert.Len(t, d.ids(), 7)
		assert.NotContains(t, d.ids(), "id 002")
		p := d.Reached()
		assert.Equal(t, [2]int{7, 8}, [2]int{p.Done, p.Total})
		assert.ErrorContains(t, p.Err, "embedding: ")
		assert.False(t, d.InStep())

		d.e.fails, d.e.batches = nil, nil
		d.set(time.Minute, many(9)...)
		assert.Equal(t, []int{1, 1}, d.e.batches, "the one that was refused comes last, alone")
		assert.True(t, d.InStep())
	})
}

// The waits after failures double, from a second to a minute.
func TestWaitsAfterFailures(t *testing.T) {
	at(t, nil, func(d *desk) {
		d.e.fails = func([]string) error { return errors.New("down") }
		d.set(4*time.Minute, "a")
		var waits []time.Duration
		for i, at := range d.e.at[1:] {
			waits = append(waits, at.Sub(d.e.at[i])/time.Second)
		}
		assert.Equal(t, []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}, waits)
	})
}

// What fails is told by what was tried.
func TestFailuresAreTold(t *testing.T) {
	for call, want := range map[string]string{"sums": "reading the store: ", "upsert": "storing: "} {
		at(t, nil, func(d *desk) {
			d.s.fails[call] = errors.New("no disk")
			d.set(0, "a")
			assert.ErrorContains(t, d.Reached().Err, want)
			assert.ErrorContains(t, d.Reached().Err, "no disk")
			assert.Zero(t, d.Reached().Done)
			delete(d.s.fails, call)
			d.set(time.Second, "a")
			assert.True(t, d.InStep())
		})
	}
}

// A cache that can't even be asked for its vectors is told by where they are needed.
func TestACacheThatPanics(t *testing.T) {
	for private, want := range map[bool]string{true: "reading the cache: the vector cache: panic: torn", false: "reading the store: the vector cache: panic: torn"} {
		at(t, func(o *Options) { o.Cache, o.Private = torn{}, private }, func(d *desk) {
			d.set(0, "a")
			assert.EqualError(t, d.Reached().Err, want)
			assert.Empty(t, d.ids())
		})
	}
}

type torn struct{ store.Document }

func (torn) Load() ([]byte, error) { panic("torn") }

// A store may say by nil that it has nothing.
func TestAStoreWithoutSums(t *testing.T) {
	at(t, nil, func(d *desk) {
		d.Store = &sharing{Store: d.s}
		d.set(0, "a")
		assert.True(t, d.InStep())
		assert.Equal(t, []string{"id a"}, d.ids())
	})
}

// Texts that come while others are embedded are looked at after the batch.
func TestTextsThatComeMeanwhile(t *testing.T) {
	at(t, nil, func(d *desk) {
		first := true
		d.e.fails = func([]string) error {
			if first {
				first = false
				d.texts = d.texts[:70]
				d.Changed(nil) // it is at work
			}
			return nil
		}
		d.set(0, many(200)...)
		assert.Equal(t, []int{64, 6}, d.e.batches)
		assert.Equal(t, []string{"64/200", "70/70"}, d.done)
		assert.Len(t, d.ids(), 70)
		assert.True(t, d.InStep())
	})
}

// An embedder that does not know its dimensions embeds nothing, and that is told.
func TestEmbedderThatPanics(t *testing.T) {
	at(t, func(o *Options) { o.Embedder = panicking{} }, func(d *desk) {
		d.set(0, "a")
		assert.ErrorContains(t, d.Reached().Err, "the embedder: panic: no model")
		assert.Empty(t, d.ids())
		assert.False(t, d.InStep())
	})
}

// What an embedder returns is checked before it is stored.
func TestEmbedderThatReturnsTooLittle(t *testing.T) {
	at(t, func(o *Options) { o.Embedder = answered{} }, func(d *desk) {
		d.set(0, "a", "b")
		assert.ErrorContains(t, d.Reached().Err, "embedding: 0 vectors for 2 texts")
		assert.Empty(t, d.ids())
		assert.Equal(t, []string{"sums"}, d.s.calls)
	})
}

type panicking struct{ lengths }

func (panicking) Dimensions() int { panic("no model") }

// What a server no longer lists is deleted after the grace; what was not asked for stays.
func TestWhatIsGoneIsDeletedLate(t *testing.T) {
	at(t, nil, func(d *desk) {
		d.set(0, "a", "b", "c")
		d.set(2*time.Hour, "a")
		assert.Equal(t, []string{"id a", "id b", "id c"}, d.ids(), "the server was not asked")
		d.listed = map[string][]string{"s": {"a", "b"}}
		d.set(time.Hour-time.Second, "a")
		assert.Len(t, d.ids(), 3)
		d.set(2*time.Second, "a")
		assert.Equal(t, []string{"id a", "id b"}, d.ids(), "b is listed, though not among the texts")
		assert.Equal(t, "delete id c", d.s.calls[len(d.s.calls)-1])
		assert.True(t, d.Idle())
	})
}

// One that comes back within the grace stays, and its grace begins anew when it leaves.
func TestWhatComesBackStays(t *testing.T) {
	at(t, nil, func(d *desk) {
		d.listed = map[string][]string{"s": {"a"}}
		d.set(0, "a", "b")
		d.set(time.Hour/2, "a")
		d.set(time.Minute, "a", "b")
		d.set(time.Hour-time.Second, "a")
		assert.Len(t, d.ids(), 2)
		d.set(time.Second, "a")
		assert.Equal(t, []string{"id a"}, d.ids())
		d.s.fails["delete id a"] = errors.New("no disk")
		d.listed = map[string][]string{"s": nil}
		d.set(time.Hour)
		assert.ErrorContains(t, d.Reached().Err, "deleting: ")
		assert.False(t, d.InStep())
		delete(d.s.fails, "delete id a")
		d.set(time.Minute)
		assert.Empty(t, d.ids())
	})
}

// Of a store that nobody else uses, what is gone goes by itself, after the grace.
func TestAPrivateStoreIsNotShared(t *testing.T) {
	at(t, func(o *Options) { o.Private, o.Grace = true, 0 }, func(d *desk) {
		d.set(0, "a", "b")
		d.set(time.Hour, "a")
		assert.Equal(t, []string{"id a"}, d.ids())
		assert.Equal(t, 1, strings.Count(strings.Join(d.s.calls, " "), "sums"), "it is read once")
	})
}

// Of a store that others use, what it has is read again after ten minutes.
func TestASharedStoreIsReadAgain(t *testing.T) {
	at(t, nil, func(d *desk) {
		d.set(10*time.Minute-time.Second, "a")
		d.set(0, "a")
		assert.Equal(t, []string{"sums", "upsert"}, d.s.calls)
		d.set(time.Second, "a")
		d.set(0, "a")
		assert.Equal(t, []string{"sums", "upsert", "sums"}, d.s.calls)
	})
}

// Vectors of another length are of another model: the store is emptied, unless it has some
// of ours.
func TestAnotherModelsVectorsAreDropped(t *testing.T) {
	at(t, nil, func(d *desk) {
		require.NoError(t, d.s.MemoryStore.Upsert(d.ctx, "x", []vector.Record{{ID: "old", Vector: []float32{1, 2, 3}}}))
		d.set(0, "a", "b")
		assert.Equal(t, []string{"id a", "id b"}, d.ids())
		assert.Equal(t, []string{"sums", "upsert", "drop", "upsert"}, d.s.calls)
		assert.True(t, d.InStep())
		d.set(0, "b", "c")
		assert.Equal(t, []string{"sums", "upsert", "drop", "upsert", "upsert"}, d.s.calls, "what an emptied store has is known")
	})
	at(t, nil, func(d *desk) {
		d.set(0, "a")
		d.s.fails["upsert"] = vector.ErrDimensions
		d.set(0, "a", "b")
		assert.ErrorIs(t, d.Reached().Err, vector.ErrDimensions)
		assert.NotContains(t, d.s.calls, "drop")
		assert.Equal(t, []string{"id a"}, d.ids())
	})
	at(t, nil, func(d *desk) {
		d.s.fails["upsert"], d.s.fails["drop"] = vector.ErrDimensions, errors.New("no right")
		d.set(0, "a")
		assert.ErrorContains(t, d.Reached().Err, "no right")
	})
}

// What the cache says of the store is relied on for a while: the store is not read. Vectors
// of the cache are not made again.
func TestTheCacheSaysWhatTheStoreHas(t *testing.T) {
	cache := new(blob)
	with := func(o *Options) { o.Cache = cache }
	var kept *noted
	at(t, with, func(d *desk) {
		d.set(0, "a", "b")
		kept = d.s
	})
	require.NotEmpty(t, cache.data)
	at(t, func(o *Options) { o.Cache, o.Store = cache, kept }, func(d *desk) {
		kept.calls = nil
		d.set(0, "a", "b")
		assert.True(t, d.InStep())
		assert.Empty(t, kept.calls, "the store has what it had")
		assert.Empty(t, d.e.batches)
		d.set(0, "a", "b")
		assert.Empty(t, kept.calls, "and is not asked the next time")
	})
	at(t, with, func(d *desk) { // an empty store, and other texts
		d.set(0, "a", "b", "c")
		assert.Equal(t, []string{"sums", "upsert", "upsert"}, d.s.calls)
		assert.Equal(t, []int{1}, d.e.batches)
	})
}

// A store that could not be read was in step with nothing, not even with no texts. One in memory
// is empty at each start.
func TestTheCacheSaysNothingOfOtherStores(t *testing.T) {
	cache := new(blob)
	with := func(o *Options) { o.Cache = cache }
	at(t, with, func(d *desk) {
		d.s.fails["sums"] = errors.New("no disk")
		d.set(0)
		assert.ErrorContains(t, d.Reached().Err, "no disk")
	})
	at(t, with, func(d *desk) {
		d.set(0)
		assert.Equal(t, []string{"sums"}, d.s.calls)
		assert.True(t, d.InStep())
	})
	for range 2 {
		own := new(vector.MemoryStore)
		at(t, func(o *Options) { o.Cache, o.Store = cache, own }, func(d *desk) {
			d.set(0, "a")
			sums, err := own.Sums(d.ctx, "x")
			require.NoError(t, err)
			assert.Contains(t, sums, "id a")
		})
	}
}

// A cache that can't be stored is stored the next time.
func TestTheCacheIsStoredAgain(t *testing.T) {
	cache := &stuck{fails: true}
	at(t, func(o *Options) { o.Cache = cache }, func(d *desk) {
		d.set(0, "a")
		assert.Empty(t, cache.data)
		assert.True(t, d.InStep())
		cache.fails = false
		d.set(11*time.Minute, "a")
		d.set(0, "a")
		assert.NotEmpty(t, cache.data)
		assert.Equal(t, 1, cache.loads)
	})
}

// A cache that hangs holds nobody up for more than five seconds.
func TestAHangingCache(t *testing.T) {
	cache := new(stuck)
	at(t, func(o *Options) { o.Cache = cache }, func(d *desk) {
		cache.hangs = make(chan struct{})
		d.set(5*time.Second-time.Millisecond, "a")
		d.set(time.Millisecond, "a", "b")
		assert.Equal(t, []int{1, 1}, d.e.batches)
		close(cache.hangs)
	})
}

// stuck is a cache that can't be written.
type stuck struct {
	blob
	fails bool
	loads int
	hangs chan struct{}
}

func (s *stuck) Load() ([]byte, error) {
	s.loads++
	return s.blob.Load()
}

func (s *stuck) Save(data []byte) error {
	if s.hangs != nil {
		<-s.hangs
	}
	if s.fails {
		return errors.New("no disk")
	}
	return s.blob.Save(data)
}

// When a server's budget is used up, the rest waits and says so.
func TestTextsWaitForTheirBudget(t *testing.T) {
	at(t, func(o *Options) { o.Budget = 24 }, func(d *desk) {
		d.set(0, many(30)...)
		assert.Len(t, d.ids(), 24)
		assert.EqualError(t, d.Reached().Err, `server "s" has used up its budget of 24 texts a day`)
		assert.False(t, d.Idle())
		d.set(0, many(31)...)
		assert.EqualError(t, d.Reached().Err, `server "s" has used up its budget of 24 texts a day`, "also if none can be embedded")
	})
	at(t, func(o *Options) { o.Budget = 24 }, func(d *desk) {
		d.set(6*time.Hour-time.Minute, many(30)...)
		assert.Len(t, d.ids(), 24)
	})
	at(t, func(o *Options) { o.Budget = 24 }, func(d *desk) {
		d.set(6*time.Hour+time.Minute, many(30)...)
		assert.Len(t, d.ids(), 30)
		assert.True(t, d.InStep())
	})
}

// Of two reasons to go on, the earlier one counts: a record that is due, and a budget.
func TestTheEarlierReasonToGoOn(t *testing.T) {
	for _, test := range []struct {
		grace, after time.Duration
		gone         bool
		ids          int
	}{{30 * time.Minute, 40 * time.Minute, true, 23}, {2 * time.Hour, 70 * time.Minute, false, 25}, {2 * time.Hour, 50 * time.Minute, false, 24}} {
		at(t, func(o *Options) { o.Budget, o.Grace = 24, test.grace }, func(d *desk) {
			d.listed = map[string][]string{"s": {}}
			d.set(0, "gone")
			d.set(test.after, many(24)...)
			assert.Equal(t, !test.gone, slices.Contains(d.ids(), "id gone"), test)
			assert.Len(t, d.ids(), test.ids, test)
		})
	}
}

// Four guests embed at once, and the others wait for their turns. The host waits for none.
func TestGuestsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inside, most atomic.Int64
		release := make(chan struct{})
		e := new(picky)
		e.fails = func([]string) error {
			most.Store(max(most.Load(), inside.Add(1)))
			<-release
			inside.Add(-1)
			return nil
		}
		keep := func(host *Keeper) *Keeper {
			var k *Keeper
			k = New(Options{Embedder: e, Model: "lengths", Store: new(vector.MemoryStore), Scope: "x", Private: true, Timeout: time.Second, Budget: math.MaxInt, Log: slog.New(slog.DiscardHandler),
				Current: func() ([]*Text, func() map[string][]string) {
					return []*Text{k.NewText(Source{ID: "a", Server: "s", Name: "a", Text: "a"})}, nil
				}}, host)
			return k
		}
		start := func(ctx context.Context, k *Keeper) { k.Changed(func(run func(context.Context)) { go run(ctx) }) }
		host := keep(nil)
		var guests []*Keeper
		for range 6 {
			guests = append(guests, keep(host))
			start(t.Context(), guests[len(guests)-1])
			synctest.Wait()
		}
		assert.EqualValues(t, 4, inside.Load())
		ctx, stop := context.WithCancel(t.Context())
		start(ctx, keep(host))
		start(t.Context(), host)
		synctest.Wait()
		assert.EqualValues(t, 5, inside.Load(), "the host is no guest")
		stop() // one that waits ends with its context
		synctest.Wait()
		close(release)
		synctest.Wait()
		assert.EqualValues(t, 5, most.Load())
		for _, k := range append(guests, host) {
			assert.True(t, k.InStep())
		}
	})
}

// A search without words finds nothing, and one of no texts; one of too many is refused.
func TestSearchesThatFindNothing(t *testing.T) {
	at(t, nil, func(d *desk) {
		search := func(query string) error {
			f, err := d.Search(d.ctx, query, 3, d.QueryVector(query), func(string) bool { return true }, 3)
			assert.Empty(t, f.Matches)
			return err
		}
		assert.NoError(t, search(" \n"))
		assert.ErrorIs(t, search("x"), ErrNotEmbedded)
		d.set(0)
		assert.NoError(t, search("x"), "there is no text")
		d.Changed(func(func(context.Context)) {})
		assert.ErrorIs(t, search("x"), ErrNotEmbedded, "there may be one since")
		d.note(Progress{Done: 1, Total: 1})
		for range 64 {
			d.limits.asking <- struct{}{}
		}
		assert.ErrorIs(t, search("x"), ErrBusy)
		<-d.limits.asking
		_, err := d.Search(d.ctx, "x", 3, New(Options{Embedder: answered{err: errors.New("away")}}, nil).QueryVector("x"), nil, 3)
		assert.EqualError(t, err, "embedding the query: away")
		assert.NoError(t, search("x"))
		assert.Len(t, d.limits.asking, 63, "each makes room for the next")
	})
}

// A query is cut to what is embedded, and asked for once.
func TestQueryVectors(t *testing.T) {
	t.Parallel()
	k := New(Options{Embedder: lengths{}, Model: "lengths"}, nil)
	for n, want := range map[int]float32{3999: 3999, 4000: 4000, 4001: 4000} {
		v, err := k.QueryVector(strings.Repeat("x", n))(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, []float32{1, want}, v)
	}
	v, err := k.QueryVector(strings.Repeat("x", 3999) + "é")(t.Context())
	assert.NoError(t, err)
	assert.Equal(t, []float32{1, 3999}, v, "no half of a character")
}

// A vector that the embedder did not make, or that is none of its own, is an error for all who
// wait for it.
func TestQueryVectorsThatFail(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for want, answer := range map[string]answered{
		"away":             {nil, away},
		"3 dimensions":     {[]float32{1, 2, 3}, nil},
		"no numbers":       {[]float32{1, float32(math.NaN())}, nil},
		"it has 0 dimensi": {nil, nil},
	} {
		vectorOf := New(Options{Embedder: answer, Model: "m"}, nil).QueryVector("x")
		for range 2 {
			v, err := vectorOf(t.Context())
			assert.ErrorContains(t, err, want, "%v", v)
		}
	}
}

type answered struct {
	vector []float32
	err    error
}

func (answered) Model() string                                           { return "m" }
func (answered) Dimensions() int                                         { return 2 }
func (answered) Embed(context.Context, []string) ([][]float32, error)    { return nil, nil }
func (a answered) EmbedQuery(context.Context, string) ([]float32, error) { return a.vector, a.err }

// The text that is embedded has the names of the parameters.
func TestTextOf(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "Tool Name: n. Description: Does it.", TextOf("n", "Does it.. \n", nil))
	assert.Equal(t, "Tool Name: n. Description: . Arguments: a, b", TextOf("n", "", []byte(`{"properties":{"a":{},"b":{"type":"string"}}}`)))
	begin := len(TextOf("n", "", nil))
	assert.Len(t, TextOf("n", strings.Repeat("x", 4000-begin), nil), 4000)
	assert.Len(t, TextOf("n", strings.Repeat("x", 4001-begin), nil), 4000)
	assert.Len(t, TextOf("n", strings.Repeat("x", 4000-begin)+"é", nil), 3999, "no half of a character")
}
