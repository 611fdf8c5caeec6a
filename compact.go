package mcphybrid

import (
	"cmp"
	"maps"
	"slices"
)

// NextTurn tells the session that a new turn of the conversation begins, such
// as with each message of the user. Only the host knows what a turn is; if it
// never says so, no tool is too old to stay active.
func (s *Session) NextTurn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
}

// Compact makes room and begins the list of tools and the prompt sections
// anew, by the catalog as it is now. It is the one safe point: only here does
// anything leave or change that the model was sent. A host calls it when it
// rewrites the conversation anyway, since the provider's cache of it is lost.
//
// Active tools are given up that were not used for [Options.ActiveTurns]
// turns, and the least recently used of more than [Options.MaxActive]; never
// one that was found or called in this turn. Compact returns them, in the
// order of their activation: they are deferred again, and can be found and
// called again. Results that were cut can no longer be read on.
func (s *Session) Compact() []*BridgeTool {
	s.mu.Lock()
	v := s.viewLocked()
	kept, gone := s.divide(v.active)
	s.active = kept
	s.forgetUnused()
	s.setShown(nil)
	s.pages.kept, s.pages.offered, s.refused = nil, false, refusal{}
	s.mu.Unlock()
	if s.registrar != nil {
		s.registrar.Sync()
	}
	if len(gone) > 0 {
		s.tell(Event{Kind: EventEvict, Tools: namesOf(gone)})
	}
	return gone
}

// forgetUnused forgets when tools were used that are not active. It is called
// with mu held.
func (s *Session) forgetUnused() {
	maps.DeleteFunc(s.used, func(name string, _ int) bool {
		return !slices.ContainsFunc(s.active, func(t *BridgeTool) bool { return t.name == name })
	})
}

// divide divides the active tools into those that stay and those that go.
func (s *Session) divide(active []*BridgeTool) (kept, gone []*BridgeTool) {
	byUse := slices.Clone(active)
	slices.SortStableFunc(byUse, func(a, b *BridgeTool) int { return cmp.Compare(s.used[a.name], s.used[b.name]) })
	excess := len(active) - s.scope.opts.MaxActive
	goes := make(map[*BridgeTool]bool)
	for i, t := range byUse {
		age := s.turn - s.used[t.name]
		goes[t] = age > 0 && (i < excess || age >= s.scope.opts.ActiveTurns)
	}
	for _, t := range active {
		if goes[t] {
			gone = append(gone, t)
		} else {
			kept = append(kept, t)
		}
	}
	return kept, gone
}
