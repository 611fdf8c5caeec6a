package meaning

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// counting counts the texts that are embedded.
type counting struct {
	lengths
	texts []string
}

func (e *counting) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.texts = append(e.texts, texts...)
	return e.lengths.Embed(ctx, texts)
}

// reluctant is a store that refuses requests.
type reluctant struct {
	vector.MemoryStore
	noUpsert, noGet bool
	upserts         int
	before          func() // a Get
	during          func() // an Upsert
}

func (s *reluctant) Upsert(ctx context.Context, scope string, records []vector.Record) error {
	if s.during != nil {
		s.during()
	}
	if s.upserts++; s.noUpsert {
		return errors.New("read only")
	}
	return s.MemoryStore.Upsert(ctx, scope, records)
}

func (s *reluctant) Get(ctx context.Context, scope string, ids []string) ([]vector.Record, error) {
	if s.noGet {
		return nil, errors.New("not readable")
	}
	if s.before != nil {
		s.before()
	}
	return s.MemoryStore.Get(ctx, scope, ids)
}

// blob is a cache in memory.
type blob struct {
	mu   sync.Mutex
	data []byte
}

func (b *blob) Load() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data, nil
}

func (b *blob) Save(data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = data
	return nil
}

// A library is a store and those who keep it, in a bubble of time.
type library struct {
	t     *testing.T
	e     *counting
	store *reluctant
	cache store.Document
}

// bubble runs test in a bubble of time.
func bubble(t *testing.T, test func(*library)) {
	synctest.Test(t, func(t *testing.T) { test(&library{t: t, e: new(counting), store: new(reluctant)}) })
}

// keep has a new keeper, as that of a new process, keep the sources for a while.
func (l *library) keep(sources ...Source) *Keeper {
	var texts []*Text
	k := New(Options{Embedder: l.e, Model: "lengths", Store: l.store, Scope: "x", Timeout: time.Second, Trust: time.Hour, Grace: time.Hour, Budget: math.MaxInt, Cache: l.cache,
		Log: slog.New(slog.DiscardHandler), Current: func() ([]*Text, func() map[string][]string) {
			return texts, func() map[string][]string { return nil }
		}}, nil)
	for _, s := range sources {
		texts = append(texts, k.NewText(s))
	}
	l.store.during = func() { assert.False(l.t, k.InStep()) }
	ctx, stop := context.WithCancel(l.t.Context())
	defer stop()
	k.Changed(func(run func(context.Context)) { go run(ctx) })
	synctest.Wait()
	return k
}

func (l *library) stored(id string) vector.Record {
	l.t.Helper()
	records, err := l.store.MemoryStore.Get(l.t.Context(), "x", []string{id})
	require.NoError(l.t, err)
	require.Len(l.t, records, 1)
	return records[0]
}

func source(text, description, schema string) Source {
	return Source{ID: "id", Server: "s", Name: "tool", Text: text, Description: description, Schema: []byte(schema)}
}

// What is for readers is stored anew when it changes, without a cache too, and only the
// text is embedded.
func TestReaders(t *testing.T) {
	bubble(t, func(l *library) {
		for i, step := range []struct {
			source   Source
			embedded int
			upserts  int
		}{
			{source("text", "one", "{}"), 1, 1},
			{source("text", "one", "{}"), 1, 1},
			{source("text", "one", `{"a":1}`), 1, 2},
			{source("text", "two", `{"a":1}`), 1, 3},
			{source("text", "two", ""), 1, 4},
			{source("words", "two", ""), 2, 5},
			{source("words", `two{`, `}`), 2, 6},
			{source("words", `two`, `{}`), 2, 7},
		} {
			k := l.keep(step.source)
			assert.True(t, k.InStep(), "step %d", i)
			assert.Len(t, l.e.texts, step.embedded, "step %d", i)
			assert.Equal(t, step.upserts, l.store.upserts, "step %d", i)
			r := l.stored("id")
			assert.Equal(t, []string{step.source.Description, string(step.source.Schema)}, []string{r.Description, r.Schema})
			want, _ := vector.Unit([]float32{1, float32(len(step.source.Text))})
			assert.InDeltaSlice(t, want, r.Vector, 1e-6)
		}
	})
}

// A description ends after MaxText bytes. A schema has up to MaxSchema, or is left out.
func TestReadersLimits(t *testing.T) {
	bubble(t, func(l *library) {
		schema := `"` + strings.Repeat("x", MaxSchema-2) + `"`
		l.keep(source("text", strings.Repeat("é", 4000), schema))
		assert.Equal(t, strings.Repeat("é", 4000/2), l.stored("id").Description)
		assert.Equal(t, schema, l.stored("id").Schema)
		l.keep(source("text", "x"+strings.Repeat("é", 4000), schema+" "))
		assert.Equal(t, "x"+strings.Repeat("é", 4000/2-1), l.stored("id").Description)
		assert.Empty(t, l.stored("id").Schema)
		n := l.store.upserts
		l.keep(source("text", "x"+strings.Repeat("é", 2*4000), schema+"  "))
		assert.Equal(t, n, l.store.upserts, "what is not stored changes nothing")
		l.keep(source("text", "", "\"bad \xff\""))
		assert.Equal(t, "\"bad \uFFFD\"", l.stored("id").Schema)
	})
}

