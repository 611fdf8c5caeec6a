package usage

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUsesDecay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New(nil, nil, time.Hour, 10_000)
		for range 4 {
			r.Note("often", time.Now())
		}
		time.Sleep(time.Hour)
		r.Note("b", time.Now())
		r.Note("a", time.Now())
		assert.Equal(t, map[string]int{"often": 1, "a": 2, "b": 3}, r.Order(time.Now()))
		assert.InDelta(t, 2, r.after(r.fresh["often"], time.Now()), 1e-9)
		time.Sleep(2 * time.Hour)
		r.Note("a", time.Now())
		assert.Equal(t, map[string]int{"a": 1, "often": 2, "b": 3}, r.Order(time.Now()), "1.25, 0.5, 0.25")
	})
}

func TestCountsAreAdded(t *testing.T) {
	t.Parallel()
	counts := map[string]float64{"a": 1.5, "b": 0.5, "none": 0, "less": -1, "endless": math.Inf(1), "nan": math.NaN()}
	r := New(nil, counts, time.Hour, 10_000)
	counts["late"] = 9
	r.Note("b", time.Now())
	r.Note("c", time.Now())
	assert.Equal(t, map[string]int{"a": 1, "b": 2, "c": 3}, r.Order(time.Now()))
}

func TestRecordIsKept(t *testing.T) {
	t.Parallel()
	broken := map[string]string{
		"{": "unexpected end", `{"version":2}`: "another version: 2, want 1",
		`{"version":1,"tools":{"x":{"count":-1,"at":"2026-01-01T00:00:00Z"}}}`: `tool "x" has the invalid count -1`,
	}
	for data, want := range broken {
		_, err := parse([]byte(data))
		assert.ErrorContains(t, err, want)
	}
	store := &mcptest.Store{Err: errors.New("the disk is full")}
	r := New(store, nil, time.Hour, 10_000)
	assert.ErrorContains(t, r.Load(), "the disk is full")
	r.Note("x", time.Now())
	assert.NoError(t, r.Save(time.Now()), "what could not be read is not written over")
	assert.Nil(t, store.Data)
	store.Err = nil
	require.NoError(t, r.Load())
	for i := range 10_000 + 5 {
		r.Note(fmt.Sprint("tool", i), time.Now())
	}
	require.NoError(t, r.Save(time.Now()))
	var doc record
	require.NoError(t, json.Unmarshal(store.Data, &doc))
	assert.Len(t, doc.Tools, 10_000)

	again := New(store, nil, time.Hour, 10_000)
	require.NoError(t, again.Load())
	assert.Len(t, again.Order(time.Now()), 10_000)
}

// What was recorded before the store was read is added to what it has.
func TestLoadAdds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := new(mcptest.Store)
		first := New(store, nil, time.Hour, 10_000)
		require.NoError(t, first.Load())
		first.Note("a", time.Now())
		first.Note("a", time.Now())
		require.NoError(t, first.Save(time.Now()))
		time.Sleep(time.Hour)
		second := New(store, nil, time.Hour, 10_000)
		second.Note("a", time.Now())
		require.NoError(t, second.Load())
		stored := store.Data
		store.Data = nil
		require.NoError(t, second.Load(), "once is enough")
		store.Data = stored
		assert.Equal(t, 1.0, second.known["a"].Count/2)
		require.NoError(t, second.Save(time.Now()))
		assert.InDelta(t, 2, second.after(second.known["a"], time.Now()), 1e-9)
	})
}

// What is of a clock that was ahead is corrected in a copy: others may read the uses meanwhile.
func TestUntilLeavesItsUses(t *testing.T) {
	t.Parallel()
	now := time.Now()
	uses := map[string]use{"a": {1, now.Add(time.Hour)}, "b": {2, now.Add(-time.Hour)}, "c": {3, now}}
	assert.Equal(t, map[string]use{"a": {1, now}, "b": {2, now.Add(-time.Hour)}, "c": {3, now}}, until(uses, now))
	assert.Equal(t, now.Add(time.Hour), uses["a"].At)
}

// A document of a newer release is not written over, and one invalid use costs only itself.
func TestDocumentIsNotLost(t *testing.T) {
	t.Parallel()
	store := &mcptest.Store{Data: []byte(`{"version":2,"tools":{"x":{"n":[1,2]}}}`)}
	r := New(store, nil, time.Hour, 10_000)
	assert.ErrorIs(t, r.Load(), errVersion)
	r.Note("y", time.Now())
	before := string(store.Data)
	assert.ErrorIs(t, r.Save(time.Now()), errVersion)
	assert.Equal(t, before, string(store.Data))
	assert.Equal(t, map[string]int{"y": 1}, r.Order(time.Now()), "this run's uses count")
	assert.EqualError(t, r.Alien(), "the store is neither used nor changed: the document has another version: 2, want 1; name another one, or use the version of this program that has written it")

	store.Data = []byte(`{"version":1,"tools":{"bad":{"count":0,"at":"2026-01-01T00:00:00Z"},"good":{"count":3,"at":"2026-01-01T00:00:00Z"}}}`)
	require.NoError(t, r.Save(time.Now()), "it is another document now")
	assert.NoError(t, r.Alien())
	store.Data = []byte(`{"version":1,"tools":{"bad":{"count":0,"at":"2026-01-01T00:00:00Z"},"good":{"count":3,"at":"2026-01-01T00:00:00Z"}}}`)
	r = New(store, nil, time.Hour, 10_000)
	assert.ErrorContains(t, r.Load(), `"bad"`)
	r.Note("y", time.Now())
	require.NoError(t, r.Save(time.Now()))
	uses, err := parse(store.Data)
	require.NoError(t, err)
	assert.Len(t, uses, 2)
	assert.Contains(t, uses, "good")
}

