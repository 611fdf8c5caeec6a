package mcphybrid

import "slices"

// A toolList is one version of the list of a catalog's tools, server by server. It never changes, and the zero value is
// empty.
type toolList struct {
	tools    []*BridgeTool
	servers  []*serverTools // in registration order; nil for one that has nothing
	withMore []*serverTools // those that have more, so that nothing looks for them among all
	at       []serverPlace  // by the number of a server
}

// A serverPlace says where a server is. Its zero value says that it is not there.
type serverPlace struct {
	server int32 // index in servers, from 1
	first  int32 // index in tools of its first tool
}

// next returns the list of these servers, whose numbers are below numbers. It may append
// to what l has, so it is called once for each list.
func (l *toolList) next(servers []*serverTools, numbers int) (next toolList) {
	same := 0
	for same < min(len(servers), len(l.servers)) && servers[same] == l.servers[same] {
		same++
	}
	next = toolList{tools: l.tools, servers: servers, withMore: l.withMore, at: append(l.at, make([]serverPlace, max(0, numbers-len(l.at)))...)}
	mine := false // next.at[:len(l.at)] is not that of l
	put := func(number int, at serverPlace) {
		if number < len(l.at) && !mine {
			next.at, mine = slices.Clone(next.at), true
		}
		next.at[number] = at
	}
	for _, s := range slices.Backward(l.servers[same:]) {
		if s != nil && len(s.tools) > 0 {
			n := l.at[s.number].first
			next.tools = l.tools[:n:n] // append copies it
			put(s.number, serverPlace{})
		}
		if s != nil && s.hasMore() {
			next.withMore = next.withMore[:len(next.withMore)-1]
		}
	}
	next.withMore = slices.Clip(next.withMore)
	for i, s := range servers[same:] {
		if s != nil && len(s.tools) > 0 {
			put(s.number, serverPlace{int32(same + i + 1), int32(len(next.tools))})
			next.tools = append(next.tools, s.tools...)
		}
		if s != nil && s.hasMore() {
			next.withMore = append(next.withMore, s)
		}
	}
	return next
}

// index returns the index in tools of a tool by the number of its server and its
// registered name.
func (l *toolList) index(number int, name string) (i int, ok bool) {
	s := l.server(number)
	if s == nil {
		return 0, false
	}
	i, ok = s.indexOf[name]
	return int(l.at[number].first) + i, ok
}

// place returns where in servers the server with that number is. It is not ok if that has no
// tools.
func (l *toolList) place(number int) (k int, ok bool) {
	if number < 0 || number >= len(l.at) || l.at[number].server == 0 {
		return 0, false
	}
	return int(l.at[number].server - 1), true
}

// server returns the server with that number, or nil if it has no tools.
func (l *toolList) server(number int) *serverTools {
	if k, ok := l.place(number); ok {
		return l.servers[k]
	}
	return nil
}

// without returns the tools of the servers of l that other does not have as they are in l.
func (l *toolList) without(other *toolList) (tools []*BridgeTool) {
	for i, s := range l.servers {
		same := i < len(other.servers) && other.servers[i] == s // as most are
		if !same && s != nil && len(s.tools) > 0 && other.server(s.number) != s {
			tools = append(tools, s.tools...)
		}
	}
	return tools
}
