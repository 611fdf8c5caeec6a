package mcphybrid

import (
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVectorCache(t *testing.T) {
	store := new(aStore)
	load := func(model string) *vectorCache { return loadVectors(store, model, slog.New(slog.DiscardHandler)) }
	wanted := func(texts ...string) (list []wantedTool) {
		for _, text := range texts {
			list = append(list, wantedTool{StoredTool{ID: text, Sum: text}, keyOf("m", text)})
		}
		return list
	}
	c := load("m")
	c.put(keyOf("m", "a"), []float32{1, 2, 3})
	c.put(keyOf("m", "b"), []float32{-4, 5, math.MaxFloat32 / 1e20})
	c.put(keyOf("m", "not wanted"), []float32{1, 1, 1})
	list := wanted("a", "b", "a", "never embedded")
	require.NoError(t, c.save(list, fingerprintOf(list), true))

	c = load("m")
	assert.Len(t, c.vectors, 2)
	assert.Equal(t, []float32{1, 2, 3}, c.vector(keyOf("m", "a")))
	assert.Equal(t, []float32{-4, 5, math.MaxFloat32 / 1e20}, c.vector(keyOf("m", "b")))
	assert.Nil(t, c.vector(keyOf("other", "a")))
	assert.True(t, c.fresh(fingerprintOf(list)))
	assert.False(t, c.fresh(fingerprintOf(list[:1])))
	c.synced = time.Now().Add(-syncLifetime)
	assert.False(t, c.fresh(fingerprintOf(list)))

	before := store.data
	require.NoError(t, load("m").save(list, fingerprintOf(list), true))
	assert.Equal(t, before, store.data, "nothing has changed")
	store.err = errors.New("no disk")
	assert.Empty(t, load("m").vectors)
	c.put(keyOf("m", "c"), []float32{1, 1, 1})
	assert.ErrorContains(t, c.save(list, fingerprintOf(list), true), "no disk")
}

func FuzzVectorCache(f *testing.F) {
	store := new(aStore)
	c := loadVectors(store, "m", nil)
	c.put(keyOf("m", "a"), []float32{1, 2})
	list := []wantedTool{{StoredTool{ID: "a"}, keyOf("m", "a")}}
	require.NoError(f, c.save(list, fingerprintOf(list), true))
	f.Add(store.data)
	f.Add(store.data[:len(store.data)-1])
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &vectorCache{vectors: make(map[vectorKey][]float32)}
		if c.read(data) != nil {
			return
		}
		for _, v := range c.vectors {
			if err := checkVector(v, len(v)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
