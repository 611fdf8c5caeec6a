package mcphybrid

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcphybrid/mcphybrid/search"
)

// A shown is one thing that a session's model was given. What it was given
// stands at the head of every request, where a provider caches it as long as
// not a byte changes. So a session keeps a list of these to which it only
// appends, and its prompt sections and its tools are both that list, written
// out item by item.
type shown struct {
	kind  shownKind
	meta  metaKind    // of shownMeta
	line  lineForm    // of shownInline and shownSummary
	tool  *BridgeTool // as it was then
	offer *told       // of the search tool, shownServers and shownSkills; of counts, how many
}

// isTool reports whether e is in the list of tools.
func (e shown) isTool() bool {
	return e.kind == shownInline || e.kind == shownActive || e.kind == shownDeferred
}

type shownKind uint8

const (
	shownInline        shownKind = iota // a line in the sections, and a tool
	shownMeta                           // a tool; that for search also a section
	shownServers                        // a line in the sections: more to search for
	shownActive                         // a tool
	shownDeferred                       // a tool that the provider keeps back
	shownCounts                         // lines in the sections: inline tools that have none of their own
	shownSummary                        // a line in the sections: a tool that is summarized
	shownSummaryCounts                  // lines in the sections: such tools that have none of their own
	shownExample                        // a part of the sections, made of a tool; before the inline ones
	shownSkills                         // a section: skills, or that there are some to search for
)

// A told is what the model is told in a section that lists no tools. Sessions
// have many shown, and few of these.
type told struct {
	servers searchOffer
	skills  *skillOffer // of shownSkills
}

// A stamp tells whether there may be something to append.
type stamp struct {
	seen   uint64 // the selection
	active int
	paged  bool
	skills uint64 // their version
}

// show returns what the model is shown, brought up to now, and fixes it. It
// must not be changed.
func (s *Session) show() []shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.viewLocked()
	if v.ended {
		return nil
	}
	list := s.shownLocked(v)
	if len(list) > 0 {
		s.setShown(list)
		s.shownAs = v.stamp()
	}
	return list
}

// setShown is called with mu held.
func (s *Session) setShown(list []shown) {
	s.shown, s.shownAs, s.metas = list, stamp{}, metaSet{}
	for _, e := range list {
		if e.kind == shownMeta {
			s.metas[e.meta] = true
		}
	}
}

// shownLocked returns what show would.
func (s *Session) shownLocked(v view) []shown {
	switch {
	case s.shown == nil && len(v.active) == 0 && !v.paged:
		return v.opening()
	case s.shown != nil && s.shownAs == v.stamp():
		return s.shown
	}
	list := v.withoutHeld(s.shown)
	if list != nil && v.disclosure == ByBridge {
		return list
	}
	return v.appendNew(list)
}

// withoutHeld takes out of list the tools that are held back. Nothing else is
// ever taken out: a tool that must not be trusted weighs more than what the
// provider has cached.
func (v view) withoutHeld(list []shown) []shown {
	held := func(e shown) bool { return e.tool != nil && v.held(e.tool.name) != nil }
	if !slices.ContainsFunc(list, held) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), held)
}

func (v view) stamp() stamp { return stamp{v.id, len(v.active), v.paged, v.skills.version} }

// opening returns what a session is shown first. It is the same slice for all
// sessions of a selection that may use the same skills.
func (v view) opening() []shown {
	o := &v.openings[v.disclosure]
	key := fmt.Sprintf("%d %q", v.skills.version, v.skillRights)
	if list, ok := o.lists.Load(key); ok {
		return list.([]shown)
	}
	list := slices.Clip(v.appendNew(nil))
	if o.made.Add(1) <= maxSelections {
		o.lists.Store(key, list)
	}
	return list
}

