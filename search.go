package mcphybrid

// A host's search, and what it has in common with the model's (modelsearch.go). searchindexes.go says
// which indexes are asked, searchsides.go how words and meaning are one list.

import (
	"cmp"
	"context"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/search"
)

// maxQueryBytes bounds a query. A model writes only a few words.
const maxQueryBytes = 4 << 10

// A Hit is one tool found by [Session.Search].
type Hit struct {
	Tool *BridgeTool

	// Score is comparable only within one search. It falls from hit to hit,
	// or stays equal, where one index has all that is searched. Else, where no meaning counts, the
	// hits of two indexes take turns, and the scores fall within each: in the sessions of a
	// user, whose tools have their own, and with [SearchOptions.DeferredOnly] in a session with
	// restrictions, which defers tools that others have inline.
	Score float64

	// Words is the score by the words of the query; where meaning counts, divided by the
	// greatest. Similarity is, with [Options.Semantic], the similarity in meaning: see
	// [vector.Match]. Both are 0 for a tool that the query names and for one that another
	// hit needs.
	Words, Similarity float64

	// NeededBy is the hit that needs this tool. It is nil for a tool that the
	// search itself found.
	NeededBy *BridgeTool

	// Standing says whether the model has the tool: see [Placement]. It is
	// "inline", "summarized", "deferred" or, with [ByBridge], "active".
	Standing string
}

// A SearchSide is one of the two ways to find tools.
type SearchSide string

const (
	ByWords   SearchSide = "words"
	ByMeaning SearchSide = "meaning"
)

// Snippet returns the first 200 characters of the tool's description, on one
// line.
func (h Hit) Snippet() string { return text.Line(h.Tool.def.Description, DefaultMaxDescription) }

// SearchOptions narrow a search. The zero value searches with the [Options] of
// the [Manager].
type SearchOptions struct {
	// Limit is the largest number of hits, itself limited to
	// [RankingOptions.Limit]. If zero or negative, [RankingOptions.Results].
	Limit int

	// By limits the search to words or to meaning. If empty, the search uses
	// both. It has no effect without [Options.Semantic]: the search is then by
	// words.
	By SearchSide

	// Servers, if not empty, limits the search to the tools of these servers.
	// Each entry is a name or a pattern as in [Access]. A tool that a hit needs
	// may belong to another server.
	Servers []string

	// ServerLimit is the largest number of hits from one server. If zero,
	// [RankingOptions.ServerLimit]. If negative, there is no limit.
	ServerLimit int

	// DeferredOnly leaves out inline tools, which the model has from the start.
	// The search tool of the model finds what such a search finds, but for [ByProvider] once
	// nothing can be added: then only what the model was sent. By the bridge it also finds
	// inline tools that came after the list was sent.
	DeferredOnly bool
}

// Search returns the inline and deferred tools that best match query, best first, for the
// host: [Hit.Standing] tells them apart. The model's search tool usually returns deferred
// ones only: see [SearchOptions.DeferredOnly]. Tools of equal score are in registration order. Search considers only tools that the
// session may use, and active ones only with [ByBridge], where the model's list does not
// have them. It activates nothing.
//
// The scores of inline and deferred tools are on one scale: how rare a word is
// and how long a text is usually are counted over all tools. By meaning, only tools
// with a vector are found: those that sessions without restrictions search for, and all of
// a user's own. Any other has a Similarity of 0.
//
// Search returns at most n hits, or [RankingOptions.Results] if n <= 0, and never
// more than [RankingOptions.Limit]. It returns nil if no tool matches. The deferred
// tools that the hits need follow them with a score of 0, up to
// [RankingOptions.Limit] in all: see [Options.Needs].
//
// If the query is a tool's name, registered or own, that tool comes first. So
// does a tool whose name is a word of the query, if the name looks like an
// identifier, such as create_issue. The query "select:a,b" returns only the tools
// named a and b, in this order.
func (s *Session) Search(query string, n int) []Hit {
	return s.Find(context.Background(), query, SearchOptions{Limit: n}).Hits
}

// An Answer is the result of [Session.Find].
type Answer struct {
	Hits []Hit

	// Query is what was searched for, and Limit the largest number of hits that
	// the search itself could find. Alpha is the weight of meaning in the scores,
	// from 0 (only words) to 1. It is 1 if no word of the query was found, and 0
	// with [SemanticOptions.ByRank].
	Query string
	Limit int
	Alpha float64

	// Words and Meaning are how many candidates the search found by words and
	// by meaning. Meaning is 0 without [Options.Semantic].
	Words, Meaning int

	// Err says why the search by meaning failed or is incomplete: the embedder
	// or the store is slow, down or still being filled. Hits then has the
	// results by words. Err is nil without [Options.Semantic].
	Err error
}

