package mcphybrid

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/search"
)

// A listItem is one item that a session's model was given. A provider caches the beginning
// of a request as long as not a byte changes. So a session keeps a list of items and only
// appends to it. Both the prompt sections and the tool list are this list, written item by
// item: all of it at the head of a request or, by Turn, the beginning there and the rest in
// messages.
type listItem struct {
	slot    slot
	section section
	line    lineForm    // of a tool that has a line in its section
	meta    metaKind    // for asMeta
	tool    *BridgeTool // the version that the model was given, or nil
	offer   *itemOffer  // of a section without a tool, or of the search tool
}

// A slot says where an item is in the tool list.
type slot uint8

const (
	notListed slot = iota
	asMeta
	asRemoved // a tool that is not offered any more, since [Session.Turn] said so
	asTool
	asDeferred // a tool that the provider hides from the model
)

// A section is a part of the prompt sections. An item has text in one at most.
type section uint8

const (
	noSection    section = iota
	plainTool            // no text: an inline tool without a line
	guideText            // how to use the inline tools
	exampleText          // the example before the lines of inline tools, made from a tool
	inlineLines          // a line for a tool, or lines that count tools without a line
	searchText           // how to search, or a line: more servers to search
	summaryLines         // as inlineLines, of summarized tools
	skillText            // skills, or how to search for them
	callableText         // a meta tool that only the call tool calls
)

// isTool reports whether e is a tool in the tool list.
func (e listItem) isTool() bool { return e.slot >= asTool }

// toolName returns the registered name of the item's tool, or "".
func (e listItem) toolName() string {
	if e.tool == nil {
		return ""
	}
	return e.tool.name
}

// An itemOffer holds the part of an item that only few items have. It is separate to
// keep listItem small: sessions have many of those.
type itemOffer struct {
	servers serverList
	skills  *skillOffer // for skillText
}

// keptTools are tools of a session's list, by registered name, that the session
// has from a saved state: when it was restored, the catalog did not have them in
// that version. They are shown only. They are in no catalog, and so can't be
// found or called; nothing trusts them.
type keptTools map[string]*keptTool

type keptTool struct {
	*BridgeTool
	removed bool // it had left the catalog where the session was saved, if it was not kept there
}

// An inlineUse is a part of the room for inline tools.
type inlineUse struct{ tools, tokens int }

// inlineUsed returns the room for inline tools that restored tools use which were inline
// when the session was saved, and whose server is missing here. So what was deferred does not move up in the
// place of a server that is not here. The caller holds mu.
func (s *Session) inlineUsed(catalogs []*catalog) (r inlineUse) {
	if len(s.kept) == 0 {
		return r
	}
	for _, e := range s.shown {
		if e.slot != asTool || e.section == noSection {
			continue
		}
		if s.kept.isAway(e.tool, catalogs) && !isThere(e.tool, catalogs) {
			r.tools++
			r.tokens += s.scope.toolTokens(e.tool)
		}
	}
	return r
}

// isAway reports whether t is a tool of a saved state, and its server has not listed its
// tools here: the tool has not left.
func (k keptTools) isAway(t *BridgeTool, catalogs []*catalog) bool {
	kept := k[t.name]
	return kept != nil && kept.is(t) && !kept.removed &&
		!slices.ContainsFunc(catalogs, func(c *catalog) bool { return c.owner == t.owner && c.lists(t.def.Server) })
}

// isThere reports whether a catalog has t, in any version, or holds it back.
func isThere(t *BridgeTool, catalogs []*catalog) bool {
	return slices.ContainsFunc(catalogs, func(c *catalog) bool {
		same := c.tool(t.name)
		return c.owner == t.owner && (same != nil && same.is(t) || c.isQuarantined(t))
	})
}

// A listVersion changes whenever there may be something to append.
type listVersion struct {
	seen        uint64 // id of the partition
	activations int
	paged       bool
	linked      bool
	bridge      bool
	takes       bool   // the conversation takes tools back
	skills      uint64 // version of the skills
}

// show updates the list of items and returns it. The session keeps the list, since
// the host sends it to the model. The caller must not change it.
func (s *Session) show() []listItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updateShown(s.viewLocked())
}

// updateShown updates the list of items and returns it. The caller holds mu.
func (s *Session) updateShown(v *view) []listItem {
	if v.ended {
		return nil
	}
	list, prefix := s.shownLocked(v), s.prefix
	if s.startsFresh(v) {
		prefix = v.promptPrefix()
	}
	if len(list) > 0 {
		s.setShown(list)
		s.prefix, s.shownAs = prefix, v.listVersion()
	}
	return list
}