// A store that nobody else uses has no readers.
func TestNoReaders(t *testing.T) {
	k := New(Options{Private: true}, nil)
	r := k.NewText(source("text", "one", "{}")).record([]float32{1})
	assert.Equal(t, vector.Record{ID: "id", Sum: k.NewText(source("text", "two", "")).sum, Server: "s", Text: "text", Vector: []float32{1}}, r)
}

// Records of an earlier version, which had nothing for readers, get it without being
// embedded again. Meanwhile they are found, even if the store can't be written.
func TestRecordsOfAnEarlierVersion(t *testing.T) {
	for name, cache := range map[string]store.Document{"without a cache": nil, "with a cache": new(blob)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *library) {
				l.cache = cache
				var sources []Source
				for _, id := range sequence(100) {
					sources = append(sources, Source{ID: id, Server: "s", Name: id, Text: "text of " + id, Schema: []byte("{}")})
				}
				l.keep(sources...)
				require.Len(t, l.e.texts, 100)
				var records []vector.Record
				for _, s := range sources {
					r := l.stored(s.ID)
					r.Sum, r.Schema = r.Sum[:2*tagBytes+textBytes], ""
					records = append(records, r)
				}
				require.NoError(t, l.store.MemoryStore.Upsert(l.t.Context(), "x", records))
				if b, ok := cache.(*blob); ok { // of that version, too, and in step with it
					c := vector.LoadCache(b, "lengths", nil)
					require.NoError(t, c.Save([]vector.Key{vector.KeyOf("lengths", "text of 0")}, [32]byte{1}, true))
				}

				l.store.noUpsert = true
				k := l.keep(sources...)
				assert.False(t, k.InStep())
				p := k.Reached()
				assert.Equal(t, []int{100, 100}, []int{p.Done, p.Total})
				found, err := k.Search(l.t.Context(), "query", 3, k.QueryVector("query"), func(string) bool { return true }, 100)
				assert.Len(t, found.Matches, 3)
				assert.ErrorContains(t, err, "read only")

				l.store.noUpsert = false
				k = l.keep(sources...)
				assert.True(t, k.InStep(), "the cache does not say that the store was in step")
				for _, s := range sources {
					assert.Equal(t, "{}", l.stored(s.ID).Schema)
				}
				assert.Len(t, l.e.texts, 100)
			})
		})
	}
}

// sequence returns n ids.
func sequence(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint(i))
	}
	return ids
}

// A vector is kept only if the store has it of this text: another process may have
// changed or removed the record meanwhile, and a store may have lost the vector.
func TestOnlyTheTextsVectorIsKept(t *testing.T) {
	for name, change := range map[string]func(*library, vector.Record) error{
		"another text": func(l *library, r vector.Record) error {
			r.Sum, r.Vector = New(Options{Model: "lengths"}, nil).NewText(source("other", "", "")).sum, []float32{1, 5}
			return l.store.MemoryStore.Upsert(l.t.Context(), "x", []vector.Record{r})
		},
		"no record": func(l *library, r vector.Record) error {
			return l.store.MemoryStore.Delete(l.t.Context(), "x", []string{r.ID})
		},
		"no vector": func(l *library, r vector.Record) error {
			r.Vector = nil
			return l.store.MemoryStore.Upsert(l.t.Context(), "x", []vector.Record{r})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *library) {
				l.keep(source("text", "one", ""))
				l.store.before = func() { require.NoError(t, change(l, l.stored("id"))) }
				k := l.keep(source("text", "two", ""))
				assert.True(t, k.InStep())
				assert.Equal(t, []string{"text", "text"}, l.e.texts)
				want, _ := vector.Unit([]float32{1, 4})
				assert.InDeltaSlice(t, want, l.stored("id").Vector, 1e-6)
				assert.Equal(t, "two", l.stored("id").Description)
			})
		})
	}
}

// A vector of another length is not kept, although its record says that it is of the
// text: somebody else wrote it.
func TestNoVectorOfAnotherLength(t *testing.T) {
	bubble(t, func(l *library) {
		l.keep(source("text", "one", ""))
		r := l.stored("id")
		r.Vector = []float32{1, 2, 3}
		require.NoError(t, l.store.Drop(l.t.Context(), "x"))
		require.NoError(t, l.store.MemoryStore.Upsert(l.t.Context(), "x", []vector.Record{r}))
		k := l.keep(source("text", "two", ""))
		assert.ErrorIs(t, k.Reached().Err, vector.ErrDimensions)
	})
}

// A store that can't be read is asked again. Nothing is embedded in its place.
func TestUnreadableStore(t *testing.T) {
	bubble(t, func(l *library) {
		l.keep(source("text", "one", ""))
		l.store.noGet = true
		k := l.keep(source("text", "two", ""))
		require.NotNil(t, k.Reached())
		assert.ErrorContains(t, k.Reached().Err, "not readable")
		assert.Len(t, l.e.texts, 1)
	})
}
