package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

const k = 5 // results per search, here and in all time measurements

// A quality says what the engines find in one corpus, on its own tools.
type quality struct {
	Corpus  string             `json:"corpus"`
	English bool               `json:"english"` // nine in ten queries are in Latin letters
	Tools   int                `json:"tools"`
	Queries int                `json:"queries"`  // that have a relevant tool
	Recall  map[string]float64 `json:"recall@5"` // by engine
}

func qualityOf(c corpus) (quality, error) {
	foreign := 0
	q := quality{Corpus: c.name, Tools: len(c.tools), Recall: make(map[string]float64)}
	for _, query := range c.queries {
		if len(query.Relevant) > 0 {
			q.Queries++
		}
		if strings.ContainsFunc(query.Query, func(r rune) bool { return unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) }) {
			foreign++
		}
	}
	q.English = 10*foreign <= len(c.queries)
	for _, e := range engines {
		r, err := recall(e.make(), c.tools, c.queries)
		if err != nil {
			return q, fmt.Errorf("%s: %w", e.name, err)
		}
		q.Recall[e.name] = r
	}
	return q, nil
}

// recall returns the share of the relevant tools that is among the best k, as a
// mean over the queries that have relevant tools. A query with more than k
// relevant tools can't reach 1.
func recall(e engine, tools []*tool, queries []labelled) (float64, error) {
	if err := e.build(tools); err != nil {
		return 0, err
	}
	sum, n := 0.0, 0
	for _, q := range queries {
		if len(q.Relevant) == 0 {
			continue
		}
		matches, err := e.search(nil, q.Query, k)
		if err != nil {
			return 0, fmt.Errorf("query %q: %w", q.Query, err)
		}
		found := 0
		for _, m := range matches {
			if slices.Contains(q.Relevant, tools[m.Doc].ID) {
				found++
			}
		}
		sum += float64(found) / float64(len(q.Relevant))
		n++
	}
	return sum / float64(max(n, 1)), e.close()
}

// meanRecall returns the mean over corpora. Each counts once.
func meanRecall(qualities []quality, engine string) float64 {
	sum := 0.0
	for _, q := range qualities {
		sum += q.Recall[engine]
	}
	return sum / float64(max(len(qualities), 1))
}
