package vector

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVectorCache(t *testing.T) {
	store := new(mcptest.Store)
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
	assert.Equal(t, 3, c.Len())
	assert.Equal(t, []float32{1, 2, 3}, c.Vector(KeyOf("m", "a")))
	assert.Equal(t, []float32{-4, 5, math.MaxFloat32 / 1e20}, c.Vector(KeyOf("m", "b")))
	assert.Nil(t, c.Vector(KeyOf("other", "a")))
	assert.True(t, c.Fresh(print))
	assert.False(t, c.Fresh([32]byte{2}))
	c.synced = time.Now().Add(-DefaultTrust)
	assert.False(t, c.Fresh(print))
	c.Trust += time.Minute
	assert.True(t, c.Fresh(print))

	before := store.Data
	require.NoError(t, load("m").Save(list, print, true))
	assert.Equal(t, before, store.Data, "nothing has changed")
	store.Err = errors.New("no disk")
	assert.Zero(t, load("m").Len())
	c.Put(KeyOf("m", "c"), []float32{1, 1, 1})
	assert.ErrorContains(t, c.Save(list, print, true), "no disk")
}

// A cache that could not be loaded replaces nothing. What it has learned is saved with what is
// stored, when that can be loaded.
func TestVectorCacheThatIsLoadedLate(t *testing.T) {
	t.Parallel()
	store := new(mcptest.Store)
	a, b, print := KeyOf("m", "a"), KeyOf("m", "b"), [32]byte{1}
	c := LoadCache(store, "m", nil)
	c.Put(a, []float32{1, 2})
	c.Put(b, []float32{3, 4})
	require.NoError(t, c.Save([]Key{a, b}, print, true))
	stored := store.Data

	store.Err = errors.New("no disk")
	c = LoadCache(store, "m", nil)
	c.Put(b, []float32{5, 6})
	assert.EqualError(t, c.Save([]Key{b}, print, true), "keeping the vectors: loading those that are stored: no disk")
	store.Err = nil
	assert.Equal(t, stored, store.Data)
	require.NoError(t, c.Save([]Key{b}, print, true))
	c = LoadCache(store, "m", nil)
	assert.Equal(t, [][]float32{{1, 2}, {5, 6}}, [][]float32{c.Vector(a), c.Vector(b)})

	store.Data = []byte("what nobody can read")
	c = LoadCache(store, "m", nil)
	c.Put(a, []float32{1, 2})
	require.NoError(t, c.Save([]Key{a}, print, true), "it is replaced")
	assert.Equal(t, 1, LoadCache(store, "m", nil).Len())
}

// A vector that nothing wants any more stays for 30 days. What is wanted each day is
// written each day, so it never seems old.
func TestUnwantedVectorsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(mcptest.Store)
		wanted, unwanted := KeyOf("m", "wanted"), KeyOf("m", "unwanted")
		c := LoadCache(store, "m", nil)
		c.Put(wanted, []float32{1, 2})
		c.Put(unwanted, []float32{3, 4})
		require.NoError(t, c.Save([]Key{wanted, unwanted}, [32]byte{}, false))
		for range 30 {
			time.Sleep(24 * time.Hour)
			before := store.Data
			for range 2 { // a change a day
				require.NoError(t, LoadCache(store, "m", nil).Save([]Key{wanted}, [32]byte{}, false))
			}
			assert.NotEqual(t, before, store.Data)
			assert.Equal(t, []float32{3, 4}, LoadCache(store, "m", nil).Vector(unwanted))
		}
		time.Sleep(24 * time.Hour)
		require.NoError(t, LoadCache(store, "m", nil).Save([]Key{wanted}, [32]byte{}, false))
		assert.Nil(t, LoadCache(store, "m", nil).Vector(unwanted))
		assert.Equal(t, []float32{1, 2}, LoadCache(store, "m", nil).Vector(wanted))
	})
}

