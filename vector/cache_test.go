package vector

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
	store := new(keptFile)
	load := func(model string) *Cache { return LoadCache(store, model, slog.New(slog.DiscardHandler)) }
	keys := func(texts ...string) (list []Key) {
		for _, text := range texts {
			list = append(list, KeyOf("m", text))
		}
		return list
	}
	print := [32]byte{1}
	c := load("m")
	c.Put(KeyOf("m", "a"), []float32{1, 2, 3})
	c.Put(KeyOf("m", "b"), []float32{-4, 5, math.MaxFloat32 / 1e20})
	c.Put(KeyOf("m", "not wanted"), []float32{1, 1, 1})
	list := keys("a", "b", "a", "never embedded")
	require.NoError(t, c.Save(list, print, true))

	c = load("m")
	assert.Len(t, c.vectors, 2)
	assert.Equal(t, []float32{1, 2, 3}, c.Vector(KeyOf("m", "a")))
	assert.Equal(t, []float32{-4, 5, math.MaxFloat32 / 1e20}, c.Vector(KeyOf("m", "b")))
	assert.Nil(t, c.Vector(KeyOf("other", "a")))
	assert.True(t, c.Fresh(print))
	assert.False(t, c.Fresh([32]byte{2}))
	c.synced = time.Now().Add(-syncLifetime)
	assert.False(t, c.Fresh(print))

	before := store.data
	require.NoError(t, load("m").Save(list, print, true))
	assert.Equal(t, before, store.data, "nothing has changed")
	store.err = errors.New("no disk")
	assert.Empty(t, load("m").vectors)
	c.Put(KeyOf("m", "c"), []float32{1, 1, 1})
	assert.ErrorContains(t, c.Save(list, print, true), "no disk")
}

func FuzzVectorCache(f *testing.F) {
	store := new(keptFile)
	c := LoadCache(store, "m", nil)
	c.Put(KeyOf("m", "a"), []float32{1, 2})
	list := []Key{KeyOf("m", "a")}
	require.NoError(f, c.Save(list, [32]byte{1}, true))
	f.Add(store.data)
	f.Add(store.data[:len(store.data)-1])
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &Cache{vectors: make(map[Key][]float32)}
		if c.read(data) != nil {
			return
		}
		for _, v := range c.vectors {
			if err := Check(v, len(v)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A keptFile is a store in memory.
type keptFile struct {
	data []byte
	err  error
}

func (s *keptFile) Load() ([]byte, error) { return s.data, s.err }

func (s *keptFile) Save(data []byte) error {
	s.data = data
	return s.err
}
