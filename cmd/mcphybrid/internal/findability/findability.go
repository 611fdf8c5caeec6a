// Package findability says where a search finds a tool, and why others come before it.
package findability

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/search"
)

// Seen is how many hits of a search a model sees by default.
const Seen = mcphybrid.DefaultSearchResults

// An Answer is where a search finds any of the tools that are wanted.
type Answer struct {
	Wanted *mcphybrid.BridgeTool // the first of them among the hits, or else the one that scores most; nil if none is wanted
	Rank   int                   // its place among the hits, from 1, or 0 if it is not there
	Hits   []*mcphybrid.BridgeTool

	session *mcphybrid.Session
	query   string
	full    bool // there may be more hits
}

// Ask searches for query. The hits are as many as Options.Search.Limit of the Manager
// lets through, without those that others need.
func Ask(s *mcphybrid.Session, query string, wanted ...*mcphybrid.BridgeTool) Answer {
	a := Answer{session: s, query: query}
	found := s.Find(context.Background(), query, mcphybrid.SearchOptions{Limit: mcphybrid.NoLimit})
	for _, h := range found.Hits {
		if h.Score == 0 {
			continue // a tool that a hit needs
		}
		a.Hits = append(a.Hits, h.Tool)
		if a.Wanted == nil && has(wanted, h.Tool) {
			a.Wanted, a.Rank = h.Tool, len(a.Hits)
		}
	}
	a.full = len(a.Hits) >= found.Limit
	if a.Wanted == nil {
		a.Wanted, _ = Nearest(s, query, wanted)
	}
	return a
}

// has compares names, since a tool is another value after each change of the catalog.
func has(tools []*mcphybrid.BridgeTool, t *mcphybrid.BridgeTool) bool {
	return slices.ContainsFunc(tools, func(w *mcphybrid.BridgeTool) bool { return w.Name() == t.Name() })
}

// Place says where the wanted tool is.
func (a Answer) Place() string {
	switch {
	case a.Rank == 0 && a.full:
		return fmt.Sprintf("not among the first %d", len(a.Hits))
	case a.Rank == 0:
		return "not found"
	}
	return fmt.Sprintf("at place %d", a.Rank)
}

// A Why is why a tool is not the first hit.
type Why struct {
	First *mcphybrid.BridgeTool // nil if there is no hit
	Words []Word                // why First scores more, the word that adds most first
	Lacks []string              // the words of the query that find nothing in the wanted tool

	below         string  // why the wanted tool is not found, or ""
	score, before float64 // of the wanted tool, and of First
}

// A Word is one of the query's by which one tool scores more than another.
type Word struct {
	Word   string   `json:"word"`   // "" for a bonus, which First and Wanted name
	More   float64  `json:"more"`   // what it adds to the score of the first, less what it adds to that of the wanted
	First  []string `json:"first"`  // the fields of the first that have it
	Wanted []string `json:"wanted"` // and those of the wanted
}

// Why compares the wanted tool with the first hit.
func (a Answer) Why() (w Why) {
	own := a.session.Explain(a.query, a.Wanted.Name())
	w.Lacks, w.score = own.Missing, own.Score
	if a.Rank == 0 && !a.full {
		w.below = Unfound(own)
	}
	if len(a.Hits) == 0 {
		return w
	}
	w.First = a.Hits[0]
	other := a.session.Explain(a.query, w.First.Name())
	w.before = other.Score
	w.Words = decide(other, own)
	return w
}

// decide returns the words by which first scores more than wanted.
func decide(first, wanted search.Explanation) (list []Word) {
	at := make(map[string]int)
	word := func(p search.ScorePart) *Word {
		key := p.Word
		if key == "" {
			key = " " + p.Field // no word has a space
		}
		if _, ok := at[key]; !ok {
			at[key] = len(list)
			list = append(list, Word{Word: p.Word, First: []string{}, Wanted: []string{}})
		}
		return &list[at[key]]
	}
	for _, p := range first.Parts {
		w := word(p)
		w.More += p.Score
		w.First = with(w.First, p.Field)
	}
	for _, p := range wanted.Parts {
		w := word(p)
		w.More -= p.Score
		w.Wanted = with(w.Wanted, p.Field)
	}
	list = slices.DeleteFunc(list, func(w Word) bool { return w.More < negligible })
	slices.SortStableFunc(list, func(a, b Word) int { return cmp.Compare(b.More, a.More) })
	return list
}

// negligible is less than a word adds; scores are sums of floats.
const negligible = 0.0005

func with(fields []string, field string) []string {
	if slices.Contains(fields, field) {
		return fields
	}
	return append(fields, field)
}

// most is how many words a sentence has.
const most = 3

// Sentences returns w for people: why the wanted tool is not found, if it is not, and why
// First comes before it.
func (w Why) Sentences() (list []string) {
	if w.below != "" {
		list = append(list, "it "+w.below)
	}
	if w.First == nil {
		return append(list, "nothing is found")
	}
	reason := "listed before it, with the same score"
	switch {
	case w.score > w.before+negligible:
		reason = "its name is in the query"
	case len(w.Words) > 0:
		var words []string
		for _, word := range w.Words[:min(len(w.Words), most)] {
			words = append(words, word.String())
		}
		reason = strings.Join(words, ", ")
	}
	return append(list, fmt.Sprintf("%s is first: %s", Label(w.First), reason))
}

// String returns w for people, such as “issue” (name, description; wanted: parameters).
func (w Word) String() string {
	if w.Word == "" {
		return "the bonus for " + slices.Concat(w.First, w.Wanted)[0] // one of them may be a malus
	}
	wanted := strings.Join(w.Wanted, ", ")
	return fmt.Sprintf("“%s” (%s; wanted: %s)", w.Word, strings.Join(w.First, ", "), cmp.Or(wanted, "nowhere"))
}

// Label returns how people name a tool: server/tool.
func Label(t *mcphybrid.BridgeTool) string { return t.Server() + "/" + t.OriginalName() }

// Nearest returns the tool that scores most for query, even if a search would not return
// it: the first of equals, or nil if there are no tools.
func Nearest(s *mcphybrid.Session, query string, tools []*mcphybrid.BridgeTool) (best *mcphybrid.BridgeTool, e search.Explanation) {
	for _, t := range tools {
		if next := s.Explain(query, t.Name()); best == nil || next.Score > e.Score {
			best, e = t, next
		}
	}
	return best, e
}

// NoWord says of a query that it finds nothing anywhere.
const NoWord = "the query has no word to search for: words such as “the” and “my” find nothing"

// Unfound says why a search does not find a tool, with the tool as the subject.
func Unfound(e search.Explanation) string {
	missing := strings.Join(e.Missing, ", ")
	switch {
	case len(e.Parts) == 0 && missing == "":
		return "can't be found: " + NoWord
	case len(e.Parts) == 0:
		return "has no word of the query: " + missing
	case e.Score >= e.Least:
		return "does not match well enough"
	case missing != "":
		return fmt.Sprintf("scores %.3f, below the threshold of %.3f; it lacks: %s", e.Score, e.Least, missing)
	}
	return fmt.Sprintf("scores %.3f, below the threshold of %.3f", e.Score, e.Least)
}
