package mcphybrid

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/search"
)

// maxQueryBytes bounds a query; a model writes a few words.
const maxQueryBytes = 4 << 10

// A Hit is one tool found by [Session.Search].
type Hit struct {
	Tool *BridgeTool

	// Score is comparable only with others of the same search, and among the
	// hits of one Manager not above that of the hit before: in a session of a
	// user's Manager, the best of the user's and of the system's tools take
	// turns. See [Manager.NewUser].
	Score float64

	// Words and Similarity are what the words of the query and, with
	// [Options.Semantic], its meaning gave: see [vector.Match]. Both are 0 for
	// what the query names, and for what is needed.
	Words, Similarity float64

	// NeededBy is the hit that needs this tool, if it was not found itself.
	NeededBy *BridgeTool
}

// A SearchSide is one of the two ways in which tools are found.
type SearchSide string

const (
	ByWords   SearchSide = "words"
	ByMeaning SearchSide = "meaning"
)

// Snippet returns the first 200 characters of the tool's description, on one
// line.
func (h Hit) Snippet() string { return text.Line(h.Tool.def.description, DefaultMaxDescription) }

// SearchOptions narrow a search. The zero value is a search with the
// [Options] of the [Manager].
type SearchOptions struct {
	// Limit is the largest number of hits, within [Options.SearchLimit]. If
	// zero or negative, [Options.SearchResults].
	Limit int

	// By says, with [Options.Semantic], whether tools are found by words, by
	// meaning or, if it is empty, by both. Without it, it is by words.
	By SearchSide

	// Servers, if not empty, are those whose tools are considered, by name or
	// a pattern of it as in [Access]. What these need may be of others.
	Servers []string

	// ServerLimit is the largest number of hits from one server. If zero,
	// [Options.ServerLimit]. If negative, there is none.
	ServerLimit int
}

// Search returns the deferred tools that best match query, best first; tools
// of equal score are in registration order. Only tools that the session may
// use and has not active are considered. It returns at most n of them, at most
// [Options.SearchLimit], and nil if none matches; with n <= 0 it returns up to
// [Options.SearchResults]. Search activates nothing.
//
// Behind them follow the deferred tools that they need, with a score of 0 and
// as many as [Options.SearchLimit] leaves room for: see [Options.Needs].
//
// A tool whose name, registered or its own, is the query comes first, and
// so does one whose name is a word of the query, if it is an identifier such as
// create_issue. The query "select:a,b" returns just the tools of these names,
// in this order.
func (s *Session) Search(query string, n int) []Hit {
	return s.SearchWith(query, SearchOptions{Limit: n})
}

// SearchWith is like [Session.Search] with opts.
func (s *Session) SearchWith(query string, opts SearchOptions) []Hit {
	return s.Find(context.Background(), query, opts).Hits
}

// An Answer is what [Session.Find] found.
type Answer struct {
	Hits []Hit

	// Words and Meaning are how many tools were considered that were found by
	// either; Meaning is 0 without [Options.Semantic].
	Words, Meaning int

	// Err says why tools were not, or not all, found by meaning. It is nil
	// without [Options.Semantic].
	Err error
}

// Find is like [Session.SearchWith]. With [Options.Semantic] it finds by meaning
// too, unless ctx ends before, and tells what each side gave.
func (s *Session) Find(ctx context.Context, query string, opts SearchOptions) Answer {
	v := s.view()
	a := v.search(ctx, query, opts, v.deferredTools())
	a.Hits = v.andNeeded(a.Hits, s.scope.opts.SearchLimit)
	return a
}

// deferredTools reports of tools whether they are deferred and not in the model's
// list.
func (v view) deferredTools() func(*BridgeTool, standing) bool {
	active := v.activeInList()
	return func(t *BridgeTool, st standing) bool { return st.searchable() && !active[t] }
}