// Find is [Session.Search] with more options and within ctx. It also says how many candidates each
// side found and whether the search by meaning failed. If ctx ends early, the
// hits are those by words.
func (s *Session) Find(ctx context.Context, query string, opts SearchOptions) Answer {
	v := s.view()
	may, parts := v.deferredTools(), v.parts
	if !opts.DeferredOnly {
		deferred := may
		may, parts = func(t *BridgeTool, st standing) bool { return st == inline || deferred(t, st) }, v.partsWithInline
	}
	a := v.searchIn(ctx, query, opts, may, parts)
	a.Hits = v.andNeeded(a.Hits, s.tenant.opts.Search.Limit)
	for i := range a.Hits {
		h := &a.Hits[i]
		if h.Standing = v.standing(h.Tool).String(); v.isActive(h.Tool.name) {
			h.Standing = "active"
		}
	}
	return a
}

// deferredTools returns a function that reports whether a tool is deferred and
// not in the model's list.
func (v *view) deferredTools() func(*BridgeTool, standing) bool {
	active := v.activeInList()
	return func(t *BridgeTool, st standing) bool { return st.Searchable() && !active[t] }
}

// search is Find among the tools that may accepts, without the tools that the
// hits need. Those that no catalog has indexed have an index of their own.
func (v *view) search(ctx context.Context, query string, opts SearchOptions, may func(*BridgeTool, standing) bool) Answer {
	return v.searchIn(ctx, query, opts, may, v.parts)
}

// searchIn is search in the indexes that parts returns.
func (v *view) searchIn(ctx context.Context, query string, opts SearchOptions, may func(*BridgeTool, standing) bool, parts func(func(*BridgeTool, standing) bool, ...string) []searchPart) Answer {
	n := opts.Limit
	if n <= 0 {
		n = v.tenant.opts.Search.Results
	}
	limit, tools := min(n, v.tenant.opts.Search.Limit), 0
	for _, c := range v.catalogs {
		tools += len(c.tools)
	}
	n = min(limit, tools) // the limit may be NoLimit
	names, only := queryNames(query)
	seen := v.seenBy(may)
	named := v.named(names, func(t *BridgeTool, st standing) bool {
		return seen(t, st) && (len(opts.Servers) == 0 || rules.MatchAny(opts.Servers, t.def.Server))
	})
	if only {
		return Answer{Hits: hitsOf(named, nil, n), Query: query, Limit: limit}
	}
	w := searchRequest{query: query, n: n, perServer: cmp.Or(opts.ServerLimit, v.tenant.opts.Search.ServerLimit), perOwner: v.tenant.user.most, named: named, by: opts.By, used: v.tenant.learnedUse()}
	if v.tenant.semantic != nil {
		w.vector = v.tenant.semantic.QueryVector(query)
	}
	a := searchAll(ctx, parts(may, opts.Servers...), w)
	a.Hits, a.Query, a.Limit = hitsOf(named, a.Hits, n), query, limit
	return a
}

// activeInList returns the set of active tools that are in the model's list.
func (v *view) activeInList() map[*BridgeTool]bool {
	if v.disclosure == ByBridge {
		return make(map[*BridgeTool]bool)
	}
	return v.activeSet()
}

// hitsOf returns the first n of the named tools followed by found. A named tool
// gets the best score of found.
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

// Explain returns how the words of query score the tool with that registered name, by the
// scale of [Session.Search], even if a search would not return the tool. It ignores limits
// and the preference for tools that the query names. The Explanation is empty for
// a tool that the session does not see.
func (s *Session) Explain(query, name string) search.Explanation {
	v := s.view()
	return explanationIn(query, name, v.partsWithInline(func(_ *BridgeTool, st standing) bool { return st != hidden }))
}

// explainDeferred is Explain for a deferred tool, by the scale of the model's search tool.
func (s *Session) explainDeferred(query, name string) search.Explanation {
	v := s.view()
	return explanationIn(query, name, v.parts(func(_ *BridgeTool, st standing) bool { return st.Searchable() }))
}

func explanationIn(query, name string, parts []searchPart) search.Explanation {
	for _, p := range parts {
		if i, ok := p.indexOf(name); ok && p.may(p.tools[i], p.verdicts.ofTool(i).standing) {
			if doc, ok := slices.BinarySearch(p.indexed(), i); ok {
				return p.index().Explain(query, doc)
			}
		}
	}
	return search.Explanation{}
}
