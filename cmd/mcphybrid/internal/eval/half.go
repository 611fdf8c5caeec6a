package eval

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/usage"
)

// The halves of a corpus.
const (
	chosenHalf = "chosen" // to choose a way by
	asideHalf  = "aside"  // to report it on
)

// inHalf returns the queries of a half, or all if half is empty: those are kept aside whose
// text has an odd FNV-1a hash of 64 bits.
func inHalf(queries []query, half string) (list []query) {
	for _, q := range queries {
		h := fnv.New64a()
		h.Write([]byte(q.Query))
		if aside := h.Sum64()&1 == 1; half == "" || aside == (half == asideHalf) {
			list = append(list, q)
		}
	}
	return list
}

// otherHalf returns the half that is not this one.
func otherHalf(half string) string {
	if half == chosenHalf {
		return asideHalf
	}
	return chosenHalf
}

// A document is a store in memory.
type document struct{ data []byte }

func (d *document) Load() ([]byte, error)  { return d.data, nil }
func (d *document) Save(data []byte) error { d.data = data; return nil }

// learn starts the Manager, whose store of what was learned is doc, as if a session for each of
// these queries had used its relevant tools today.
func (s *subject) learn(doc *document, sessions []query) error {
	names := make(map[string]string, len(s.ids)) // registered, by id
	for _, t := range s.DeferredTools() {
		names[s.ids[[2]string{t.Server(), t.OriginalName()}]] = t.Name()
	}
	now := time.Now()
	r := usage.New(doc, nil, 30*24*time.Hour, 1000) // the defaults
	if err := r.Load(); err != nil {
		return err
	}
	for _, q := range sessions {
		for _, id := range q.Relevant {
			r.Note(names[id], now)
		}
	}
	if err := r.Save(now); err != nil {
		return err
	}
	return s.Start(context.Background())
}
