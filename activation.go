package mcphybrid

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"weak"
)

// ActivateTools makes the tools with these registered names callable, and after
// them the tools that they need: see [Options.Needs]. It returns the names of all
// that are callable now, in this order, including those that were inline or
// active before. It returns a name only after the session's [Registry], if there
// is one, holds the tool. It skips unknown names and tools that the session may
// not use.
func (s *Session) ActivateTools(names []string) []string {
	callable, _ := s.activate(s.withNeeded(names))
	return namesOf(callable)
}

// ActivateToolIfDeferred makes the tool with that registered name and the tools
// that it needs callable. It reports whether the tool is callable now, which
// includes inline and active tools.
func (s *Session) ActivateToolIfDeferred(name string) bool {
	callable, _ := s.activate(s.withNeeded([]string{name}))
	return isNamed(callable, name)
}

func isNamed(tools []*BridgeTool, name string) bool {
	return slices.ContainsFunc(tools, func(t *BridgeTool) bool { return t.name == name })
}

// activate makes tools active. Every activation goes through it, in three phases:
// it collects the tools, registers them, and publishes them. It registers without
// any lock held, since a registry may have a lock of its own and call back. If a
// tool leaves the catalog meanwhile, it does not stay registered, and a tool that
// replaces it is registered instead.
//
// It returns the tools that are callable now, and as without those that stay
// deferred because the list has no room for them: see [ListOptions].
func (s *Session) activate(names []string) (callable, without []*BridgeTool) {
	callable, fresh, without := s.makeActive(names)
	if len(fresh) > 0 {
		s.tell(Event{Kind: EventActivate, Tools: namesOf(fresh)})
	}
	if len(without) > 0 {
		s.tell(Event{Kind: EventFull, Tools: namesOf(without)})
	}
	return callable, without
}

// makeActive is activate without the events. It returns as fresh the tools that
// were not callable before.
func (s *Session) makeActive(names []string) (callable, fresh, without []*BridgeTool) {
	// Phase 1: collect.
	tools := s.view().toolsNamed(names)

	// Phase 2: register. This also keeps the registrar from removing tools that
	// it has already.
	if s.registrar != nil {
		tools = slices.DeleteFunc(tools, func(t *BridgeTool) bool { return !s.registrar.Begin(t) })
	}

	// Phase 3: publish.
	callable, fresh, without = s.publish(tools)
	if s.registrar != nil {
		for _, t := range tools {
			s.registrar.Finish(t)
		}
		if len(fresh)+len(without) > 0 {
			s.registrar.Sync() // the groups, and the tools that call those without room
		}
	}
	return callable, fresh, without
}

// publish appends the deferred tools among tools to the active ones, by the newest
// catalog, and records their use. It returns the tools that the catalog has, and
// those that it appended, apart from those for which the list has no room.
func (s *Session) publish(tools []*BridgeTool) (callable, fresh, without []*BridgeTool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.viewLocked()
	left := s.listRoom(v.partition, v.active, v.inline)
	isActive := v.activeSet()
	active := slices.Clip(v.active) // so that append copies
	for _, t := range tools {
		t, p := v.lookup(t.name)
		if t == nil {
			continue
		}
		if p.Searchable() {
			if !isActive[t] && !s.admits(left, t) {
				without, s.full = append(without, t), true
				continue
			}
			if !isActive[t] {
				active = append(active, t)
				fresh = append(fresh, t)
			}
			s.use(t, !isActive[t])
		}
		callable = append(callable, t)
	}
	s.active = active
	s.usage.activations += len(fresh)
	return callable, fresh, without
}

