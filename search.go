package mcphybrid

import (
	"cmp"
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
	v := s.view()
	return v.andNeeded(v.search(query, opts, &s.m.opts), s.m.opts.SearchLimit)
}

func (v view) search(query string, opts SearchOptions, standard *Options) []Hit {
	n := opts.Limit
	if n <= 0 {
		n = standard.SearchResults
	}
	n = min(n, standard.SearchLimit)
	perServer := cmp.Or(opts.ServerLimit, standard.ServerLimit)
	active := v.activeInList()
	keep := func(doc int) bool {
		t := v.deferred[doc]
		return !active[t] && v.sees(t) && (len(opts.Servers) == 0 || matchAny(opts.Servers, t.def.server))
	}
	named, only := v.named(query)
	named = slices.DeleteFunc(named, func(doc int) bool { return !keep(doc) })
	if only {
		return v.hits(named, nil, n, 0)
	}
	// The index does not know of servers: it is asked for more until there are
	// enough that the limit lets through.
	for want := n; ; want *= 4 {
		matches := v.index.Search(query, want, keep)
		hits := v.hits(named, matches, n, perServer)
		if len(hits) == n || len(matches) < want {
			return hits
		}
	}
}

// activeInList returns the active tools that are in the model's list, as a set.
func (v view) activeInList() map[*BridgeTool]bool {
	if v.disclosure == ByBridge {
		return make(map[*BridgeTool]bool)
	}
	return v.activeSet()
}

// hits returns the first n of the named documents, and then of the matches
// within the limit per server. What is named scores as high as the best match.
func (v view) hits(named []int, matches []Match, n, perServer int) []Hit {
	var hits []Hit
	top := 1.0
	if len(matches) > 0 {
		top = matches[0].Score
	}
	for _, doc := range named {
		hits = append(hits, Hit{Tool: v.deferred[doc], Score: top})
	}
	from := make(map[string]int)
	for _, m := range matches {
		t := v.deferred[m.Doc]
		if slices.Contains(named, m.Doc) || perServer > 0 && from[t.def.server] == perServer {
			continue
		}
		from[t.def.server]++
		hits = append(hits, Hit{Tool: t, Score: m.Score})
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
func (s *Session) answerSearch(args json.RawMessage) *mcp.CallToolResult {
	begun := time.Now()
	query, n, err := parseSearchArguments(args, s.m.opts.SearchResults)
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaSearch, err))
	}
	v := s.view()
	hits := v.search(query, SearchOptions{Limit: max(n, 1)}, &s.m.opts)
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
