package mcphybrid

import (
	"iter"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/enrich"
)

// own returns the catalog of the session's own Manager.
func (s *partition) own() *catalog { return s.catalogs[len(s.catalogs)-1] }

// each yields all tools and their standing, in registration order.
func (s *partition) each() iter.Seq2[*BridgeTool, standing] {
	return func(yield func(*BridgeTool, standing) bool) {
		for i, c := range s.catalogs {
			for j, t := range c.tools {
				if !yield(t, s.verdicts[i].at(j).standing) {
					return
				}
			}
		}
	}
}

// placeOf returns the place of the tool that name means, even if it is hidden: the index
// of its catalog and its index there.
func (s *partition) placeOf(name string) (i, j int, ok bool) {
	for i, c := range slices.Backward(s.catalogs) {
		if j, ok := c.indexOf(name); ok && s.verdicts[i].at(j).why != whyOverridden {
			return i, j, true
		}
	}
	return 0, 0, false
}

// of returns the catalog of an owner's tools, or nil.
func (s *partition) of(o *owner) *catalog {
	for _, c := range s.catalogs {
		if c.owner == o {
			return c
		}
	}
	return nil
}

// meaning yields the catalogs to which name may refer, the last one first.
func (s *partition) meaning(name string) iter.Seq[*catalog] {
	return func(yield func(*catalog) bool) {
		for _, c := range slices.Backward(s.catalogs) {
			if whose := s.nameOwners[name]; (whose == nil || whose == c.owner) && !yield(c) {
				return
			}
		}
	}
}

// lookup returns the tool with that registered name and its standing, or nil if the
// session does not see it.
func (s *partition) lookup(name string) (*BridgeTool, standing) {
	if i, j, ok := s.placeOf(name); ok && s.verdicts[i].at(j).standing != hidden {
		return s.catalogs[i].tools[j], s.verdicts[i].at(j).standing
	}
	return nil, hidden
}

// standing returns the standing of t.
func (s *partition) standing(t *BridgeTool) standing {
	if there, st := s.lookup(t.name); there == t {
		return st
	}
	return hidden
}

// unindexed returns a catalog of the tools that the session sees but the catalogs
// have not indexed, because they are inline in most sessions. A search returns
// those that are inline here only to a model that was not shown them.
func (s *partition) unindexed() *catalog {
	r := &s.rest
	r.once.Do(func() {
		var docs []int
		for i, c := range s.catalogs {
			for _, j := range c.made().rest {
				t := c.tools[j]
				if s.verdicts[i].at(j).standing == hidden {
					continue
				}
				docs = append(docs, len(r.tools))
				r.tools = append(r.tools, t)
			}
		}
		r.deferredIndex = &deferredIndex{docs: docs}
		if len(r.tools) > 0 {
			r.deferredIndex.of = s.indexer.ofTools(nil, r.tools, s.hints)
		}
	})
	return &r.catalog
}

// empty reports whether there is no tool at all.
func (s *partition) empty() bool {
	return !slices.ContainsFunc(s.catalogs, func(c *catalog) bool { return len(c.tools) > 0 })
}

// hasTerms reports whether query has any term to search for.
func (s *partition) hasTerms(query string) bool {
	return slices.ContainsFunc(s.catalogs, func(c *catalog) bool { return c.index().HasTerms(query) })
}

// needs returns the tools that t needs directly.
func (s *partition) needs(t *BridgeTool) []*BridgeTool {
	for _, c := range s.catalogs {
		needs := c.dependencies[t]
		for _, name := range c.needsBelow[t] {
			if i, j, ok := s.placeOf(name); ok {
				needs = append(slices.Clip(needs), s.catalogs[i].tools[j])
			}
		}
		if needs != nil {
			return needs
		}
	}
	return nil
}

// quarantined returns the change for which the tool with that name is in quarantine, or
// nil.
func (s *partition) quarantined(name string) *ChangedError {
	for c := range s.meaning(name) {
		if held := c.quarantined[name]; held != nil {
			return held
		}
		if c.tool(name) != nil {
			break
		}
	}
	return nil
}

// quarantineOf returns the change for which t is in quarantine, under this or another name,
// or nil.
func (s *partition) quarantineOf(t *BridgeTool) *ChangedError {
	if c := s.of(t.owner); c != nil {
		return c.quarantineOf(t)
	}
	return nil
}

func (s *partition) isQuarantined(t *BridgeTool) bool { return s.quarantineOf(t) != nil }

// same returns the tool that is kept, under whatever name, or nil if the session
// does not see it.
func (s *partition) same(kept *BridgeTool) *BridgeTool {
	for _, c := range s.catalogs {
		for _, i := range c.originals()[kept.def.Own] {
			if t, _ := s.lookup(c.tools[i].name); t != nil && t.is(kept) {
				return t
			}
		}
	}
	return nil
}

// removed returns what is known of a tool that has left the catalog.
func (s *partition) removed(name string) (r removedTool, ok bool) {
	for c := range s.meaning(name) {
		if r, ok = c.removed[name]; ok {
			return r, true
		}
	}
	return r, false
}

// hints returns the hints of t, or nil. t may be nil.
func (s *partition) hints(t *BridgeTool) *enrich.Known {
	for _, c := range s.catalogs {
		if h := c.known.of(t); h != nil {
			return h
		}
	}
	return nil
}
