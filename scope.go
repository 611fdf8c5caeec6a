package mcphybrid

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/search"
)

// A scope is what sessions have in common that see the same tools: those of the
// system, or of the system and of one user. A [Manager] fills it; sessions read
// it, and know nothing of servers.
type scope struct {
	opts    Options              // fixed at creation
	handler Handler              // makes calls of tools, in the middleware of opts
	ranking func() *search.Index // without documents; made when it is first needed
	owner   *owner               // of its tools
	below   *scope               // the system's, of a user's; else nil
	user    user                 // zero if it is the system's
	keeper  keeper               // the Manager

	metaAccess Access       // denies the meta tools that opts deny
	semantic   *semantic    // nil without [Options.Semantic]
	uses       *usageRecord // nil without [Options.Usage]
	skills     *skillShelf  // a user has the system's

	life context.Context // ends with the Manager

	cur    atomic.Pointer[catalog] // never nil; the Manager stores it with its mu held
	policy *atomic.Pointer[policy] // never of nil; a user's is its system's

	selecting  sync.Mutex
	selected   *selectionSet // guarded by selecting
	selections atomic.Uint64 // that were ever made

	usageMu sync.Mutex
	usage   map[string]*Usage // by server
}

// A user is what a scope knows that is a user's.
type user struct {
	id     string
	access Access         // of all its sessions
	most   map[*owner]int // tools of each in the answer to a search
}

// A keeper is what a session needs of its Manager. None of it is called with a
// session's lock held.
type keeper interface {
	// began is told of each new session, and closed when one is closed.
	began(s *Session)
	closed(s *Session)

	// connecting returns the name of the server, still being connected, that a
	// tool of that registered name would be of, or "".
	connecting(tool string) string

	// connectingServers returns the names of the servers that are still being
	// connected, but for those of which r permits no tool.
	connectingServers(r rights) []string

	// status returns how a server is that an owner of tools has.
	status(of *owner, name string) (ServerStatus, bool)
}

// of returns the scope of an owner's tools.
func (s *scope) of(o *owner) *scope {
	if s.below != nil && o == s.below.owner {
		return s.below
	}
	return s
}

// A selectionSet has those of one version of everything.
type selectionSet struct {
	catalogs []*catalog
	policy   *policy

	mu    sync.Mutex
	byKey map[selectionKey]*lazySelection
}

// A selectionKey tells the selections of a version apart. An intent is any
// text: in one string with the rights, it could pass for others.
type selectionKey struct{ intent, rights string }

type lazySelection struct {
	once sync.Once
	selection
}

// catalogs returns what the sessions see of tools, as it is now: of a user's
// the system's catalog and then the user's own.
func (s *scope) catalogs() []*catalog {
	if s.below != nil {
		return []*catalog{s.below.cur.Load(), s.cur.Load()}
	}
	return []*catalog{s.cur.Load()}
}

// current reports whether sel is of the newest version of everything.
func (s *scope) current(sel *selection) bool {
	if sel == nil || sel.policy != s.policy.Load() || sel.own() != s.cur.Load() {
		return false
	}
	return s.below == nil || sel.catalogs[0] == s.below.cur.Load()
}

// forgetSelections lets go of those that were kept, and so of the catalogs that
// they are of.
func (s *scope) forgetSelections() {
	s.selecting.Lock()
	defer s.selecting.Unlock()
	s.selected = nil
}

// selection returns what a session of these rights and this intent sees now.
func (s *scope) selection(r rights, intent string) *selection {
	s.selecting.Lock()
	if old := s.selected; old == nil || old.policy != s.policy.Load() || !slices.Equal(old.catalogs, s.catalogs()) {
		s.selected = &selectionSet{catalogs: s.catalogs(), policy: s.policy.Load(), byKey: make(map[selectionKey]*lazySelection)}
	}
	all := s.selected
	s.selecting.Unlock()

	key := selectionKey{intent: intent}
	if len(r) > 0 {
		key.rights = fmt.Sprintf("%q", r)
	}
	all.mu.Lock()
	sel := all.byKey[key]
	if sel == nil {
		sel = new(lazySelection)
		if len(all.byKey) < maxSelections {
			all.byKey[key] = sel
		}
	}
	all.mu.Unlock()
	sel.once.Do(func() {
		sel.id = s.selections.Add(1)
		sel.catalogs, sel.policy, sel.rights, sel.intent = all.catalogs, all.policy, r, intent
		sel.retriever = s.newRetriever
		for _, c := range sel.catalogs {
			sel.ended = sel.ended || c.ended
		}
		sel.judge()
	})
	return &sel.selection
}

// standings goes through the tools of c as a session sees them that nothing is
// denied, once c is the scope's catalog.
func (s *scope) standings(c *catalog) iter.Seq2[*BridgeTool, standing] {
	sel := &selection{catalogs: []*catalog{c}, policy: s.policy.Load(), rights: rights(nil).and(s.metaAccess)}
	sel.judge()
	return sel.each()
}

// newRetriever returns the retriever of tools that follows prev. Tools with
// hints are found by these, too.
func (s *scope) newRetriever(prev retriever, tools []*BridgeTool, hints func(*BridgeTool) *toolHints) retriever {
	if s.opts.Search.Ranker == RankerClassic {
		texts := make([]string, len(tools))
		for i, t := range tools {
			texts[i] = strings.Join([]string{t.def.server, t.def.name, t.def.description}, " ")
			if h := hints(t); h != nil {
				texts[i] += " " + h.words()
			}
		}
		return NewBM25Index(texts, s.opts.Search.BM25)
	}
	docs := make([]*search.Document, len(tools))
	for i, t := range tools {
		docs[i] = hints(t).documentOf(t)
	}
	if x, ok := prev.(*search.Index); ok {
		return x.With(docs)
	}
	return s.ranking().New(docs)
}

func (s *scope) tokens(text string) int { return s.opts.Tokens.CountTokens(text) }

// toolTokens counts the definition of t once.
func (s *scope) toolTokens(t *BridgeTool) int {
	if n := t.tokens.Load(); n > 0 {
		return int(n)
	}
	n := s.tokens(definitionText(t))
	t.tokens.Store(int64(n))
	return n
}

// newPolicy returns the policy that opts ask for. It panics if a rule is
// malformed.
func newPolicy(opts *Options, tokens func(*BridgeTool) int) *policy {
	rules, err := newRuleSet(opts.Rules)
	if err != nil {
		panic("mcphybrid: Options.Rules: " + err.Error())
	}
	p := &policy{
		pins: opts.Pins, rules: rules, tokens: tokens,
		limit: opts.Inline.Max, allUpTo: opts.Inline.Max, maxTokens: opts.maxInlineTokens(),
		count: opts.Tokens.CountTokens, maxDescription: opts.Prompt.MaxDescription,
		maxListing: opts.Prompt.MaxListingTokens, maxSummary: opts.Prompt.MaxSummaryTokens,
	}
	if jit := opts.JustInTime; jit != nil {
		p.limit, p.allUpTo = 0, jit.Threshold
	}
	return p
}

// maxInlineTokens returns what the inline tools may cost.
func (o *Options) maxInlineTokens() int {
	tokens := o.Inline.MaxTokens
	if o.Inline.ContextWindow > 0 {
		tokens = min(tokens, int(o.Inline.Share*float64(o.Inline.ContextWindow)))
	}
	return tokens
}
