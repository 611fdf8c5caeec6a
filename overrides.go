package mcphybrid

import (
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/hints"
	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// Hints returns the hints known so far of the tool with that registered name, and
// whether there are any. It returns none for a tool that the session may not use.
func (s *Session) Hints(name string) (Hints, bool) {
	v := s.view()
	t, _ := v.lookup(name)
	if known := v.hints(t); known != nil {
		return Hints(known.Hints.Clone()), true
	}
	return Hints{}, false
}

// OverrideBlock returns a Markdown block headed "## Tool Overrides". It has the
// [Hints] of the inline and active tools that the model was shown and may still
// use, in the order in which they were shown. It is "" if none of them has hints.
//
// The host appends the block to a turn. It is not part of
// [Session.PromptSections], which must not change when a tool is activated or its
// hints become known.
//
// Each text is one line of at most 200 characters. A tool gets its first lines up
// to 1 KiB. The lines of all tools get 8 KiB, about 2,000 tokens: the block keeps
// the tools shown last, and a final line says how many others it omits. Equal
// hints for equal tools give equal bytes.
func (s *Session) OverrideBlock() string {
	s.mu.Lock()
	v := s.viewLocked()
	var list []listItem
	if !v.ended {
		list = s.shownLocked(v)
	}
	s.mu.Unlock()

	var noted []hints.Noted
	seen := make(map[string]bool)
	for _, e := range list {
		ofModel := e.slot == asTool || e.slot == asDeferred && v.isActive(e.tool.name)
		if !ofModel || seen[e.tool.name] {
			continue
		}
		seen[e.tool.name] = true
		t, _ := v.lookup(e.tool.name)
		if known := v.hints(t); known != nil {
			h := known.Hints.Clone()
			h.ChainsWith = slices.DeleteFunc(h.ChainsWith, func(name string) bool { return s.conceals(v, name) })
			noted = append(noted, hints.Noted{Tool: t.name, Hints: h})
		}
	}
	return hints.Block(noted)
}

// conceals reports whether the session must not show name: it belongs to a tool
// that the session does not see, or an access list denies it. Unknown names pass:
// they may be the host's.
func (s *Session) conceals(v *view, name string) bool {
	if t, _ := v.lookup(name); t != nil {
		return false
	}
	_, _, there := v.find(name)
	return there || v.quarantined(name) != nil || s.rights.And(rules.Access(s.scope.opts.Access)).Denies(name)
}
