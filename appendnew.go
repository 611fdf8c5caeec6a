package mcphybrid

import (
	"cmp"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/schema"
)

// appendNew appends to list the items that belong there and are missing.
func (v *view) appendNew(list []listItem) []listItem {
	if !v.begun && v.empty() && v.disclosure != ByBridge && !v.loads && !v.loadsSkills() && !v.reads {
		return list // nothing is fixed yet
	}
	tools := make(map[string]bool, len(list))
	versions := make(map[string]int, len(list))
	summaries := make(map[string]bool)
	var metas metaSet
	for _, e := range list {
		switch {
		case e.slot == asRemoved:
			tools[e.tool.name] = !v.removes // where the model still has it, it gets no other
		case e.isTool():
			tools[e.tool.name] = true
			versions[e.tool.name]++
		case e.isMeta():
			metas[e.meta] = true
		case e.section == activeText:
			tools[e.tool.name] = true
		case e.section == summaryLines && e.tool != nil:
			summaries[e.tool.name] = true
		}
	}
	var fresh []listItem
	add := func(t *BridgeTool, at slot, in section) {
		if !tools[t.name] && !v.fixed && versions[t.name] < maxVersions {
			tools[t.name] = true
			fresh = append(fresh, listItem{slot: at, section: in, tool: t})
		}
	}
	if v.removes {
		for _, e := range remaining(list) {
			if e.isTool() && v.hasLeft(e.tool) {
				fresh = append(fresh, listItem{slot: asRemoved, tool: e.tool})
				delete(tools, e.tool.name)
			}
		}
	}
	if list == nil && !v.fixed {
		fresh = v.appendGuide(fresh)
	}
	in := plainTool
	if v.policy.listInline {
		in = inlineLines
	}
	for _, t := range v.inline {
		add(t, asTool, in)
	}
	fresh = v.fitLines(fresh, list, inlineLines)
	searching := metas[metaSearch]
	for kind := range metaKinds {
		if metas[kind] || !v.offers(kind) {
			continue
		}
		e := listItem{slot: asMeta, meta: kind}
		switch {
		case v.fixed && (!metas[metaCall] || kind == metaSearch):
			continue
		case v.fixed:
			e.slot, e.section = notListed, callableText
		case kind == metaSearch:
			e.section, e.mentions = searchText, cmp.Or(v.moreServers(list), new(mentions))
		}
		fresh = append(fresh, e)
	}
	if searching {
		if o := v.moreServers(list); o != nil {
			fresh = append(fresh, listItem{section: searchText, mentions: o})
		}
	}
	if v.summarized && (searching || !v.fixed) {
		var lines []listItem
		left := v.growth(list, func(e listItem) bool { return e.section == summaryLines && e.tool != nil }, func(st standing) bool { return st == summarized })
		for t, st := range v.each() {
			if st == summarized && !summaries[t.name] && !tools[t.name] && left.add(t.origin()) {
				lines = append(lines, listItem{section: summaryLines, tool: t})
			}
		}
		fresh = append(fresh, v.fitLines(lines, slices.Concat(list, fresh), summaryLines)...)
	}
	if o := v.newSkills(list); o != nil && (!v.fixed || metas[metaSkillLoad] || metas[metaCall]) {
		fresh = append(fresh, listItem{section: skillText, mentions: &mentions{skills: o}})
	}
	if v.disclosure == ByProvider && !v.begun && !v.loads {
		left := v.growth(slices.Concat(list, fresh), listItem.isTool, func(st standing) bool { return st != hidden })
		for t, st := range v.each() {
			if st.Searchable() && !tools[t.name] && left.add(t.origin()) {
				add(t, asDeferred, noSection)
			}
		}
	}
	called := v.offers(metaCall) && (!v.fixed || metas[metaCall])
	for _, t := range v.active {
		switch {
		case v.disclosure != ByBridge:
			add(t, asTool, noSection)
		case called && !tools[t.name]: // the host activated it
			fresh = append(fresh, listItem{section: activeText, tool: t})
		}
	}
	if fresh == nil {
		return list
	}
	return slices.Concat(list, fresh) // without spare capacity: there are many sessions
}

// maxVersions is how often one name can be in a list, if its tool is taken back and comes
// again: a server must not fill a conversation by that.
const maxVersions = 4

// hasLeft reports whether a tool of the list has left the catalog, and not only because its
// server is not here.
func (v *view) hasLeft(t *BridgeTool) bool {
	return !isThere(t, v.catalogs) && !v.ended && !v.restored.isAway(t, v.catalogs)
}

// minGuided is from how many tokens of inline definitions on the sections have
// [textGuide], which is then at most 3 % of them.
const minGuided = 2_200

// appendGuide appends what stands before the inline tools: the guide or, if they have
// lines, an example made from the first one that suits.
func (v *view) appendGuide(list []listItem) []listItem {
	tokens := 0
	for _, t := range v.inline {
		if !v.policy.listInline {
			if tokens += v.policy.tokens(t); tokens >= minGuided {
				return append(list, listItem{section: guideText})
			}
		} else if _, ok := schema.ExampleOf(t.def.InputSchema); ok {
			return append(list, listItem{section: exampleText, tool: t})
		}
	}
	return list
}
