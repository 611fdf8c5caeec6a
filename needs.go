package mcphybrid

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
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
	if text.IsNull(meta) {
		return nil, nil
	}
	var in struct {
		Needs []string `json:"mcphybrid/needs"`
	}
	if err := json.Unmarshal(meta, &in); err != nil {
		return nil, text.JSONError(meta, err)
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

// resolveNeeds sets c.needs: for each tool first what the [Options] say, then
// its server's configuration, then its server. What can't be is a problem and
// no more: names that are not there, be they nobody's, denied or held back;
// malformed declarations; and cycles.
func (c *catalog) resolveNeeds(sources []*source, host map[string][]string) {
	expected := func(name string) bool { return c.tool(name) == nil && unlisted(sources, name) }
	for _, name := range slices.Sorted(maps.Keys(host)) {
		if t := c.tool(name); t != nil {
			c.addNeeds(t, c.withoutBelow(t, slices.DeleteFunc(slices.Clone(host[name]), expected)), c.tool)
		} else if !expected(name) {
			c.problem("Options.Needs tells what %q needs, which is not there", name)
		}
	}
	rest := c.tools
	for _, src := range sources {
		n := 0
		for n < len(rest) && rest[n].def.server == src.name {
			n++
		}
		c.addServerNeeds(src, rest[:n])
		rest = rest[n:]
	}
	for _, cycle := range c.cycles() {
		c.problem("these tools need each other: %s", quoteNames(namesOf(cycle)))
	}
}

// withoutBelow returns those of names that are not left to a user's system. Its
// tools come and go without a new catalog of the user's, so that what is not
// there is no problem.
func (c *catalog) withoutBelow(t *BridgeTool, names []string) (own []string) {
	if c.m.user.system == nil {
		return names
	}
	for _, name := range names {
		if c.tool(name) != nil {
			own = append(own, name)
			continue
		}
		if c.needsBelow == nil {
			c.needsBelow = make(map[*BridgeTool][]string)
		}
		c.needsBelow[t] = append(c.needsBelow[t], name)
	}
	return own
}

// addServerNeeds adds what tools, those of src, need by its configuration and
// by what it sent.
func (c *catalog) addServerNeeds(src *source, tools []*BridgeTool) {
	var configured map[string][]string
	if src.server != nil && src.listed != nil {
		configured = src.cfg.Needs
	}
	if len(configured) == 0 && !slices.ContainsFunc(tools, func(t *BridgeTool) bool {
		return t.def.needs != nil || t.def.badNeeds != nil
	}) {
		return
	}
	own := make(map[string]*BridgeTool, len(tools))
	for _, t := range tools {
		own[t.def.name] = t
	}
	for _, t := range tools {
		if t.def.badNeeds != nil {
			c.problem("server %q: tool %q: its _meta does not tell what it needs: %w", src.name, t.name, t.def.badNeeds)
		}
		c.addNeeds(t, slices.Concat(configured[t.def.name], t.def.needs), func(name string) *BridgeTool { return own[name] })
	}
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		if own[name] == nil {
			c.problem("server %q: its configuration tells what %q needs, which is not there", src.name, name)
		}
	}
}

// addNeeds adds names to what t needs.
func (c *catalog) addNeeds(t *BridgeTool, names []string, tool func(name string) *BridgeTool) {
	needs := c.needs[t]
	var missing []string
	itself := false
	for _, name := range names {
		switch n := tool(name); {
		case n == nil && !slices.Contains(missing, name):
			missing = append(missing, name)
		case n == t:
			itself = true
		case n != nil && !slices.Contains(needs, n):
			needs = append(needs, n)
		}
	}
	if itself {
		c.problem("tool %q needs itself", t.name)
	}
	if len(missing) > 0 {
		c.problem("tool %q needs what is not there: %s", t.name, quoteNames(missing))
	}
	if len(needs) > 0 {
		if c.needs == nil {
			c.needs = make(map[*BridgeTool][]*BridgeTool)
		}
		c.needs[t] = needs
	}
}

func (c *catalog) problem(format string, args ...any) {
	c.problems = append(c.problems, text.Bounded(fmt.Errorf("mcphybrid: "+format, args...)))
}

// unlisted reports whether name would be a tool's of a server that has not
// listed any so far.
func unlisted(sources []*source, name string) bool {
	return slices.ContainsFunc(sources, func(src *source) bool {
		return src.server != nil && src.listed == nil &&
			strings.HasPrefix(name, registeredName(src.name, src.cfg.Prefix, ""))
	})
}

// quoteNames writes out names, of many the first.
func quoteNames(names []string) string {
	const most = 10
	var b strings.Builder
	for i, name := range names[:min(len(names), most)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", text.Line(name, text.MaxName))
	}
	if len(names) > most {
		fmt.Fprintf(&b, " and %d more", len(names)-most)
	}
	return b.String()
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
