package mcphybrid

import (
	"slices"
	"sync"
)

// A Session is one conversation's view of a [Manager]: what it may use of the
// catalog, and which deferred tools are active in it. Its methods may be
// called concurrently; those that only read never wait for a registry, a
// server or another session.
type Session struct {
	m          *Manager
	access     Access      // fixed at creation
	registrar  *registrar  // nil without a registry
	searchTool *searchTool // one value for the session's life

	mu      sync.Mutex
	active  []*BridgeTool // in activation order; replaced, never changed
	version uint64        // of the catalog that active was last checked against
	closed  bool
}

// SessionOptions configure a [Session]. The zero value is a session that may
// use the whole catalog and has no registry.
type SessionOptions struct {
	// Access says, by registered name, which of the Manager's tools the
	// session may use. To the session the others do not exist. It can't
	// give back what the Manager's own [Options] take away, nor does it move
	// a tool: what is deferred in the Manager is so in each session, and if
	// the session denies [SearchToolName], can only be called by name.
	Access Access

	// Registry, if not nil, is kept in step with the session: see [Registry].
	// It must not be shared with another session.
	Registry Registry
}

// NewSession returns a session in which nothing is active yet. Options may be
// nil. A session with a registry should be closed when the conversation is
// over; one without need not be.
func (m *Manager) NewSession(opts *SessionOptions) *Session {
	var o SessionOptions
	if opts != nil {
		o = *opts
	}
	s := &Session{m: m, access: o.Access.clone()}
	s.searchTool = &searchTool{s}
	if o.Registry != nil {
		s.registrar = newRegistrar(o.Registry, m.opts.Logger)
		s.registrar.offer, s.registrar.offered, s.registrar.known = s.offer, s.offered, s.known
		m.attach(s)
	}
	return s
}

// Close empties the session for good. A registry that it had is left without
// its tools and groups. Close does not wait for tools that run. Since it waits
// for the registry, it must not be called by a method of the registry, nor
// with a lock held that the registry needs.
func (s *Session) Close() {
	s.mu.Lock()
	s.closed, s.active = true, nil
	s.mu.Unlock()
	if s.registrar != nil {
		s.m.detach(s)
	}
}

// A view is a session at one moment: a catalog and the active tools in it.
type view struct {
	*catalog
	access Access
	active []*BridgeTool // deferred in the catalog; not to be changed
}

// view returns the session as it is now.
func (s *Session) view() view {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.viewLocked()
}

func (s *Session) viewLocked() view {
	if s.closed {
		return view{catalog: noTools}
	}
	c := s.m.cur.Load()
	if s.version != c.version {
		s.active = stillDeferred(c, s.active)
		s.version = c.version
	}
	return view{catalog: c, access: s.access, active: s.active}
}

// stillDeferred returns those of tools that c has too, deferred, in their
// order, as they are in c. A server that was removed and added again has new
// tools: what was active of it is not.
func stillDeferred(c *catalog, tools []*BridgeTool) []*BridgeTool {
	var kept []*BridgeTool
	for _, t := range tools {
		if e, ok := c.byName[t.name]; ok && !e.inline && e.tool.def == t.def {
			kept = append(kept, e.tool)
		}
	}
	return kept
}

// sees reports whether the session may use t.
func (v view) sees(t *BridgeTool) bool {
	return v.access.empty() || v.access.permits(t.name)
}

// lookup returns the tool of a registered name if the session may use it.
func (v view) lookup(name string) (e entry, ok bool) {
	e, ok = v.byName[name]
	return e, ok && v.sees(e.tool)
}

func (v view) isActive(name string) bool {
	return slices.ContainsFunc(v.active, func(t *BridgeTool) bool { return t.name == name })
}

// activeSet returns the active tools as a set.
func (v view) activeSet() map[*BridgeTool]bool {
	set := make(map[*BridgeTool]bool, len(v.active))
	for _, t := range v.active {
		set[t] = true
	}
	return set
}

// filter returns those of tools that the session may use, in a new slice.
func (v view) filter(tools []*BridgeTool) []*BridgeTool {
	if v.access.empty() {
		return slices.Clone(tools)
	}
	var list []*BridgeTool
	for _, t := range tools {
		if v.sees(t) {
			list = append(list, t)
		}
	}
	return list
}

// searchMode reports whether the session has tools to search for, active ones
// included, and may search.
func (v view) searchMode() bool {
	if v.access.empty() {
		return len(v.deferred) > 0
	}
	return v.access.mayStillSearch() && slices.ContainsFunc(v.deferred, v.sees)
}

// mayStillSearch reports whether a does not deny the search tool. An allow
// list is about the servers' tools: it need not name the search tool.
func (a Access) mayStillSearch() bool { return !matchAny(a.Deny, SearchToolName) }

// InlineTools returns the tools that the model sees from the start, in
// registration order.
func (s *Session) InlineTools() []*BridgeTool {
	v := s.view()
	return v.filter(v.inline)
}

// DeferredTools returns the tools that can be found and activated, in
// registration order. Active ones are not among them.
func (s *Session) DeferredTools() []*BridgeTool {
	v := s.view()
	active := v.activeSet()
	return slices.DeleteFunc(v.filter(v.deferred), func(t *BridgeTool) bool { return active[t] })
}

// ActiveTools returns the tools that were deferred and have been activated in
// this session, in the order of their activation.
func (s *Session) ActiveTools() []*BridgeTool {
	return slices.Clone(s.view().active)
}

// IsSearchMode reports whether there are more tools than fit inline, so that
// the session offers the search tool.
func (s *Session) IsSearchMode() bool { return s.view().searchMode() }

// SearchTool returns the search tool, or nil if there is nothing to search
// for or the session may not.
func (s *Session) SearchTool() Tool {
	if !s.IsSearchMode() {
		return nil
	}
	return s.searchTool
}

// Tools returns what belongs in the tool list of the next request to the
// model: the inline tools, in search mode the search tool, and the active
// tools. Activation only appends to it.
func (s *Session) Tools() []Tool {
	v := s.view()
	var list []Tool
	for _, t := range v.filter(v.inline) {
		list = append(list, t)
	}
	if v.searchMode() {
		list = append(list, s.searchTool)
	}
	for _, t := range v.active {
		list = append(list, t)
	}
	return list
}

// offer returns what belongs in the session's registry.
func (s *Session) offer() offer {
	o := offer{tools: s.Tools(), groups: make(map[string][]string)}
	for _, t := range o.tools {
		if b, ok := t.(*BridgeTool); ok {
			o.groups[GroupAll] = append(o.groups[GroupAll], b.name)
			o.groups[GroupServer+b.def.server] = append(o.groups[GroupServer+b.def.server], b.name)
		}
	}
	return o
}

// offered returns the tool that belongs in the session's registry under name,
// or nil.
func (s *Session) offered(name string) Tool {
	v := s.view()
	if name == SearchToolName && v.searchMode() {
		return s.searchTool
	}
	if e, ok := v.lookup(name); ok && (e.inline || v.isActive(name)) {
		return e.tool
	}
	return nil
}

// known returns the tool of that name that the session may use, or nil.
func (s *Session) known(name string) Tool {
	if e, ok := s.view().lookup(name); ok {
		return e.tool
	}
	return nil
}