// setShown sets the list of items. The caller holds mu.
func (s *Session) setShown(list []listItem) {
	s.shown, s.prefix, s.shownAs, s.metas = list, nil, listVersion{}, metaSet{}
	for _, e := range list {
		if e.isMeta() {
			s.metas[e.meta] = true
		}
	}
}

// isMeta reports whether e gives the model a meta tool.
func (e listItem) isMeta() bool { return e.slot == asMeta || e.section == callableText }

// shownLocked returns the updated list of items, but does not store it. The caller
// holds mu.
func (s *Session) shownLocked(v *view) []listItem {
	switch {
	case s.startsFresh(v):
		return v.promptPrefix().items
	case s.shown != nil && s.shownAs == v.listVersion():
		return s.shown
	}
	if s.shown != nil && v.disclosure == ByBridge && !v.begun {
		return s.shown
	}
	return v.appendNew(s.shown)
}

// startsFresh reports whether the session is shown what all begin with. The caller holds mu.
func (s *Session) startsFresh(v *view) bool {
	return s.shown == nil && len(v.active) == 0 && !v.paged && !v.linked && !s.full && !v.begun
}

// withdraw removes the tools that are held back from the list. It is the only
// removal outside Compact: hiding an untrusted tool is worth the provider's cache.
// Their names go on to mean them. The caller holds mu.
//
// Once the conversation has begun by a Turn, nothing is removed from its beginning: the
// list says that the tool is taken back.
func (s *Session) withdraw(now *partition) {
	if s.told().begun {
		s.takeBackHeld(now)
		return
	}
	var held []knownName
	list := slices.DeleteFunc(slices.Clone(s.shown), func(e listItem) bool {
		if e.tool == nil || !now.isQuarantined(e.tool) {
			return false
		}
		held = append(held, knownName{e.tool.def.names(), e.tool.owner})
		return true
	})
	if held != nil {
		s.setShown(list)
		s.remember(held)
	}
}

func (s *Session) takeBackHeld(now *partition) {
	var back []listItem
	var held []knownName
	for _, e := range remaining(s.shown) {
		if e.isTool() && now.isQuarantined(e.tool) {
			back = append(back, listItem{slot: asRemoved, tool: e.tool})
			held = append(held, knownName{e.tool.def.names(), e.tool.owner})
		}
	}
	if back != nil {
		prefix := s.prefix
		s.setShown(slices.Concat(s.shown, back))
		s.prefix = prefix
		s.remember(held)
	}
}

func (v *view) listVersion() listVersion {
	return listVersion{v.id, v.activations, v.paged, v.linked, v.bridges, v.removes, v.skills.version}
}

// promptPrefixes are the first lists that models are shown.
type promptPrefixes struct {
	all  sync.Map     // *promptPrefix by version of the skills, SessionOptions.Client, and rights to the skills
	made atomic.Int32 // number of lists made
}

// A promptPrefix is a first list, which sessions share, and its text.
type promptPrefix struct {
	items []listItem
	key   saved.Key
	own   bool                           // of one session, which was restored where others begin with another
	texts [3]atomic.Pointer[sectionText] // all sections, those on search, the others; nil until written
}

// promptPrefix returns the first list of a session. All sessions of a partition that may
// use the same skills share it.
func (v *view) promptPrefix() *promptPrefix {
	o := &v.promptPrefixes[v.disclosure]
	key := fmt.Sprintf("%d %t %t %t %q", v.skills.version, v.client, v.bare, v.loads, v.skillRights)
	if made, ok := o.all.Load(key); ok {
		return made.(*promptPrefix)
	}
	first := &promptPrefix{items: slices.Clip(v.appendNew(nil))}
	if o.made.Add(1) > maxPromptPrefixes { // any one makes room
		o.all.Range(func(other, _ any) bool { o.all.Delete(other); return false })
	}
	o.all.Store(key, first)
	return first
}

