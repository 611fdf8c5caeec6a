package mcphybrid

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/foreign"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/vector"
)

// SemanticOptions make searches find tools by meaning as well as by words. Only
// Embedder is required.
type SemanticOptions struct {
	// Embedder computes the vectors of queries and, in the background, of tools.
	Embedder vector.Embedder

	// Store keeps the vectors, under Scope. If nil, a new [vector.MemoryStore].
	Store vector.Store

	// Scope is the part of Store that holds the Manager's tools. If empty,
	// "system".
	Scope string

	// Alpha is the weight of meaning against words, from 0 (only words) to 1
	// (only meaning): see [vector.Fuse]. If zero, [vector.DefaultAlpha]. If
	// negative, 0. NewManager panics if it is above 1.
	Alpha float64

	// ByRank combines words and meaning by [vector.FuseRanks] instead of
	// [vector.Fuse].
	ByRank bool

	// Candidates is how many tools each side contributes before the two are
	// combined. With a limit per server the search takes more if it needs them.
	// If zero, [vector.DefaultCandidates]. It must not be negative.
	Candidates int

	// Least is the smallest similarity that counts as a match. A good value
	// depends on the model. If zero, any positive similarity counts, so that
	// most searches find something.
	Least float64

	// Timeout bounds how long a search waits for the embedder and the store.
	// After that it returns the results by words. If zero, one second. It must
	// not be negative.
	Timeout time.Duration

	// Cache, if not nil, keeps the vectors from one run to the next, so that no
	// text is embedded twice.
	Cache Store

	// Progress, if not nil, is called after each batch of embedded tools with
	// how many of the tools are embedded so far.
	Progress func(done, total int)
}

const defaultScope = "system"

// setDefaults sets the defaults. It panics if a number is out of range.
func (o *SemanticOptions) setDefaults() {
	if o.Embedder == nil {
		panic("mcphybrid: SemanticOptions.Embedder is nil")
	}
	if o.Store == nil {
		o.Store = new(vector.MemoryStore)
	}
	o.Scope = cmp.Or(o.Scope, defaultScope)
	if math.IsNaN(o.Alpha) || o.Alpha > 1 {
		panic(fmt.Sprintf("mcphybrid: SemanticOptions.Alpha is %v, must be 0 to 1", o.Alpha))
	}
	o.Alpha = max(cmp.Or(o.Alpha, vector.DefaultAlpha), 0)
	o.Candidates = cmp.Or(o.Candidates, vector.DefaultCandidates)
	o.Timeout = cmp.Or(o.Timeout, time.Second)
	if o.Candidates < 0 || o.Timeout < 0 {
		panic(fmt.Sprintf("mcphybrid: SemanticOptions.Candidates is %d and Timeout %v, must not be negative", o.Candidates, o.Timeout))
	}
}

// A semantic keeps a vector store up to date with the indexed tools of a catalog,
// and searches it.
type semantic struct {
	SemanticOptions
	log     *slog.Logger
	cur     func() *catalog
	running atomic.Bool
	wake    chan struct{} // holds one if there is a newer catalog
	turn    chan struct{} // the system's turns, if this is a user's; else nil
	turns   chan struct{} // holds one for each user whose tools are being embedded

	made   map[*BridgeTool]wantedTool // for the last catalog; only run uses it and the next two
	stored map[string]string          // sums by ID, as far as known
	known  bool                       // stored is complete

	progress atomic.Pointer[embeddingProgress]
	asking   chan struct{} // holds one for each running query; users share their system's
}

// An embeddingProgress says how much of a catalog the store holds.
type embeddingProgress struct {
	done, total int
	err         error // why the work stopped, or nil
}

// maxAsking bounds the queries that wait for an embedder or a store that ignores
// its context.
const maxAsking = 256

// maxTurns is for how many users we embed tools at once. The system's tools do
// not wait for them.
const maxTurns = 4

func newSemantic(opts *SemanticOptions, log *slog.Logger, cur func() *catalog) *semantic {
	if opts == nil {
		return nil
	}
	return &semantic{
		SemanticOptions: *opts, log: log, cur: cur,
		wake: make(chan struct{}, 1), asking: make(chan struct{}, maxAsking), turns: make(chan struct{}, maxTurns),
		stored: make(map[string]string),
	}
}

// changed says that there is a newer catalog, and starts run unless it is running.
// It never waits.
func (se *semantic) changed(start func(run func(context.Context))) {
	select {
	case se.wake <- struct{}{}:
	default:
	}
	if se.running.CompareAndSwap(false, true) {
		start(se.run)
	}
}

// The first and the longest wait of run after failures. Each further failure
// doubles the wait.
const (
	firstSemanticRetry = time.Second
	maxSemanticRetry   = time.Minute
)

