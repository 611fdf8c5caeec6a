package vector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/search"
)

// A MemoryStore is a [Store] in memory. A search compares the query with every
// vector of the scope and never waits for changes. The zero value is an empty
// store.
type MemoryStore struct {
	mu     sync.Mutex // serializes changes
	scopes sync.Map   // *memoryScope by name
}

// A memoryScope is one scope. Searches use the rows published last.
type memoryScope struct {
	rows atomic.Pointer[vectorRows]
	at   map[string]int // row by ID; guarded by MemoryStore.mu
}

// vectorRows is one version of a scope. Versions share vectors and tools; each
// sees the first part of them. Each has its own states.
type vectorRows struct {
	dims    int       // length of the vectors; 0 until there is one
	vectors []float32 // dims elements a row; length 1, or all 0 for a row without a vector
	tools   []storedRow
	states  []rowState // by row

	words func() *search.Index // index of the texts of all rows, built on first use
}

// A storedRow is one record.
type storedRow struct {
	Record // without Text and Vector
	text   *search.Document
}

type rowState uint8

const (
	rowGone   rowState = iota // removed or replaced
	rowPlain                  // without a vector
	rowVector                 // with a vector
)

func (s *MemoryStore) scope(name string, make_ bool) *memoryScope {
	if sc, ok := s.scopes.Load(name); ok {
		return sc.(*memoryScope)
	}
	if !make_ {
		return nil
	}
	sc := &memoryScope{at: make(map[string]int)}
	sc.rows.Store(newRows(new(vectorRows)))
	s.scopes.Store(name, sc)
	return sc
}

// newRows returns r with words set to build the index on first use.
func newRows(r *vectorRows) *vectorRows {
	r.words = sync.OnceValue(func() *search.Index {
		docs := make([]*search.Document, len(r.tools))
		for i := range r.tools {
			docs[i] = r.tools[i].text
		}
		return search.NewIndex(docs, &search.Options{Ranker: search.RankerLexical})
	})
	return r
}

// Upsert implements [Store].
func (s *MemoryStore) Upsert(ctx context.Context, scope string, tools []Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	sc := s.scope(scope, true)
	old := sc.rows.Load()
	dims := old.dims
	units := make([][]float32, len(tools))
	for i, t := range tools {
		if t.Vector == nil {
			continue
		}
		var err error
		dims = cmp.Or(dims, len(t.Vector))
		if len(t.Vector) != dims {
			return fmt.Errorf("vector: record %q: %w: %d, not the %d of scope %q", t.ID, ErrDimensions, len(t.Vector), dims, scope)
		}
		if units[i], err = Unit(t.Vector); err != nil {
			return fmt.Errorf("vector: record %q: its vector: %w", t.ID, err)
		}
	}
	r := &vectorRows{dims: dims, vectors: old.vectors, tools: old.tools, states: slices.Clone(old.states)}
	if old.dims == 0 { // there may be rows without vectors
		r.vectors = make([]float32, dims*len(r.tools))
	}
	for i, t := range tools {
		if before, ok := sc.at[t.ID]; ok {
			r.states[before] = rowGone
		}
		sc.at[t.ID] = len(r.tools)
		r.add(t, units[i])
	}
	sc.publish(r)
	return nil
}

// add appends a record. unit is its vector scaled to length 1, or nil.
func (r *vectorRows) add(t Record, unit []float32) {
	doc := &search.Document{Server: t.Server, Name: t.ID, Description: t.Text}
	t.Text, t.Vector = "", nil
	r.tools = append(r.tools, storedRow{t, doc})
	if unit == nil {
		r.states = append(r.states, rowPlain)
		r.vectors = append(r.vectors, make([]float32, r.dims)...)
		return
	}
	r.states = append(r.states, rowVector)
	r.vectors = append(r.vectors, unit...)
}

// publish makes searches use r. If more than half of the rows are gone, and at
// least minGone, it first copies the others to new lists.
func (sc *memoryScope) publish(r *vectorRows) {
	if len(r.tools) > 2*len(sc.at)+minGone {
		c := &vectorRows{dims: r.dims}
		for i := range r.tools {
			if r.states[i] != rowGone {
				sc.at[r.tools[i].ID] = len(c.tools)
				c.tools, c.states = append(c.tools, r.tools[i]), append(c.states, r.states[i])
				c.vectors = append(c.vectors, r.vectors[i*r.dims:(i+1)*r.dims]...)
			}
		}
		r = c
	}
	if len(sc.at) == 0 {
		r = new(vectorRows) // an empty scope accepts any dimensions again
	}
	sc.rows.Store(newRows(r))
}

// Delete implements [Store].
func (s *MemoryStore) Delete(ctx context.Context, scope string, ids []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.scope(scope, false)
	if sc == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	r := *sc.rows.Load()
	r.states = slices.Clone(r.states)
	for _, id := range ids {
		if i, ok := sc.at[id]; ok {
			r.states[i] = rowGone
			delete(sc.at, id)
		}
	}
	sc.publish(&r)
	return nil
}

// Drop implements [Store].
func (s *MemoryStore) Drop(ctx context.Context, scope string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scopes.Delete(scope)
	return ctx.Err()
}

