package vector

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sort"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
)

// A Key identifies a vector by its model and text. It is half a SHA-256 sum.
type Key [16]byte

// KeyOf returns the key of a text embedded by a model.
func KeyOf(model, text string) Key {
	sum := sha256.Sum256([]byte(model + "\x00" + text))
	return Key(sum[:16])
}

// A Cache holds vectors by [Key] and keeps them between runs in a [store.Document]. It
// is not safe for concurrent use.
//
// A vector that is no longer wanted stays for 30 days: its server may only be down.
// The saved data has at most 256 MiB. If there is more, the vectors that were
// wanted last stay.
type Cache struct {
	// Trust is how long [Cache.Fresh] relies on what a [Store] was sent.
	// [LoadCache] sets it to [DefaultTrust].
	Trust time.Duration

	saved   store.Document // may be nil
	model   string
	log     *slog.Logger
	entries map[Key]cacheEntry
	print   [32]byte  // fingerprint of the records last sent to a Store
	synced  time.Time // when they were sent
	changed bool
	unread  bool // the saved data could not be loaded so far
	limit   int  // bytes of the saved data
}

// A cacheEntry is one vector, either decoded or as it was saved.
type cacheEntry struct {
	vector []float32 // nil until decoded
	saved  []byte    // part of the loaded data; nil for a new vector
	wanted uint32    // when it was last wanted, in days since 1970
}

const (
	maxCacheBytes = 256 << 20 // twice what 10,000 vectors of 3,072 dimensions take
	maxCacheDims  = 1 << 24   // so that sizes can't overflow
	maxUnwanted   = 30        // days
)

// The saved data is this header and then, for each vector, its key, the day when it
// was last wanted, and its elements. All numbers are little-endian.
type vectorHeader struct {
	Magic  [8]byte
	Print  [32]byte
	Synced int64 // Unix time in seconds; 0 if never in step
	Dims   uint32
	Count  uint32
}

// headerBytes is the size of the header. Where its fields stand is written out below:
// encoding/binary would link reflection, 37 KB in every host.
const headerBytes = 56

func (h *vectorHeader) encode(data []byte) {
	copy(data, h.Magic[:])
	copy(data[8:], h.Print[:])
	binary.LittleEndian.PutUint64(data[40:], uint64(h.Synced))
	binary.LittleEndian.PutUint32(data[48:], h.Dims)
	binary.LittleEndian.PutUint32(data[52:], h.Count)
}

func (h *vectorHeader) decode(data []byte) {
	copy(h.Magic[:], data)
	copy(h.Print[:], data[8:])
	h.Synced = int64(binary.LittleEndian.Uint64(data[40:]))
	h.Dims = binary.LittleEndian.Uint32(data[48:])
	h.Count = binary.LittleEndian.Uint32(data[52:])
}

// cacheKeyBytes is the size of a vector without its elements.
const cacheKeyBytes = len(Key{}) + 4

var vectorMagic = [8]byte{'m', 'c', 'p', 'v', 'e', 'c', '0', '2'}

// LoadCache returns a cache with the vectors saved in doc. If doc is nil, the
// cache lives in memory only. If loading fails, LoadCache logs a warning, which names
// model, and returns an empty cache. log may be nil.
func LoadCache(doc store.Document, model string, log *slog.Logger) *Cache {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Cache{Trust: DefaultTrust, saved: doc, model: model, log: log, entries: make(map[Key]cacheEntry), limit: maxCacheBytes, unread: doc != nil}
	if err := c.load(); err != nil {
		c.warn(err)
	}
	return c
}

func (c *Cache) warn(err error) {
	c.log.Warn("vector: stored vectors could not be loaded", "model", c.model, "error", err)
}

// load adds the saved vectors, unless it did. What can't be read is as good as not saved.
func (c *Cache) load() error {
	if !c.unread {
		return nil
	}
	data, err := c.saved.Load()
	if err != nil {
		return err
	}
	c.unread = false
	if data != nil {
		if err := c.read(data); err != nil {
			c.warn(err)
		}
	}
	return nil
}

// read takes the vectors from saved data, which it keeps, unless there are newer ones. They are
// decoded when they are asked for.
func (c *Cache) read(data []byte) error {
	var h vectorHeader
	if len(data) >= headerBytes {
		h.decode(data)
	}
	if h.Magic != vectorMagic {
		return errors.New("the data is not a vector cache of this version")
	}
	if h.Dims > maxCacheDims || h.Dims == 0 && h.Count > 0 {
		return fmt.Errorf("its vectors have %d dimensions", h.Dims)
	}
	size := cacheKeyBytes + 4*int(h.Dims)
	if data = data[headerBytes:]; uint64(len(data)) != uint64(h.Count)*uint64(size) {
		return fmt.Errorf("it has %d bytes for %d vectors of %d dimensions", len(data), h.Count, h.Dims)
	}
	for ; len(data) > 0; data = data[size:] {
		if _, ok := c.entries[Key(data)]; !ok {
			day := binary.LittleEndian.Uint32(data[len(Key{}):])
			c.entries[Key(data)] = cacheEntry{saved: data[cacheKeyBytes:size:size], wanted: min(day, today())}
		}
	}
	c.print, c.synced = h.Print, time.Unix(h.Synced, 0)
	return nil
}

