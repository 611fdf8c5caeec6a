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
		r := New(nil, nil, time.Hour)
		for range 4 {
			r.Note("often", time.Now())
		}
		time.Sleep(time.Hour)
		r.Note("b", time.Now())
		r.Note("a", time.Now())
		assert.Equal(t, map[string]int{"often": 1, "a": 2, "b": 3}, r.Order(time.Now()))
		assert.InDelta(t, 2, r.after(r.uses["often"], time.Now()), 1e-9)
		time.Sleep(2 * time.Hour)
		r.Note("a", time.Now())
		assert.Equal(t, map[string]int{"a": 1, "often": 2, "b": 3}, r.Order(time.Now()), "1.25, 0.5, 0.25")
	})
}

func TestCountsAreAdded(t *testing.T) {
	t.Parallel()
	counts := map[string]float64{"a": 1.5, "b": 0.5, "none": 0, "less": -1, "endless": math.Inf(1), "nan": math.NaN()}
	r := New(nil, counts, time.Hour)
	counts["late"] = 9
	r.Note("b", time.Now())
	r.Note("c", time.Now())
	assert.Equal(t, map[string]int{"a": 1, "b": 2, "c": 3}, r.Order(time.Now()))
}

func TestRecordIsKept(t *testing.T) {
	t.Parallel()
	broken := map[string]string{
		"{": "unexpected end", `{"version":2}`: "the document has version 2, want 1",
		`{"version":1,"tools":{"x":{"count":-1,"at":"2026-01-01T00:00:00Z"}}}`: `tool "x" has the invalid count -1`,
	}
	for data, want := range broken {
		_, err := parse([]byte(data))
		assert.ErrorContains(t, err, want)
	}
	store := &mcptest.Store{Err: errors.New("the disk is full")}
	r := New(store, nil, time.Hour)
	assert.ErrorContains(t, r.Load(), "the disk is full")
	r.Note("x", time.Now())
	assert.NoError(t, r.Save(time.Now()), "what could not be read is not written over")
	assert.Nil(t, store.Data)
	store.Err = nil
	require.NoError(t, r.Load())
	for i := range maxStored + 5 {
		r.Note(fmt.Sprint("tool", i), time.Now())
	}
	require.NoError(t, r.Save(time.Now()))
	var doc stored
	require.NoError(t, json.Unmarshal(store.Data, &doc))
	assert.Len(t, doc.Tools, maxStored)

	again := New(store, nil, time.Hour)
	require.NoError(t, again.Load())
	assert.Len(t, again.Order(time.Now()), maxStored)
}

// What was recorded before the store was read is added to what it has.
func TestLoadAdds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := new(mcptest.Store)
		first := New(store, nil, time.Hour)
		require.NoError(t, first.Load())
		first.Note("a", time.Now())
		first.Note("a", time.Now())
		require.NoError(t, first.Save(time.Now()))
		time.Sleep(time.Hour)
		second := New(store, nil, time.Hour)
		second.Note("a", time.Now())
		require.NoError(t, second.Load())
		require.NoError(t, second.Load(), "once is enough")
		assert.InDelta(t, 2, second.after(second.uses["a"], time.Now()), 1e-9)
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"tools":{"x":{"count":1.5,"at":"2026-01-01T00:00:00Z"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		uses, err := parse(data)
		if err != nil && uses != nil {
			t.Error("an error, and uses")
		}
		for name, u := range uses {
			if !(u.Count > 0) {
				t.Errorf("%q was used %v times", name, u.Count)
			}
		}
	})
}
