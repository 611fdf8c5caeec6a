package mcphybrid

import (
	"iter"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/enrich"
)

// own returns the catalog of the session's own Manager.
func (p *partition) own() *catalog { return p.catalogs[len(p.catalogs)-1] }

// each yields all tools and their standing, in registration order.
func (p *partition) each() iter.Seq2[*BridgeTool, standing] {
	return func(yield func(*BridgeTool, standing) bool) {
		for i, c := range p.catalogs {
			all := &p.verdicts[i]
			for k, tools := range c.byIndex() {
				of := all.server(k)
				for j, t := range tools {
					if !yield(t, of.at(j).standing) {
						return
					}
				}
			}
		}
	}
}

// find returns the tool that name means, even if it is hidden, and the verdict on it. The tool
// is nil if there is none.
func (p *partition) find(name string) (*BridgeTool, verdict) {
	for i, c := range slices.Backward(p.catalogs) {
		if at, t, ok := c.find(name); ok {
			if v := p.verdicts[i].atPlace(at); v.why != whyOverridden {
				return t, v
			}
		}
	}
	return nil, verdict{}
}

// of returns the catalog of an owner's tools, or nil.
func (p *partition) of(o *owner) *catalog {
	for _, c := range p.catalogs {
		if c.owner == o {
			return c
		}
	}
	return nil
}

// catalogsOf yields the catalogs to which name may refer, the last one first.
func (p *partition) catalogsOf(name string) iter.Seq[*catalog] {
	return func(yield func(*catalog) bool) {
		for _, c := range slices.Backward(p.catalogs) {
			if whose := p.nameOwners[name]; (whose == nil || whose == c.owner) && !yield(c) {
				return
			}
		}
	}
}

// lookup returns the tool with that registered name and its standing, or nil if the
// session does not see it.
func (p *partition) lookup(name string) (*BridgeTool, standing) {
	if t, v := p.find(name); v.standing != hidden {
		return t, v.standing
	}
	return nil, hidden
}

// standing returns the standing of t.
func (p *partition) standing(t *BridgeTool) standing {
	if there, st := p.lookup(t.name); there == t {
		return st
	}
	return hidden
}

// unindexed returns a catalog of the tools that the session sees but the catalogs
// have not indexed, because in most sessions they are inline, or hidden by a rule. A search returns
// those that are inline here only to a model that was not shown them.
func (p *partition) unindexed() *catalog {
	r := &p.unindexedTools
	r.once.Do(func() {
		var docs []int
		for i, c := range p.catalogs {
			for _, j := range c.split().unindexed {
				t := c.tools[j]
				if p.verdicts[i].ofTool(j).standing == hidden {
					continue
				}
				docs = append(docs, len(r.tools))
				r.tools = append(r.tools, t)
			}
		}
		r.deferredIndex = &deferredIndex{docs: docs}
		if len(r.tools) > 0 {
			r.deferredIndex.ranker = p.indexer.indexTools(nil, r.tools, p.hints)
		}
	})
	return &r.catalog
}

// empty reports whether there is no tool at all.
func (p *partition) empty() bool {
	return !slices.ContainsFunc(p.catalogs, func(c *catalog) bool { return len(c.tools) > 0 })
}

// hasTerms reports whether query has any term to search for.
func (p *partition) hasTerms(query string) bool {
	return slices.ContainsFunc(p.catalogs, func(c *catalog) bool { return c.index().HasTerms(query) })
}

// needs returns the tools that t needs directly.
func (p *partition) needs(t *BridgeTool) []*BridgeTool {
	for _, c := range p.catalogs {
		needs := c.needs[t]
		for _, name := range c.needsBelow[t] {
			if n, _ := p.find(name); n != nil {
				needs = append(slices.Clip(needs), n)
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
func (p *partition) quarantined(name string) *ChangedError {
	for c := range p.catalogsOf(name) {
		if held := c.quarantined[name]; held != nil {
			return held
		}
		if c.tool(name) != nil {
			break
		}
	}
	return nil
}

// isQuarantined reports whether t is in quarantine, under this or another name.
func (p *partition) isQuarantined(t *BridgeTool) bool {
	c := p.of(t.owner)
	return c != nil && c.isQuarantined(t)
}

// same returns the tool that is kept, under whatever name, or nil if the session
// does not see it.
func (p *partition) same(kept *BridgeTool) *BridgeTool {
	for _, c := range p.catalogs {
		for _, i := range c.originals()[kept.def.Own] {
			if t, _ := p.lookup(c.tools[i].name); t != nil && t.is(kept) {
				return t
			}
		}
	}
	return nil
}

// removed returns what is known of a tool that has left the catalog, or nil.
func (p *partition) removed(name string) *removedTool {
	for c := range p.catalogsOf(name) {
		if r := c.removed.named(name); r != nil {
			return r
		}
	}
	return nil
}

// hints returns the hints of t, or nil. t may be nil.
func (p *partition) hints(t *BridgeTool) *enrich.Known {
	for _, c := range p.catalogs {
		if h := c.hints.of(t); h != nil {
			return h
		}
	}
	return nil
}

// overridden reports whether the name of t, a tool of the i-th catalog, means another
// tool.
func (p *partition) overridden(i int, t *BridgeTool) bool {
	if whose := p.nameOwners[t.name]; whose != nil {
		return whose != t.owner
	}
	return slices.ContainsFunc(p.catalogs[i+1:], func(c *catalog) bool { return c.overrides(t.name, t.def.Server) })
}

// overriddenIn yields the places of the i-th catalog's tools whose names mean other tools, some more than
// once. Only a tool whose name could be given in a catalog above, or that a session keeps, can be one.
func (p *partition) overriddenIn(i int) iter.Seq[toolPlace] {
	return func(yield func(toolPlace) bool) {
		c := p.catalogs[i]
		named := func(name string) bool {
			at, t, ok := c.find(name)
			return !ok || !p.overridden(i, t) || yield(at)
		}
		for name := range p.nameOwners {
			if !named(name) {
				return
			}
		}
		for _, above := range p.catalogs[i+1:] {
			for name := range above.quarantined {
				if !named(name) {
					return
				}
			}
			for _, number := range c.prefixes.Meeting(above.prefixes) {
				k, ok := c.list.place(number)
				if !ok {
					continue
				}
				for j, t := range c.list.servers[k].tools {
					if p.overridden(i, t) && !yield(toolPlace{int32(k), int32(j)}) {
						return
					}
				}
			}
		}
	}
}
