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
	"sync"
	"time"
	"unicode"

	"github.com/mark3labs/mcp-go/mcp"
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
	a := v.search(ctx, query, opts, s.m, v.deferredTools())
	a.Hits = v.andNeeded(a.Hits, s.m.opts.SearchLimit)
	return a
}

// deferredTools reports of tools whether they are deferred and not in the model's
// list.
func (v view) deferredTools() func(*BridgeTool, standing) bool {
	active := v.activeInList()
	return func(t *BridgeTool, st standing) bool { return st.searchable() && !active[t] }
}

// search is Find without what the hits need, among the tools that may be found.
func (v view) search(ctx context.Context, query string, opts SearchOptions, m *Manager, may func(*BridgeTool, standing) bool) Answer {
	n := opts.Limit
	if n <= 0 {
		n = m.opts.SearchResults
	}
	n = min(n, m.opts.SearchLimit)
	keep := may
	if len(opts.Servers) > 0 {
		keep = func(t *BridgeTool, st standing) bool { return may(t, st) && matchAny(opts.Servers, t.def.server) }
	}
	names, only := namesIn(query)
	named := v.named(names, keep)
	if only {
		return Answer{Hits: hitsOf(named, nil, n)}
	}
	w := want{query: query, n: n, perServer: cmp.Or(opts.ServerLimit, m.opts.ServerLimit), perManager: m.user.most, named: named}
	if m.semantic != nil {
		w.vector = m.semantic.queryVector(query)
	}
	a := searchAll(ctx, v.parts(keep), w)
	a.Hits = hitsOf(named, a.Hits, n)
	return a
}

// A want is what is searched for.
type want struct {
	query      string
	n          int
	perServer  int              // the most tools of a server; if not positive, there is no limit
	perManager map[*Manager]int // the most of its tools; of those that are not there, there is no limit
	named      []*BridgeTool    // found already

	vector func(context.Context) ([]float32, error) // of the query, made once; nil without meaning
}

// A part is one index of tools that a session sees, and those of them that may
// be found.
type part struct {
	*catalog
	verdicts []verdict // by the place in tools
	may      func(*BridgeTool, standing) bool
}

// parts returns where there is something to be found.
func (v view) parts(may func(*BridgeTool, standing) bool) (list []part) {
	left := false
	for i, c := range slices.Backward(v.catalogs) {
		list = append(list, part{c, v.verdicts[i], may})
		for j := range c.unindexed() {
			left = left || may(c.tools[j], v.verdicts[i][j].standing)
		}
	}
	if left {
		rest := part{v.unindexed(), nil, may}
		for _, t := range rest.tools {
			rest.verdicts = append(rest.verdicts, verdict{standing: v.standing(t)})
		}
		list = append(list, rest)
	}
	return slices.DeleteFunc(list, func(p part) bool {
		for doc := range p.indexed {
			if p.keep(doc) {
				return false
			}
		}
		return true
	})
}

func (p *part) keep(doc int) bool {
	i := p.indexed[doc]
	return p.may(p.tools[i], p.verdicts[i].standing)
}

func (p *part) keepNamed(name string) bool {
	i, ok := p.byName[name]
	return ok && p.may(p.tools[i], p.verdicts[i].standing)
}

func (p *part) document(doc int) *BridgeTool { return p.tools[p.indexed[doc]] }

// search searches one part.
func (p *part) search(ctx context.Context, w want) (a Answer) {
	if most, ok := w.perManager[p.tools[0].m]; ok {
		w.n = min(w.n, most)
	}
	if p.m != nil && p.m.semantic != nil {
		ctx, cancel := context.WithTimeout(ctx, p.m.semantic.Timeout)
		defer cancel()
		// If the candidates are of few servers, a limit per server leaves too
		// few of them: there are more, then.
		for n := p.m.semantic.Candidates; ; n *= 4 {
			var fused []Hit
			if fused, a = p.searchBoth(ctx, w, p.m.semantic, n); a.Meaning == 0 {
				break
			}
			a.Hits = w.best(fused)
			if w.perServer <= 0 || len(a.Hits) == w.n || a.Words < n && a.Meaning < n {
				return a
			}
		}
	}
	// The index does not know of servers: it is asked for more until there are
	// enough that the limit lets through.
	for ask := w.n + len(w.named); ; ask *= 4 {
		matches := p.index.Search(w.query, ask, p.keep)
		found := make([]Hit, len(matches))
		for i, match := range matches {
			found[i] = Hit{Tool: p.document(match.Doc), Score: match.Score, Words: match.Score}
		}
		a.Words = len(found)
		if a.Hits = w.best(found); len(a.Hits) == w.n || len(matches) < ask {
			return a
		}
	}
}

