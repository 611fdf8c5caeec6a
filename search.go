package mcphybrid

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxQueryBytes bounds a query; a model writes a few words.
const maxQueryBytes = 4 << 10

// A Hit is one tool found by [Session.Search].
type Hit struct {
	Tool *BridgeTool

	// Score is comparable only with others of the same search, and not above
	// that of the hit before.
	Score float64

	// Words and Similarity are what the words of the query and, with
	// [Options.Semantic], its meaning gave: see [StoreMatch]. Both are 0 for
	// what the query names, and for what is needed.
	Words, Similarity float64

	// NeededBy is the hit that needs this tool, if it was not found itself.
	NeededBy *BridgeTool
}

// SearchOptions narrow a search. The zero value is a search with the
// [Options] of the [Manager].
type SearchOptions struct {
	// Limit is the largest number of hits, within [Options.SearchLimit]. If
	// zero or negative, [Options.SearchResults].
	Limit int

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
	a := v.find(ctx, query, opts, s.m)
	a.Hits = v.andNeeded(a.Hits, s.m.opts.SearchLimit)
	return a
}

// find is Find without what the hits need.
func (v view) find(ctx context.Context, query string, opts SearchOptions, m *Manager) Answer {
	n := opts.Limit
	if n <= 0 {
		n = m.opts.SearchResults
	}
	n = min(n, m.opts.SearchLimit)
	perServer := cmp.Or(opts.ServerLimit, m.opts.ServerLimit)
	active := v.activeInList()
	may := func(t *BridgeTool) bool {
		return !active[t] && v.sees(t) && (len(opts.Servers) == 0 || matchAny(opts.Servers, t.def.server))
	}
	keep := func(doc int) bool { return may(v.deferred[doc]) }
	named, only := v.named(query)
	named = slices.DeleteFunc(named, func(doc int) bool { return !keep(doc) })
	if only {
		return Answer{Hits: v.hits(named, nil, n, 0)}
	}
	a := Answer{}
	if m.semantic != nil {
		var fused []Hit
		if fused, a = v.findBoth(ctx, query, m.semantic, may); a.Meaning > 0 {
			a.Hits = v.hits(named, fused, n, perServer)
			return a
		}
	}
	// The index does not know of servers: it is asked for more until there are
	// enough that the limit lets through.
	for want := n; ; want *= 4 {
		matches := v.index.Search(query, want, keep)
		found := make([]Hit, len(matches))
		for i, match := range matches {
			found[i] = Hit{Tool: v.deferred[match.Doc], Score: match.Score, Words: match.Score}
		}
		a.Words = len(found)
		if a.Hits = v.hits(named, found, n, perServer); len(a.Hits) == n || len(matches) < want {
			return a
		}
	}
}

// findBoth searches by words and by meaning at once, and returns what was found
// by both together, best first. The answer has no hits yet.
func (v view) findBoth(ctx context.Context, query string, se *semantic, may func(*BridgeTool) bool) ([]Hit, Answer) {
	type side struct {
		matches []StoreMatch
		err     error
	}
	meaning := make(chan side, 1)
	go func() {
		matches, err := se.search(ctx, query, func(name string) bool {
			e := v.byName[name]
			return e.tool != nil && !e.inline && may(e.tool)
		})
		meaning <- side{matches, err}
	}()
	var words []StoreMatch
	for _, match := range v.index.Search(query, se.Candidates, func(doc int) bool { return may(v.deferred[doc]) }) {
		words = append(words, StoreMatch{ID: v.deferred[match.Doc].name, Words: match.Score})
	}
	similar := <-meaning
	a := Answer{Words: len(words), Meaning: len(similar.matches), Err: similar.err}
	var fused []StoreMatch
	if se.ByRank {
		fused = FuseRanks(words, similar.matches, math.MaxInt)
	} else {
		fused = Fuse(words, similar.matches, se.Alpha, math.MaxInt)
	}
	found := make([]Hit, len(fused))
	for i, f := range fused {
		found[i] = Hit{Tool: v.byName[f.ID].tool, Score: f.Score, Words: f.Words, Similarity: f.Similarity}
	}
	return found, a
}

// activeInList returns the active tools that are in the model's list, as a set.
func (v view) activeInList() map[*BridgeTool]bool {
	if v.disclosure == ByBridge {
		return make(map[*BridgeTool]bool)
	}
	return v.activeSet()
}

// hits returns the first n of the named documents, and then of what was found
// within the limit per server. What is named scores as high as the best match.
func (v view) hits(named []int, found []Hit, n, perServer int) []Hit {
	var hits []Hit
	top := 1.0
	if len(found) > 0 {
		top = found[0].Score
	}
	for _, doc := range named {
		hits = append(hits, Hit{Tool: v.deferred[doc], Score: top})
	}
	from := make(map[string]int)
	for _, h := range found {
		server := h.Tool.def.server
		isNamed := slices.ContainsFunc(hits[:len(named)], func(n Hit) bool { return n.Tool == h.Tool })
		if isNamed || perServer > 0 && from[server] == perServer {
			continue
		}
		from[server]++
		hits = append(hits, h)
	}
	return hits[:min(n, len(hits))]
}

// Explain tells how the deferred tool of that registered name scores for query,
// whether it would be found or not. It is empty for any other tool, and does
// not know of names that come first and of limits.
func (s *Session) Explain(query, name string) Explanation {
	v := s.view()
	e, ok := v.lookup(name)
	if !ok || e.inline {
		return Explanation{}
	}
	return v.index.Explain(query, slices.Index(v.deferred, e.tool))
}

