// Package usage records how much names are used: a use counts half after each
// half-life. A store keeps the record from one run of a program to the next. Several
// processes may share it: the uses of all count.
package usage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/lazy"
	"github.com/mcphybrid/mcphybrid/internal/storeguard"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/store"
)

// A Record holds the use of each name: the sum over its uses. It may be used
// concurrently.
type Record struct {
	store    store.Document // or nil
	counts   map[string]float64
	halfLife time.Duration
	most     int // names in the store: the most used; fresh has twice as many at most

	loading, saving lazy.Task // they use the store

	mu     sync.Mutex
	loaded bool
	alien  error          // why the store is left alone, or nil
	known  map[string]use // as the store had them last
	fresh  map[string]use // since then
	stored map[string]use // that were fresh, and are being stored
}

// A use is the use of a name, as of a time.
type use struct {
	Count float64   `json:"count"`
	At    time.Time `json:"at"`
}

// New returns a Record without uses. counts are added to what it records; only
// finite positive ones count. doc may be nil. The store keeps the most used names, up to
// that many, which must be positive. The Record itself has twice as many more at most.
func New(doc store.Document, counts map[string]float64, halfLife time.Duration, most int) *Record {
	return &Record{store: doc, counts: maps.Clone(counts), halfLife: halfLife, most: most, fresh: make(map[string]use)}
}

// after returns the count of u at a later time.
func (r *Record) after(u use, now time.Time) float64 {
	age := max(now.Sub(u.At), 0)
	return u.Count * math.Exp2(-float64(age)/float64(r.halfLife))
}

// Note records one use. If there are too many names, it forgets the less used half of
// those that are not stored yet.
func (r *Record) Note(name string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.fresh[name]; !ok && len(r.fresh) >= 2*r.most {
		r.fresh = r.mostUsed(r.fresh, now, r.most)
	}
	r.fresh[name] = use{r.after(r.fresh[name], now) + 1, now}
}

// Count returns the use of a name, without what New was given. It is 0 for one that was
// never used.
func (r *Record) Count(name string, now time.Time) (n float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, uses := range []map[string]use{r.known, r.stored, r.fresh} {
		if u, ok := uses[name]; ok {
			n += r.after(u, now)
		}
	}
	return n
}

// mostUsed returns the n most used of uses.
func (r *Record) mostUsed(uses map[string]use, now time.Time, n int) map[string]use {
	counts := make(map[string]float64, len(uses))
	for name, u := range uses {
		counts[name] = r.after(u, now)
	}
	most := make(map[string]use)
	for _, name := range inOrder(counts)[:min(len(counts), n)] {
		most[name] = uses[name]
	}
	return most
}

// Order returns the rank of each used name, from 1 for the most used. Names of
// equal use are in alphabetical order.
func (r *Record) Order(now time.Time) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := make(map[string]float64, len(r.known)+len(r.fresh))
	for name, n := range r.counts {
		if n > 0 && !math.IsInf(n, 0) {
			counts[name] = n
		}
	}
	for _, uses := range []map[string]use{r.known, r.stored, r.fresh} {
		for name, u := range uses {
			counts[name] += r.after(u, now)
		}
	}
	names := inOrder(counts)
	ranks := make(map[string]int, len(names))
	for i, name := range names {
		ranks[name] = i + 1
	}
	return ranks
}

// inOrder returns the names, the most used first, and those of equal use in alphabetical order.
func inOrder(counts map[string]float64) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

// A record is the document in the store.
type record struct {
	Version int            `json:"version"`
	Tools   map[string]use `json:"tools"`
}

const version = 1

// Load adds the stored use. After the first read of the store it does nothing. If the
// document is malformed, Load returns an error and the record begins anew. If only some of
// its uses are, it returns an error and adds the others.
func (r *Record) Load() (err error) {
	if r.store != nil {
		r.loading.Do(func() { err = r.load() })
	}
	return err
}