// listRoom returns what is left of the list, after what it has and will have of
// tools. It is closed to a tool that has been taken back too often. It is nil if active tools take no room: with ByBridge they are not in the
// list, and with ByProvider its first items are all tools. The caller holds mu.
func (s *Session) listRoom(now *partition, tools ...[]*BridgeTool) *namedRoom {
	if d := s.Disclosure(); d == ByBridge || d == ByProvider && s.shown == nil {
		return nil
	}
	limits := now.policy.list
	if !mayUse(now.rights, SearchToolName) { // nothing can be deferred
		limits.items, limits.itemsEach = max(limits.items, len(now.inline)), max(limits.itemsEach, len(now.inline))
		limits.tokens, limits.tokensEach = NoLimit, NoLimit
	}
	left := newNamedRoom(limits)
	versions := make(map[string]int)
	take := func(t *BridgeTool) { left.take(t.name, t.origin(), s.scope.toolTokens(t)) }
	for _, e := range s.shown {
		if e.isTool() {
			versions[e.tool.name]++
		}
		switch e.slot {
		case asRemoved:
			if versions[e.tool.name] == maxVersions {
				left.close(e.tool.name)
			}
		case asDeferred:
			if s.told().loads { // the conversation has it in full
				take(e.tool)
			} else {
				left.note(e.tool.name)
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
func (s *Session) admits(left *namedRoom, t *BridgeTool) bool {
	return left == nil || left.admit(t.name, t.origin(), s.scope.toolTokens(t))
}

// A lastUse is what a session knows of the use of an active tool.
type lastUse struct {
	turn int // of the last use
	act  int // the how many-th activation it was
}

// use records that t is used, and if fresh is set, that it was activated. The
// caller holds mu.
func (s *Session) use(t *BridgeTool, fresh bool) {
	if s.used == nil {
		s.used = make(map[string]lastUse)
	}
	u := s.used[t.name]
	u.turn = s.turn
	if fresh {
		s.activations++
		u.act = s.activations
	}
	s.used[t.name] = u
}

// inUse reports whether t and the tools that it needs are inline or active, in
// their current version. It records their use.
func (s *Session) inUse(t *BridgeTool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.viewLocked()
	use := func(t *BridgeTool) bool {
		if there, p := v.lookup(t.name); p == inline {
			return there == t
		}
		if !slices.Contains(v.active, t) {
			return false
		}
		s.use(t, false)
		return true
	}
	return use(t) && !slices.ContainsFunc(v.needed(t), func(n *BridgeTool) bool { return !use(n) })
}

// needed returns the tools that t needs, then those that they need, and so on, at
// most [maxNeeds] and in the order of declaration. It skips the tools that the
// session may not use, and does not follow their needs.
func (v *view) needed(t *BridgeTool) []*BridgeTool {
	return transitive(t, maxNeeds, v.needs, func(n *BridgeTool) bool { return v.standing(n) != hidden })
}

// withNeeded returns names followed by the names of the tools that they need.
func (s *Session) withNeeded(names []string) []string {
	v := s.view()
	all := slices.Clip(names)
	for _, name := range names {
		if t, _ := v.lookup(name); t != nil {
			all = append(all, namesOf(v.needed(t))...)
		}
	}
	return all
}

// andNeeded returns hits followed by the deferred tools that they need and that
// the model does not have, up to limit in all.
func (v *view) andNeeded(hits []Hit, limit int) []Hit {
	there := v.activeInList()
	for _, h := range hits {
		there[h.Tool] = true
	}
	for _, h := range hits {
		for _, n := range v.needed(h.Tool) {
			if len(hits) < limit && !there[n] && v.standing(n).Searchable() {
				there[n] = true
				hits = append(hits, Hit{Tool: n, NeededBy: h.Tool})
			}
		}
	}
	return hits
}

// NextTurn tells the session that a new turn of the conversation begins. The
// host decides what a turn is, for example one message of the user. If the host
// never calls NextTurn, no active tool grows old: see [ActiveOptions.Turns].
func (s *Session) NextTurn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn < math.MaxInt { // a saved session may be there already
		s.turn++
	}
}

// Compact drops old active tools and rebuilds the tool list and the prompt
// sections from the current catalog. Only Compact removes or changes anything
// that the model was sent, which loses the provider's prompt cache. So call it
// when you rewrite the conversation anyway.
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
	s.kept, s.full, s.seen = nil, false, weak.Pointer[partition]{} // nothing takes room any more
	s.knownNames, s.turns = nil, nil
	s.disclosure.Store(int32(s.asked.disclosure))
	s.setShown(nil)
	now := s.viewLocked()
	gone := slices.DeleteFunc(slices.Clone(active), func(t *BridgeTool) bool {
		return now.isActive(t.name) || now.partition.standing(t) == inline
	})
	s.pages.kept.Drop()
	s.pages.kept, s.pages.offered, s.refused = nil, false, nil
	s.mu.Unlock()
	if s.registrar != nil {
		s.registrar.Sync()
	}
	if len(gone) > 0 {
		s.tell(Event{Kind: EventEvict, Tools: namesOf(gone)})
	}
	return gone
}

// forgetUnused forgets the last use of tools that are not active. The caller
// holds mu.
func (s *Session) forgetUnused() {
	if len(s.used) == 0 {
		return
	}
	known := make(map[string]bool, len(s.used))
	for _, name := range namesOf(slices.Concat(s.active, s.unavailable)) {
		known[name] = true
	}
	maps.DeleteFunc(s.used, func(name string, _ lastUse) bool { return !known[name] })
}

// inOrder returns the tools of both lists in activation order. The caller holds mu.
func (s *Session) inOrder(list, more []*BridgeTool) []*BridgeTool {
	all := slices.Concat(list, more)
	slices.SortStableFunc(all, func(a, b *BridgeTool) int { return cmp.Compare(s.used[a.name].act, s.used[b.name].act) })
	return all
}

// toKeep returns the active tools that Compact does not drop.
func (s *Session) toKeep(active []*BridgeTool) []*BridgeTool {
	byUse := slices.Clone(active)
	slices.SortStableFunc(byUse, func(a, b *BridgeTool) int { return cmp.Compare(s.used[a.name].turn, s.used[b.name].turn) })
	excess := len(active) - s.scope.opts.Active.Max
	goes := make(map[*BridgeTool]bool)
	for i, t := range byUse {
		age := s.turn - s.used[t.name].turn
		goes[t] = age > 0 && (i < excess || age >= s.scope.opts.Active.Turns)
	}
	return slices.DeleteFunc(slices.Clone(active), func(t *BridgeTool) bool { return goes[t] })
}

// ActiveOptions bound the active tools of a session. [Session.Compact] applies
// them; tools used in the current turn do not count.
type ActiveOptions struct {
	// Max is how many active tools Compact leaves at most. It defaults to
	// [DefaultMaxActive].
	Max int

	// Turns is after how many turns without use Compact gives up a tool. It
	// defaults to [DefaultActiveTurns].
	Turns int
}
