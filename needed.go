package mcphybrid

import "slices"

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
