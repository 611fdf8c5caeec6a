package mcphybrid

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// NeedsKey is the member of a tool's _meta by which its server says which of
// its tools this one needs, by their own names:
//
//	{"name": "edit_file", …, "_meta": {"mcphybrid/needs": ["read_file"]}}
const NeedsKey = "mcphybrid/needs"

// maxNeeds is how many tools one brings along, and how many its server may
// name: a server must not have half a catalog activated by one of its tools.
const maxNeeds = 32

// parseNeeds returns the names under [NeedsKey] in a tool's _meta.
func parseNeeds(meta json.RawMessage) ([]string, error) {
	if isNull(meta) {
		return nil, nil
	}
	var in struct {
		Needs []string `json:"mcphybrid/needs"`
	}
	if err := json.Unmarshal(meta, &in); err != nil {
		return nil, describeJSONError(meta, err)
	}
	if len(in.Needs) > maxNeeds {
		return nil, fmt.Errorf("%q has %d names, more than the limit of %d", NeedsKey, len(in.Needs), maxNeeds)
	}
	return in.Needs, nil
}

func cloneNeeds(needs map[string][]string) map[string][]string {
	needs = maps.Clone(needs)
	for name, list := range needs {
		needs[name] = slices.Clone(list)
	}
	return needs
}

// addNeeds sets c.needs: for each tool first what the [Options] say, then its
// server's configuration, then its server. What can't be is a problem and no
// more: names that are not there, whether nobody has them, they are denied or
// held back; malformed declarations; and cycles.
func (c *catalog) addNeeds(sources []*source, opts *Options) {
	configured := make(map[string]map[string][]string) // by server
	for _, src := range sources {
		if src.server != nil && len(src.server.cfg.Needs) > 0 {
			configured[src.name] = src.server.cfg.Needs
		}
	}
	if len(opts.Needs)+len(configured) == 0 && !slices.ContainsFunc(c.tools, func(t *BridgeTool) bool {
		return t.def.needs != nil || t.def.badNeeds != nil
	}) {
		return
	}
	problem := func(format string, args ...any) {
		c.problems = append(c.problems, bounded(fmt.Errorf("mcphybrid: "+format, args...)))
	}
	type ownName struct{ server, tool string }
	own := make(map[ownName]*BridgeTool, len(c.tools))
	for _, t := range c.tools {
		own[ownName{t.def.server, t.def.name}] = t
	}
	c.needs = make(map[*BridgeTool][]*BridgeTool)
	for _, t := range c.tools {
		var needs []*BridgeTool
		var missing []string
		need := func(name string, n *BridgeTool) {
			switch {
			case n != nil && !slices.Contains(needs, n):
				needs = append(needs, n)
			case n == nil && !slices.Contains(missing, name):
				missing = append(missing, name)
			}
		}
		for _, name := range opts.Needs[t.name] {
			if n := c.byName[name].tool; n != nil || !unlisted(sources, name) {
				need(name, n)
			}
		}
		for _, names := range [][]string{configured[t.def.server][t.def.name], t.def.needs} {
			for _, name := range names {
				need(name, own[ownName{t.def.server, name}])
			}
		}
		if t.def.badNeeds != nil {
			problem("tool %q: its _meta does not tell what it needs: %w", t.name, t.def.badNeeds)
		}
		if len(missing) > 0 {
			problem("tool %q needs what is not there: %s", t.name, quoteNames(missing))
		}
		if i := slices.Index(needs, t); i >= 0 {
			problem("tool %q needs itself", t.name)
			needs = slices.Delete(needs, i, i+1)
		}
		if len(needs) > 0 {
			c.needs[t] = needs
		}
	}
	for _, cycle := range c.cycles() {
		problem("these tools need each other: %s", quoteNames(namesOf(cycle)))
	}
	for _, name := range slices.Sorted(maps.Keys(opts.Needs)) {
		if c.byName[name].tool == nil && !unlisted(sources, name) {
			problem("Options.Needs tells what %q needs, which is not there", name)
		}
	}
	for _, src := range sources {
		for _, name := range slices.Sorted(maps.Keys(configured[src.name])) {
			if own[ownName{src.name, name}] == nil && src.listed != nil {
				problem("server %q: its configuration tells what %q needs, which is not there", src.name, name)
			}
		}
	}
}

// unlisted reports whether name would be a tool's of a server that has not
// listed any so far.
func unlisted(sources []*source, name string) bool {
	return slices.ContainsFunc(sources, func(src *source) bool {
		return src.server != nil && src.listed == nil &&
			strings.HasPrefix(name, registeredName(src.name, src.server.cfg.Prefix, ""))
	})
}

func quoteNames(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", cleanLine(name, maxNameLength))
	}
	return strings.Join(quoted, ", ")
}

// cycles returns the sets of tools that need each other, those of each in the
// order in which a walk along the needs comes to them: Tarjan's strongly
// connected components, but for single tools.
func (c *catalog) cycles() (cycles [][]*BridgeTool) {
	const done = math.MaxInt
	numbers := make(map[*BridgeTool]int, len(c.needs)) // from 1 in the order of the walk; or done
	var open []*BridgeTool                             // walked to and not done, in this order
	var walk func(*BridgeTool) int
	walk = func(t *BridgeTool) int { // returns the least number that t leads to
		number, from := len(numbers)+1, len(open)
		numbers[t] = number
		open = append(open, t)
		least := number
		for _, n := range c.needs[t] {
			to, walked := numbers[n]
			if !walked {
				to = walk(n)
			}
			least = min(least, to)
		}
		if least == number {
			if len(open)-from > 1 {
				cycles = append(cycles, slices.Clone(open[from:]))
			}
			for _, t := range open[from:] {
				numbers[t] = done
			}
			open = open[:from]
		}
		return least
	}
	for _, t := range c.tools {
		if _, walked := numbers[t]; !walked && c.needs[t] != nil {
			walk(t)
		}
	}
	return cycles
}

// needed returns what t needs, what that needs, and so on: the nearest first,
// of equally near ones in the order in which they were declared, and at most
// [maxNeeds]. What the session may not use is left out, and what only that
// needs.
func (v view) needed(t *BridgeTool) []*BridgeTool {
	if len(v.needs[t]) == 0 {
		return nil
	}
	all := []*BridgeTool{t}
	for i := 0; i < len(all); i++ {
		for _, n := range v.needs[all[i]] {
			if len(all) <= maxNeeds && !slices.Contains(all, n) && v.sees(n) {
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
		if e, ok := v.lookup(name); ok {
			all = append(all, namesOf(v.needed(e.tool))...)
		}
	}
	return all
}

// andNeeded returns hits and, behind them, the deferred tools that they need
// and the model does not have, up to limit in all.
func (v view) andNeeded(hits []Hit, limit int) []Hit {
	if len(v.needs) == 0 {
		return hits
	}
	there := v.activeInList()
	for _, h := range hits {
		there[h.Tool] = true
	}
	for _, h := range hits {
		for _, n := range v.needed(h.Tool) {
			if len(hits) < limit && !there[n] && !v.byName[n.name].inline {
				there[n] = true
				hits = append(hits, Hit{Tool: n, NeededBy: h.Tool})
			}
		}
	}
	return hits
}