// named returns the documents that query names, each once: in the order of the
// query, and of equal names in their own. only is set if it asks for no others.
func (c *catalog) named(query string) (docs []int, only bool) {
	names, only := namesIn(query)
	for _, name := range names {
		found := c.originals()[name]
		if e, ok := c.byName[name]; ok && !e.inline {
			found = []int{slices.Index(c.deferred, e.tool)}
		}
		for _, doc := range found {
			if !slices.Contains(docs, doc) {
				docs = append(docs, doc)
			}
		}
	}
	return docs, only
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
		if strings.IndexByte("_-./:", w[i]) >= 0 || isLower(w[i-1]) && isUpper(w[i]) {
			return true
		}
	}
	return false
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// answerSearch searches, activates what it finds and answers with it.
func (s *Session) answerSearch(ctx context.Context, args json.RawMessage) *mcp.CallToolResult {
	begun := time.Now()
	query, n, err := parseSearchArguments(args, s.m.opts.SearchResults)
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaSearch, err))
	}
	v := s.view()
	hits := v.find(ctx, query, SearchOptions{Limit: max(n, 1)}, s.m).Hits
	if v.disclosure == ByBridge {
		for _, t := range s.searchInline(v, query, n-len(hits)) {
			hits = append(hits, Hit{Tool: t})
		}
	}
	var found []*BridgeTool
	neededBy := make(map[string]string)
	for _, h := range v.andNeeded(hits, s.m.opts.SearchLimit) {
		found = append(found, h.Tool)
		if h.NeededBy != nil {
			neededBy[h.Tool.name] = h.NeededBy.name
		}
	}
	if v.disclosure != ByBridge {
		found = s.activate(namesOf(found)) // and no more: the limit bounds what is activated too
	}
	answer := searchAnswer{Tools: make([]foundTool, len(found)), Count: len(found)}
	for i, f := range found {
		answer.Tools[i] = foundTool{
			Name:         f.name,
			OriginalName: cleanLine(f.def.name, s.m.opts.MaxDescription),
			Server:       f.def.server,
			Description:  cleanLine(f.def.description, s.m.opts.MaxDescription),
			NeededBy:     neededBy[f.name],
		}
	}
	answer.Message = textFound(searchOutcome{
		found: len(found), disclosure: v.disclosure, keywords: v.index.hasTerms(query),
		callable: v.callable(query), connecting: s.m.connectingServers(v.rights),
	})
	text := jsonText(answer)
	s.countSearch(len(found))
	s.countAnswer(text)
	s.tell(Event{Kind: EventSearch, Query: query, Tools: namesOf(found), Took: time.Since(begun)})
	return mcp.NewToolResultText(text)
}

// searchInline searches the inline tools that the model was not shown, since
// they came when its list was fixed. There are few, so they have no index.
func (s *Session) searchInline(v view, query string, n int) (found []*BridgeTool) {
	s.mu.Lock()
	list := s.shown
	s.mu.Unlock()
	told := make(map[string]bool)
	for _, e := range list {
		if e.tool != nil {
			told[e.tool.name] = true
		}
	}
	tools := slices.DeleteFunc(v.filter(v.inline), func(t *BridgeTool) bool { return told[t.name] })
	if len(tools) == 0 || n <= 0 {
		return nil
	}
	for _, m := range newRetriever(nil, tools, &s.m.opts).Search(query, n, nil) {
		found = append(found, tools[m.Doc])
	}
	return found
}

// callable returns the registered names of the tools that query names and
// that need no search: the inline and the active ones.
func (v view) callable(query string) []string {
	names, _ := namesIn(query)
	var callable []string
	for _, t := range slices.Concat(v.inline, v.active) {
		if v.sees(t) && (slices.Contains(names, t.name) || slices.Contains(names, t.def.name)) {
			callable = append(callable, t.name)
		}
	}
	return callable
}

// A searchAnswer is what the model gets from a search.
type searchAnswer struct {
	Tools   []foundTool `json:"tools"`
	Count   int         `json:"count"`
	Message string      `json:"message"`
}

type foundTool struct {
	Name         string `json:"name"`
	OriginalName string `json:"original_name"`
	Server       string `json:"server"`
	Description  string `json:"description"`
	NeededBy     string `json:"needed_by,omitempty"` // the tool that it comes along with
}

// parseSearchArguments returns the query and how many results are asked for,
// standard if that is not said. A number of results that is no integer is
// rounded down, and may be any.
func parseSearchArguments(args json.RawMessage, standard int) (query string, n int, err error) {
	var in struct {
		Query      *string  `json:"query"`
		MaxResults *float64 `json:"max_results"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return "", 0, describeJSONError(args, err)
	}
	switch {
	case in.Query == nil || strings.TrimSpace(*in.Query) == "":
		return "", 0, errors.New(`"query" is missing or empty`)
	case len(*in.Query) > maxQueryBytes:
		return "", 0, fmt.Errorf(`"query" has %d bytes, more than the limit of %d`, len(*in.Query), maxQueryBytes)
	case in.MaxResults == nil:
		return *in.Query, standard, nil
	}
	// Within what fits an int, so that the conversion is defined.
	return *in.Query, int(math.Max(math.MinInt32, math.Min(math.MaxInt32, *in.MaxResults))), nil
}
