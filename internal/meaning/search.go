package meaning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/vector"
)

// MaxText is how many bytes of a text or a query are embedded. Common models read a
// few hundred to a few thousand tokens.
const MaxText = 4000

// The errors of a search that has no matches by meaning.
var (
	ErrNotEmbedded = errors.New("no tool is embedded yet")
	ErrBusy        = errors.New("too many queries wait for the embedder or the store")
)

// Search returns the records most similar to the query, within the timeout: at most so
// many candidates. v makes the vector of the query. keep says by id which records to
// return, of which there are so many. Matches may come with an error: then only some of
// the texts are embedded.
func (k *Keeper) Search(ctx context.Context, query string, candidates int, v func(context.Context) ([]float32, error), keep func(id string) bool, of int) (f Found, err error) {
	p := k.progress.Load()
	switch {
	case strings.TrimSpace(query) == "":
		return f, nil
	case p == nil:
		return f, ErrNotEmbedded
	case p.Total == 0 && p.of == k.newest.Load():
		return f, nil
	case p.Done == 0:
		return f, cmp.Or(p.Err, ErrNotEmbedded)
	}
	select {
	case k.limits.asking <- struct{}{}:
	default:
		return f, ErrBusy
	}
	ctx, cancel := context.WithTimeout(ctx, k.Timeout)
	defer cancel()
	all, err := hostcode.Detached(ctx, "the vector store", func() ([]vector.Match, error) {
		defer func() { <-k.limits.asking }()
		return k.ask(ctx, max(candidates, sample), candidates, v, keep)
	})
	f = Found{Matches: all[:min(candidates, len(all))], all: all, top: len(all), of: min(of, p.Done), least: k.Least}
	for len(f.Matches) > 0 && f.Matches[len(f.Matches)-1].Similarity < k.Least {
		f.Matches = f.Matches[:len(f.Matches)-1]
	}
	switch {
	case err != nil:
		return Found{}, err
	case p.Err != nil:
		err = fmt.Errorf("%d of %d tools are embedded: %w", p.Done, p.Total, p.Err)
	case p.Done < p.Total:
		err = fmt.Errorf("%d of %d tools are embedded so far", p.Done, p.Total)
	}
	return f, err
}

// QueryVector returns a function that makes the vector of the query. The first call
// makes it, for all keepers of the embedder; other callers wait for it.
func (k *Keeper) QueryVector(query string) func(context.Context) ([]float32, error) {
	var once sync.Once
	var v []float32
	err := errors.New("the embedder gave no answer") // unless it gives one
	return func(ctx context.Context) ([]float32, error) {
		once.Do(func() {
			v, err = hostcode.Call("the embedder", func() ([]float32, error) {
				v, err := k.Embedder.EmbedQuery(ctx, strings.ToValidUTF8(query[:min(len(query), MaxText)], ""))
				if err == nil {
					err = vector.Check(v, cmp.Or(k.Embedder.Dimensions(), len(v)))
				}
				return v, err
			})
		})
		return v, err
	}
}

// ask returns at most n of the most similar records that keep accepts, best first. It
// returns enough, if there are so many.
func (k *Keeper) ask(ctx context.Context, n, enough int, makeVector func(context.Context) ([]float32, error), keep func(id string) bool) ([]vector.Match, error) {
	v, err := makeVector(ctx)
	if err != nil {
		return nil, fmt.Errorf("embedding the query: %w", err)
	}
	q := vector.Query{Vector: v, Limit: n, Candidates: n}
	if own, ok := k.Store.(*vector.MemoryStore); ok {
		return own.SearchFunc(ctx, k.Scope, q, keep)
	}
	// Other stores can't filter by what a session may use: so we ask for more
	// until enough are left.
	for {
		all, err := k.Store.Search(ctx, k.Scope, q)
		if err != nil {
			return nil, err
		}
		kept := slices.DeleteFunc(slices.Clone(all), func(m vector.Match) bool { return !keep(m.ID) })
		if len(kept) >= enough || len(all) < q.Limit {
			return kept[:min(len(kept), n)], nil
		}
		q.Limit, q.Candidates = 4*q.Limit, 4*q.Candidates
	}
}