// run updates the store until it matches the newest catalog or ctx ends.
func (se *semantic) run(ctx context.Context) {
	wait := firstSemanticRetry
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-se.wake:
		case <-again:
		}
		again = nil
		err := se.sync(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			wait = firstSemanticRetry
			if len(se.wake) > 0 {
				continue
			}
			se.running.Store(false)
			if len(se.wake) == 0 || !se.running.CompareAndSwap(false, true) {
				return
			}
		default:
			se.log.Warn("mcphybrid: embedding the tools failed, searches by meaning are incomplete", "error", err)
			se.known = false // a part may have been stored
			again = time.After(wait)
			wait = min(2*wait, maxSemanticRetry)
		}
	}
}

// A wantedTool is a tool that the store should hold.
type wantedTool struct {
	vector.Record
	key vector.Key
}

// keysOf returns the cache keys of the tools' vectors.
func keysOf(wanted []wantedTool) []vector.Key {
	keys := make([]vector.Key, len(wanted))
	for i, w := range wanted {
		keys[i] = w.key
	}
	return keys
}

// fingerprintOf returns a hash of the tools that a store should hold.
func fingerprintOf(wanted []wantedTool) [32]byte {
	h := sha256.New()
	for _, w := range wanted {
		fmt.Fprintf(h, "%d:%s%s", len(w.ID), w.ID, w.Sum)
	}
	return [32]byte(h.Sum(nil))
}

// embedBatch is how many tools are embedded and stored at once.
const embedBatch = 64

