package mcphybrid

import (
	"cmp"
	"math"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/search"
)

// hasLine reports whether e is a line for one tool in the sections.
func (e listItem) hasLine() bool {
	return e.tool != nil && (e.section == inlineLines || e.section == summaryLines)
}

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
		o.servers = append(o.servers, saved.Server{Server: name, Tools: counts[name], Tool: first[name]})
	}
	return append(fresh, listItem{section: in, mentions: o})
}

// searchableServers returns the servers that have deferred tools, in registration order:
// how many tools and what they are about. It omits the servers in known.
func (v *view) searchableServers(known map[string]bool) *mentions {
	mine := make(map[string]*search.Topic) // of the user's servers, which may have names of the system's
	if len(v.catalogs) > 1 {
		for _, t := range v.own().tools {
			mine[t.def.Server] = &search.Topic{Server: t.def.Server}
		}
	}
	o, at := serverList{}, make(map[string]int) // where those are in o
	for i, c := range v.catalogs {
		first := 0
		for _, server := range c.list.servers {
			if server == nil {
				continue
			}
			var found []*BridgeTool
			for j, t := range server.tools {
				if v.standingOf(t, v.verdicts[i].at(first+j).standing).Searchable() {
					found = append(found, t)
				}
			}
			first += len(server.tools)
			if len(found) == 0 || known[found[0].def.Server] {
				continue
			}
			line := saved.Server{Server: found[0].def.Server, Tools: len(found), Tool: found[0].def.subject(), Gist: server.gist}
			subject := mine[line.Server]
			if subject == nil && len(found) == len(server.tools) {
				line.About = server.about()
				o = append(o, line)
				continue
			}
			subject = cmp.Or(subject, &search.Topic{Server: line.Server})
			for _, t := range found {
				subject.Add(t.def.Own)
			}
			line.About = subject.String()
			if i, ok := at[line.Server]; ok {
				o[i].Tools, o[i].About = o[i].Tools+line.Tools, line.About
				if c.owner.user != "" {
					o[i].Own = line.Gist
				}
				continue
			}
			at[line.Server] = len(o)
			o = append(o, line)
		}
	}
	return &mentions{servers: o}
}
