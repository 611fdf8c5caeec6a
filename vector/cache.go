package vector

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"
)

// A Key names what a vector was made of: a model and a text.
type Key [16]byte

// KeyOf returns the key of a text that a model embeds.
func KeyOf(model, text string) Key {
	sum := sha256.Sum256([]byte(model + "\x00" + text))
	return Key(sum[:16])
}

// A CacheStore keeps one document, the cache, from one run of a program to the
// next. Its methods may be called concurrently.
type CacheStore interface {
	// Load returns the document that was saved last, or nil if none was yet.
	Load() ([]byte, error)

	// Save replaces the document by data, or changes nothing and returns an
	// error.
	Save(data []byte) error
}

// A Cache is the vectors that were made, to be kept from one run to the
// next.
type Cache struct {
	store   CacheStore // or nil
	model   string
	vectors map[Key][]float32
	print   [32]byte  // of the tools that a vector store had
	synced  time.Time // when it had them
	changed bool
}

// A store's document is this header and then, for each vector, its key and its
// elements; all numbers are little-endian.
type vectorHeader struct {
	Magic  [8]byte
	Print  [32]byte
	Synced int64 // Unix time; 0 if it was not in step
	Dims   uint32
	Count  uint32
}

var vectorMagic = [8]byte{'m', 'c', 'p', 'v', 'e', 'c', '0', '1'}

// LoadCache reads what was stored. What cannot be read is made anew.
func LoadCache(store CacheStore, model string, log *slog.Logger) *Cache {
	c := &Cache{store: store, model: model, vectors: make(map[Key][]float32)}
	if store == nil {
		return c
	}
	data, err := store.Load()
	if err == nil && data != nil {
		err = c.read(data)
	}
	if err != nil {
		log.Warn("vector: stored vectors could not be loaded", "error", err)
		*c = Cache{store: store, model: model, vectors: make(map[Key][]float32)}
	}
	return c
}

func (c *Cache) read(data []byte) error {
	var h vectorHeader
	n, err := binary.Decode(data, binary.LittleEndian, &h)
	if err != nil || h.Magic != vectorMagic {
		return errors.New("it has no vectors, or another version's")
	}
	size := len(Key{}) + 4*int(h.Dims)
	if data = data[n:]; h.Count > 0 && h.Dims == 0 || uint64(len(data)) != uint64(h.Count)*uint64(size) {
		return fmt.Errorf("it has %d bytes for %d vectors of %d dimensions", len(data), h.Count, h.Dims)
	}
	for ; len(data) > 0; data = data[size:] {
		v := make([]float32, h.Dims)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[len(Key{})+4*i:]))
		}
		key := Key(data)
		if err := Check(v, int(h.Dims)); err != nil {
			return fmt.Errorf("vector %s: %w", hex.EncodeToString(key[:]), err)
		}
		c.vectors[key] = v
	}
	c.print, c.synced = h.Print, time.Unix(h.Synced, 0)
	return nil
}

// syncLifetime is how long a vector store is taken to have what it was given.
const syncLifetime = 24 * time.Hour

// fresh reports whether the store had just these tools not long ago.
func (c *Cache) Fresh(print [32]byte) bool {
	age := time.Since(c.synced)
	return c.print == print && age >= 0 && age < syncLifetime
}

// vector returns the vector of a key, or nil. It must not be changed.
func (c *Cache) Vector(key Key) []float32 { return c.vectors[key] }

// put keeps a vector.
func (c *Cache) Put(key Key, v []float32) {
	c.vectors[key], c.changed = v, true
}

// save keeps the vectors of the given keys and gives up the others. If inStep,
// it notes that the vector store has all records of that print now.
func (c *Cache) Save(keys []Key, print [32]byte, inStep bool) error {
	if c.store == nil || !c.changed && (!inStep || c.Fresh(print)) {
		return nil
	}
	h := vectorHeader{Magic: vectorMagic}
	if inStep {
		h.Print, h.Synced = print, time.Now().Unix()
	}
	var body []byte
	seen := make(map[Key]bool)
	for _, key := range keys {
		v := c.vectors[key]
		h.Dims = cmp.Or(h.Dims, uint32(len(v)))
		if v == nil || seen[key] || len(v) != int(h.Dims) {
			continue
		}
		seen[key] = true
		h.Count++
		body = append(body, key[:]...)
		for _, x := range v {
			body = binary.LittleEndian.AppendUint32(body, math.Float32bits(x))
		}
	}
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, h) // a buffer takes anything
	b.Write(body)
	if err := c.store.Save(b.Bytes()); err != nil {
		return fmt.Errorf("keeping the vectors: %w", err)
	}
	return nil
}

// Len returns the number of vectors.
func (c *Cache) Len() int { return len(c.vectors) }