// A full cache keeps what is wanted, and then what was wanted last.
func TestFullVectorCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(mcptest.Store)
		key := func(i int) Key { return KeyOf("m", fmt.Sprint(i)) }
		var log bytes.Buffer
		c := LoadCache(store, "m", slog.New(slog.NewTextHandler(&log, nil)))
		c.limit = binary.Size(vectorHeader{}) + 10*(cacheKeyBytes+8)
		for i := range 20 {
			c.Put(key(i), []float32{float32(i + 1), 0})
			if i%5 == 4 {
				time.Sleep(24 * time.Hour)
			}
		}
		require.NoError(t, c.Save([]Key{key(0), key(1)}, [32]byte{}, false))
		assert.Contains(t, log.String(), `"left out"=10`)
		assert.LessOrEqual(t, len(store.Data), c.limit)
		c = LoadCache(store, "m", nil)
		assert.Equal(t, 10, c.Len())
		for _, i := range []int{0, 1, 15, 16, 17, 18, 19} {
			assert.Equal(t, []float32{float32(i + 1), 0}, c.Vector(key(i)), "%d", i)
		}
		for i := 2; i < 10; i++ {
			assert.Nil(t, c.Vector(key(i)), "%d", i)
		}
	})
}

// Vectors without dimensions are none.
func TestVectorCacheWithoutDimensions(t *testing.T) {
	for count, want := range map[uint32]string{0: "", 1: "its vectors have 0 dimensions", 2: "its vectors have 0 dimensions"} {
		h := vectorHeader{Magic: vectorMagic, Count: count}
		data, err := binary.Append(nil, binary.LittleEndian, h)
		require.NoError(t, err)
		var log bytes.Buffer
		LoadCache(&mcptest.Store{Data: append(data, make([]byte, int(count)*cacheKeyBytes)...)}, "m", slog.New(slog.NewTextHandler(&log, nil)))
		if want == "" {
			assert.Empty(t, log.String())
		} else {
			assert.Contains(t, log.String(), want)
		}
	}
}

// Sizes that overflow when they are multiplied reserve nothing and crash nothing.
func TestCraftedVectorCache(t *testing.T) {
	for _, h := range []vectorHeader{
		{Dims: 4294705156, Count: 1073807362}, // 64 bytes modulo 2^64
		{Dims: math.MaxUint32, Count: math.MaxUint32},
		{Dims: math.MaxUint32, Count: 1},
		{Dims: 1, Count: math.MaxUint32},
		{Count: 1},
		{Dims: 1 << 30},
	} {
		h.Magic = vectorMagic
		data, err := binary.Append(nil, binary.LittleEndian, h)
		require.NoError(t, err)
		var log bytes.Buffer
		c := LoadCache(&mcptest.Store{Data: append(data, make([]byte, 64)...)}, "m", slog.New(slog.NewTextHandler(&log, nil)))
		assert.Zero(t, c.Len())
		assert.Contains(t, log.String(), "could not be loaded")
	}
}

func FuzzVectorCache(f *testing.F) {
	store := new(mcptest.Store)
	c := LoadCache(store, "m", nil)
	c.Put(KeyOf("m", "a"), []float32{1, 2})
	list := []Key{KeyOf("m", "a")}
	require.NoError(f, c.Save(list, [32]byte{1}, true))
	f.Add(store.Data)
	f.Add(store.Data[:len(store.Data)-1])
	f.Fuzz(func(t *testing.T, data []byte) {
		store := &mcptest.Store{Data: data}
		c := LoadCache(store, "m", nil)
		var keys []Key
		for key := range c.entries {
			if v := c.Vector(key); v != nil {
				keys = append(keys, key)
				if err := Check(v, len(v)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := c.Save(keys, [32]byte{1}, true); err != nil {
			t.Fatal(err)
		}
		if n := LoadCache(store, "m", nil).Len(); n < len(keys) {
			t.Fatalf("%d of %d vectors were saved", n, len(keys))
		}
	})
}
