package qdrantstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Sums implements [vector.Store].
func (s *Store) Sums(ctx context.Context, scope string) (map[string]string, error) {
	name := s.opts.Collection(scope)
	sums, err := s.sums(ctx, name+bareSuffix)
	if err == nil {
		var full map[string]string
		full, err = s.sums(ctx, name)
		maps.Copy(sums, full)
	}
	if err != nil {
		return nil, failed(ctx, scope, "listing", err)
	}
	return sums, nil
}

func (s *Store) sums(ctx context.Context, name string) (map[string]string, error) {
	sums := make(map[string]string)
	request := &qdrant.ScrollPoints{
		CollectionName: name,
		Limit:          qdrant.PtrOf(uint32(scrollPage)),
		WithPayload:    qdrant.NewWithPayloadInclude(fieldTool, fieldSum),
	}
	for {
		r, err := s.client.GetPointsClient().Scroll(ctx, request, callOptions...)
		switch {
		case status.Code(err) == codes.NotFound:
			return sums, nil
		case err != nil:
			return nil, err
		}
		for _, p := range r.GetResult() {
			if tool, ok := toolOf(p.GetId(), p.GetPayload()); ok {
				sums[tool] = p.GetPayload()[fieldSum].GetStringValue()
			}
		}
		if r.GetNextPageOffset() == nil {
			return sums, nil
		}
		request.Offset = r.GetNextPageOffset()
	}
}

// Get implements [vector.Store].
func (s *Store) Get(ctx context.Context, scope string, ids []string) ([]vector.Record, error) {
	name := s.opts.Collection(scope)
	found := make(map[string]vector.Record, len(ids)) // by ID; one with a vector counts
	for chunk := range slices.Chunk(ids, maxPoints) {
		err := s.get(ctx, name+bareSuffix, false, chunk, found)
		if err == nil {
			err = s.get(ctx, name, true, chunk, found)
		}
		if err != nil {
			return nil, failed(ctx, scope, "reading", err)
		}
	}
	return slices.Collect(maps.Values(found)), failed(ctx, scope, "reading", ctx.Err())
}

// get adds the records with these IDs in a collection to found, with or without their
// vectors.
func (s *Store) get(ctx context.Context, name string, vectors bool, ids []string, found map[string]vector.Record) error {
	points := make([]*qdrant.PointId, len(ids))
	for i, id := range ids {
		points[i] = qdrant.NewIDUUID(pointID(id))
	}
	r, err := s.client.GetPointsClient().Get(ctx, &qdrant.GetPoints{
		CollectionName: name, Ids: points, WithVectors: qdrant.NewWithVectors(vectors),
		WithPayload: qdrant.NewWithPayloadInclude(fieldTool, fieldServer, fieldSum, fieldDescription, fieldSchema),
	}, callOptions...)
	switch {
	case status.Code(err) == codes.NotFound:
		return nil
	case err != nil:
		return err
	}
	for _, p := range r.GetResult() {
		field := func(name string) string { return p.GetPayload()[name].GetStringValue() }
		if tool, ok := toolOf(p.GetId(), p.GetPayload()); ok {
			found[tool] = vector.Record{ID: tool, Sum: field(fieldSum), Server: field(fieldServer), Vector: vectorOf(p),
				Description: field(fieldDescription), Schema: field(fieldSchema)}
		}
	}
	return nil
}

// vectorOf returns the vector of a point, or nil.
func vectorOf(p *qdrant.RetrievedPoint) []float32 {
	v := p.GetVectors().GetVector()
	if dense := v.GetDense(); dense != nil {
		return dense.GetData()
	}
	//lint:ignore SA1019 older servers send no other field
	return v.GetData()
}

// toolOf returns the ID of a point's record. It returns false if this store did not
// write the point.
func toolOf(id *qdrant.PointId, payload map[string]*qdrant.Value) (string, bool) {
	tool := payload[fieldTool].GetStringValue()
	return tool, id.GetUuid() == pointID(tool)
}

// Search implements [vector.Store]. The Score of a match is its Similarity. Search
// considers at most 100,000 records.
func (s *Store) Search(ctx context.Context, scope string, q vector.Query) ([]vector.Match, error) {
	candidates, err := q.Check()
	if err == nil {
		err = failed(ctx, scope, "searching", ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	if q.Vector == nil || q.Limit <= 0 {
		return nil, nil
	}
	similar, err := s.nearest(ctx, s.opts.Collection(scope), &q, min(candidates, maxResults))
	if err != nil {
		return nil, failed(ctx, scope, "searching", err)
	}
	return vector.Fuse(nil, similar, 1, q.Limit), nil
}

// nearest returns the n records most similar to q, by descending similarity and then
// by ID.
func (s *Store) nearest(ctx context.Context, name string, q *vector.Query, n int) ([]vector.Match, error) {
	v, err := vector.Unit(q.Vector)
	if err != nil {
		return nil, fmt.Errorf("the query's vector: %w", err)
	}
	least := float32(q.Least)
	request := &qdrant.QueryPoints{
		CollectionName: name,
		Query:          qdrant.NewQueryDense(v),
		Params:         &qdrant.SearchParams{Exact: qdrant.PtrOf(true)},
		// The documentation does not say whether the threshold itself passes, so lower
		// it slightly.
		ScoreThreshold: qdrant.PtrOf(max(0, math.Nextafter32(least, -1))),
		WithPayload:    qdrant.NewWithPayloadInclude(fieldTool, fieldServer),
	}
	if q.Servers != nil { // no names, none found
		servers := slices.DeleteFunc(slices.Clone(q.Servers), func(s string) bool { return !utf8.ValidString(s) })
		if len(servers) == 0 {
			return nil, nil
		}
		request.Filter = &qdrant.Filter{Must: []*qdrant.Condition{qdrant.NewMatchKeywords(fieldServer, servers...)}}
	}
	// The engine returns ties in any order. So ask for one more, and if it ties with
	// the last, for all that do.
	var points []*qdrant.ScoredPoint
	for limit := n + 1; ; limit *= 4 {
		request.Limit = qdrant.PtrOf(uint64(limit))
		r, err := s.client.GetPointsClient().Query(ctx, request, callOptions...)
		switch {
		case status.Code(err) == codes.NotFound:
			return nil, nil
		case err != nil:
			return nil, s.explain(ctx, name, len(v), err)
		}
		points = r.GetResult()
		if len(points) < limit || points[limit-1].GetScore() < points[n-1].GetScore() || limit > maxResults {
			break
		}
	}
	var found []vector.Match
	for _, p := range points {
		tool, ok := toolOf(p.GetId(), p.GetPayload())
		if ok && p.GetScore() >= least && p.GetScore() > 0 {
			found = append(found, vector.Match{
				ID: tool, Server: p.GetPayload()[fieldServer].GetStringValue(), Similarity: min(float64(p.GetScore()), 1),
			})
		}
	}
	slices.SortFunc(found, func(a, b vector.Match) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.ID, b.ID))
	})
	return found[:min(n, len(found))], nil
}