func today() uint32 { return uint32(time.Now().Unix() / (24 * 60 * 60)) }

// DefaultTrust is long enough that restarts within a day read nothing.
const DefaultTrust = 24 * time.Hour

// Fresh reports whether a [Store] held exactly the records with this
// fingerprint less than [Cache.Trust] ago, according to the data loaded at start.
func (c *Cache) Fresh(print [32]byte) bool {
	age := time.Since(c.synced)
	return c.print == print && age >= 0 && age < c.Trust
}

// Vector returns the vector of key, or nil. The caller must not change it.
func (c *Cache) Vector(key Key) []float32 {
	e, ok := c.entries[key]
	if !ok || e.vector != nil {
		return e.vector
	}
	v := make([]float32, len(e.saved)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(e.saved[4*i:]))
	}
	if Check(v, len(v)) != nil {
		delete(c.entries, key)
		return nil
	}
	return v
}

// Put adds a vector. The cache keeps v itself, not a copy.
func (c *Cache) Put(key Key, v []float32) {
	c.entries[key], c.changed = cacheEntry{vector: v, wanted: today()}, true
}

// Save writes the vectors to the cache's store. wanted are the keys of the vectors
// that are in use. If inStep is set, Save records that a [Store] now has all records
// with this fingerprint. It writes nothing if nothing changed today or there is no
// store. If loading failed, Save tries again: it does not replace what it could not load.
func (c *Cache) Save(wanted []Key, print [32]byte, inStep bool) error {
	if err := c.load(); err != nil {
		return fmt.Errorf("keeping the vectors: loading those that are stored: %w", err)
	}
	now := today()
	for _, key := range wanted {
		if e, ok := c.entries[key]; ok && e.wanted != now {
			e.wanted = now
			c.entries[key], c.changed = e, true
		}
	}
	if c.saved == nil || !c.changed && (!inStep || c.Fresh(print)) {
		return nil
	}
	h := vectorHeader{Magic: vectorMagic}
	if inStep {
		h.Print, h.Synced = print, time.Now().Unix()
	}
	data := c.append(make([]byte, headerBytes), &h, c.ranked(wanted))
	h.encode(data)
	if err := c.saved.Save(data); err != nil {
		return fmt.Errorf("keeping the vectors: %w", err)
	}
	c.changed = false
	if inStep {
		c.print, c.synced = h.Print, time.Unix(h.Synced, 0)
	}
	return nil
}

// ranked returns the keys to save: wanted in its order, then those that were wanted
// lately, the last first.
func (c *Cache) ranked(wanted []Key) []Key {
	keys := make([]Key, 0, len(c.entries))
	seen := make(map[Key]bool, len(c.entries))
	for _, key := range wanted {
		if _, ok := c.entries[key]; ok && !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	first := len(keys)
	now := today()
	for key, e := range c.entries {
		if !seen[key] && e.wanted+maxUnwanted >= now {
			keys = append(keys, key)
		}
	}
	others := keys[first:]
	sort.Slice(others, func(i, j int) bool {
		a, b := others[i], others[j]
		return cmp.Or(cmp.Compare(c.entries[b].wanted, c.entries[a].wanted), bytes.Compare(a[:], b[:])) < 0
	})
	return keys
}

// append appends the vectors of keys to data, as many as fit, and sets their number
// and length in h. All have the length of the first.
func (c *Cache) append(data []byte, h *vectorHeader, keys []Key) []byte {
	for i, key := range keys {
		e := c.entries[key]
		dims := max(len(e.vector), len(e.saved)/4)
		if h.Dims = cmp.Or(h.Dims, uint32(dims)); dims != int(h.Dims) {
			continue
		}
		if len(data)+cacheKeyBytes+4*dims > c.limit {
			c.log.Warn("vector: the cache is full", "vectors", i, "left out", len(keys)-i, "limit", c.limit)
			break
		}
		h.Count++
		data = append(data, key[:]...)
		data = binary.LittleEndian.AppendUint32(data, e.wanted)
		data = append(data, e.saved...)
		for _, x := range e.vector {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
	}
	return data
}

// Len returns the number of vectors.
func (c *Cache) Len() int { return len(c.entries) }
