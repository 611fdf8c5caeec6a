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

// SemanticOptions let searches find by meaning, beside words. Only Embedder is
// required.
type SemanticOptions struct {
	// Embedder makes the vectors of tools, in the background, and of queries.
	Embedder vector.Embedder

	// Store keeps the vectors, in Scope. If nil, a new [vector.MemoryStore].
	Store vector.Store

	// Scope is where in Store. If empty, "system".
	Scope string

	// Alpha is what the meaning weighs against the words, from 0 to 1: see
	// [vector.Fuse]. If zero, [vector.DefaultAlpha]. If negative, 0.
	Alpha float64

	// ByRank puts the two together by [vector.FuseRanks] instead.
	ByRank bool

	// Candidates is how many tools of each side are considered; with a limit
	// per server more, until there are enough. If zero, [vector.DefaultCandidates].
	Candidates int

	// Least is the similarity below which a tool is not like the query. What
	// is much differs from model to model. If zero, any that is positive counts,
	// so that most searches find something.
	Least float64

	// Timeout is how long a search waits for the meaning, at most; what its
	// words find then is the answer. If zero, one second.
	Timeout time.Duration

	// Cache, if not nil, keeps the vectors from one run to the next, so that
	// no text is embedded twice.
	Cache Store

	// Progress is called after each batch of tools. It may be nil.
	Progress func(done, total int)
}

const defaultScope = "system"

// setDefaults fills in what is not set. It panics if a number is out of its
// range.
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

// A semantic keeps a store in step with what a catalog has indexed and asks it.
type semantic struct {
	SemanticOptions
	log     *slog.Logger
	cur     func() *catalog
	running atomic.Bool
	wake    chan struct{} // holds one: there is a newer catalog
	turn    chan struct{} // of a user's: its system's turns
	turns   chan struct{} // holds one for each user's that is in sync

	made   map[*BridgeTool]wantedTool // of the last catalog; only used by run, as are the next two
	stored map[string]string          // sums by ID, as far as known
	known  bool                       // stored is what the store has

	progress atomic.Pointer[embeddingProgress]
	asking   chan struct{} // holds one for each query that is under way; users' are their system's
}

// An embeddingProgress is how far a store is.
type embeddingProgress struct {
	done, total int
	err         error // why it does not go on
}

// maxAsking bounds the queries that wait for an embedder or a store which do
// not heed their context.
const maxAsking = 256

// maxTurns is for how many users tools are embedded at once. The system's do
// not wait for theirs.
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

// changed tells that there is a newer catalog, and has run started unless it
// runs. It never waits.
func (se *semantic) changed(start func(run func(context.Context))) {
	select {
	case se.wake <- struct{}{}:
	default:
	}
	if se.running.CompareAndSwap(false, true) {
		start(se.run)
	}
}

// How long run waits after a failure: twice as long after each further one.
const (
	firstSemanticRetry = time.Second
	maxSemanticRetry   = time.Minute
)

// run brings the store in step, and ends when it is or ctx ends.
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
			se.log.Warn("mcphybrid: tools are not found by meaning", "error", err)
			se.known = false // a part may have been done
			again = time.After(wait)
			wait = min(2*wait, maxSemanticRetry)
		}
	}
}

// A wantedTool is one that the store should have.
type wantedTool struct {
	vector.Record
	key vector.Key
}

// keysOf returns what the tools' vectors are kept by.
func keysOf(wanted []wantedTool) []vector.Key {
	keys := make([]vector.Key, len(wanted))
	for i, w := range wanted {
		keys[i] = w.key
	}
	return keys
}

// fingerprintOf returns a hash of the tools that a store should have.
func fingerprintOf(wanted []wantedTool) [32]byte {
	h := sha256.New()
	for _, w := range wanted {
		fmt.Fprintf(h, "%d:%s%s", len(w.ID), w.ID, w.Sum)
	}
	return [32]byte(h.Sum(nil))
}

// embedBatch is how many tools are embedded and stored at once.
const embedBatch = 64

// sync makes one step of the store from what it has to what it should have.
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
			return fmt.Errorf("what is stored: %w", err)
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
			// Nothing that is there is wanted: another model made it.
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

// note publishes a copy of p.
func (se *semantic) note(p *embeddingProgress, also func(done, total int)) *embeddingProgress {
	c := *p
	se.progress.Store(&c)
	if also != nil {
		also(c.done, c.total)
	}
	return &c
}

// embed gives tools their vectors: from the cache, or made now.
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

// wanted returns what of a catalog should be stored, in its order.
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

// maxEmbeddedText is how many bytes of a tool's text are embedded: the models
// in use read some hundreds to some thousands of tokens.
const maxEmbeddedText = 4000

// embeddedText returns what a tool is embedded by: its name, its description
// and the names of its parameters.
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

// search returns what is like the query in meaning, whose vector is made by the
// given function, most similar first and within the timeout. Matches may come with an error: that of the tools, not of the
// query. Only what keep lets through, by registered name, is returned.
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
		err = fmt.Errorf("%d of %d tools are embedded yet", p.done, p.total)
	}
	return matches, err
}

// queryVector returns a function that makes the vector of the query, when it is
// first called, for all scopes that are searched for it. Whoever calls it waits.
func (se *semantic) queryVector(query string) func(context.Context) ([]float32, error) {
	var once sync.Once
	var v []float32
	err := errors.New("the embedder panicked") // unless it is told better
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
	// Another store does not know what a session may use.
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