// searchBoth searches by words and by meaning at once, and returns what was found
// by both together, best first. The answer has no hits yet.
func (p *part) searchBoth(ctx context.Context, w want, se *semantic, candidates int) ([]Hit, Answer) {
	type side struct {
		matches []StoreMatch
		err     error
	}
	meaning := make(chan side, 1)
	go func() {
		matches, err := se.search(ctx, w.query, candidates, w.vector, p.keepNamed)
		meaning <- side{matches, err}
	}()
	var words []StoreMatch
	for _, match := range p.index.Search(w.query, candidates, p.keep) {
		words = append(words, StoreMatch{ID: p.document(match.Doc).name, Words: match.Score})
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
		found[i] = Hit{Tool: p.tool(f.ID), Score: f.Score, Words: f.Words, Similarity: f.Similarity}
	}
	return found, a
}

// searchAll searches all parts at once. Their scores can't be compared: what is
// best of each comes first, then what is second, and so on.
func searchAll(ctx context.Context, parts []part, w want) (a Answer) {
	answers := make([]Answer, len(parts))
	var others sync.WaitGroup
	for i := 1; i < len(parts); i++ {
		others.Go(func() { answers[i] = parts[i].search(ctx, w) })
	}
	if len(parts) > 0 {
		answers[0] = parts[0].search(ctx, w)
	}
	others.Wait()
	var errs []error
	for rank := 0; rank < w.n; rank++ {
		for _, other := range answers {
			if rank < len(other.Hits) {
				a.Hits = append(a.Hits, other.Hits[rank])
			}
		}
	}
	for _, other := range answers {
		a.Words += other.Words
		a.Meaning += other.Meaning
		if other.Err != nil && !slices.ContainsFunc(errs, func(err error) bool { return err.Error() == other.Err.Error() }) {
			errs = append(errs, other.Err)
		}
	}
	a.Err = errors.Join(errs...)
	a.Hits = w.best(a.Hits)
	return a
}

// activeInList returns the active tools that are in the model's list, as a set.
func (v view) activeInList() map[*BridgeTool]bool {
	if v.disclosure == ByBridge {
		return make(map[*BridgeTool]bool)
	}
	return v.activeSet()
}

// best returns the first n of what was found, within the limits per server and
// per Manager and without what is named.
func (w want) best(found []Hit) []Hit {
	type server struct {
		of   *Manager
		name string
	}
	from := make(map[server]int)
	of := make(map[*Manager]int)
	var best []Hit
	for _, h := range found {
		m := h.Tool.m
		srv := server{m, h.Tool.def.server}
		if len(best) == w.n || w.perServer > 0 && from[srv] == w.perServer || slices.Contains(w.named, h.Tool) {
			continue
		}
		if most, ok := w.perManager[m]; ok && of[m] == most {
			continue
		}
		from[srv]++
		of[m]++
		best = append(best, h)
	}
	return best
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
func (s *Session) Explain(query, name string) Explanation {
	v := s.view()
	may := func(_ *BridgeTool, st standing) bool { return st.searchable() }
	for _, p := range v.parts(may) {
		if i, ok := p.byName[name]; ok && p.may(p.tools[i], p.verdicts[i].standing) {
			if doc, ok := slices.BinarySearch(p.indexed, i); ok {
				return p.index.Explain(query, doc)
			}
		}
	}
	return Explanation{}
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
	hits := v.search(ctx, query, SearchOptions{Limit: max(n, 1)}, s.m, s.unlisted(v)).Hits
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
		found: len(found), disclosure: v.disclosure, keywords: v.hasTerms(query),
		callable: v.callable(query), connecting: s.m.connectingServers(v.rights),
	})
	text := jsonText(answer)
	s.countSearch(len(found))
	s.countAnswer(text)
	s.tell(Event{Kind: EventSearch, Query: query, Tools: namesOf(found), Took: time.Since(begun)})
	return mcp.NewToolResultText(text)
}

// unlisted reports of tools whether the model does not have them in its list: it
// has not the deferred ones and, by bridge, the inline ones that came when its
// list was fixed.
func (s *Session) unlisted(v view) func(*BridgeTool, standing) bool {
	may := v.deferredTools()
	if v.disclosure != ByBridge {
		return may
	}
	s.mu.Lock()
	list := s.shown
	s.mu.Unlock()
	told := make(map[string]bool)
	for _, e := range list {
		if e.isTool() {
			told[e.tool.name] = true
		}
	}
	return func(t *BridgeTool, st standing) bool { return may(t, st) || st == inline && !told[t.name] }
}

// callable returns the registered names of the tools that query names and
// that need no search: the inline and the active ones.
func (v view) callable(query string) []string {
	names, _ := namesIn(query)
	var callable []string
	for _, t := range slices.Concat(v.inline, v.active) {
		if slices.Contains(names, t.name) || slices.Contains(names, t.def.name) {
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
