package mcphybrid

import (
	"cmp"
	"slices"
	"weak"
)

// Compact drops old active tools and rebuilds the tool list and the prompt
// sections from the current catalog. It removes and changes what the model was sent,
// which loses the provider's prompt cache. So call it when you rewrite the
// conversation anyway. [Session.Tools] says what else takes anything from that list.
//
// Compact drops the active tools that have not been used for
// [ActiveOptions.Turns] turns. If more than [ActiveOptions.Max] are active, it
// also drops the least recently used. It does not drop a tool that was found or
// called in the current turn, unless its definition has grown past [ListOptions].
// Dropped tools are deferred again: the model can
// find and call them again. Compact returns them in the order of their
// activation, or nil if it dropped none. It does not return tools of a restored
// session whose server is not here.
//
// The model can no longer read on in results that were cut before Compact.
func (s *Session) Compact() []*BridgeTool {
	s.mu.Lock()
	active := s.viewLocked().active
	keeps := setOf(s.toKeep(s.inOrder(active, s.unavailable)))
	drop := func(t *BridgeTool) bool { return !keeps[t] }
	s.active, s.unavailable = slices.DeleteFunc(slices.Clone(active), drop), slices.DeleteFunc(slices.Clone(s.unavailable), drop)
	s.restored, s.full, s.seen = nil, false, weak.Pointer[partition]{} // nothing takes room any more
	s.knownNames, s.transcript = nil, nil
	s.disclosure.Store(int32(s.asked.disclosure))
	s.setShown(nil, nil)
	s.ledger.noticeCompact()
	now := s.viewLocked()
	gone := slices.DeleteFunc(slices.Clone(active), func(t *BridgeTool) bool {
		return now.isActive(t.name) || now.partition.standing(t) == inline
	})
	s.pages.kept.Drop()
	s.pages.kept, s.pages.offered, s.refused = nil, false, nil
	s.mu.Unlock()
	s.syncRegistry()
	if len(gone) > 0 {
		s.emit(Event{Kind: EventEvict, Tools: namesOf(gone)})
	}
	return gone
}

// toKeep returns the active tools that Compact does not drop.
func (s *Session) toKeep(active []*BridgeTool) []*BridgeTool {
	byUse := slices.Clone(active)
	slices.SortStableFunc(byUse, func(a, b *BridgeTool) int { return cmp.Compare(s.lastUsed[a.name].turn, s.lastUsed[b.name].turn) })
	excess := len(active) - s.tenant.opts.Active.Max
	goes := make(map[*BridgeTool]bool)
	for i, t := range byUse {
		age := s.userTurn - s.lastUsed[t.name].turn
		goes[t] = age > 0 && (i < excess || age >= s.tenant.opts.Active.Turns)
	}
	return slices.DeleteFunc(slices.Clone(active), func(t *BridgeTool) bool { return goes[t] })
}

// ActiveOptions bound the active tools of a session. [Session.Compact] enforces them. It
// never drops a tool that was used in the current turn, so more than Max may remain.
type ActiveOptions struct {
	// Max is how many active tools Compact leaves at most, besides those of this turn. It defaults to
	// 64 ([DefaultMaxActive]).
	Max int

	// Turns is after how many turns without use Compact gives up a tool. It
	// defaults to 20 ([DefaultActiveTurns]).
	Turns int
}
