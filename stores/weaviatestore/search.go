package weaviatestore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mcphybrid/mcphybrid"
	"github.com/weaviate/weaviate-go-client/v5/weaviate/filters"
	"github.com/weaviate/weaviate-go-client/v5/weaviate/graphql"
	"github.com/weaviate/weaviate/entities/models"
)

const (
	maxResults = 10_000 // that Weaviate gives for one query: QUERY_MAXIMUM_RESULTS
	sumsPage   = 1000   // tools of one answer

	rounding = 1e-7 // of a similarity, as 1 less a float32
)

// A row is an object of an answer, as far as it was asked for.
type row struct {
	Tool       string `json:"tool_name"`
	Server     string `json:"origin"`
	Sum        string `json:"sum"`
	Dimensions int    `json:"dimensions"`
	Additional struct {
		ID       string   `json:"id"`
		Distance *float64 `json:"distance"` // 1 - the cosine, from 0 to 2
		Score    string   `json:"score"`    // by words
	} `json:"_additional"`
}

// get asks for the properties of a tenant's objects, and for what Weaviate adds
// to them.
func (s *Store) get(tenant string, properties []string, additional ...string) *graphql.GetBuilder {
	var fields []graphql.Field
	for _, name := range properties {
		fields = append(fields, graphql.Field{Name: name})
	}
	if len(additional) > 0 {
		fields = append(fields, graphql.Field{Name: "_additional", Fields: []graphql.Field{{Name: strings.Join(additional, " ")}}})
	}
	return s.client.GraphQL().Get().WithClassName(s.opts.Class).WithTenant(tenant).WithFields(fields...)
}

// ask returns the answers to several queries, by the names they have in gets.
func (s *Store) ask(ctx context.Context, gets map[string]*graphql.GetBuilder) (map[string][]row, error) {
	var query strings.Builder
	query.WriteString("{")
	for _, name := range slices.Sorted(maps.Keys(gets)) {
		// {Get …} becomes name: Get …, and all of them are one request.
		fmt.Fprintf(&query, "%s: %s ", name, strings.TrimSuffix(strings.TrimPrefix(gets[name].Build(), "{"), "}"))
	}
	query.WriteString("}")
	r, err := s.client.GraphQL().Raw().WithQuery(query.String()).Do(ctx)
	if err != nil {
		return nil, err
	}
	return rowsOf(r, s.opts.Class)
}

// rowsOf returns the objects of a class in an answer, by the names of what was
// asked for.
func rowsOf(r *models.GraphQLResponse, class string) (map[string][]row, error) {
	for _, e := range r.Errors {
		if e != nil {
			return nil, refusal(e.Message)
		}
	}
	data, err := json.Marshal(r.Data)
	if err != nil {
		return nil, err
	}
	var gets map[string]map[string][]row
	if err := json.Unmarshal(data, &gets); err != nil {
		return nil, fmt.Errorf("an answer of another shape: %w", err)
	}
	rows := make(map[string][]row)
	for name, classes := range gets {
		rows[name] = classes[class]
	}
	return rows, nil
}

// Sums implements [mcphybrid.VectorStore].
func (s *Store) Sums(ctx context.Context, scope string) (map[string]string, error) {
	sums := make(map[string]string)
	for after := ""; ; {
		get := s.get(TenantName(scope), []string{fieldTool, fieldSum}, "id").WithLimit(sumsPage).WithAfter(after)
		r, err := s.ask(ctx, map[string]*graphql.GetBuilder{"all": get})
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
		after = page[len(page)-1].Additional.ID
	}
}

// ours reports whether an object was made by this package.
func (o *row) ours() bool { return o.Additional.ID == objectID(o.Tool) }

// Search implements [mcphybrid.VectorStore]. No more than 10,000 tools are
// considered on each side.
func (s *Store) Search(ctx context.Context, scope string, q mcphybrid.StoreQuery) ([]mcphybrid.StoreMatch, error) {
	candidates, err := q.Check()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if q.Limit <= 0 || q.Servers != nil && len(q.Servers) == 0 {
		return nil, nil
	}
	gets, err := s.sides(TenantName(scope), &q)
	if err != nil {
		return nil, fmt.Errorf("weaviatestore: scope %q: %w", scope, err)
	}
	found, err := s.best(ctx, gets, min(candidates, maxResults))
	switch {
	case s.absent(ctx, err):
		return nil, nil
	case err != nil:
		return nil, failed(ctx, scope, "searching", s.explain(ctx, TenantName(scope), len(q.Vector), err))
	}
	words := slices.DeleteFunc(found[byWords], func(m mcphybrid.StoreMatch) bool { return m.Words <= 0 })
	similar := slices.DeleteFunc(found[bySimilarity], func(m mcphybrid.StoreMatch) bool {
		return m.Similarity < q.Least-rounding || m.Similarity <= 0
	})
	alpha := q.Alpha
	switch {
	case q.Vector == nil:
		alpha = 0
	case q.Words == "":
		alpha = 1
	}
	return mcphybrid.Fuse(words, similar, alpha, q.Limit), nil
}