// sync updates the store to the current catalog. It stops early if there is a
// newer one.
func (se *semantic) sync(ctx context.Context) (err error) {
	if se.turn != nil {
		select {
		case se.turn <- struct{}{}:
			defer func() { <-se.turn }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	wanted := se.wanted(se.cur())
	p := &embeddingProgress{total: len(wanted)}
	defer func() {
		last := *se.note(p, nil)
		if err != nil {
			last.err = err
			se.progress.Store(&last)
		}
	}()
	var cache *vector.Cache // read when something is missing
	print := fingerprintOf(wanted)
	if !se.known {
		cache = vector.LoadCache(se.Cache, se.Embedder.Model(), se.log)
		if _, own := se.Store.(*vector.MemoryStore); !own && cache.Fresh(print) {
			se.stored = sumsOf(wanted)
		} else if se.stored, err = se.Store.Sums(ctx, se.Scope); err != nil {
			return fmt.Errorf("reading the store: %w", err)
		}
		se.known = true
	}
	sums := sumsOf(wanted)
	gone := slices.Sorted(maps.Keys(se.stored))
	gone = slices.DeleteFunc(gone, func(id string) bool { return sums[id] != "" })
	if len(gone) > 0 {
		if err := se.Store.Delete(ctx, se.Scope, gone); err != nil {
			return fmt.Errorf("deleting: %w", err)
		}
		for _, id := range gone {
			delete(se.stored, id)
		}
	}
	missing := slices.DeleteFunc(slices.Clone(wanted), func(w wantedTool) bool { return se.stored[w.ID] == w.Sum })
	p.done = len(wanted) - len(missing)
	se.note(p, nil)
	if cache == nil && len(missing) == 0 {
		return nil
	}
	if cache == nil {
		cache = vector.LoadCache(se.Cache, se.Embedder.Model(), se.log)
	}
	for batch := range slices.Chunk(missing, embedBatch) {
		if err := se.embed(ctx, batch, cache); err != nil {
			return fmt.Errorf("embedding: %w", err)
		}
		tools := make([]vector.Record, len(batch))
		for i, w := range batch {
			tools[i] = w.Record
		}
		err := se.Store.Upsert(ctx, se.Scope, tools)
		if errors.Is(err, vector.ErrDimensions) && p.done == 0 {
			// All stored vectors are useless: another model made them.
			if err = se.Store.Drop(ctx, se.Scope); err == nil {
				clear(se.stored)
				err = se.Store.Upsert(ctx, se.Scope, tools)
			}
		}
		if err != nil {
			return fmt.Errorf("storing: %w", err)
		}
		for _, t := range tools {
			se.stored[t.ID] = t.Sum
		}
		p.done += len(batch)
		se.note(p, se.Progress)
		if len(se.wake) > 0 { // there is a newer catalog
			break
		}
	}
	return cache.Save(keysOf(wanted), print, p.done == p.total)
}

// note publishes a copy of p and, if also is not nil, calls it.
func (se *semantic) note(p *embeddingProgress, also func(done, total int)) *embeddingProgress {
	c := *p
	se.progress.Store(&c)
	if also != nil {
		also(c.done, c.total)
	}
	return &c
}

// embed sets the vectors of tools. It takes them from the cache or makes them.
func (se *semantic) embed(ctx context.Context, tools []wantedTool, cache *vector.Cache) error {
	var texts []string
	var places []int
	for i := range tools {
		if v := cache.Vector(tools[i].key); v != nil {
			tools[i].Vector = v
			continue
		}
		texts, places = append(texts, tools[i].Text), append(places, i)
	}
	if len(texts) == 0 {
		return nil
	}
	vectors, err := foreign.Call(func() ([][]float32, error) { return se.Embedder.Embed(ctx, texts) })
	if err == nil {
		err = vector.CheckAll(vectors, len(texts), se.Embedder.Dimensions())
	}
	if err != nil {
		return err
	}
	for i, v := range vectors {
		tools[places[i]].Vector = v
		cache.Put(tools[places[i]].key, v)
	}
	return nil
}

// wanted returns the tools of a catalog that the store should hold, in order.
func (se *semantic) wanted(c *catalog) []wantedTool {
	list := make([]wantedTool, len(c.indexed))
	made := make(map[*BridgeTool]wantedTool, len(list))
	for i, t := range c.documents() {
		if w, ok := se.made[t]; ok {
			list[i], made[t] = w, w
			continue
		}
		text := embeddedText(t.def)
		key := vector.KeyOf(se.Embedder.Model(), text)
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %x", t.def.server, key))
		list[i] = wantedTool{vector.Record{ID: t.name, Sum: hex.EncodeToString(sum[:16]), Server: t.def.server, Text: text}, key}
		made[t] = list[i]
	}
	se.made = made
	return list
}

func sumsOf(tools []wantedTool) map[string]string {
	sums := make(map[string]string, len(tools))
	for _, t := range tools {
		sums[t.ID] = t.Sum
	}
	return sums
}

// maxEmbeddedText is how many bytes of a tool's text we embed. Common models read
// a few hundred to a few thousand tokens.
const maxEmbeddedText = 4000

// embeddedText returns the text to embed for a tool: its name, its description and
// the names of its parameters.
func embeddedText(d *definition) string {
	var args []string
	schema.Walk(d.input, func(name []byte) { args = append(args, string(name)) }, func([]byte) {})
	text := fmt.Sprintf("Tool Name: %s. Description: %s.", d.name, strings.TrimRight(d.description, ". \n"))
	if len(args) > 0 {
		text += " Arguments: " + strings.Join(args, ", ")
	}
	return strings.ToValidUTF8(text[:min(len(text), maxEmbeddedText)], "")
}

var (
	errNotEmbedded = errors.New("no tool is embedded yet")
	errBusy        = errors.New("too many queries wait for the embedder or the store")
)

// search returns the tools most similar to the query, best first, within the
// timeout. v makes the vector of the query. keep says by registered name which
// tools to return. Matches may come with an error: then only some of the tools
// are embedded.
func (se *semantic) search(ctx context.Context, query string, candidates int, v func(context.Context) ([]float32, error), keep func(name string) bool) ([]vector.Match, error) {
	p := se.progress.Load()
	switch {
	case strings.TrimSpace(query) == "":
		return nil, nil
	case p == nil:
		return nil, errNotEmbedded
	case p.total == 0:
		return nil, nil
	case p.done == 0 && p.total > 0:
		return nil, cmp.Or(p.err, errNotEmbedded)
	}
	select {
	case se.asking <- struct{}{}:
	default:
		return nil, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, se.Timeout)
	defer cancel()
	matches, err := foreign.Detached(ctx, func() ([]vector.Match, error) {
		defer func() { <-se.asking }()
		return se.ask(ctx, candidates, v, keep)
	})
	switch {
	case err != nil:
		return nil, err
	case p.err != nil:
		err = fmt.Errorf("%d of %d tools are embedded: %w", p.done, p.total, p.err)
	case p.done < p.total:
		err = fmt.Errorf("%d of %d tools are embedded so far", p.done, p.total)
	}
	return matches, err
}

// queryVector returns a function that makes the vector of the query. The first
// call makes it, for all scopes; other callers wait for it.
func (se *semantic) queryVector(query string) func(context.Context) ([]float32, error) {
	var once sync.Once
	var v []float32
	err := errors.New("the embedder panicked") // overwritten if it did not
	return func(ctx context.Context) ([]float32, error) {
		once.Do(func() {
			v, err = se.Embedder.EmbedQuery(ctx, strings.ToValidUTF8(query[:min(len(query), maxEmbeddedText)], ""))
			if err == nil {
				err = vector.Check(v, cmp.Or(se.Embedder.Dimensions(), len(v)))
			}
		})
		return v, err
	}
}

func (se *semantic) ask(ctx context.Context, candidates int, makeVector func(context.Context) ([]float32, error), keep func(name string) bool) ([]vector.Match, error) {
	v, err := makeVector(ctx)
	if err != nil {
		return nil, fmt.Errorf("embedding the query: %w", err)
	}
	q := vector.Query{Vector: v, Limit: candidates, Candidates: candidates, Least: se.Least}
	if own, ok := se.Store.(*vector.MemoryStore); ok {
		return own.SearchFunc(ctx, se.Scope, q, keep)
	}
	// Other stores can't filter by what a session may use: so we ask for more
	// until enough are left.
	for {
		all, err := se.Store.Search(ctx, se.Scope, q)
		if err != nil {
			return nil, err
		}
		kept := slices.DeleteFunc(slices.Clone(all), func(m vector.Match) bool { return !keep(m.ID) })
		if len(kept) >= candidates || len(all) < q.Limit {
			return kept[:min(len(kept), candidates)], nil
		}
		q.Limit, q.Candidates = 4*q.Limit, 4*q.Candidates
	}
}
