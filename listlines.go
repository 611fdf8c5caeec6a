package mcphybrid

import (
	"math"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/saved"
)

// fitLines fits the lines of fresh into the token budget that list leaves. All tools
// of fresh get full lines, or all get their names only. If the names are too long,
// none gets a line, and fitLines appends counts per server.
func (v *view) fitLines(fresh, list []listItem, in section) []listItem {
	p := v.policy
	lines := func(list []listItem, form lineForm) (tokens int) {
		for _, e := range list {
			if e.hasLine() {
				tokens += p.lineTokens(e.tool, max(form, e.line))
			}
		}
		return tokens
	}
	if p.maxListing == math.MaxInt {
		return fresh
	}
	left := p.maxListing - lines(list, lineFull)
	form := lineFull
	for form < lineNone && lines(fresh, form) > left {
		form++
	}
	counts, first := make(map[string]int), make(map[string]rules.Subject)
	var servers []string
	for i, e := range fresh {
		if e.hasLine() {
			fresh[i].line = form
			if counts[e.tool.def.Server]++; counts[e.tool.def.Server] == 1 {
				servers = append(servers, e.tool.def.Server)
				first[e.tool.def.Server] = e.tool.def.subject()
			}
		}
	}
	if form != lineNone || len(servers) == 0 {
		return fresh
	}
	o := new(mentions)
	for _, name := range servers {
		o.servers = append(o.servers, &saved.Server{Server: name, Tools: counts[name], Tool: first[name]})
	}
	return append(fresh, listItem{section: in, mentions: o})
}