// Sums implements [Store].
func (s *MemoryStore) Sums(ctx context.Context, scope string) (map[string]string, error) {
	sums := make(map[string]string)
	if sc := s.scope(scope, false); sc != nil {
		r := sc.rows.Load()
		for i, t := range r.tools {
			if r.states[i] != rowGone {
				sums[t.ID] = t.Sum
			}
		}
	}
	return sums, ctx.Err()
}

// Get implements [Store].
func (s *MemoryStore) Get(ctx context.Context, scope string, ids []string) (found []Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.scope(scope, false)
	if sc == nil || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r := sc.rows.Load()
	for _, id := range ids {
		i, ok := sc.at[id]
		if !ok {
			continue
		}
		record := r.tools[i].Record
		if r.states[i] == rowVector {
			record.Vector = append(record.Vector, r.vectors[i*r.dims:(i+1)*r.dims]...)
		}
		found = append(found, record)
	}
	return found, nil
}

// Search implements [Store].
func (s *MemoryStore) Search(ctx context.Context, scope string, q Query) ([]Match, error) {
	return s.SearchFunc(ctx, scope, q, nil)
}

// SearchFunc is like [MemoryStore.Search]. If keep is not nil, it skips records
// for which keep returns false before it compares anything.
func (s *MemoryStore) SearchFunc(ctx context.Context, scope string, q Query, keep func(id string) bool) ([]Match, error) {
	candidates, err := q.Check()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	sc := s.scope(scope, false)
	if sc == nil {
		return nil, nil
	}
	return sc.rows.Load().search(q, candidates, keep)
}

func (r *vectorRows) search(q Query, candidates int, keep func(id string) bool) ([]Match, error) {
	passes := func(row int) bool {
		t := &r.tools[row]
		return (q.Servers == nil || slices.Contains(q.Servers, t.Server)) && (keep == nil || keep(t.ID))
	}
	var words, similar []Match
	if q.Words != "" {
		words = r.ranked(q.Words, candidates, func(row int) bool { return r.states[row] != rowGone && passes(row) })
	}
	if q.Vector != nil && r.dims > 0 {
		if len(q.Vector) != r.dims {
			return nil, fmt.Errorf("vector: the query: %w: %d, not %d", ErrDimensions, len(q.Vector), r.dims)
		}
		if q.Servers == nil && keep == nil {
			passes = nil // spare a call per row
		}
		unit, _ := Unit(q.Vector) // it was checked
		similar = r.nearest(unit, candidates, q.Least, passes)
	}
	alpha := q.Alpha
	switch {
	case q.Vector == nil:
		alpha = 0
	case q.Words == "":
		alpha = 1
	}
	return Fuse(words, similar, alpha, q.Limit), nil
}

// ranked returns the n best rows that pass by words, by descending score and
// then by ID.
func (r *vectorRows) ranked(query string, n int, passes func(row int) bool) []Match {
	n = min(n, len(r.tools))
	// The index orders equal scores by row, not by ID. So ask for one more, and
	// if its score equals that of the last, for all rows with that score.
	var hits []search.Match
	for limit := n + 1; ; limit *= 4 {
		hits = r.words().Search(query, limit, passes)
		if len(hits) < limit || hits[limit-1].Score < hits[n-1].Score {
			break
		}
	}
	var found []Match
	for _, m := range hits {
		found = append(found, Match{ID: r.tools[m.Doc].ID, Server: r.tools[m.Doc].Server, Words: m.Score})
	}
	sort.Slice(found, func(i, j int) bool {
		a, b := &found[i], &found[j]
		return a.Words > b.Words || a.Words == b.Words && a.ID < b.ID
	})
	return found[:min(n, len(found))]
}

// nearest returns the n rows most similar to unit, a vector of length 1, by
// descending similarity and then by ID. If passes is not nil, it skips rows for
// which passes returns false.
func (r *vectorRows) nearest(unit []float32, n int, least float64, passes func(row int) bool) []Match {
	var best []Match
	floor := float32(least)
	for row, state := range r.states {
		if state != rowVector || passes != nil && !passes(row) {
			continue
		}
		similarity := dot(unit, r.vectors[row*r.dims:(row+1)*r.dims])
		if similarity < floor || similarity <= 0 {
			continue
		}
		t := &r.tools[row]
		m := Match{ID: t.ID, Server: t.Server, Similarity: min(float64(similarity), 1)}
		i := sort.Search(len(best), func(i int) bool {
			return best[i].Similarity < m.Similarity || best[i].Similarity == m.Similarity && best[i].ID > m.ID
		})
		if i == n {
			continue
		}
		if len(best) < n {
			best = append(best, m)
		}
		copy(best[i+1:], best[i:])
		best[i] = m
		if len(best) == n {
			floor = max(floor, float32(best[n-1].Similarity))
		}
	}
	return best
}

// dot returns the inner product of two vectors of the same length. Eight
// separate sums let the processor add in parallel.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	i := 0
	for ; i+8 <= len(a); i += 8 {
		x, y := a[i:i+8:i+8], b[i:i+8:i+8]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		s4 += x[4] * y[4]
		s5 += x[5] * y[5]
		s6 += x[6] * y[6]
		s7 += x[7] * y[7]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + (s2 + s3) + (s4 + s5 + (s6 + s7))
}

// minGone is how many removed rows never trigger a copy in publish.
const minGone = 256
