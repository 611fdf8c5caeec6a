package mcphybrid

import (
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/room"
)

// listRoom returns what is left of the list, after what it has and will have of
// tools: see [ListOptions]. It is closed to a tool that has been taken back too often.
// It is nil if active tools take no room: with ByBridge they are not in the list, and
// with ByProvider its first items are all tools. The caller holds mu.
func (s *Session) listRoom(now *partition, tools ...[]*BridgeTool) *room.Names[origin] {
	if d := s.Disclosure(); d == ByBridge || d == ByProvider && s.shown == nil {
		return nil
	}
	limits := now.policy.list
	if !mayUse(now.rights, SearchToolName) { // nothing can be deferred
		limits.Items, limits.ItemsEach = max(limits.Items, len(now.inline)), max(limits.ItemsEach, len(now.inline))
		limits.Tokens, limits.TokensEach = NoLimit, NoLimit
	}
	left := room.NewNames[origin](limits)
	versions := make(map[string]int)
	take := func(t *BridgeTool) { left.Take(t.name, t.origin(), s.scope.toolTokens(t)) }
	for _, e := range s.shown {
		if e.isTool() {
			versions[e.tool.name]++
		}
		switch e.place {
		case asRemoved:
			if versions[e.tool.name] == maxVersions {
				left.Close(e.tool.name)
			}
		case asDeferred:
			if s.told().loads { // the conversation has it in full
				take(e.tool)
			} else {
				left.Note(e.tool.name)
			}
		case asTool:
			take(e.tool)
		}
	}
	for _, t := range slices.Concat(tools...) {
		take(t)
	}
	return left
}

// admits reports whether left has room for t, which takes it.
func (s *Session) admits(left *room.Names[origin], t *BridgeTool) bool {
	return left == nil || left.Admit(t.name, t.origin(), s.scope.toolTokens(t))
}