// Uses of a clock that was ahead decay from now on, and new ones count beside them.
func TestClockThatWasAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &mcptest.Store{Data: []byte(`{"version":1,"tools":{"x":{"count":1,"at":"2031-01-01T00:00:00Z"},"y":{"count":1,"at":"2031-01-01T00:00:00Z"}}}`)}
		r := New(store, nil, time.Hour, 10_000)
		require.NoError(t, r.Load())
		for range 600 {
			r.Note("x", time.Now())
		}
		require.NoError(t, r.Save(time.Now()))
		assert.InDelta(t, 601, r.after(r.known["x"], time.Now()), 1e-6)
		time.Sleep(time.Hour)
		assert.InDelta(t, 0.5, r.after(r.known["y"], time.Now()), 1e-6)
	})
}

// What was noted before our own clock was set back has no time after it either.
func TestOwnClockIsSetBack(t *testing.T) {
	t.Parallel()
	store := new(mcptest.Store)
	r := New(store, nil, time.Hour, 100)
	require.NoError(t, r.Load())
	now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	r.Note("x", now.Add(24*time.Hour))
	require.NoError(t, r.Save(now))
	uses, err := parse(store.Data)
	require.NoError(t, err)
	assert.Equal(t, use{1, now}, uses["x"])
}

// Processes that share a store add their uses, each once.
func TestSharedRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := new(mcptest.Store)
		var records []*Record
		for range 3 {
			r := New(store, nil, time.Hour, 10_000)
			require.NoError(t, r.Load())
			records = append(records, r)
		}
		for round := range 4 {
			for i, r := range records {
				r.Note(fmt.Sprint("own", i), time.Now())
				r.Note("all", time.Now())
				if round == 1 { // what could not be stored is stored by the next Save
					store.Err = errors.New("the network is down")
					assert.ErrorIs(t, r.Save(time.Now()), store.Err)
					store.Err = nil
					assert.Equal(t, 1, r.Order(time.Now())["all"])
				}
				require.NoError(t, r.Save(time.Now()))
				before := string(store.Data)
				require.NoError(t, r.Save(time.Now()), "there is nothing to store")
				require.Equal(t, before, string(store.Data))
			}
		}
		uses, err := parse(store.Data)
		require.NoError(t, err)
		assert.Len(t, uses, 4)
		assert.Equal(t, 12.0, uses["all"].Count)
		for i := range records {
			assert.Equal(t, 4.0, uses[fmt.Sprint("own", i)].Count)
		}
		assert.Equal(t, map[string]int{"all": 1, "own0": 2, "own1": 3, "own2": 4}, records[2].Order(time.Now()), "it knows of all")
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"tools":{"x":{"count":1.5,"at":"2026-01-01T00:00:00Z"}}}`))
	f.Add([]byte(`{"version":1,"tools":{"x":{"count":0,"at":"2026-01-01T00:00:00Z"},"y":{"count":1,"at":"2026-01-01T00:00:00Z"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		uses, _ := parse(data)
		again, err := json.Marshal(record{version, uses})
		require.NoError(t, err)
		kept, err := parse(again)
		require.NoError(t, err, "what is invalid is left out")
		assert.Len(t, kept, len(uses))
		for name, u := range uses {
			if !(u.Count > 0) {
				t.Errorf("%q was used %v times", name, u.Count)
			}
		}
	})
}

// A Record has so many names at most, also of what is not stored and of what a store has.
func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := new(mcptest.Store)
		r := New(store, nil, time.Hour, 10)
		for range 3 {
			r.Note("often", time.Now())
		}
		for i := range 100 {
			r.Note(fmt.Sprint("once", i), time.Now())
			require.LessOrEqual(t, len(r.fresh), 20)
		}
		assert.Equal(t, 3.0, r.Count("often", time.Now()), "the most used stay")
		assert.Zero(t, r.Count("once20", time.Now()))
		wide := New(store, nil, time.Hour, 100)
		require.NoError(t, wide.Load())
		for i := range 50 {
			wide.Note(fmt.Sprint("wide", i), time.Now())
		}
		require.NoError(t, wide.Save(time.Now()))
		require.NoError(t, r.Load())
		assert.Len(t, r.known, 10)
		require.NoError(t, r.Save(time.Now()))
		assert.Len(t, r.known, 10)
		assert.Equal(t, 3.0, r.Count("often", time.Now()))
		time.Sleep(time.Hour)
		assert.InDelta(t, 1.5, r.Count("often", time.Now()), 1e-9)
	})
}
