package mcphybrid

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

// A vectorKey names what a vector was made of: a model and a text.
type vectorKey [16]byte

func keyOf(model, text string) vectorKey {
	sum := sha256.Sum256([]byte(model + "\x00" + text))
	return vectorKey(sum[:16])
}

// A vectorCache is the vectors that were made, to be kept from one run to the
// next.
type vectorCache struct {
	store   Store // or nil
	model   string
	vectors map[vectorKey][]float32
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

// loadVectors reads what was stored. What cannot be read is made anew.
func loadVectors(store Store, model string, log *slog.Logger) *vectorCache {
	c := &vectorCache{store: store, model: model, vectors: make(map[vectorKey][]float32)}
	if store == nil {
		return c
	}
	data, err := store.Load()
	if err == nil && data != nil {
		err = c.read(data)
	}
	if err != nil {
		log.Warn("mcphybrid: stored vectors could not be loaded", "error", err)
		*c = vectorCache{store: store, model: model, vectors: make(map[vectorKey][]float32)}
	}
	return c
}

func (c *vectorCache) read(data []byte) error {
	var h vectorHeader
	n, err := binary.Decode(data, binary.LittleEndian, &h)
	if err != nil || h.Magic != vectorMagic {
		return errors.New("it has no vectors, or another version's")
	}
	size := len(vectorKey{}) + 4*int(h.Dims)
	if data = data[n:]; h.Count > 0 && h.Dims == 0 || uint64(len(data)) != uint64(h.Count)*uint64(size) {
		return fmt.Errorf("it has %d bytes for %d vectors of %d dimensions", len(data), h.Count, h.Dims)
	}
	for ; len(data) > 0; data = data[size:] {
		v := make([]float32, h.Dims)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[len(vectorKey{})+4*i:]))
		}
		key := vectorKey(data)
		if err := checkVector(v, int(h.Dims)); err != nil {
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
func (c *vectorCache) fresh(print [32]byte) bool {
	age := time.Since(c.synced)
	return c.print == print && age >= 0 && age < syncLifetime
}

func (c *vectorCache) vector(key vectorKey) []float32 { return c.vectors[key] }

func (c *vectorCache) put(key vectorKey, v []float32) {
	c.vectors[key], c.changed = v, true
}

// save stores the vectors of the wanted tools, and whether the vector store has
// them all.
func (c *vectorCache) save(wanted []wantedTool, print [32]byte, inStep bool) error {
	if c.store == nil || !c.changed && (!inStep || c.fresh(print)) {
		return nil
	}
	h := vectorHeader{Magic: vectorMagic}
	if inStep {
		h.Print, h.Synced = print, time.Now().Unix()
	}
	var body []byte
	seen := make(map[vectorKey]bool)
	for _, w := range wanted {
		v := c.vectors[w.vectorKey]
		h.Dims = cmp.Or(h.Dims, uint32(len(v)))
		if v == nil || seen[w.vectorKey] || len(v) != int(h.Dims) {
			continue
		}
		seen[w.vectorKey] = true
		h.Count++
		body = append(body, w.vectorKey[:]...)
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

func fingerprintOf(wanted []wantedTool) [32]byte {
	h := sha256.New()
	for _, w := range wanted {
		fmt.Fprintf(h, "%d:%s%s", len(w.ID), w.ID, w.Sum)
	}
	return [32]byte(h.Sum(nil))
}
