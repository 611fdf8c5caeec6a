package mcphybrid

import "slices"

// needed returns the tools that t needs, then those that they need, and so on, at
// most [maxNeeds] and in the order of declaration. It skips the tools that the
// session may not use, and does not follow their needs.
func (v *view) needed(t *BridgeTool) []*BridgeTool {
	return transitive(t, maxNeeds, v.needs, func(n *BridgeTool) bool { return v.standing(n) != hidden })
}

// withNeeded returns names followed by the names of the tools that they need.
func (v *view) withNeeded(names []string) []string {
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
