package mcphybrid

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/lazy"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// UsageOptions make the most used tools inline, instead of the first ones: see
// [Manager.Reorder].
type UsageOptions struct {
	// Store keeps the use of each tool from one run to the next. If nil, only
	// this run and Counts are known.
	Store Store

	// Counts is the use of tools that the host knows of: numbers of calls by
	// registered name. It is added to the stored use. Only finite positive
	// numbers count.
	Counts map[string]float64

	// HalfLife is the time after which a call counts half. If zero,
	// [DefaultHalfLife]. It must not be negative.
	HalfLife time.Duration
}

// DefaultHalfLife lets tools that nobody used for a few months fall behind.
const DefaultHalfLife = 30 * 24 * time.Hour

// maxUsed is how many tools we remember the use of: the most used.
const maxUsed = 10_000

// A usageRecord holds the use of each tool: the sum over its calls, where a call
// counts half after each half-life.
type usageRecord struct {
	store    Store
	counts   map[string]float64
	halfLife time.Duration

	loading, saving lazy.Task // they use the store

	mu     sync.Mutex
	loaded bool
	uses   map[string]use // by registered name
}

// A use is the use of a tool, as of a time.
type use struct {
	Count float64   `json:"count"`
	At    time.Time `json:"at"`
}

func newUsageRecord(o *UsageOptions) *usageRecord {
	if o == nil {
		return nil
	}
	if o.HalfLife < 0 {
		panic(fmt.Sprintf("mcphybrid: UsageOptions.HalfLife is %v, must not be negative", o.HalfLife))
	}
	return &usageRecord{store: o.Store, counts: maps.Clone(o.Counts), halfLife: cmp.Or(o.HalfLife, DefaultHalfLife), uses: make(map[string]use)}
}

// after returns the count of u at a later time.
func (r *usageRecord) after(u use, now time.Time) float64 {
	age := max(now.Sub(u.At), 0)
	return u.Count * math.Exp2(-float64(age)/float64(r.halfLife))
}

// note records a call.
func (r *usageRecord) note(name string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uses[name] = use{r.after(r.uses[name], now) + 1, now}
}

// order returns the rank of each used tool, from 1 for the most used. Tools of
// equal use are in the order of their names.
func (r *usageRecord) order(now time.Time) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := make(map[string]float64, len(r.uses))
	for name, n := range r.counts {
		if n > 0 && !math.IsInf(n, 0) {
			counts[name] = n
		}
	}
	for name, u := range r.uses {
		counts[name] += r.after(u, now)
	}
	names := mostUsed(counts)
	places := make(map[string]int, len(names))
	for i, name := range names {
		places[name] = i + 1
	}
	return places
}

func mostUsed(counts map[string]float64) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

// A storedUsage is the document in the store.
type storedUsage struct {
	Version int            `json:"version"`
	Tools   map[string]use `json:"tools"`
}

const usageVersion = 1

// load adds the stored use. After the first read of the store it does nothing. If
// the document is malformed, load returns an error and the record begins anew.
func (r *usageRecord) load() (err error) {
	if r.store != nil {
		r.loading.Do(func() { err = r.loadNow() })
	}
	return err
}

func (r *usageRecord) loadNow() error {
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
	uses, err := readUsage(data)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loaded = true
	for name, u := range uses {
		now := r.uses[name]
		at := now.At
		if u.At.After(at) {
			at = u.At
		}
		r.uses[name] = use{r.after(u, at) + r.after(now, at), at}
	}
	return err
}

func readUsage(data []byte) (map[string]use, error) {
	if data == nil {
		return nil, nil
	}
	var stored storedUsage
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, text.JSONError(data, err)
	}
	if stored.Version != usageVersion {
		return nil, fmt.Errorf("the document has version %d, want %d", stored.Version, usageVersion)
	}
	for name, u := range stored.Tools {
		if !(u.Count > 0 && u.Count < math.MaxFloat32) {
			return nil, fmt.Errorf("tool %q has the invalid count %v", text.Line(name, text.MaxName), u.Count)
		}
	}
	return stored.Tools, nil
}

// save stores the use of the most used tools. If another goroutine is doing so, it
// does it once more, and save returns nil at once.
func (r *usageRecord) save(now time.Time) (err error) {
	if r.store != nil {
		r.saving.Do(func() { err = r.saveNow(now) })
	}
	return err
}

func (r *usageRecord) saveNow(now time.Time) error {
	r.mu.Lock()
	loaded, uses := r.loaded, maps.Clone(r.uses)
	r.mu.Unlock()
	if !loaded {
		return nil
	}
	counts := make(map[string]float64, len(uses))
	for name, u := range uses {
		counts[name] = r.after(u, now)
	}
	stored := storedUsage{usageVersion, make(map[string]use)}
	for _, name := range mostUsed(counts)[:min(len(counts), maxUsed)] {
		stored.Tools[name] = uses[name]
	}
	data, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	return r.store.Save(data)
}
