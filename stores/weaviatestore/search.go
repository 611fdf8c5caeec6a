package weaviatestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid/vector"
)

const (
	maxResults = 10_000 // Weaviate's limit for one query: QUERY_MAXIMUM_RESULTS
	sumsPage   = 1000   // records in one answer
	maxGot     = 64     // likewise, with vectors and schemas

	rounding = 1e-7 // error of a similarity, computed as 1 minus a float32
)

// Sums implements [vector.Store].
func (s *Store) Sums(ctx context.Context, scope string) (map[string]string, error) {
	sums := make(map[string]string)
	for after := ""; ; {
		q := s.query(TenantName(scope), fieldTool+" "+fieldSum+" _additional {id}", sumsPage, "after: "+literal(after))
		r, err := s.ask(ctx, map[string]*query{"all": q})
		if s.absent(ctx, err) {
			return sums, nil
		}
		if err != nil {
			return nil, failed(ctx, scope, "listing", err)
		}
		page := r["all"]
		for _, o := range page {
			if o.ours() {
				sums[o.Tool] = o.Sum
			}
		}
		if len(page) < sumsPage {
			return sums, nil
		}
		// Pages are in the order of ids. If one makes no progress, stop: the loop
		// would never end.
		last := page[len(page)-1].Additional.ID
		if last <= after {
			return nil, failed(ctx, scope, "listing", errors.New("the engine's pages are not in the order of the ids"))
		}
		after = last
	}
}

// Get implements [vector.Store].
func (s *Store) Get(ctx context.Context, scope string, ids []string) (found []vector.Record, err error) {
	for chunk := range slices.Chunk(ids, maxGot) {
		rows, err := s.get(ctx, TenantName(scope), chunk)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, failed(ctx, scope, "reading", err)
		}
		for _, o := range rows {
			if !o.ours() {
				continue
			}
			r := vector.Record{ID: o.Tool, Sum: o.Sum, Server: o.Server, Description: o.Description, Schema: o.Schema}
			if len(o.Additional.Vector) > 0 {
				r.Vector = o.Additional.Vector
			}
			found = append(found, r)
		}
	}
	return found, failed(ctx, scope, "reading", ctx.Err())
}

// get returns the objects of records, none if there is no such tenant.
func (s *Store) get(ctx context.Context, tenant string, ids []string) ([]row, error) {
	objects := make([]string, len(ids))
	for i, id := range ids {
		objects[i] = objectID(id)
	}
	fields := strings.Join([]string{fieldTool, fieldServer, fieldSum, fieldDescription, fieldSchema, "_additional {id vector}"}, " ")
	q := map[string]*query{"got": s.query(tenant, fields, len(ids), where("id", "ContainsAny", "valueText", objects))}
	r, err := s.ask(ctx, q)
	if s.absent(ctx, err) {
		return nil, nil
	}
	if answered(err) { // the class may be of an earlier version, without all properties
		if err = s.prepare(ctx); err == nil {
			r, err = s.ask(ctx, q)
		}
	}
	return r["got"], err
}

// Search implements [vector.Store]. It considers at most 10,000 records by words and
// 10,000 by vector.
func (s *Store) Search(ctx context.Context, scope string, q vector.Query) ([]vector.Match, error) {
	candidates, err := q.Check()
	if err == nil {
		err = failed(ctx, scope, "searching", ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	if q.Limit <= 0 || q.Servers != nil && len(q.Servers) == 0 {
		return nil, nil
	}
	sides, err := s.sides(TenantName(scope), &q)
	if err != nil {
		return nil, fmt.Errorf("weaviatestore: scope %q: %w", scope, err)
	}
	found, err := s.best(ctx, sides, min(candidates, maxResults))
	switch {
	case s.absent(ctx, err):
		return nil, nil
	case err != nil:
		return nil, failed(ctx, scope, "searching", s.explain(ctx, TenantName(scope), len(q.Vector), err))
	}
	words := slices.DeleteFunc(found[byWords], func(m vector.Match) bool { return m.Words <= 0 })
	similar := slices.DeleteFunc(found[bySimilarity], func(m vector.Match) bool {
		return m.Similarity < q.Least-rounding || m.Similarity <= 0
	})
	alpha := q.Alpha
	switch {
	case q.Vector == nil:
		alpha = 0
	case q.Words == "":
		alpha = 1
	}
	return vector.Fuse(words, similar, alpha, q.Limit), nil
}

// The two queries of a search.
const (
	byWords      = "words"
	bySimilarity = "similar"
)

// sides returns the queries of a search by their names, without limits.
func (s *Store) sides(tenant string, q *vector.Query) (map[string]*query, error) {
	var servers []string
	if q.Servers != nil {
		hashes := make([]string, len(q.Servers))
		for i, server := range q.Servers {
			hashes[i] = hash(server)
		}
		servers = []string{where(fieldServerHash, "ContainsAny", "valueText", hashes)}
	}
	ask := func(how, measure string) *query {
		return s.query(tenant, fieldTool+" "+fieldServer+" _additional {id "+measure+"}", 0, append(servers, how)...)
	}
	sides := make(map[string]*query)
	if words := strings.TrimSpace(q.Words); words != "" {
		sides[byWords] = ask(fmt.Sprintf("bm25: {query: %s, properties: [%s]}", literal(words), literal(fieldText)), "score")
	}
	if q.Vector != nil {
		unit, err := vector.Unit(q.Vector)
		if err != nil {
			return nil, fmt.Errorf("the query's vector: %w", err)
		}
		sides[bySimilarity] = ask("nearVector: {vector: "+literal(unit)+"}", "distance")
	}
	return sides, nil
}

// best returns the n best matches of each side, by descending score and then by ID.
func (s *Store) best(ctx context.Context, sides map[string]*query, n int) (map[string][]vector.Match, error) {
	found := make(map[string][]vector.Match)
	// The engine returns ties in any order. So ask for one more, and if it ties with
	// the last, for all that do.
	for limit := min(n+1, maxResults); len(sides) > 0; limit = min(4*limit, maxResults) {
		for _, q := range sides {
			q.limit = limit
		}
		r, err := s.ask(ctx, sides)
		if err != nil {
			return nil, err
		}
		for side := range sides {
			matches, err := matches(r[side], side)
			if err != nil {
				return nil, err
			}
			if complete := len(r[side]) < limit || limit == maxResults; complete || len(matches) >= limit && score(matches[limit-1]) < score(matches[n-1]) {
				found[side] = matches[:min(n, len(matches))]
			}
		}
		maps.DeleteFunc(sides, func(side string, _ *query) bool { return found[side] != nil })
	}
	return found, nil
}

func score(m vector.Match) float64 { return m.Words + m.Similarity } // one is 0

// matches returns the matches of one side, by descending score and then by ID. It never
// returns nil.
func matches(rows []row, side string) ([]vector.Match, error) {
	list := []vector.Match{}
	for _, o := range rows {
		if !o.ours() {
			continue
		}
		m := vector.Match{ID: o.Tool, Server: o.Server}
		if side == bySimilarity {
			if o.Additional.Distance == nil {
				return nil, fmt.Errorf("the answer has no distance of object %s", o.Additional.ID)
			}
			m.Similarity = min(1-*o.Additional.Distance, 1)
		} else {
			var err error
			m.Words, err = strconv.ParseFloat(o.Additional.Score, 64)
			if err != nil || math.IsNaN(m.Words) || math.IsInf(m.Words, 0) {
				return nil, fmt.Errorf("the answer has no number as the score of object %s", o.Additional.ID)
			}
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b vector.Match) int {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}
