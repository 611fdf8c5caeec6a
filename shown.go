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
	meta  metaKind     // of shownMeta
	tool  *BridgeTool  // of shownInline, shownActive and shownDeferred, as it was then
	offer *searchOffer // of the search tool and of shownServers
}

type shownKind uint8

const (
	shownInline   shownKind = iota // a line in the sections, and a tool
	shownMeta                      // a tool; that for search also a section
	shownServers                   // a line in the sections: more to search for
	shownActive                    // a tool
	shownDeferred                  // a tool that the provider keeps back
)

// A searchOffer is what the model is told there is to search for.
type searchOffer struct {
	Summary string   `json:"summary"` // a line
	Servers []string `json:"servers"` // that it is about
}

// A stamp tells whether there may be something to append.
type stamp struct {
	catalog uint64
	active  int
	paged   bool
}

// show returns what the model is shown, brought up to now, and fixes it. It
// must not be changed.
func (s *Session) show() []shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.viewLocked()
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
	case s.shown == nil && len(v.rights) == 0 && len(v.active) == 0 && !v.paged:
		return v.opening(v)
	case s.shown != nil && (s.shownAs == v.stamp() || v.disclosure == ByBridge || v.ended):
		return s.shown
	}
	return v.appendNew(s.shown)
}

func (v view) stamp() stamp { return stamp{v.version, len(v.active), v.paged} }

// opening returns what a session is shown first that may use everything. It is
// the same slice for all of them.
func (c *catalog) opening(v view) []shown {
	o := &c.openings[v.disclosure]
	o.once.Do(func() { o.list = slices.Clip(v.appendNew(nil)) })
	return o.list
}

// appendNew appends to list what belongs there and is not in it.
func (v view) appendNew(list []shown) []shown {
	if len(v.tools) == 0 {
		return list
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
			for _, name := range e.offer.Servers {
				servers[name] = true
			}
		}
	}
	list = slices.Grow(slices.Clip(list), len(v.inline)+int(metaKinds))
	add := func(kind shownKind, t *BridgeTool) {
		if !tools[t.name] && v.sees(t) {
			list = append(list, shown{kind: kind, tool: t})
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
			list = append(list, e)
		}
	}
	if searching {
		if o := v.searchOffer(servers); len(o.Servers) > 0 {
			list = append(list, shown{kind: shownServers, offer: o})
		}
	}
	if v.disclosure == ByProvider {
		for _, t := range v.deferred {
			add(shownDeferred, t)
		}
	}
	for _, t := range v.active {
		add(shownActive, t)
	}
	return list
}

// maxSummaryServers is how many servers a summary names.
const maxSummaryServers = 30

// searchOffer tells how many deferred tools there are, and of which servers,
// in registration order. Those in told are left out.
func (v view) searchOffer(told map[string]bool) *searchOffer {
	total := 0
	counts := make(map[string]int)
	for _, t := range v.deferred {
		if !told[t.def.server] && v.sees(t) {
			counts[t.def.server]++
			total++
		}
	}
	o := &searchOffer{Servers: []string{}}
	var parts []string
	for _, name := range v.servers {
		if counts[name] > 0 {
			o.Servers = append(o.Servers, name)
			parts = append(parts, fmt.Sprintf("%s (%d)", cleanLine(name, maxNameLength), counts[name]))
		}
	}
	if more := len(parts) - maxSummaryServers; more > 0 {
		parts = append(parts[:maxSummaryServers], fmt.Sprintf("%d more servers", more))
	}
	if total > 0 {
		o.Summary = textMoreTools(total, strings.Join(parts, ", "))
	}
	return o
}

// Tools returns what belongs in the tool list of the next request to the
// model: the inline tools, the meta tools and the active tools or, with
// [ByProvider], all others. From the first call on it only grows at its end,
// until [Session.Compact]: a tool that has left the catalog stays in it, and
// one whose definition has changed stays as it was.
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
