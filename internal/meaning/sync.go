package meaning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/vector"
)

const (
	// maxBatch is how many texts are embedded and stored at once.
	maxBatch = 64

	// sumsLifetime is how long we rely on what we know of a store that other
	// processes may change.
	sumsLifetime = 10 * time.Minute

	// saveTimeout bounds a save of the cache, which has no context.
	saveTimeout = 5 * time.Second
)

// errNewer says that an update stopped, since there are newer texts.
var errNewer = errors.New("there are newer texts")

// sync puts the store in step with the current texts. It stops with errNewer if there
// are newer ones. wait is after how long there is more to do; 0 means nothing.
func (k *Keeper) sync(ctx context.Context) (wait time.Duration, err error) {
	if k.guest {
		select {
		case k.limits.turns <- struct{}{}:
			defer func() { <-k.limits.turns }()
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	p := Progress{of: k.newest.Load()}
	texts, listed := k.Current()
	p.Total = len(texts)
	u := &update{Keeper: k, texts: texts, p: &p}
	defer u.save(ctx) // last, since it looks at the error
	defer func() {
		if err != nil && err != errNewer {
			p.Err = err
			k.note(p)
		}
	}()
	if err := u.learn(ctx); err != nil {
		return 0, fmt.Errorf("reading the store: %w", err)
	}
	wait, err = u.deleteGone(ctx, listed)
	if err != nil {
		return 0, fmt.Errorf("deleting: %w", err)
	}
	later, err := u.fill(ctx)
	if wait == 0 || later > 0 && later < wait {
		wait = later
	}
	return wait, err
}

// An update is one run of sync.
type update struct {
	*Keeper
	texts []*Text
	p     *Progress
	cache *vector.Cache // nil until it is needed
}

// learn reads what the store has, if we don't know.
func (u *update) learn(ctx context.Context) error {
	if !u.read.IsZero() && (u.Private || time.Since(u.read) < sumsLifetime) {
		return nil
	}
	if !u.Private && u.Cache != nil {
		if err := u.load(ctx); err != nil {
			return err
		}
		if u.read.IsZero() && u.cache.Fresh(fingerprintOf(u.texts)) {
			u.stored, u.read = sumsOf(u.texts), time.Now()
			return nil
		}
	}
	stored, err := hostcode.Detached(ctx, "the vector store", func() (map[string]string, error) { return u.Store.Sums(ctx, u.Scope) })
	if err != nil {
		return err
	}
	u.stored, u.read = maps.Clone(stored), time.Now()
	if u.stored == nil {
		u.stored = make(map[string]string)
	}
	return nil
}

// load loads the cache, unless it is loaded.
func (u *update) load(ctx context.Context) (err error) {
	if u.cache == nil {
		u.cache, u.unsaved = u.unsaved, nil
	}
	if u.cache == nil {
		u.cache, err = hostcode.Detached(ctx, "the vector cache", func() (*vector.Cache, error) {
			c := vector.LoadCache(u.Cache, u.Model, u.Log)
			c.Trust = u.Trust
			return c, nil
		})
	}
	return err
}

// deleteGone deletes the records that are known to be gone for as long as the grace.
// wait is when the next of them is due, 0 if there is none.
func (u *update) deleteGone(ctx context.Context, listed func() map[string][]string) (wait time.Duration, err error) {
	wanted := sumsOf(u.texts)
	var due []string
	gone := make(map[string]time.Time)
	var servers said
	for id, sum := range u.stored {
		if wanted[id] != "" {
			continue
		}
		if servers == nil && !u.Private {
			servers = saidBy(listed())
		}
		if !u.Private && !servers.denies(sum) {
			continue
		}
		since, known := u.gone[id]
		if !known {
			since = time.Now()
		}
		gone[id] = since
		if left := u.Grace - time.Since(since); left <= 0 {
			due = append(due, id)
		} else if wait == 0 || left < wait {
			wait = left
		}
	}
	u.gone = gone
	if len(due) == 0 {
		return wait, nil
	}
	slices.Sort(due)
	err = u.change(ctx, func() error { return u.Store.Delete(ctx, u.Scope, due) })
	if err != nil {
		return 0, err
	}
	for _, id := range due {
		delete(u.stored, id)
		delete(u.gone, id)
	}
	return wait, nil
}

// change calls f, which changes the store. After an error we don't know what the
// store has: a part may have been changed.
func (u *update) change(ctx context.Context, f func() error) error {
	_, err := hostcode.Detached(ctx, "the vector store", func() (struct{}, error) { return struct{}{}, f() })
	if err != nil {
		u.read = time.Time{}
	}
	return err
}

// fill stores the texts that are missing. wait is when more may be embedded, 0 if
// all are or there are newer texts.
func (u *update) fill(ctx context.Context) (wait time.Duration, err error) {
	missing := slices.DeleteFunc(slices.Clone(u.texts), func(t *Text) bool { return u.stored[t.ID] == t.sum })
	u.p.Done, u.p.left = len(u.texts), len(missing)
	for _, t := range missing {
		if !u.holds(t) {
			u.p.Done--
		}
	}
	u.note(*u.p)
	if len(missing) == 0 {
		clear(u.refused)
		return 0, nil
	}
	if err := u.load(ctx); err != nil {
		return 0, fmt.Errorf("reading the cache: %w", err)
	}
	missing, err = u.fillFrom(ctx, missing, u.cached)
	if err == nil {
		missing, err = u.fillFrom(ctx, missing, u.held)
	}
	if err != nil {
		return 0, err
	}
	if len(u.wake) > 0 {
		return 0, errNewer
	}
	u.forgetRefused(missing)
	queue, wait, spent := u.admit(u.inTurn(missing), time.Now())
	if spent != nil {
		u.p.Err = spent
		u.note(*u.p)
	}
	for len(queue) > 0 {
		batch := u.batch(queue)
		vectors, err := u.embed(ctx, batch)
		if err != nil {
			return 0, fmt.Errorf("embedding: %w", err)
		}
		if err := u.put(ctx, batch, vectors); err != nil {
			return 0, err
		}
		if queue = queue[len(batch):]; len(u.wake) > 0 {
			return 0, errNewer
		}
	}
	return wait, nil
}

// fillFrom stores the texts that have a vector already, and returns the others. vectors
// returns the vector of each text, or nil.
func (u *update) fillFrom(ctx context.Context, missing []*Text, vectors func(context.Context, []*Text) ([][]float32, error)) (others []*Text, err error) {
	dims, err := u.dimensions()
	if err != nil {
		return nil, err
	}
	for len(missing) > 0 {
		texts := missing[:min(len(missing), maxBatch)]
		missing = missing[len(texts):]
		all, err := vectors(ctx, texts)
		if err != nil {
			return nil, err
		}
		var batch []*Text
		var found [][]float32
		for i, t := range texts {
			if v := all[i]; vector.Check(v, cmp.Or(dims, len(v))) == nil {
				batch, found = append(batch, t), append(found, v)
			} else {
				others = append(others, t)
			}
		}
		if len(batch) == 0 {
			continue
		}
		if err := u.put(ctx, batch, found); err != nil {
			return nil, err
		}
	}
	return others, nil
}

// cached returns the vectors of texts that are in the cache.
func (u *update) cached(_ context.Context, texts []*Text) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, t := range texts {
		vectors[i] = u.cache.Vector(t.key)
	}
	return vectors, nil
}

// holds reports whether the store has the vector of a text, as far as we know.
func (u *update) holds(t *Text) bool { return sameText(u.stored[t.ID], t.sum) }

// held returns the vectors of texts that are in the store. What has changed of such a
// text is only what is for readers. Another process may have changed a record since we
// read what the store has.
func (u *update) held(ctx context.Context, texts []*Text) ([][]float32, error) {
	var ids []string
	for _, t := range texts {
		if u.holds(t) {
			ids = append(ids, t.ID)
		}
	}
	if len(ids) == 0 {
		return make([][]float32, len(texts)), nil
	}
	return hostcode.Detached(ctx, "the vector store", func() ([][]float32, error) {
		vectors := make([][]float32, len(texts))
		records, err := u.Store.Get(ctx, u.Scope, ids)
		for _, r := range records {
			for i, t := range texts {
				if t.ID == r.ID && sameText(t.sum, r.Sum) {
					vectors[i] = r.Vector
				}
			}
		}
		return vectors, err
	})
}

func (k *Keeper) dimensions() (int, error) {
	return hostcode.Call("the embedder", func() (int, error) { return k.Embedder.Dimensions(), nil })
}

// batch returns the next texts of queue to embed. A text that was refused is alone:
// otherwise it would keep others from being embedded.
func (u *update) batch(queue []*Text) []*Text {
	n := 1
	for n < min(u.size, len(queue)) && u.refused[queue[n].key] == 0 {
		n++
	}
	return queue[:n]
}

// embed makes the vectors of texts. If that fails, the next batch has half the size:
// so a text that the embedder refuses is alone in the end, and then waits until the
// others are embedded.
func (u *update) embed(ctx context.Context, texts []*Text) ([][]float32, error) {
	list := make([]string, len(texts))
	for i, t := range texts {
		list[i] = t.text
	}
	vectors, err := hostcode.Detached(ctx, "the embedder", func() ([][]float32, error) {
		vectors, err := u.Embedder.Embed(ctx, list)
		if err == nil {
			err = vector.CheckAll(vectors, len(list), u.Embedder.Dimensions())
		}
		return vectors, err
	})
	if err != nil {
		if len(texts) == 1 {
			u.tries++
			u.refused[texts[0].key] = u.tries
		}
		u.size = max(len(texts)/2, 1)
		return nil, err
	}
	u.size = min(2*u.size, maxBatch)
	u.spend(texts, time.Now())
	for i, v := range vectors {
		delete(u.refused, texts[i].key)
		u.cache.Put(texts[i].key, v)
	}
	return vectors, nil
}

// forgetRefused forgets that texts were refused which are no longer missing.
func (u *update) forgetRefused(missing []*Text) {
	refused := make(map[vector.Key]int)
	for _, t := range missing {
		if try := u.refused[t.key]; try > 0 {
			refused[t.key] = try
		}
	}
	u.refused = refused
}

// put stores texts with their vectors.
func (u *update) put(ctx context.Context, texts []*Text, vectors [][]float32) error {
	records := make([]vector.Record, len(texts))
	for i, t := range texts {
		records[i] = t.record(vectors[i])
	}
	upsert := func() error { return u.Store.Upsert(ctx, u.Scope, records) }
	err := u.change(ctx, upsert)
	if errors.Is(err, vector.ErrDimensions) && u.p.Done == 0 {
		// All stored vectors are useless: another model made them.
		if err = u.change(ctx, func() error { return u.Store.Drop(ctx, u.Scope) }); err == nil {
			clear(u.stored)
			u.read = time.Now()
			err = u.change(ctx, upsert)
		}
	}
	if err != nil {
		return fmt.Errorf("storing: %w", err)
	}
	for _, t := range texts {
		if !u.holds(t) {
			u.p.Done++
		}
		u.stored[t.ID] = t.sum
	}
	u.p.left -= len(texts)
	u.tell(*u.p)
	return nil
}

// save saves the cache if it was loaded, also when ctx has ended.
func (u *update) save(ctx context.Context) {
	if u.cache == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	// A store in memory is empty when the process begins, so there is no need to
	// know what it held.
	_, inMemory := u.Store.(*vector.MemoryStore)
	inStep := !inMemory && u.p.isWhole()
	cache := u.cache
	_, err := hostcode.Detached(ctx, "the vector cache", func() (struct{}, error) {
		return struct{}{}, cache.Save(keysOf(u.texts), fingerprintOf(u.texts), inStep)
	})
	if err != nil {
		u.Log.Warn("mcphybrid: storing the vectors failed", "error", err)
		if ctx.Err() == nil { // else Save may still use it
			u.unsaved = cache
		}
	}
}
