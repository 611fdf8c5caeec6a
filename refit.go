package mcphybrid

// refit withdraws what the partition next holds back, and fits the active tools and then the
// inline tools of next into the list. It drops active tools that can no longer be found by
// search, those that do not fit, and those whose definition has changed. A server that was
// removed and added again has new tools, so its old ones are no longer active. A tool that was
// unavailable and is there again is active. A list that is fixed gets no inline tools that it
// did not have: they are deferred here, and stay active if they are. The caller holds mu.
func (s *Session) refit(next *partition) {
	s.withdraw(next)
	fixed := s.transcriptCopy().fixed(s.Disclosure())
	if s.shown == nil && len(s.active)+len(s.unavailable) == 0 && !fixed {
		s.overflow = nil
		s.forgetUnused()
		return // next makes room for its inline tools
	}
	listed := make(map[string]bool) // of a list that is fixed
	if fixed {
		for _, e := range s.shown {
			listed[e.toolName()] = e.isTool()
		}
	}
	isInline := func(name string, st standing) bool { return st == inline && (!fixed || listed[name]) }
	left := s.roomLeft(next)
	isAway := setOf(s.unavailable)
	var active, away []*BridgeTool
	for _, t := range s.inOrder(s.active, s.unavailable) {
		there, st := next.lookup(t.name)
		switch {
		case there != nil && !there.is(t): // its name means another tool since Compact
		case isAway[t] && (there == nil || isInline(t.name, st)):
			away = append(away, t)
		case there == nil || there.def != t.def && !isAway[t]:
		case !s.tryAdd(left, there):
			s.full = true
		case !isInline(t.name, st):
			active = append(active, there)
		}
	}
	s.active, s.unavailable, s.overflow = active, away, nil
	s.forgetUnused()
	if s.shown == nil && len(active) == 0 && !fixed {
		return // next makes room for its inline tools
	}
	for _, t := range next.inlineTools {
		fits := s.tryAdd(left, t)
		if fits && isInline(t.name, inline) {
			continue
		}
		if s.overflow == nil {
			s.overflow = make(map[*BridgeTool]bool)
		}
		s.overflow[t] = true
		s.full = s.full || !fits
	}
}
