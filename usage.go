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

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// UsageOptions have the tools inline that are used most, instead of the first:
// see [Manager.Reorder].
type UsageOptions struct {
	// Store keeps from one run to the next how much each tool was used. If nil,
	// only this run and Counts are known.
	Store Store

	// Counts is what the host knows of the use of tools, by registered name, in
	// calls. It is added to what is stored.
	Counts map[string]float64

	// HalfLife is after how long a call counts half. If zero,
	// [DefaultHalfLife].
	HalfLife time.Duration
}

// DefaultHalfLife lets what was not used for a few months fall behind.
const DefaultHalfLife = 30 * 24 * time.Hour

// maxUsed is of how many tools the use is remembered: the most used.
const maxUsed = 10_000

// A usageRecord is how much tools were used: the sum over their calls, each
// half as much after each half-life.
type usageRecord struct {
	store    Store
	counts   map[string]float64
	halfLife time.Duration

	storing sync.Mutex // held while the store is used
	loaded  bool       // guarded by storing

	mu   sync.Mutex
	uses map[string]use // by registered name
}

// A use is what a tool was used at a time.
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

// after returns what u counts at a later time.
func (r *usageRecord) after(u use, now time.Time) float64 {
	age := max(now.Sub(u.At), 0)
	return u.Count * math.Exp2(-float64(age)/float64(r.halfLife))
}

// note adds a call.
func (r *usageRecord) note(name string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uses[name] = use{r.after(r.uses[name], now) + 1, now}
}

// order returns the place of each tool that was used among the most used, from
// 1; of equal use, by name.
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

// A storedUsage is what is stored.
type storedUsage struct {
	Version int            `json:"version"`
	Tools   map[string]use `json:"tools"`
}

const usageVersion = 1

// load adds what was stored, until that succeeds once. What can't be read is
// begun anew.
func (r *usageRecord) load() error {
	r.storing.Lock()
	defer r.storing.Unlock()
	if r.store == nil || r.loaded {
		return nil
	}
	data, err := r.store.Load()
	if err != nil {
		return err
	}
	r.loaded = true
	uses, err := readUsage(data)
	r.mu.Lock()
	defer r.mu.Unlock()
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
		return nil, fmt.Errorf("it is of version %d, not %d", stored.Version, usageVersion)
	}
	for name, u := range stored.Tools {
		if !(u.Count > 0 && u.Count < math.MaxFloat32) {
			return nil, fmt.Errorf("tool %q was used %v times", text.Line(name, text.MaxName), u.Count)
		}
	}
	return stored.Tools, nil
}

// save stores the most used.
func (r *usageRecord) save(now time.Time) error {
	r.storing.Lock()
	defer r.storing.Unlock()
	if r.store == nil || !r.loaded {
		return nil
	}
	r.mu.Lock()
	uses := maps.Clone(r.uses)
	r.mu.Unlock()
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
