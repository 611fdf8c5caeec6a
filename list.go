package mcphybrid

// What a session's model was given, in order; appendnew.go appends to it.

import (
	"slices"
	"sync/atomic"
)

// A listItem is one item that a session's model was given. A provider caches the beginning
// of a request as long as not a byte changes. So a session keeps a list of items and
// appends to it: Session.shown has the exceptions. Both the prompt sections and the tool
// list are this list, written item by item: all of it at the head of a request or, by Turn,
// the beginning there and the rest in messages.
type listItem struct {
	slot     slot
	section  section
	line     lineForm    // of a tool that has a line in its section
	meta     metaKind    // for asMeta
	tool     *BridgeTool // the version that the model was given, or nil
	mentions *mentions   // of a section without a tool, or of the search tool
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
	activeText           // the definition of an active tool that only the call tool calls
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

// hasLine reports whether e is a line for one tool in the sections.
func (e listItem) hasLine() bool {
	return e.tool != nil && (e.section == inlineLines || e.section == summaryLines)
}

// mentions are the servers and skills that an item tells of. Few items have any. It is separate to
// keep listItem small: sessions have many of those.
type mentions struct {
	servers serverList
	skills  *skillsText            // for skillText
	summary atomic.Pointer[string] // of servers; nil until written
}

// summarize returns the summary of the servers, which it keeps. All sessions that have m are
// of one tenant, and so have one budget and one counter.
func (m *mentions) summarize(maxTokens int, count func(string) int) string {
	if kept := m.summary.Load(); kept != nil {
		return *kept
	}
	summary := m.servers.summary(maxTokens, count)
	m.summary.Store(&summary)
	return summary
}

// restoredTools are tools of a session's list, by registered name, that the session
// has from a saved state: when it was restored, the catalog did not have them in
// that version. They are shown only. They are in no catalog, and so can't be
// found or called; nothing trusts them.
type restoredTools map[string]*restoredTool

type restoredTool struct {
	*BridgeTool
	removed bool // it had left the catalog where the session was saved, if it was not kept there
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
	viaCallTool bool
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
	if s.isUpToDate(v) || s.waits(v) {
		return s.shown
	}
	list, prefix := s.shownLocked(v), s.prefix
	if s.startsFresh(v) {
		prefix = v.promptPrefix()
	}
	if len(list) > 0 {
		s.setShown(list, prefix)
		s.shownAs = v.listVersion()
		if s.metas[metaSearch] {
			s.covered = v.coverage
		}
	}
	return list
}

// setShown sets the list of items and the prefix with which it begins, or nil. The caller
// holds mu.
func (s *Session) setShown(list []listItem, prefix *promptPrefix) {
	s.shown, s.prefix, s.shownAs, s.metas, s.covered = list, prefix, listVersion{}, metaSet{}, nil
	for i := range list {
		if list[i].isMeta() {
			s.metas[list[i].meta] = true
		}
	}
}

// isMeta reports whether e gives the model a meta tool.
func (e listItem) isMeta() bool { return e.slot == asMeta || e.section == callableText }

// shownLocked returns the updated list of items, but does not store it. The caller
// holds mu.
func (s *Session) shownLocked(v *view) []listItem {
	switch {
	case s.startsFresh(v) && len(v.active) == 0:
		return v.promptPrefix().items
	case s.startsFresh(v):
		return v.appendNew(v.promptPrefix().items)
	case s.isUpToDate(v), s.waits(v):
		return s.shown
	}
	return v.appendNew(s.shown)
}

// isUpToDate reports whether nothing that the list depends on has changed since it was updated. The
// caller holds mu.
func (s *Session) isUpToDate(v *view) bool { return s.shown != nil && s.shownAs == v.listVersion() }

// waits reports whether nothing is appended before the first Turn. The caller holds mu.
func (s *Session) waits(v *view) bool {
	return s.shown != nil && v.disclosure == ByBridge && !v.begun
}

// startsFresh reports whether the session has shown nothing yet, and would begin with the
// list that sessions share. Its own active tools follow that. Where they leave too little room for
// that list, the session is full. The caller holds mu.
func (s *Session) startsFresh(v *view) bool {
	return s.shown == nil && !v.paged && !v.linked && !s.full && !v.begun
}

// withdraw removes the tools that are held back from the list: hiding an untrusted tool
// is worth the provider's cache.
// Their names still refer to them. The caller holds mu.
//
// Once the conversation has begun by a Turn, nothing is removed from its beginning: the
// list says that the tool is taken back.
func (s *Session) withdraw(now *partition) {
	if s.transcriptCopy().begun {
		s.takeBackHeld(now)
		return
	}
	isHeld := func(e listItem) bool { return e.tool != nil && now.isQuarantined(e.tool) }
	var held []knownName
	for _, e := range s.shown {
		if isHeld(e) {
			held = append(held, knownName{e.tool.def.subject(), e.tool.owner})
		}
	}
	if held != nil {
		s.setShown(slices.DeleteFunc(slices.Clone(s.shown), isHeld), nil)
		s.remember(held)
	}
}

func (s *Session) takeBackHeld(now *partition) {
	var back []listItem
	var held []knownName
	for _, e := range remaining(s.shown) {
		if e.isTool() && now.isQuarantined(e.tool) {
			back = append(back, listItem{slot: asRemoved, tool: e.tool})
			held = append(held, knownName{e.tool.def.subject(), e.tool.owner})
		}
	}
	if back != nil {
		s.setShown(slices.Concat(s.shown, back), s.prefix)
		s.remember(held)
	}
}

func (v *view) listVersion() listVersion {
	return listVersion{v.id, v.activations, v.paged, v.linked, v.viaCallTool, v.removes, v.skills.version}
}

// Tools returns the tool list for the next request to the model: the inline tools,
// the meta tools and the active tools, all to be sent in full. With [ByProvider], it lacks the tools
// that the provider hides from the model, active or not: only [Session.Export] returns these, marked as such.
// Make the model's calls with [Session.Call]: the Call method of a [BridgeTool] in
// this list calls the server directly, unless the tool is there from a saved state only.
//
// From the first call on, the list grows at its end, until [Session.Compact]. A tool
// that has left the catalog stays in it, and a changed tool keeps its old definition. A
// tool in quarantine is removed: see [TrustQuarantine]. The first [Session.Turn] may begin
// the list anew, and what a conversation takes back leaves it: see [Turn.Removed].
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
