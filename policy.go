package mcphybrid

// A policy says how tools stand.
type policy struct {
	pins    []string
	limit   int // the largest number of inline tools, pins aside
	allUpTo int // up to that many tools are all inline
}

// A verdict is how a tool stands, and why.
type verdict struct {
	standing standing
}

func newPolicy(opts *Options) *policy {
	p := &policy{pins: opts.Pins, limit: opts.MaxInline, allUpTo: opts.MaxInline}
	if jit := opts.JustInTime; jit != nil {
		p.limit, p.allUpTo = 0, jit.Threshold
	}
	return p
}

// judge fills in how each tool of s stands.
func (s *selection) judge() {
	seen := 0
	s.verdicts = make([][]verdict, len(s.catalogs))
	for i, c := range s.catalogs {
		s.verdicts[i] = make([]verdict, len(c.tools))
		for j, t := range c.tools {
			if s.rights.permit(t.name) && !s.overridden(i, t.name) {
				s.verdicts[i][j].standing = deferred
				seen++
			}
		}
	}
	free := s.policy.limit
	if seen <= s.policy.allUpTo || !s.rights.mayUse(SearchToolName) {
		free = seen // what can't be searched for must be in sight
	}
	s.inlineIf(func(t *BridgeTool) bool {
		pinned := matchAny(s.policy.pins, t.name)
		if pinned {
			free--
		}
		return pinned
	})
	s.inlineIf(func(*BridgeTool) bool {
		free--
		return free >= 0
	})
	for t, st := range s.each() {
		switch {
		case st == inline:
			s.inline = append(s.inline, t)
		case st.searchable():
			s.deferred++
		}
	}
}

// inlineIf makes those of the deferred tools inline that ok reports.
func (s *selection) inlineIf(ok func(*BridgeTool) bool) {
	for i, c := range s.catalogs {
		for j, t := range c.tools {
			if v := &s.verdicts[i][j]; v.standing == deferred && ok(t) {
				v.standing = inline
			}
		}
	}
}

// overridden reports whether a later catalog than the i-th has a tool of that
// name, be it held back.
func (s *selection) overridden(i int, name string) bool {
	for _, c := range s.catalogs[i+1:] {
		if c.tool(name) != nil || c.held[name] != nil {
			return true
		}
	}
	return false
}
