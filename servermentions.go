package mcphybrid

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/search"
)

// A list mentions each server of which the session searches tools, once. After a change of the
// catalog only the changed servers can be new to it.

// A serverMentions has the servers of which the sessions of a partition search tools. Those that
// were shown the same before are shown the same next, which is made once.
type serverMentions struct {
	once sync.Once
	all  *mentions

	mu   sync.Mutex
	more map[weak.Pointer[mentions]]*mentions // what a list lacks that ends with those mentions; nil if nothing
}

// maxMoreMentions is how many lists that mention different servers are kept of a partition. At the limit, a
// new one takes the place of any other.
const maxMoreMentions = 64

// searchableServers returns the servers that have deferred tools, in registration order:
// how many tools and what they are about. Sessions of one partition share it.
func (v *view) searchableServers() *mentions {
	if v.overflow != nil {
		return &mentions{servers: v.serversToSearch(v.overflow, everyServer)}
	}
	of := &v.serverMentions
	of.once.Do(func() { of.all = &mentions{servers: v.serversToSearch(nil, everyServer)} })
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
	of, key := &v.serverMentions, weak.Make(last)
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
	if more, ok = v.beyond(v.covered, list); !ok {
		more = unmentioned(v.searchableServers(), list)
	}
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

// awayServerOf returns the server to which the unknown tool with that registered name would
// belong, if the session's list mentions that server and it is not here, or "".
func (s *Session) awayServerOf(v *view, tool string) string {
	s.mu.Lock()
	list := s.shown
	s.mu.Unlock()
	for _, e := range list {
		if e.mentions == nil {
			continue
		}
		for _, o := range e.mentions.servers {
			start, whole := strings.CutSuffix(o.Tool.Name, o.Tool.Own) // a name that was made safe tells nothing
			if whole && start != "" && strings.HasPrefix(tool, start) && !s.hasServer(v, o.Server) {
				return o.Server
			}
		}
	}
	return ""
}

// hasServer reports whether a server with that name is configured, or has tools.
func (s *Session) hasServer(v *view, name string) bool {
	return slices.ContainsFunc(v.catalogs, func(c *catalog) bool {
		_, configured := s.tenant.manager.status(c.owner, name)
		return configured || c.byServer()[name] != nil
	})
}

// unmentioned returns those of all that list does not mention, or nil if there are none.
func unmentioned(all *mentions, list []listItem) *mentions {
	if all == lastServers(list) {
		return nil
	}
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

// A coverage tells which servers had tools to search in a partition: all that were in its screenings, so far as
// the partition itself did not change what is searched. Sessions that were shown them all keep it.
// It keeps no catalog alive.
type coverage struct{ of []coveredScreening } // by catalog

type coveredScreening struct {
	line, number uint64
	own          []int // numbers of the servers on which the partition had verdicts of its own
}

func (p *partition) newCoverage() *coverage {
	c := &coverage{of: make([]coveredScreening, len(p.catalogs))}
	for i, x := range p.screenings {
		of := coveredScreening{line: x.line, number: x.number}
		for k := range p.ownServers(i) {
			of.own = append(of.own, p.catalogs[i].list.servers[k].number)
		}
		c.of[i] = of
	}
	return c
}

// ownServers yields the indexes of the i-th catalog's servers on which p has verdicts of its own.
func (p *partition) ownServers(i int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if p.catalogs[i].isPart() {
			return
		}
		for k := range p.verdicts[i].own {
			if !yield(k) {
				return
			}
		}
	}
}

// beyond returns the searchable servers that list does not mention, or nil if there are none, given that it
// mentions those of c. It looks only at those on which the verdicts may be others: of a name that the
// system and the user both have, another one has no tools to search, or it is mentioned. It is
// not ok if it can't tell which these are.
func (p *partition) beyond(c *coverage, list []listItem) (more *mentions, ok bool) {
	if c == nil || len(c.of) != len(p.catalogs) {
		return nil, false
	}
	among := make([][]int, len(p.catalogs))
	for i, x := range p.screenings {
		was := c.of[i]
		news, ok := x.newsSince(was.line, was.number)
		if !ok {
			return nil, false
		}
		for _, number := range slices.Concat(news, was.own) {
			if k, ok := p.catalogs[i].list.place(number); ok {
				among[i] = append(among[i], k)
			}
		}
		among[i] = slices.AppendSeq(among[i], p.ownServers(i))
		slices.Sort(among[i])
		among[i] = slices.DeleteFunc(slices.Compact(among[i]), func(k int) bool {
			return mentionsServer(list, p.catalogs[i].list.servers[k].server)
		})
	}
	servers := p.serversToSearch(nil, func(i int, _ *catalog) iter.Seq[int] { return slices.Values(among[i]) })
	if len(servers) == 0 {
		return nil, true
	}
	return &mentions{servers: servers}, true
}

// mentionsServer reports whether list mentions the server with that name among those to search.
func mentionsServer(list []listItem, name string) bool {
	for _, e := range slices.Backward(list) {
		if e.section == searchText && slices.ContainsFunc(e.mentions.servers, func(o *saved.Server) bool { return o.Server == name }) {
			return true
		}
	}
	return false
}

// everyServer yields the indexes of a catalog's servers that have tools.
func everyServer(_ int, c *catalog) iter.Seq[int] {
	return func(yield func(int) bool) {
		for k := range c.byIndex() {
			if !yield(k) {
				return
			}
		}
	}
}

// serversToSearch returns the servers that have deferred tools or some of overflow, in
// registration order, of those that among yields for each catalog.
func (p *partition) serversToSearch(overflow map[*BridgeTool]bool, among func(i int, c *catalog) iter.Seq[int]) serverList {
	mine := make(map[string]*search.Topic) // of the user's servers, which may have names of the system's
	if len(p.catalogs) > 1 {
		for _, t := range p.own().tools {
			mine[t.def.Server] = &search.Topic{Server: t.def.Server}
		}
	}
	o, at := serverList{}, make(map[string]int) // where those are in o
	for i, c := range p.catalogs {
		for k := range among(i, c) {
			server, verdicts := c.list.servers[k], p.verdicts[i].server(k)
			if mine[server.server] == nil && verdicts.of == nil && verdicts.all.standing.Searchable() {
				o = append(o, server.line())
				continue
			}
			var found []*BridgeTool
			for j, t := range server.tools {
				if verdicts.at(j).standing.Searchable() || overflow[t] {
					found = append(found, t)
				}
			}
			if len(found) == 0 {
				continue
			}
			subject := mine[server.server]
			if subject == nil && len(found) == len(server.tools) {
				o = append(o, server.line())
				continue
			}
			line := server.lineOf(found)
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