// appendNew appends to list the items that belong there and are missing.
func (v *view) appendNew(list []listItem) []listItem {
	if !v.begun && v.empty() && v.disclosure != ByBridge && !v.loads && !v.hasSkills() && !v.reads {
		return list // nothing is fixed yet
	}
	tools := make(map[string]bool, len(list))
	versions := make(map[string]int)
	summaries := make(map[string]bool)
	var metas metaSet
	servers := make(map[string]bool)
	for _, e := range list {
		switch {
		case e.slot == asRemoved:
			tools[e.tool.name] = !v.removes // where the model still has it, it gets no other
		case e.isTool():
			tools[e.tool.name] = true
			versions[e.tool.name]++
		case e.isMeta():
			metas[e.meta] = true
		case e.section == summaryLines && e.tool != nil:
			summaries[e.tool.name] = true
		}
		if e.section == searchText {
			for _, o := range e.offer.servers {
				servers[o.Server] = true
			}
		}
	}
	var fresh []listItem
	add := func(t *BridgeTool, at slot, in section) {
		if !tools[t.name] && !v.fixed && versions[t.name] < maxVersions {
			tools[t.name] = true
			fresh = append(fresh, listItem{slot: at, section: in, tool: t})
		}
	}
	if v.removes {
		for _, e := range remaining(list) {
			if e.isTool() && v.left(e.tool) {
				fresh = append(fresh, listItem{slot: asRemoved, tool: e.tool})
				delete(tools, e.tool.name)
			}
		}
	}
	if list == nil && !v.fixed {
		fresh = v.appendGuide(fresh)
	}
	in := plainTool
	if v.policy.listInline {
		in = inlineLines
	}
	for _, t := range v.inline {
		add(t, asTool, in)
	}
	fresh = v.fitLines(fresh, list, inlineLines)
	searching := metas[metaSearch]
	for kind := range metaKinds {
		if metas[kind] || !v.offers(kind) {
			continue
		}
		e := listItem{slot: asMeta, meta: kind}
		switch {
		case v.fixed && (!metas[metaCall] || kind == metaSearch):
			continue
		case v.fixed:
			e.slot, e.section = notListed, callableText
		case kind == metaSearch:
			e.section, e.offer = searchText, v.searchOffer(servers)
		}
		fresh = append(fresh, e)
	}
	if searching {
		if o := v.searchOffer(servers); len(o.servers) > 0 {
			fresh = append(fresh, listItem{section: searchText, offer: o})
		}
	}
	if v.summarized && (searching || !v.fixed && v.offers(metaSearch)) {
		var lines []listItem
		left := v.growth(list, func(e listItem) bool { return e.section == summaryLines && e.tool != nil }, func(st standing) bool { return st == summarized })
		for t, st := range v.each() {
			if st == summarized && !summaries[t.name] && !tools[t.name] && left.take(t.origin()) {
				lines = append(lines, listItem{section: summaryLines, tool: t})
			}
		}
		fresh = append(fresh, v.fitLines(lines, slices.Concat(list, fresh), summaryLines)...)
	}
	if o := v.newSkills(list); o != nil && (!v.fixed || metas[metaSkillLoad] || metas[metaCall]) {
		fresh = append(fresh, listItem{section: skillText, offer: &itemOffer{skills: o}})
	}
	if v.disclosure == ByProvider && !v.begun && !v.loads {
		left := v.growth(slices.Concat(list, fresh), listItem.isTool, func(st standing) bool { return st != hidden })
		for t, p := range v.each() {
			if p.Searchable() && !tools[t.name] && left.take(t.origin()) {
				add(t, asDeferred, noSection)
			}
		}
	}
	if v.disclosure != ByBridge {
		for _, t := range v.active {
			add(t, asTool, noSection)
		}
	}
	if fresh == nil {
		return list
	}
	return slices.Concat(list, fresh) // without spare capacity: there are many sessions
}

// maxVersions is how often one name can be in a list, if its tool is taken back and comes
// again: a server must not fill a conversation by that.
const maxVersions = 4

// left reports whether a tool of the list has left the catalog, and not only because its
// server is not here.
func (v *view) left(t *BridgeTool) bool {
	return !isThere(t, v.catalogs) && !v.ended && !v.kept.isAway(t, v.catalogs)
}

// growth returns the room for more of the items in list that count, such as tools of
// the standings now.
func (v *view) growth(list []listItem, counts func(listItem) bool, now func(standing) bool) *listGrowth {
	g := newListGrowth(v.policy.list)
	for t, st := range v.each() {
		if now(st) {
			g.there(t.origin())
		}
	}
	for _, e := range list {
		if counts(e) {
			g.take(e.tool.origin())
		}
	}
	return g
}

// hasLine reports whether e is a line for one tool in the sections.
func (e listItem) hasLine() bool {
	return e.tool != nil && (e.section == inlineLines || e.section == summaryLines)
}

