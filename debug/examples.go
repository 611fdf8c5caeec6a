package debug

import (
	"cmp"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// maxExamples is how many examples of one kind a page offers.
const maxExamples = 6

// examples are what a person may click on a page that asks for something.
type examples struct {
	Recent  []example // what was asked or called last, newest first
	Catalog []example // of each server one, in registration order, then others
}

type example struct{ Text, Link string }

// add adds an example unless there is one of that text, or there are enough.
func add(list []example, e example) []example {
	for _, other := range list {
		if other.Text == e.Text {
			return list
		}
	}
	if len(list) == maxExamples || e.Text == "" || strings.ContainsAny(e.Text, "[…") { // something is hidden or cut
		return list
	}
	return append(list, e)
}

// searchExamples returns queries: what models searched for, and what tools are called.
func searchExamples(snap snapshot.Manager, r request) (e examples) {
	for _, event := range snap.Events() {
		if event.Kind == string(mcphybrid.EventSearch) {
			e.Recent = add(e.Recent, example{event.Query, r.Search(event.Query)})
		}
	}
	for _, t := range spread(snap, "deferred", "summarized", "active", "inline") {
		query := phrase(cmp.Or(t.Title.Line(maxName), t.Original.Line(maxName)))
		e.Catalog = add(e.Catalog, example{query, r.Search(query)})
	}
	return e
}

// whyExamples returns tools: those that were called, and some of each server.
func whyExamples(snap snapshot.Manager, r request) (e examples) {
	for _, event := range snap.Events() {
		if event.Kind == string(mcphybrid.EventCall) && len(event.Tools) > 0 {
			e.Recent = add(e.Recent, example{event.Tools[0], r.Why(event.Tools[0])})
		}
	}
	for _, t := range spread(snap, "quarantined", "hidden", "deferred", "summarized", "active", "inline") {
		e.Catalog = add(e.Catalog, example{t.Name, r.Why(t.Name)})
	}
	return e
}

// spread returns tools of these standings: of each server the first of the first standing that
// it has, and then a few others.
func spread(snap snapshot.Manager, standings ...string) (list []snapshot.Tool) {
	rank := make(map[string]int)
	for i, standing := range standings {
		rank[standing] = i + 1
	}
	place := make(map[snapshot.Text]int)
	var others []snapshot.Tool
	for _, t := range snap.Tools() {
		if rank[t.Standing] == 0 || t.Hidden {
			continue
		}
		i, ok := place[t.Server]
		switch {
		case !ok:
			place[t.Server] = len(list)
			list = append(list, t)
		case rank[t.Standing] < rank[list[i].Standing]:
			list[i] = t
		case len(others) < maxExamples:
			others = append(others, t)
		}
	}
	return append(list, others...)
}

// phrase returns the words of a name.
func phrase(name string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("_-./: ", r) }), " "))
}