func (r *Record) load() error {
	r.mu.Lock()
	loaded := r.loaded
	r.mu.Unlock()
	if loaded {
		return nil
	}
	data, err := r.store.Load()
	if err != nil {
		return err
	}
	uses, err := parse(data)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loaded, r.known = true, r.mostUsed(uses, time.Now(), r.most)
	return r.noteLocked(err)
}

// noteLocked notes whether a read or a change of the store that returned err found a document
// of another version. It returns an error for people then, or else err.
func (r *Record) noteLocked(err error) error {
	r.alien = nil
	if errors.Is(err, errVersion) {
		r.alien = fmt.Errorf("%s is neither used nor changed: %w; name another one, or use the version of this program that has written it", storeguard.Name(r.store), err)
		return r.alien
	}
	return err
}

// Alien returns why the store is left alone: a version of the program that keeps other things has
// written its document. Else it returns nil.
func (r *Record) Alien() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alien
}

// sum returns the uses of both.
func (r *Record) sum(a, b map[string]use) map[string]use {
	all := make(map[string]use, len(a)+len(b))
	maps.Copy(all, a)
	for name, u := range b {
		now := all[name]
		at := now.At
		if u.At.After(at) {
			at = u.At
		}
		all[name] = use{r.after(u, at) + r.after(now, at), at}
	}
	return all
}

// errVersion means that a release that keeps more has written the document.
var errVersion = errors.New("the document has another version")

// parse returns the uses of a document. If some of them are invalid, it returns the others,
// and the error names the first.
func parse(data []byte) (uses map[string]use, err error) {
	if data == nil {
		return nil, nil
	}
	var doc record
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, text.JSONError(data, err)
	}
	if doc.Version != version {
		return nil, fmt.Errorf("%w: %d, want %d", errVersion, doc.Version, version)
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Tools)) {
		if n := doc.Tools[name].Count; !(n > 0 && n < math.MaxFloat32) {
			err = cmp.Or(err, fmt.Errorf("tool %q has the invalid count %v", text.Line(name, text.MaxName), n))
			delete(doc.Tools, name)
		}
	}
	return doc.Tools, err
}

// Save adds what was used since the last Save to the store, which keeps the most used
// names, unless the store has not been read. A document of another version stays as it is,
// and Save fails. If another goroutine is doing so, it does it
// once more, and Save returns nil at once.
func (r *Record) Save(now time.Time) (err error) {
	if r.store != nil {
		r.saving.Do(func() { err = r.save(now) })
	}
	return err
}

func (r *Record) save(now time.Time) error {
	r.mu.Lock()
	if !r.loaded || len(r.fresh) == 0 {
		r.mu.Unlock()
		return nil
	}
	fresh := r.fresh
	r.stored, r.fresh = fresh, make(map[string]use)
	r.mu.Unlock()
	known, err := r.add(fresh, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored = nil
	if err = r.noteLocked(err); err != nil {
		r.fresh = r.sum(fresh, r.fresh)
		return err
	}
	r.known = known
	return nil
}

// until returns uses without times after now, which came from a clock that was ahead: they
// would never decay, and all that follows would be as old as they are ahead.
func until(uses map[string]use, now time.Time) map[string]use {
	late := maps.Clone(uses)
	for name, u := range late {
		if u.At.After(now) {
			late[name] = use{u.Count, now}
		}
	}
	return late
}

// add adds uses to the store, and returns what it has then.
func (r *Record) add(fresh map[string]use, now time.Time) (map[string]use, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeguard.MaxWait)
	defer cancel()
	var known map[string]use
	err := storeguard.Update(ctx, r.store, func(data []byte) ([]byte, error) {
		before, err := parse(data)
		if errors.Is(err, errVersion) {
			return nil, err
		} // what is malformed begins anew
		known = r.mostUsed(r.sum(until(before, now), until(fresh, now)), now, r.most)
		return json.Marshal(record{version, known})
	})
	return known, err
}