// minGuided is from how many tokens of inline definitions on the sections have
// [textGuide], which is then at most 3 % of them.
const minGuided = 2_200

// appendGuide appends what stands before the inline tools: the guide or, if they have
// lines, an example made from the first one that suits.
func (v *view) appendGuide(list []listItem) []listItem {
	tokens := 0
	for _, t := range v.inline {
		if !v.policy.listInline {
			if tokens += v.policy.tokens(t); tokens >= minGuided {
				return append(list, listItem{section: guideText})
			}
		} else if _, ok := schema.ExampleOf(t.def.InputSchema); ok {
			return append(list, listItem{section: exampleText, tool: t})
		}
	}
	return list
}

// fitLines fits the lines of fresh into the token budget that list leaves. All tools
// of fresh get full lines, or all get their names only. If the names are too long,
// none gets a line, and fitLines appends counts per server.
func (v *view) fitLines(fresh, list []listItem, in section) []listItem {
	p := v.policy
	lines := func(list []listItem, form lineForm) (tokens int) {
		for _, e := range list {
			if e.hasLine() {
				tokens += p.lineTokens(e.tool, max(form, e.line))
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
	counts, first := make(map[string]int), make(map[string]rules.Tool)
	var servers []string
	for i, e := range fresh {
		if e.hasLine() {
			fresh[i].line = form
			if counts[e.tool.def.Server]++; counts[e.tool.def.Server] == 1 {
				servers = append(servers, e.tool.def.Server)
				first[e.tool.def.Server] = e.tool.def.names()
			}
		}
	}
	if form != lineNone || len(servers) == 0 {
		return fresh
	}
	o := new(itemOffer)
	for _, name := range servers {
		o.servers = append(o.servers, saved.Server{Server: name, Tools: counts[name], Tool: first[name]})
	}
	return append(fresh, listItem{section: in, offer: o})
}

// searchOffer returns the servers that have deferred tools, in registration order:
// how many tools and what they are about. It omits the servers in known.
func (v *view) searchOffer(known map[string]bool) *itemOffer {
	mine := make(map[string]*search.Subject) // of the user's servers, which may have names of the system's
	if len(v.catalogs) > 1 {
		for _, t := range v.own().tools {
			mine[t.def.Server] = &search.Subject{Server: t.def.Server}
		}
	}
	o, at := serverList{}, make(map[string]int) // where those are in o
	for i, c := range v.catalogs {
		first := 0
		for _, server := range c.list.servers {
			if server == nil {
				continue
			}
			var found []*BridgeTool
			for j, t := range server.tools {
				if v.standingOf(t, v.verdicts[i].at(first+j).standing).Searchable() {
					found = append(found, t)
				}
			}
			first += len(server.tools)
			if len(found) == 0 || known[found[0].def.Server] {
				continue
			}
			offer := saved.Server{Server: found[0].def.Server, Tools: len(found), Tool: found[0].def.names()}
			subject := mine[offer.Server]
			if subject == nil && len(found) == len(server.tools) {
				offer.About = server.about()
				o = append(o, offer)
				continue
			}
			subject = cmp.Or(subject, &search.Subject{Server: offer.Server})
			for _, t := range found {
				subject.Add(t.def.Own)
			}
			offer.About = subject.String()
			if i, ok := at[offer.Server]; ok {
				o[i].Tools, o[i].About = o[i].Tools+offer.Tools, offer.About
				continue
			}
			at[offer.Server] = len(o)
			o = append(o, offer)
		}
	}
	return &itemOffer{servers: o}
}

// Tools returns the tool list for the next request to the model: the inline tools,
// the meta tools and the active tools, all to be sent in full. With [ByProvider], it lacks the tools
// that the provider hides from the model, active or not: only [Session.Export] returns these, marked as such.
// Make the model's calls with [Session.Call]: the Call method of a tool in
// this list calls the server directly.
//
// From the first call on, the list only grows at its end, until [Session.Compact].
// A tool that has left the catalog stays in it, and a changed tool keeps its old
// definition. Only a tool in quarantine is removed: see [TrustQuarantine].
func (s *Session) Tools() []Tool {
	var list []Tool
	for _, e := range remaining(s.show()) {
		switch e.slot {
		case asTool:
			list = append(list, e.tool)
		case asMeta:
			list = append(list, metaTool{s, e.meta})
		}
	}
	return list
}
