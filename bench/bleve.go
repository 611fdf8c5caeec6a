package main

import (
	"strconv"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/search/query"
	"github.com/mcphybrid/mcphybrid/search"
)

// bleveEngine is bleve in memory, in its fastest mode. We also tried these:
//
// NewMemOnly, the older index on a tree in memory instead of scorch, builds
// four times and answers seven times slower.
//
// Batches of 500 instead of one batch leave a segment each. In memory, segments are
// never merged, and queries read all of them, at 1.7 times the cost.
//
// BM25 instead of tf-idf, the default, is neither better nor faster.
type bleveEngine struct {
	fields []bleveField
	index  bleve.Index
}

type bleveField struct {
	name  string
	boost float64
}

// bleveFields are the obvious fields, bleveTuned the best that we found: over
// nine corpora its mean recall@5 is 0.73 instead of 0.70, in half the time.
// Other boosts of the five fields give 0.69 to 0.73. One field with everything
// gives 0.71.
var (
	bleveFields = []bleveField{{"server", 1}, {"name", 3}, {"description", 1}, {"params", 0.5}, {"param descriptions", 0.4}}
	bleveTuned  = []bleveField{{"name", 1}, {"all", 2}}
)

func (e *bleveEngine) build(tools []*tool) error {
	// We keep only what ranking needs.
	field := mapping.NewTextFieldMapping()
	field.Analyzer = en.AnalyzerName
	field.Store, field.IncludeInAll, field.IncludeTermVectors, field.DocValues = false, false, false, false
	m := mapping.NewIndexMapping()
	m.DefaultMapping = mapping.NewDocumentStaticMapping()
	for _, f := range e.fields {
		m.DefaultMapping.AddFieldMappingsAt(f.name, field)
	}

	var err error
	if e.index, err = bleve.NewUsing("", m, scorch.Name, scorch.Name, nil); err != nil {
		return err
	}
	batch := e.index.NewBatch()
	for i, t := range tools {
		if err := batch.Index(strconv.Itoa(i), e.document(t)); err != nil {
			return err
		}
	}
	return e.index.Batch(batch)
}

func (e *bleveEngine) document(t *tool) map[string]any {
	names, descriptions := parameters(t.InputSchema)
	values := map[string]string{
		"server": t.Server, "name": t.Name, "description": t.Description, "params": names, "param descriptions": descriptions,
	}
	fields := make(map[string]any)
	for _, f := range e.fields {
		value := values[f.name]
		if f.name == "all" {
			value = text(&t.Document) + " " + names + " " + descriptions
		}
		fields[f.name] = words(value)
	}
	return fields
}

func (e *bleveEngine) change(number int, t *tool) func() error {
	return func() error {
		if t == nil {
			return e.index.Delete(strconv.Itoa(number))
		}
		return e.index.Index(strconv.Itoa(number), e.document(t))
	}
}

func (e *bleveEngine) search(dst []search.Match, asked string, k int) ([]search.Match, error) {
	asked = words(asked)
	var parts []query.Query
	for _, f := range e.fields {
		q := bleve.NewMatchQuery(asked)
		q.SetField(f.name)
		q.SetBoost(f.boost)
		parts = append(parts, q)
	}
	result, err := e.index.Search(bleve.NewSearchRequestOptions(bleve.NewDisjunctionQuery(parts...), k, 0, false))
	if err != nil {
		return dst, err
	}
	for _, hit := range result.Hits {
		number, err := strconv.Atoi(hit.ID)
		if err != nil {
			return dst, err
		}
		dst = append(dst, search.Match{Doc: number, Score: hit.Score})
	}
	return dst, nil
}

func (e *bleveEngine) outside() (int, error) { return 0, nil }
func (e *bleveEngine) close() error          { return e.index.Close() }
