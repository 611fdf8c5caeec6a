package mcphybrid

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"weak"

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

// A serverMentions has the servers of which the sessions of a partition search tools. Those that
// were shown the same before are shown the same next, which is made once.
type serverMentions struct {
	once sync.Once
	all  *mentions

	mu   sync.Mutex
	more map[weak.Pointer[mentions]]*mentions // what all has beyond a list that ends with those mentions; nil if nothing
}

// maxMoreMentions is how many lists that mention different servers are kept of a partition. At the limit, a
// new one takes the place of any other.
const maxMoreMentions = 64

// searchableServers returns the servers that have deferred tools, in registration order:
// how many tools and what they are about. Sessions of one partition share it.
func (v *view) searchableServers() *mentions {
	if v.overflow != nil {
		return &mentions{servers: v.serversToSearch(v.overflow)}
	}
	of := &v.serverMentions
	of.once.Do(func() { of.all = &mentions{servers: v.serversToSearch(nil)} })
	return of.all
}

// moreServers returns the searchable servers that list does not mention, or nil if there are none.
func (v *view) moreServers(list []listItem) *mentions {
	last := lastServers(list)
	if last == nil {
		return v.searchableServers()
	}
	if v.overflow != nil {
		return unmentioned(v.searchableServers(), list)
	}
	// Nothing but what is made here follows mentions that several lists have. So the last ones
	// of a list tell which come before.
	of, key, all := &v.serverMentions, weak.Make(last), v.searchableServers()
	of.mu.Lock()
	defer of.mu.Unlock()
	more, ok := of.more[key]
	if ok {
		return more
	}
	if len(of.more) >= maxMoreMentions {
		for other := range of.more { // any one makes room
			delete(of.more, other)
			break
		}
	}
	if of.more == nil {
		of.more = make(map[weak.Pointer[mentions]]*mentions)
	}
	more = unmentioned(all, list)
	of.more[key] = more
	return more
}

// lastServers returns the last mentions in list of servers to search, or nil.
func lastServers(list []listItem) *mentions {
	for _, e := range slices.Backward(list) {
		if e.section == searchText {
			return e.mentions
		}
	}
	return nil
}

// unmentioned returns those of all that list does not mention, or nil if there are none.
func unmentioned(all *mentions, list []listItem) *mentions {
	known := make(map[string]bool, len(all.servers))
	for _, e := range list {
		if e.section == searchText {
			for _, o := range e.mentions.servers {
				known[o.Server] = true
			}
		}
	}
	var more serverList
	for _, o := range all.servers {
		if !known[o.Server] {
			more = append(more, o)
		}
	}
	if more == nil {
		return nil
	}
	return &mentions{servers: more}
}

// serversToSearch returns the servers that have deferred tools or some of overflow, in
// registration order.
func (p *partition) serversToSearch(overflow map[*BridgeTool]bool) serverList {
	mine := make(map[string]*search.Topic) // of the user's servers, which may have names of the system's
	if len(p.catalogs) > 1 {
		for _, t := range p.own().tools {
			mine[t.def.Server] = &search.Topic{Server: t.def.Server}
		}
	}
	o, at := serverList{}, make(map[string]int) // where those are in o
	for i, c := range p.catalogs {
		first := 0
		for _, server := range c.list.servers {
			if server == nil {
				continue
			}
			var found []*BridgeTool
			for j, t := range server.tools {
				if p.verdicts[i].at(first+j).standing.Searchable() || overflow[t] {
					found = append(found, t)
				}
			}
			first += len(server.tools)
			if len(found) == 0 {
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
	return o
}
