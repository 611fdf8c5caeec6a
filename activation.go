package mcphybrid

import "slices"

// ActivateTools makes the tools with these registered names callable, and after
// them the tools that they need: see [Options.Needs]. It returns the names of all
// that are callable now, in this order, including those that were inline or
// active before. It returns a name only after the session's [Registry], if there
// is one, holds the tool. It skips unknown names, tools that the session may not
// use, and those for which the list has no room: see [ListOptions].
func (s *Session) ActivateTools(names []string) []string {
	callable, _ := s.activate(s.view().withNeeded(names))
	return namesOf(callable)
}

// ActivateToolIfDeferred makes the tool with that registered name and the tools
// that it needs callable. It reports whether the tool is callable now, which
// includes inline and active tools.
func (s *Session) ActivateToolIfDeferred(name string) bool {
	callable, _ := s.activate(s.view().withNeeded([]string{name}))
	return isNamed(callable, name)
}

// activate makes tools active. All do it but [Session.refit], which makes a tool active
// again that was unavailable. It has three phases: makeActive collects the tools, registers
// them, and publishes them. It registers without any lock held, since a registry may have a lock of its own and call back. If a
// tool leaves the catalog meanwhile, it does not stay registered, and a tool that
// replaces it is registered instead.
//
// It returns the tools that are callable now, and as without those that stay
// deferred because the list has no room for them: see [ListOptions].
func (s *Session) activate(names []string) (callable, without []*BridgeTool) {
	callable, fresh, without := s.makeActive(names)
	if len(fresh) > 0 {
		s.emit(Event{Kind: EventActivate, Tools: namesOf(fresh)})
	}
	if len(without) > 0 {
		s.emit(Event{Kind: EventFull, Tools: namesOf(without)})
	}
	return callable, without
}

// makeActive does the work of activate, and sends no events. It returns as fresh the tools that
// were not callable before.
func (s *Session) makeActive(names []string) (callable, fresh, without []*BridgeTool) {
	// Phase 1: collect.
	tools := s.view().toolsNamed(names)

	// Phase 2: register. This also keeps the registrar from removing tools that
	// it has already.
	if s.registrar != nil {
		tools = slices.DeleteFunc(tools, func(t *BridgeTool) bool { return !s.registrar.hold(t) })
	}

	// Phase 3: publish.
	callable, fresh, without = s.appendActive(tools)
	if s.registrar != nil {
		for _, t := range tools {
			s.registrar.release(t)
		}
	}
	if len(fresh)+len(without) > 0 {
		s.syncRegistry() // the groups, and the tools that call those without room
	}
	return callable, fresh, without
}

// appendActive appends the deferred tools among tools to the active ones, by the newest
// catalog, and records their use. It returns the tools that the catalog has, those of them
// that it appended, and those for which the list has no room, which are in neither.
func (s *Session) appendActive(tools []*BridgeTool) (callable, fresh, without []*BridgeTool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.viewLocked()
	left := s.roomLeft(v.partition, v.active, v.inline)
	isActive := v.activeSet()
	active := slices.Clip(v.active) // so that append copies
	for _, t := range tools {
		t, p := v.lookup(t.name)
		if t == nil {
			continue
		}
		if p.Searchable() {
			if !isActive[t] && !s.tryAdd(left, t) {
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

// A lastUse is what a session knows of the use of an active tool.
type lastUse struct {
	turn int // of the last use
	act  int // its place in the order of the session's activations
}

// use records that t is used, and if fresh is set, that it was activated. The
// caller holds mu.
func (s *Session) use(t *BridgeTool, fresh bool) {
	if s.lastUsed == nil {
		s.lastUsed = make(map[string]lastUse)
	}
	u := s.lastUsed[t.name]
	u.turn = s.userTurn
	if fresh {
		s.activations++
		u.act = s.activations
	}
	s.lastUsed[t.name] = u
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

// isNamed reports whether one of tools has that registered name.
func isNamed(tools []*BridgeTool, name string) bool {
	return slices.ContainsFunc(tools, func(t *BridgeTool) bool { return t.name == name })
}
