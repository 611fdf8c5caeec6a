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

// A Key identifies a vector by its model and text. It is half a SHA-256 sum.
type Key [16]byte

// KeyOf returns the key of a text embedded by a model.
func KeyOf(model, text string) Key {
	sum := sha256.Sum256([]byte(model + "\x00" + text))
	return Key(sum[:16])
}

// A CacheStore keeps one blob, the content of a [Cache], between runs of a
// program. Its methods must be safe for concurrent use.
type CacheStore interface {
	// Load returns the data saved last, or nil if there is none yet.
	Load() ([]byte, error)

	// Save replaces the data. If it returns an error, the old data stays.
	Save(data []byte) error
}

// A Cache holds vectors by [Key] and keeps them between runs in a [CacheStore].
// It is not safe for concurrent use.
type Cache struct {
	store   CacheStore // may be nil
	model   string
	vectors map[Key][]float32
	print   [32]byte  // fingerprint of the records last sent to a Store
	synced  time.Time // when they were sent
	changed bool
}

// The saved data is this header and then, for each vector, its key and its
// elements. All numbers are little-endian.
type vectorHeader struct {
	Magic  [8]byte
	Print  [32]byte
	Synced int64 // Unix time in seconds; 0 if never in step
	Dims   uint32
	Count  uint32
}

var vectorMagic = [8]byte{'m', 'c', 'p', 'v', 'e', 'c', '0', '1'}

// LoadCache returns a cache with the vectors saved in store. If store is nil,
// the cache lives in memory only. If loading fails, LoadCache logs a warning and
// returns an empty cache.
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
		return errors.New("the data is not a vector cache of this version")
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

// syncLifetime is how long Fresh trusts that a Store still has its records.
const syncLifetime = 24 * time.Hour

// Fresh reports whether a [Store] held exactly the records with this
// fingerprint less than 24 hours ago, according to the data loaded at start.
func (c *Cache) Fresh(print [32]byte) bool {
	age := time.Since(c.synced)
	return c.print == print && age >= 0 && age < syncLifetime
}

// Vector returns the vector of key, or nil. The caller must not change it.
func (c *Cache) Vector(key Key) []float32 { return c.vectors[key] }

// Put adds a vector. The cache keeps v itself, not a copy.
func (c *Cache) Put(key Key, v []float32) {
	c.vectors[key], c.changed = v, true
}

// Save writes the vectors of keys to the cache's store and leaves out the
// others. If inStep is set, it records that a [Store] now has all records with
// this fingerprint. It writes nothing if nothing changed or there is no store.
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
