package mcphybrid

// A listGrowth is the room in a list that may be longer than its limits from the start:
// it has room for as many items as there are.
type listGrowth struct {
	limits        listLimits
	all, present  int
	of, presentOf map[origin]int
}

// newListGrowth returns the room in an empty list. Limits of tokens are not applied.
func newListGrowth(l listLimits) *listGrowth {
	return &listGrowth{limits: l, of: make(map[origin]int), presentOf: make(map[origin]int)}
}

// there notes that a server has one more item, listed or not.
func (g *listGrowth) there(of origin) {
	g.present++
	g.presentOf[of]++
}

// add adds an item to the list, and reports whether there was room for it.
func (g *listGrowth) add(of origin) bool {
	g.all++
	g.of[of]++
	return g.all <= max(g.limits.items, g.present) && g.of[of] <= max(g.limits.itemsEach, g.presentOf[of])
}

// growth returns the room for more items. counts says which items of list take room, and now which
// standings the tools have for which there must be some.
func (v *view) growth(list []listItem, counts func(listItem) bool, now func(standing) bool) *listGrowth {
	g := newListGrowth(v.policy.list)
	for t, st := range v.each() {
		if now(st) {
			g.there(t.origin())
		}
	}
	for _, e := range list {
		if counts(e) {
			g.add(e.tool.origin())
		}
	}
	return g
}