// search is Find without what the hits need, among the tools that may be found.
func (v view) search(ctx context.Context, query string, opts SearchOptions, may func(*BridgeTool, standing) bool) Answer {
	n := opts.Limit
	if n <= 0 {
		n = v.scope.opts.SearchResults
	}
	n = min(n, v.scope.opts.SearchLimit)
	keep := may
	if len(opts.Servers) > 0 {
		keep = func(t *BridgeTool, st standing) bool { return may(t, st) && rules.MatchAny(opts.Servers, t.def.server) }
	}
	names, only := namesIn(query)
	named := v.named(names, keep)
	if only {
		return Answer{Hits: hitsOf(named, nil, n)}
	}
	w := want{query: query, n: n, perServer: cmp.Or(opts.ServerLimit, v.scope.opts.ServerLimit), perOwner: v.scope.user.most, named: named, by: opts.By}
	if v.scope.semantic != nil {
		w.vector = v.scope.semantic.queryVector(query)
	}
	a := searchAll(ctx, v.parts(keep), w)
	a.Hits = hitsOf(named, a.Hits, n)
	return a
}

// activeInList returns the active tools that are in the model's list, as a set.
func (v view) activeInList() map[*BridgeTool]bool {
	if v.disclosure == ByBridge {
		return make(map[*BridgeTool]bool)
	}
	return v.activeSet()
}

// hitsOf returns the first n of the named tools and then of what was found. What
// is named scores as high as the best of that.
func hitsOf(named []*BridgeTool, found []Hit, n int) []Hit {
	top := 1.0
	if len(found) > 0 {
		top = found[0].Score
	}
	var hits []Hit
	for _, t := range named {
		hits = append(hits, Hit{Tool: t, Score: top})
	}
	hits = append(hits, found...)
	return hits[:min(n, len(hits))]
}

// Explain tells how the deferred tool of that registered name scores for query,
// whether it would be found or not. It is empty for any other tool, and does
// not know of names that come first and of limits.
func (s *Session) Explain(query, name string) search.Explanation {
	v := s.view()
	may := func(_ *BridgeTool, st standing) bool { return st.searchable() }
	for _, p := range v.parts(may) {
		if i, ok := p.byName[name]; ok && p.may(p.tools[i], p.verdicts[i].standing) {
			if doc, ok := slices.BinarySearch(p.indexed, i); ok {
				return p.index.Explain(query, doc)
			}
		}
	}
	return search.Explanation{}
}

// named returns the tools of these names, registered or their own, that keep lets
// through, each once: in the order of the names, and of equal names in their own.
func (s *selection) named(names []string, keep func(*BridgeTool, standing) bool) (list []*BridgeTool) {
	add := func(i, j int) {
		t := s.catalogs[i].tools[j]
		if keep(t, s.verdicts[i][j].standing) && !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	for _, name := range names {
		if i, j, ok := s.find(name); ok {
			add(i, j)
			continue
		}
		for i, c := range slices.Backward(s.catalogs) {
			for _, j := range c.originals()[name] {
				add(i, j)
			}
		}
	}
	return list
}

// namesIn returns what may be the name of a tool in query. only is set if
// it has nothing else.
func namesIn(query string) (names []string, only bool) {
	query = strings.TrimSpace(query)
	split := func(r rune) bool { return r == ',' || r == '`' || r == '"' || r == '\'' || unicode.IsSpace(r) }
	if len(query) > len(selectPrefix) && strings.EqualFold(query[:len(selectPrefix)], selectPrefix) {
		return strings.FieldsFunc(query[len(selectPrefix):], split), true
	}
	words := strings.FieldsFunc(query, split)
	if len(words) == 1 {
		return words, false
	}
	for _, w := range words {
		if isIdentifier(w) {
			names = append(names, w)
		}
	}
	return names, false
}

const selectPrefix = "select:"

// isIdentifier reports whether no ordinary text has the word w.
func isIdentifier(w string) bool {
	for i := 1; i < len(w)-1; i++ {
		if strings.IndexByte("_-./:", w[i]) >= 0 || text.IsLower(w[i-1]) && text.IsUpper(w[i]) {
			return true
		}
	}
	return false
}
