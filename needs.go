package mcphybrid

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// resolveNeeds sets c.needs: for each tool first the needs from the [Options], then
// those from its server's configuration, then those from its server. It only
// reports what can't be resolved, as problems: names that are unknown, denied or
// held back; malformed declarations; and cycles.
func (c *catalog) resolveNeeds(listings []*listing, host map[string][]string) {
	expected := func(name string) bool { return c.tool(name) == nil && unlisted(listings, name) }
	where := "Options.Needs"
	if c.owner.user != "" {
		where = "UserOptions.Needs"
	}
	for _, entry := range slices.Sorted(maps.Keys(host)) {
		tools := c.tools
		if t := c.tool(entry); t != nil {
			tools = []*BridgeTool{t}
		}
		names := slices.DeleteFunc(slices.Clone(host[entry]), expected)
		if !c.addEntry(nil, where, entry, tools, names, false, c.tool) {
			c.problems = append(c.problems, missing(listings).Idle(where, []string{entry}, rules.Tool.MatchesAny)...)
		}
	}
	rest := c.tools
	for _, src := range listings {
		n := 0
		for n < len(rest) && rest[n].def.Server == src.name {
			n++
		}
		c.addServerNeeds(src, rest[:n])
		rest = rest[n:]
	}
	for _, cycle := range c.needs.Cycles(c.tools) {
		of := slices.DeleteFunc(slices.Clone(listings), func(src *listing) bool {
			return !slices.ContainsFunc(cycle, func(t *BridgeTool) bool { return t.def.Server == src.name })
		})
		c.problem(of, "these tools need each other: %s", quoteNames(namesOf(cycle)))
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

// addServerNeeds adds the needs of the tools of src: those from its configuration
// and those that the server sent.
func (c *catalog) addServerNeeds(src *listing, tools []*BridgeTool) {
	var configured map[string][]string
	if src.remote && src.listed != nil {
		configured = src.needs
	}
	if len(configured) == 0 && !slices.ContainsFunc(tools, func(t *BridgeTool) bool {
		return t.def.Needs != nil || t.def.BadNeeds != nil
	}) {
		return
	}
	of := []*listing{src}
	own := make(map[string]*BridgeTool, len(tools))
	for _, t := range tools {
		own[t.def.Own] = t
	}
	find := func(name string) *BridgeTool { return own[name] }
	where := fmt.Sprintf("server %q: needs", src.name)
	for _, entry := range slices.Sorted(maps.Keys(configured)) {
		if !c.addEntry(of, where, entry, tools, configured[entry], true, find) {
			c.problem(of, "server %q: its configuration has needs for %q, which is not there", src.name, entry)
		}
	}
	for _, t := range tools {
		if t.def.BadNeeds != nil {
			c.problem(of, "server %q: tool %q: its _meta has malformed needs: %w", src.name, t.name, t.def.BadNeeds)
		}
		c.addNeeds(of, fmt.Sprintf("tool %q needs", t.name), t, t.def.Needs, find)
	}
}

// addEntry adds the tools with these names to the needs of those tools that entry, a
// name or a pattern, matches, and reports whether there are any. A tool that a pattern
// matches is no need of itself, and what is missing for it is reported once. within says
// that all are about the tools of one server, by their own names.
func (c *catalog) addEntry(of []*listing, where, entry string, tools []*BridgeTool, names []string, within bool, find func(name string) *BridgeTool) (found bool) {
	for _, t := range tools {
		known := t.def.names()
		if known.Within = within; !known.Matches(entry) {
			continue
		}
		what, needed := fmt.Sprintf("tool %q needs", t.name), names
		if t.name != entry && !(within && t.def.Own == entry) {
			again := found && c.owner.user == ""
			what = fmt.Sprintf("%s: %q needs", where, entry)
			needed = slices.DeleteFunc(slices.Clone(names), func(name string) bool { n := find(name); return n == t || again && n == nil })
		}
		found = true
		if !within {
			needed = c.withoutBelow(t, needed)
		}
		c.addNeeds(of, what, t, needed, find)
	}
	return found
}

// addNeeds adds the tools with these names to the needs of t. What it reports begins
// with what, and has no secrets of the listings.
func (c *catalog) addNeeds(of []*listing, what string, t *BridgeTool, names []string, find func(name string) *BridgeTool) {
	itself, missing := c.needs.Add(t, names, find)
	if itself {
		c.problem(of, "%s itself", what)
	}
	if len(missing) > 0 {
		c.problem(of, "%s missing tools: %s", what, quoteNames(missing))
	}
}

// missing returns what can be said of the tools of servers that have not listed theirs.
func missing(listings []*listing) (k rules.Known) {
	for _, src := range listings {
		if src.remote && src.listed == nil {
			k.Missing = append(k.Missing, rules.Tool{Name: src.claim.Start(), Server: src.name})
		}
	}
	return k
}

// problem adds a problem without the secrets of these listings, whose servers may
// have written parts of it.
func (c *catalog) problem(of []*listing, format string, args ...any) {
	err := text.Bounded(fmt.Errorf("mcphybrid: "+format, args...))
	for _, src := range of {
		if src.hide != nil {
			err = src.hide(err)
		}
	}
	c.problems = append(c.problems, err)
}

// unlisted reports whether name would belong to a tool of a server that has not
// listed its tools yet.
func unlisted(listings []*listing, name string) bool {
	return slices.ContainsFunc(listings, func(src *listing) bool {
		return src.remote && src.listed == nil && src.begins(name)
	})
}

// quoteNames returns the first 10 names, quoted, and the number of further ones.
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

// cloneNeeds returns a copy that shares nothing with needs.
func cloneNeeds(needs map[string][]string) map[string][]string {
	needs = maps.Clone(needs)
	for name, list := range needs {
		needs[name] = slices.Clone(list)
	}
	return needs
}
