package mcphybrid

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Here is which tools need which. sessionneeds.go brings them along.

// toolNeeds have the tools that each tool needs directly, in order: not itself, and
// none twice.
type toolNeeds map[*BridgeTool][]*BridgeTool

// add adds the tools with these names to what t needs. find returns nil for a name
// that is unknown. add reports whether t itself was among them, and the names that are
// missing, each once.
func (d toolNeeds) add(t *BridgeTool, names []string, find func(name string) *BridgeTool) (itself bool, missing []string) {
	list := d[t]
	for _, name := range names {
		switch n := find(name); {
		case n == nil && !slices.Contains(missing, name):
			missing = append(missing, name)
		case n == t:
			itself = true
		case n != nil && !slices.Contains(list, n):
			list = append(list, n)
		}
	}
	if len(list) > 0 {
		d[t] = list
	}
	return itself, missing
}

// cycles returns the sets of two or more tools that need each other: Tarjan's
// strongly connected components. It looks for them in the order of tools. The tools
// of a set are in the order in which a walk along the needs reaches them.
func (d toolNeeds) cycles(tools []*BridgeTool) (cycles [][]*BridgeTool) {
	if len(d) == 0 {
		return nil
	}
	const done = math.MaxInt
	numbers := make(map[*BridgeTool]int, len(d)) // from 1 in the order of the walk; or done
	var open []*BridgeTool                       // reached but not done, in this order
	var walk func(*BridgeTool) int
	walk = func(t *BridgeTool) int { // returns the smallest number that t leads to
		number, from := len(numbers)+1, len(open)
		numbers[t] = number
		open = append(open, t)
		least := number
		for _, n := range d[t] {
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
	for _, t := range tools {
		if _, walked := numbers[t]; !walked && d[t] != nil {
			walk(t)
		}
	}
	return cycles
}

// transitive returns the tools that t needs, then those that these need, and so on,
// each once and at most so many. It skips the tools that may rejects, and what they
// need.
func transitive(t *BridgeTool, most int, needs func(*BridgeTool) []*BridgeTool, may func(*BridgeTool) bool) []*BridgeTool {
	if len(needs(t)) == 0 {
		return nil
	}
	all := []*BridgeTool{t}
	for i := 0; i < len(all); i++ {
		for _, n := range needs(all[i]) {
			if len(all) <= most && !slices.Contains(all, n) && may(n) {
				all = append(all, n)
			}
		}
	}
	return all[1:]
}

// resolveNeeds sets c.needs: for each tool first the needs from the [Options], then
// those from its server's configuration, then those from its server. It only
// reports what can't be resolved, as problems: names that are unknown, denied or
// held back; malformed declarations; and cycles.
func (c *catalog) resolveNeeds(host map[string][]string, unlisted []rules.Subject) {
	expected := func(name string) bool {
		return c.tool(name) == nil && slices.ContainsFunc(unlisted, func(t rules.Subject) bool { return strings.HasPrefix(name, t.Name) })
	}
	where := "Options.Needs"
	if c.owner.user != "" {
		where = "UserOptions.Needs"
	}
	for _, entry := range slices.Sorted(maps.Keys(host)) {
		d := declaration{where: where, tools: c.tools, find: c.tool}
		if t := c.tool(entry); t != nil {
			d.tools = []*BridgeTool{t}
		}
		if !c.addEntry(d, entry, slices.DeleteFunc(slices.Clone(host[entry]), expected)) {
			c.problems = append(c.problems, (&rules.Known{Missing: unlisted}).Idle(where, []string{entry}, rules.Subject.MatchesAny)...)
		}
	}
	for _, s := range c.list.withMore {
		c.addServerNeeds(s)
	}
	for _, cycle := range c.needs.cycles(c.tools) {
		var of []*serverTools
		for _, s := range c.list.servers {
			if s != nil && slices.ContainsFunc(cycle, func(t *BridgeTool) bool { return t.def.Server == s.server }) {
				of = append(of, s)
			}
		}
		c.problem(of, "these tools need each other: %s", text.Names(namesOf(cycle)))
	}
}

// withoutBelow returns the names to look up in c itself. In a user's catalog it
// leaves other names to the system's catalog. The system's tools come and go
// without a new catalog for the user, so a missing one is no problem.
func (c *catalog) withoutBelow(t *BridgeTool, names []string) (own []string) {
	if c.owner.user == "" {
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

// addServerNeeds adds the needs of the tools of a server: those from its configuration
// and those that the server sent.
func (c *catalog) addServerNeeds(s *serverTools) {
	if len(s.needs) == 0 && !s.declares {
		return
	}
	own := make(map[string]*BridgeTool, len(s.tools))
	for _, t := range s.tools {
		own[t.def.Own] = t
	}
	d := declaration{
		where: fmt.Sprintf("server %q: needs", s.server), of: []*serverTools{s}, tools: s.tools,
		find: func(name string) *BridgeTool { return own[name] },
	}
	for _, entry := range slices.Sorted(maps.Keys(s.needs)) {
		if !c.addEntry(d, entry, s.needs[entry]) {
			c.problem(d.of, "server %q: its configuration has needs for %q, which is not there", s.server, entry)
		}
	}
	for _, t := range s.tools {
		if n := t.def.Needs; n != nil && n.err != nil {
			c.problem(d.of, "server %q: tool %q: its _meta has malformed needs: %w", s.server, t.name, n.err)
		}
		itself, missing := c.needs.add(t, t.def.Needs.list(), d.find)
		c.unmet(d.of, fmt.Sprintf("tool %q needs", t.name), itself, missing)
	}
}

// A declaration is a place where needs are declared by the names or patterns of tools.
type declaration struct {
	where string                        // what problems call it
	of    []*serverTools                // the server that it configures, whose tools it calls by their own names; nil for the host's
	tools []*BridgeTool                 // that may have these needs
	find  func(name string) *BridgeTool // a needed tool, or nil
}

// addEntry adds the tools with these names to the needs of those tools that entry, a
// name or a pattern, matches, and reports whether there are any. A tool that a pattern
// matches is no need of itself, and what is missing for it is reported once.
func (c *catalog) addEntry(d declaration, entry string, names []string) (found bool) {
	for _, t := range d.tools {
		known, needed := t.def.subject(), names
		if known.Within = d.of != nil; !known.Matches(entry) {
			continue
		}
		if d.of == nil {
			needed = c.withoutBelow(t, names)
		}
		itself, missing := c.needs.add(t, needed, d.find)
		if t.name == entry || d.of != nil && t.def.Own == entry {
			c.unmet(d.of, fmt.Sprintf("tool %q needs", t.name), itself, missing)
		} else if !found {
			c.unmet(d.of, fmt.Sprintf("%s: %q needs", d.where, entry), false, missing)
		}
		found = true
	}
	return found
}

// unmet reports needs that can't be met. The problem begins with what, and has no
// secrets of the servers.
func (c *catalog) unmet(of []*serverTools, what string, itself bool, missing []string) {
	if itself {
		c.problem(of, "%s itself", what)
	}
	if len(missing) > 0 {
		c.problem(of, "%s missing tools: %s", what, text.Names(missing))
	}
}

// problem adds a problem without the secrets of these servers, which may have written
// parts of it.
func (c *catalog) problem(of []*serverTools, format string, args ...any) {
	err := text.Bounded(fmt.Errorf("mcphybrid: "+format, args...))
	for _, s := range of {
		err = s.hide(err)
	}
	c.problems = append(c.problems, err)
}

// cloneNeeds returns a copy that shares nothing with needs, which are those of options.
func cloneNeeds(needs map[string][]string) map[string][]string {
	needs = maps.Clone(needs)
	for name, list := range needs {
		needs[name] = slices.Clone(list)
	}
	return needs
}
