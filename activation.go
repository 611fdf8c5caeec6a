package mcphybrid

// How a deferred tool becomes active in a session, in three phases: collect, register, publish.
//
//	found    modelsearch.go, providersearch.go, selectfor.go   ─┐
//	called   call.go; by the host's registry, newsession.go    ─┼─▶ activate ─▶ registrar.go ─▶ the host's registry
//	needed   skillview.go, and sessionneeds.go for all three   ─┘           └─▶ appendnew.go ─▶ what the model is sent
//
// lastuse.go remembers when active tools were used, and compact.go drops them by that.

import "slices"

// ActivateTools makes the tools with these registered names callable, and after
// them the tools that they need: see [Options.Needs]. It returns the names of all
// that are callable now, in this order, including those that were inline or
// active before. It returns a name only after the session's [Registry], if there
// is one, holds the tool. It skips unknown names, tools that the session may not
// use, and those for which the list has no room: see [ListOptions].
//
// The model has their definitions from the next [Session.Turn] on, or the next list of a host
// without Turn: in the list of tools, in the conversation or as text, by the session's
// [Disclosure]. With [ByProvider] it gets them by a search.
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

// activate makes tools active. Only [Session.refit] does so elsewhere: it makes a tool active
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
		t, st := v.lookup(t.name)
		if t == nil {
			continue
		}
		if st.Searchable() {
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

// isNamed reports whether one of tools has that registered name.
func isNamed(tools []*BridgeTool, name string) bool {
	return slices.ContainsFunc(tools, func(t *BridgeTool) bool { return t.name == name })
}
