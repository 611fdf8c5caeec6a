package main

import (
	"fmt"

	"github.com/mcphybrid/mcphybrid"
)

const k = 5 // tools that a search is asked for, here and wherever time is measured

// A quality is what the engines find in one corpus, on its own tools.
type quality struct {
	Corpus  string             `json:"corpus"`
	Tools   int                `json:"tools"`
	Queries int                `json:"queries"`  // that any tool is relevant for
	Recall  map[string]float64 `json:"recall@5"` // by engine
}

func qualityOf(c corpus, names []string) (quality, error) {
	q := quality{c.name, len(c.lines), 0, make(map[string]float64)}
	for _, query := range c.queries {
		if len(query.Relevant) > 0 {
			q.Queries++
		}
	}
	tools, err := decodeAll(c.lines)
	if err != nil {
		return q, err
	}
	for _, name := range names {
		if q.Recall[name], err = recall(newEngine(name), tools, c.queries); err != nil {
			return q, fmt.Errorf("%s: %w", name, err)
		}
	}
	return q, nil
}

// recall returns how much of what is relevant is among the best k, as a mean
// over the queries that anything is relevant for. A query with more than k
// relevant tools can't reach 1.
func recall(e engine, tools []*tool, queries []labelled) (float64, error) {
	if err := e.build(tools); err != nil {
		return 0, err
	}
	sum, n := 0.0, 0
	dst := make([]mcphybrid.Match, 0, k)
	for _, q := range queries {
		if len(q.Relevant) == 0 {
			continue
		}
		matches, err := e.search(dst, q.Query, k)
		if err != nil {
			return 0, fmt.Errorf("query %q: %w", q.Query, err)
		}
		relevant := make(map[string]bool)
		for _, id := range q.Relevant {
			relevant[id] = true
		}
		found := 0
		for _, m := range matches {
			if relevant[tools[m.Doc].ID] {
				found++
			}
		}
		sum += float64(found) / float64(len(relevant))
		n++
	}
	return sum / float64(max(n, 1)), e.close()
}

// meanRecall returns the mean over corpora, each counting once.
func meanRecall(qualities []quality, engine string) float64 {
	sum := 0.0
	for _, q := range qualities {
		sum += q.Recall[engine]
	}
	return sum / float64(max(len(qualities), 1))
}
