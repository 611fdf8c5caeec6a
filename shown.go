package mcphybrid

import (
	"fmt"
	"slices"
	"strings"
)

// A Disclosure says how a session's model comes to the tools that are not
// inline.
type Disclosure int

const (
	// ByActivation offers the search tool. What it finds is appended to the
	// list of tools, definition and all.
	ByActivation Disclosure = iota

	// ByBridge is for hosts whose list of tools must never change: beside the
	// inline tools it has [SearchToolName], [DescribeToolName],
	// [CallToolName] and [PageToolName], by which everything else is found,
	// described and called. No search and no call activates anything.
	ByBridge

	// ByProvider is for providers that keep tools from the model themselves,
	// as Anthropic and OpenAI do with defer_loading: the list has all tools,
	// and [Session.Export] marks the deferred ones. See [ToolReferences].
	ByProvider

	disclosures
)

func (d Disclosure) validate() {
	if d < 0 || d >= disclosures {
		panic(fmt.Sprintf("mcphybrid: SessionOptions.Disclosure is %d", d))
	}
}

// A shown is one thing that a session's model was given. What it was given
// stands at the head of every request, where a provider caches it as long as
// not a byte changes. So a session keeps a list of these to which it only
// appends, and its prompt sections and its tools are both that list, written
// out item by item.
type shown struct {
	kind  shownKind
	meta  metaKind    // of shownMeta
	tool  *BridgeTool // of shownInline, shownActive and shownDeferred, as it was then
	offer *told       // of the search tool, shownServers and shownSkills
}

type shownKind uint8

const (
	shownInline   shownKind = iota // a line in the sections, and a tool
	shownMeta                      // a tool; that for search also a section
	shownServers                   // a line in the sections: more to search for
	shownActive                    // a tool
	shownDeferred                  // a tool that the provider keeps back
	shownSkills                    // a section: skills, or that there are some to search for
)

// A told is what the model is told in a section that lists no tools. Sessions
// have many shown, and few of these.
type told struct {
	servers searchOffer
	skills  *skillOffer // of shownSkills
}

// A searchOffer is what the model is told there is to search for.
type searchOffer []serverOffer

type serverOffer struct {
	Server string `json:"server"`
	Tools  int    `json:"tools"` // deferred
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
	var metas metaSet
	servers := make(map[string]bool)
	for _, e := range list {
		switch {
		case e.tool != nil:
			tools[e.tool.name] = true
		case e.kind == shownMeta:
			metas[e.meta] = true
		}
		if e.offer != nil {
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
	for _, t := range v.inline {
		add(shownInline, t)
	}
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

// searchOffer tells how many deferred tools there are of which servers, in
// registration order. Those in known are left out.
func (v view) searchOffer(known map[string]bool) *told {
	counts := make(map[string]int)
	var servers []string
	for t, p := range v.each() {
		if name := t.def.server; p.searchable() && !known[name] {
			if counts[name]++; counts[name] == 1 {
				servers = append(servers, name)
			}
		}
	}
	o := make(searchOffer, len(servers))
	for i, name := range servers {
		o[i] = serverOffer{name, counts[name]}
	}
	return &told{servers: o}
}

// maxSummaryServers is how many servers a summary names.
const maxSummaryServers = 30

// summary returns a line for the model, or "".
func (o searchOffer) summary() string {
	if len(o) == 0 {
		return ""
	}
	total := 0
	var parts []string
	for _, s := range o {
		total += s.Tools
		parts = append(parts, fmt.Sprintf("%s (%d)", cleanLine(s.Server, maxNameLength), s.Tools))
	}
	if more := len(parts) - maxSummaryServers; more > 0 {
		parts = append(parts[:maxSummaryServers], fmt.Sprintf("%d more servers", more))
	}
	return textMoreTools(total, strings.Join(parts, ", "))
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
		case e.tool != nil:
			list = append(list, e.tool)
		case e.kind == shownMeta:
			list = append(list, &s.meta[e.meta])
		}
	}
	return list
}
