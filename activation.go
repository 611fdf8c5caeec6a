package mcphybrid

import (
	"slices"
)

// ActivateTools makes the tools of the given registered names callable, in
// this order, and then what they need, and returns the names of those that now
// are: deferred ones are activated, and with a registry are registered there by
// then; active and inline ones already were. Names that the session does not
// know are left out, and so is what is needed and can't be had: see
// [Options.Needs].
func (s *Session) ActivateTools(names []string) []string {
	var callable []string
	for _, t := range s.activate(s.withNeeded(names)) {
		callable = append(callable, t.name)
	}
	return callable
}

// ActivateToolIfDeferred makes one tool, and what it needs, callable and
// reports whether the tool is.
func (s *Session) ActivateToolIfDeferred(name string) bool {
	return s.activateOne(name) != nil
}

// activateOne activates a tool and what it needs, and returns the tool, or nil
// if it is not callable.
func (s *Session) activateOne(name string) *BridgeTool {
	callable := s.activate(s.withNeeded([]string{name}))
	if len(callable) == 0 || callable[0].name != name {
		return nil
	}
	return callable[0]
}

// activate is the one way by which tools become active, in three phases: it
// collects what is to be done, does it without any lock held, since a registry
// may have a lock of its own and call back, and then publishes it. What has
// left the catalog meanwhile does not stay registered, and what has come into
// its place is registered instead.
func (s *Session) activate(names []string) []*BridgeTool {
	callable, fresh := s.makeActive(names)
	if len(fresh) > 0 {
		s.tell(Event{Kind: EventActivate, Tools: namesOf(fresh)})
	}
	return callable
}

// makeActive returns the tools that are callable, and those that were not.
func (s *Session) makeActive(names []string) (callable, fresh []*BridgeTool) {
	// Phase 1: collect.
	v := s.view()
	var tools []*BridgeTool
	asked := make(map[string]bool, len(names))
	for _, name := range names {
		if t, _ := v.lookup(name); t != nil && !asked[name] {
			asked[name] = true
			tools = append(tools, t)
		}
	}

	// Phase 2: register. What is offered already is kept from being removed.
	if s.registrar != nil {
		tools = slices.DeleteFunc(tools, func(t *BridgeTool) bool { return !s.registrar.Begin(t) })
	}

	// Phase 3: publish.
	callable, fresh = s.publish(tools)
	if s.registrar != nil {
		for _, t := range tools {
			s.registrar.Finish(t)
		}
		if len(fresh) > 0 {
			s.registrar.Sync() // the groups
		}
	}
	return callable, fresh
}

// publish appends to the active tools those that are deferred, by the newest
// catalog, and notes that they are in use. It returns those of tools that the
// catalog has at all, and those that it appended.
func (s *Session) publish(tools []*BridgeTool) (callable, fresh []*BridgeTool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.viewLocked()
	isActive := v.activeSet()
	active := slices.Clip(v.active) // so that append copies
	for _, t := range tools {
		t, p := v.lookup(t.name)
		if t == nil {
			continue
		}
		if p.searchable() {
			if !isActive[t] {
				active = append(active, t)
				fresh = append(fresh, t)
			}
			if s.used == nil {
				s.used = make(map[string]int)
			}
			s.used[t.name] = s.turn
		}
		callable = append(callable, t)
	}
	s.active = active
	s.usage.activations += len(fresh)
	return callable, fresh
}

// inUse reports whether t and what it needs are inline or active as they are,
// and notes their use.
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
		s.used[t.name] = s.turn
		return true
	}
	return use(t) && !slices.ContainsFunc(v.needed(t), func(n *BridgeTool) bool { return !use(n) })
}

// needed returns what t needs, what that needs, and so on: the nearest first,
// of equally near ones in the order in which they were declared, and at most
// [maxNeeds]. What the session may not use is left out, and what only that
// needs.
func (v view) needed(t *BridgeTool) []*BridgeTool {
	if len(v.needs(t)) == 0 {
		return nil
	}
	all := []*BridgeTool{t}
	for i := 0; i < len(all); i++ {
		for _, n := range v.needs(all[i]) {
			if len(all) <= maxNeeds && !slices.Contains(all, n) && v.standing(n) != hidden {
				all = append(all, n)
			}
		}
	}
	return all[1:]
}

// withNeeded returns names and, behind them, those of the tools that they need.
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

// andNeeded returns hits and, behind them, the deferred tools that they need
// and the model does not have, up to limit in all.
func (v view) andNeeded(hits []Hit, limit int) []Hit {
	there := v.activeInList()
	for _, h := range hits {
		there[h.Tool] = true
	}
	for _, h := range hits {
		for _, n := range v.needed(h.Tool) {
			if len(hits) < limit && !there[n] && v.standing(n).searchable() {
				there[n] = true
				hits = append(hits, Hit{Tool: n, NeededBy: h.Tool})
			}
		}
	}
	return hits
}