// The sides of a search.
const (
	byWords      = "words"
	bySimilarity = "similar"
)

// sides returns what is asked for on each side of a search, by its name.
func (s *Store) sides(tenant string, q *mcphybrid.StoreQuery) (map[string]*graphql.GetBuilder, error) {
	gets := make(map[string]*graphql.GetBuilder)
	fields := []string{fieldTool, fieldServer}
	if words := quotable(q.Words); words != "" {
		gets[byWords] = s.get(tenant, fields, "id", "score").
			WithBM25(s.client.GraphQL().Bm25ArgBuilder().WithQuery(words).WithProperties(fieldText))
	}
	if q.Vector != nil {
		unit, err := mcphybrid.UnitVector(q.Vector)
		if err != nil {
			return nil, fmt.Errorf("the query's vector: %w", err)
		}
		gets[bySimilarity] = s.get(tenant, fields, "id", "distance").
			WithNearVector(s.client.GraphQL().NearVectorArgBuilder().WithVector(unit))
	}
	if q.Servers != nil {
		hashes := make([]string, len(q.Servers))
		for i, server := range q.Servers {
			hashes[i] = hash(server)
		}
		for _, get := range gets {
			get.WithWhere(filters.Where().WithPath([]string{fieldServerHash}).WithOperator(filters.ContainsAny).WithValueText(hashes...))
		}
	}
	return gets, nil
}

// quotable returns words without what has no escape in GraphQL that the client
// knows. It is no part of words anyway.
func quotable(words string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, words))
}

// best returns the n best of each side, best first and equal ones in the order
// of their IDs.
func (s *Store) best(ctx context.Context, gets map[string]*graphql.GetBuilder, n int) (map[string][]mcphybrid.StoreMatch, error) {
	found := make(map[string][]mcphybrid.StoreMatch)
	// Of equal ones the engine returns any. So one more is asked for, and if it
	// equals the last then all that do.
	for limit := min(n+1, maxResults); len(gets) > 0; limit = min(4*limit, maxResults) {
		for _, get := range gets {
			get.WithLimit(limit)
		}
		r, err := s.ask(ctx, gets)
		if err != nil {
			return nil, err
		}
		for side := range gets {
			matches, err := matches(r[side], side)
			if err != nil {
				return nil, err
			}
			if complete := len(r[side]) < limit || limit == maxResults; complete || len(matches) >= limit && score(matches[limit-1]) < score(matches[n-1]) {
				found[side] = matches[:min(n, len(matches))]
			}
		}
		maps.DeleteFunc(gets, func(side string, _ *graphql.GetBuilder) bool { return found[side] != nil })
	}
	return found, nil
}

func score(m mcphybrid.StoreMatch) float64 { return m.Words + m.Similarity } // one is 0

// matches returns the tools of one side, best first and equal ones in the order
// of their IDs; never nil.
func matches(rows []row, side string) ([]mcphybrid.StoreMatch, error) {
	list := []mcphybrid.StoreMatch{}
	for _, o := range rows {
		if !o.ours() {
			continue
		}
		m := mcphybrid.StoreMatch{ID: o.Tool, Server: o.Server}
		if side == bySimilarity {
			if o.Additional.Distance == nil {
				return nil, fmt.Errorf("no distance of tool %q", o.Tool)
			}
			m.Similarity = min(1-*o.Additional.Distance, 1)
		} else {
			var err error
			m.Words, err = strconv.ParseFloat(o.Additional.Score, 64)
			if err != nil || math.IsNaN(m.Words) || math.IsInf(m.Words, 0) {
				return nil, fmt.Errorf("the score of tool %q is no number: %q", o.Tool, o.Additional.Score)
			}
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b mcphybrid.StoreMatch) int {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}