// appendNew appends to list what belongs there and is not in it.
func (v view) appendNew(list []shown) []shown {
	if v.empty() && v.disclosure != ByBridge && !v.hasSkills() {
		return list // nothing is fixed yet
	}
	tools := make(map[string]bool, len(list))
	summaries := make(map[string]bool)
	var metas metaSet
	servers := make(map[string]bool)
	for _, e := range list {
		switch {
		case e.isTool():
			tools[e.tool.name] = true
		case e.kind == shownSummary:
			summaries[e.tool.name] = true
		case e.kind == shownMeta:
			metas[e.meta] = true
		}
		if e.offer != nil && (e.kind == shownMeta || e.kind == shownServers) {
			for _, o := range e.offer.servers {
				servers[o.Server] = true
			}
		}
	}
	var fresh []shown
	add := func(kind shownKind, t *BridgeTool) {
		if !tools[t.name] {
			tools[t.name] = true
			fresh = append(fresh, shown{kind: kind, tool: t})
		}
	}
	if list == nil {
		fresh = v.appendExample(fresh)
	}
	for _, t := range v.inline {
		add(shownInline, t)
	}
	fresh = v.fitLines(fresh, list, shownCounts)
	searching := metas[metaSearch]
	for kind := range metaKinds {
		if !metas[kind] && v.offers(kind) {
			e := shown{kind: shownMeta, meta: kind}
			if kind == metaSearch {
				e.offer = v.searchOffer(servers)
			}
			fresh = append(fresh, e)
		}
	}
	if searching {
		if o := v.searchOffer(servers); len(o.servers) > 0 {
			fresh = append(fresh, shown{kind: shownServers, offer: o})
		}
	}
	if searching || v.offers(metaSearch) {
		var lines []shown
		for t, st := range v.each() {
			if st == summarized && !summaries[t.name] && !tools[t.name] {
				lines = append(lines, shown{kind: shownSummary, tool: t})
			}
		}
		fresh = append(fresh, v.fitLines(lines, slices.Concat(list, fresh), shownSummaryCounts)...)
	}
	if o := v.newSkills(list); o != nil {
		fresh = append(fresh, shown{kind: shownSkills, offer: &told{skills: o}})
	}
	if v.disclosure == ByProvider {
		for t, p := range v.each() {
			if p.searchable() {
				add(shownDeferred, t)
			}
		}
	}
	if v.disclosure != ByBridge {
		for _, t := range v.active {
			add(shownActive, t)
		}
	}
	if fresh == nil {
		return list
	}
	return slices.Concat(list, fresh) // sessions are many: no room to spare
}

// appendExample appends the first inline tool that makes an example.
func (v view) appendExample(list []shown) []shown {
	for _, t := range v.inline {
		if _, ok := exampleOf(t); ok {
			return append(list, shown{kind: shownExample, tool: t})
		}
	}
	return list
}

// fitLines returns fresh, whose tools get as much of a line as the budget for
// lines leaves beside those in list: all of them the whole, or all their names,
// or a count for each server, which is appended.
func (v view) fitLines(fresh, list []shown, counted shownKind) []shown {
	p := v.policy
	lines := func(list []shown, form lineForm) (tokens int) {
		for _, e := range list {
			if e.kind == shownInline || e.kind == shownSummary {
				tokens += p.count(textLine(e.tool, max(form, e.line), p.maxDescription))
			}
		}
		return tokens
	}
	if p.maxListing == math.MaxInt {
		return fresh
	}
	left := p.maxListing - lines(list, lineFull)
	form := lineFull
	for form < lineNone && lines(fresh, form) > left {
		form++
	}
	counts := make(map[string]int)
	var servers []string
	for i, e := range fresh {
		if e.kind == shownInline || e.kind == shownSummary {
			fresh[i].line = form
			if counts[e.tool.def.server]++; counts[e.tool.def.server] == 1 {
				servers = append(servers, e.tool.def.server)
			}
		}
	}
	if form != lineNone || len(servers) == 0 {
		return fresh
	}
	o := new(told)
	for _, name := range servers {
		o.servers = append(o.servers, serverOffer{Server: name, Tools: counts[name]})
	}
	return append(fresh, shown{kind: counted, offer: o})
}

// searchOffer tells how many deferred tools there are of which servers, in
// registration order, and what they are about. Those in known are left out.
func (v view) searchOffer(known map[string]bool) *told {
	counts := make(map[string]int)
	var about []*search.Subject
	for t, st := range v.each() {
		name := t.def.server
		if !st.searchable() || known[name] {
			continue
		}
		if counts[name]++; counts[name] == 1 {
			about = append(about, &search.Subject{Server: name})
		}
		i := slices.IndexFunc(about, func(s *search.Subject) bool { return s.Server == name })
		about[i].Add(t.def.name)
	}
	o := make(searchOffer, len(about))
	for i, s := range about {
		o[i] = serverOffer{s.Server, counts[s.Server], s.String()}
	}
	return &told{servers: o}
}

// Tools returns what belongs in the tool list of the next request to the
// model: the inline tools, the meta tools and the active tools or, with
// [ByProvider], all others. From the first call on it only grows at its end,
// until [Session.Compact]: a tool that has left the catalog stays in it, and
// one whose definition has changed stays as it was. Only a tool that is put
// into quarantine is taken out: see [TrustQuarantine]. Calls go through
// [Session.Call]: what stands here calls its server directly.
func (s *Session) Tools() []Tool {
	var list []Tool
	for _, e := range s.show() {
		switch {
		case e.isTool():
			list = append(list, e.tool)
		case e.kind == shownMeta:
			list = append(list, &s.meta[e.meta])
		}
	}
	return list
}
