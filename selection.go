package mcphybrid

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// A selection is what sessions of equal rights see of one version of
// everything. It is shared by them and must not be changed.
type selection struct {
	id       uint64     // no other has it
	catalogs []*catalog // each later one's tools win over those of the same name before
	policy   *policy
	rights   rights
	intent   string

	verdicts [][]verdict   // by catalog and the tool's position in it
	inline   []*BridgeTool // in registration order
	deferred int           // how many tools are searchable
	ended    bool          // the Manager is closed

	// retriever indexes tools that no catalog has indexed.
	retriever func(prev retriever, tools []*BridgeTool, hints func(*BridgeTool) *toolHints) retriever

	openings [disclosures]opening
	rest     struct {
		once sync.Once
		catalog
	}
}

// An opening is what a session is shown first.
type opening struct {
	lists sync.Map     // of []shown, by the version of the skills and the rights to them
	made  atomic.Int32 // how many
}

var endedSelection = &selection{catalogs: []*catalog{ended}, policy: &policy{rules: new(rules.Set)}, verdicts: make([][]verdict, 1), ended: true}

// maxSelections is of how many different rights and intents a selection is
// kept. Of more, such as one for each user, it is made anew when it is needed
// and the memory was.
const maxSelections = 256

// own returns the catalog of the Manager whose session it is.
func (s *selection) own() *catalog { return s.catalogs[len(s.catalogs)-1] }

// each goes through all tools, in registration order.
func (s *selection) each() iter.Seq2[*BridgeTool, standing] {
	return func(yield func(*BridgeTool, standing) bool) {
		for i, c := range s.catalogs {
			for j, t := range c.tools {
				if !yield(t, s.verdicts[i][j].standing) {
					return
				}
			}
		}
	}
}

// find returns where the tool of a registered name is, whether the session sees
// it or not: in which catalog and where in it.
func (s *selection) find(name string) (i, j int, ok bool) {
	for i, c := range slices.Backward(s.catalogs) {
		if j, ok := c.byName[name]; ok {
			return i, j, true
		}
		if c.held[name] != nil { // nothing else comes into its place
			break
		}
	}
	return 0, 0, false
}

// lookup returns the tool of a registered name and how it stands, or nil if the
// session does not see it.
func (s *selection) lookup(name string) (*BridgeTool, standing) {
	if i, j, ok := s.find(name); ok && s.verdicts[i][j].standing != hidden {
		return s.catalogs[i].tools[j], s.verdicts[i][j].standing
	}
	return nil, hidden
}

// standing returns how t stands.
func (s *selection) standing(t *BridgeTool) standing {
	if there, st := s.lookup(t.name); there == t {
		return st
	}
	return hidden
}

// unindexed returns a catalog of the tools that the session sees and that the
// catalogs have not indexed: the inline ones of most sessions. Those that are
// inline for this one too are found only by a model that does not know of them.
func (s *selection) unindexed() *catalog {
	r := &s.rest
	r.once.Do(func() {
		r.byName = make(map[string]int)
		for i, c := range s.catalogs {
			for j := range c.unindexed() {
				t := c.tools[j]
				if s.verdicts[i][j].standing == hidden {
					continue
				}
				r.byName[t.name] = len(r.tools)
				r.indexed = append(r.indexed, len(r.tools))
				r.tools = append(r.tools, t)
			}
		}
		if len(r.tools) > 0 {
			r.index = s.retriever(nil, r.tools, s.hints)
		}
	})
	return &r.catalog
}

// empty reports whether there is no tool at all.
func (s *selection) empty() bool {
	return !slices.ContainsFunc(s.catalogs, func(c *catalog) bool { return len(c.tools) > 0 })
}

// HasTerms reports whether there is anything in query to search for.
func (s *selection) hasTerms(query string) bool {
	return slices.ContainsFunc(s.catalogs, func(c *catalog) bool { return c.index.HasTerms(query) })
}

// needs returns what t was said to need.
func (s *selection) needs(t *BridgeTool) []*BridgeTool {
	for _, c := range s.catalogs {
		needs := c.needs[t]
		for _, name := range c.needsBelow[t] {
			if i, j, ok := s.find(name); ok {
				needs = append(slices.Clip(needs), s.catalogs[i].tools[j])
			}
		}
		if needs != nil {
			return needs
		}
	}
	return nil
}

// held returns the change for which the tool of that name is in quarantine, or
// nil.
func (s *selection) held(name string) *ChangedError {
	for _, c := range slices.Backward(s.catalogs) {
		if held := c.held[name]; held != nil {
			return held
		}
		if c.tool(name) != nil {
			break
		}
	}
	return nil
}

// gone returns what is known of a tool that is not there any more.
func (s *selection) gone(name string) (g goneTool, ok bool) {
	for _, c := range slices.Backward(s.catalogs) {
		if g, ok = c.gone[name]; ok {
			return g, true
		}
	}
	return g, false
}

// searchMode reports whether the session has tools to search for, active ones
// included, and may search.
func (s *selection) searchMode() bool { return s.deferred > 0 && s.rights.mayUse(SearchToolName) }

// hints returns those of t, as the session sees it, or nil. t may be nil.
func (s *selection) hints(t *BridgeTool) *toolHints {
	for _, c := range s.catalogs {
		if h := c.known.of(t); h != nil {
			return h
		}
	}
	return nil
}
