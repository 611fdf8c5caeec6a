package mcphybrid

import (
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
)

// A registrar keeps a host's registry in step with the tools that a session
// offers. It holds no lock during calls to the registry, so the registry may lock
// and call back.
//
// Concurrent calls therefore reach the registry in any order. Two rules keep the
// result correct. Each registration uses its own copy of a tool and Unregister
// goes by identity, so a late Unregister can't remove a newer registration. And
// each goroutine checks again after a change whether the registry has the tool
// that the session offers now, so the last one leaves it right.
type registrar struct {
	reg     Registry
	session offering
	log     *slog.Logger

	mu      sync.Mutex
	held    map[string][]*registration // by name: the copies that the registry may hold
	pending map[string]int             // by name: activations between hold and release
	begun   uint64                     // activations that ever began
	syncing bool                       // a goroutine is in sync
	again   bool                       // sync must run once more
	idle    sync.Cond                  // signals that no goroutine is in sync

	// These are used only in sync.
	offered []Tool              // last
	names   map[string]bool     // of these
	wanted  map[string][]string // the groups of these; nil once they are published
	groups  map[string][]string // as published
}

// An offering says which tools belong in a registry: a [Session] does, or a test.
// The registrar holds no lock while it calls these methods.
type offering interface {
	// offeredTools returns all tools that belong in the registry now, in the order of
	// registration.
	offeredTools() []Tool

	// offeredTool returns the one of these with that name, or nil.
	offeredTool(name string) Tool

	// usable returns the tool with that name that the session may use, offered or
	// not, or nil.
	usable(name string) Tool

	// copyOf returns a copy of t for the registry. The copy is not equal to t.
	copyOf(t Tool) Tool
}

// A registration is one copy of a tool passed to the registry.
type registration struct {
	of   Tool
	copy Tool
	done bool // Register has returned; guarded by registrar.mu
}

// newRegistrar returns the registrar of a session's registry.
func newRegistrar(reg Registry, session offering, log *slog.Logger) *registrar {
	r := &registrar{
		reg: reg, session: session, log: log,
		held: make(map[string][]*registration), pending: make(map[string]int),
	}
	r.idle.L = &r.mu
	return r
}

// open gives the registry its activator and registers the offered tools.
func (r *registrar) open(activate func(name string) bool) {
	_ = r.safely(func() { r.reg.SetDeferredActivator(activate) })
	r.sync()
}

// close empties the registry. The session must offer no tools any more. Unlike
// the other methods, close waits until the registry is in step.
func (r *registrar) close() {
	_ = r.safely(func() { r.reg.SetDeferredActivator(nil) })
	r.sync()
	r.mu.Lock()
	for r.syncing {
		r.idle.Wait()
	}
	r.mu.Unlock()
}

// hold registers t, which is offered or about to be, and keeps it registered
// until [registrar.release]. It reports whether the registry has t. If so, the
// caller must call release.
func (r *registrar) hold(t Tool) bool {
	var copies []Tool
	r.mu.Lock()
	r.pending[t.Name()]++
	r.begun++
	for _, g := range r.held[t.Name()] {
		if g.of == t {
			copies = append(copies, g.copy)
		}
	}
	r.mu.Unlock()
	if r.stores(t.Name(), copies) || r.register(t) {
		return true
	}
	r.release(t)
	return false
}

// stores reports whether the registry has one of copies. It asks the registry,
// because a later registration may have replaced a copy, and because a Register
// that has not returned yet may have stored one (it may be our caller).
func (r *registrar) stores(name string, copies []Tool) (found bool) {
	if len(copies) > 0 {
		_ = r.safely(func() {
			t, ok := r.reg.Get(name)
			found = ok && slices.Contains(copies, t)
		})
	}
	return found
}

// release ends what [registrar.hold] began, when it is decided whether t is
// offered.
func (r *registrar) release(t Tool) {
	r.mu.Lock()
	if r.pending[t.Name()]--; r.pending[t.Name()] == 0 {
		delete(r.pending, t.Name())
	}
	r.mu.Unlock()
	r.setRight(t.Name(), t)
}

// holdsLocked reports whether t is registered or being registered. The goroutine
// that registers it sets its name right.
func (r *registrar) holdsLocked(t Tool) bool {
	return slices.ContainsFunc(r.held[t.Name()], func(g *registration) bool { return g.of == t })
}

// register registers a copy of t and reports whether the registry took it
// without a panic.
func (r *registrar) register(t Tool) bool {
	g := &registration{of: t, copy: r.session.copyOf(t)}
	name := t.Name()
	r.mu.Lock()
	earlier := make(map[*registration]bool)
	for _, other := range r.held[name] {
		earlier[other] = other.done
	}
	r.held[name] = append(r.held[name], g)
	r.mu.Unlock()
	err := r.safely(func() { r.reg.Register(g.copy) })
	r.mu.Lock()
	g.done = true
	var gone []*registration
	if err != nil {
		// The copy may or may not have replaced an earlier one: remove all.
		gone = r.takeLocked(name)
	} else {
		// A copy that was in the registry before this call began is replaced. We
		// don't know the order of copies that were registered meanwhile.
		r.held[name] = slices.DeleteFunc(r.held[name], func(other *registration) bool { return earlier[other] })
	}
	r.mu.Unlock()
	r.unregister(gone)
	return err == nil
}

// takeLocked returns the registrations under name and forgets them. It leaves
// out those under way: the goroutine that registers them sets the name right next.
func (r *registrar) takeLocked(name string) (regs []*registration) {
	var underway []*registration
	for _, g := range r.held[name] {
		if g.done {
			regs = append(regs, g)
		} else {
			underway = append(underway, g)
		}
	}
	if r.held[name] = underway; underway == nil {
		delete(r.held, name)
	}
	return regs
}

func (r *registrar) unregister(regs []*registration) {
	for _, g := range regs {
		_ = r.safely(func() { r.reg.Unregister(g.copy) })
	}
}

// setRight makes the registry hold the tool that the session offers under name, or
// none. last is the tool that the caller just registered under name, or nil. It may
// have replaced a newer one.
func (r *registrar) setRight(name string, last Tool) {
	for {
		r.mu.Lock()
		begun, pending := r.begun, r.pending[name] > 0
		r.mu.Unlock()
		want := r.session.offeredTool(name)
		if want == nil && pending {
			// The caller of hold relies on the registry having the tool: it may
			// be replaced by a newer one but must not be removed.
			want = r.session.usable(name)
		}
		r.mu.Lock()
		switch {
		case want == nil && r.begun != begun:
			// An activation may have begun, and even ended, meanwhile.
			r.mu.Unlock()
		case want == nil:
			regs := r.takeLocked(name)
			r.mu.Unlock()
			if len(regs) == 0 {
				return
			}
			r.unregister(regs)
			last = regs[0].copy // it may have replaced a newer tool
		case r.holdsLocked(want) && (last == nil || last == want):
			r.mu.Unlock()
			return
		default:
			r.mu.Unlock()
			if !r.register(want) {
				return
			}
			last = want
		}
	}
}

// sync brings the whole registry in step. If a call of sync is already running,
// in another goroutine or further up in this one, that call does the work and
// this one returns at once.
func (r *registrar) sync() {
	r.mu.Lock()
	r.again = true
	if r.syncing {
		r.mu.Unlock()
		return
	}
	r.syncing = true
	for r.again {
		r.again = false
		r.mu.Unlock()
		if tools := r.session.offeredTools(); !slices.Equal(tools, r.offered) {
			r.offered, r.names, r.wanted = tools, make(map[string]bool, len(tools)), groupsOf(tools)
			for _, t := range tools {
				r.names[t.Name()] = true
			}
		}
		for _, name := range r.outOfStep() {
			r.setRight(name, nil)
		}
		if r.wanted != nil && r.publishGroups() {
			r.wanted = nil
		}
		r.mu.Lock()
	}
	r.syncing = false
	r.idle.Broadcast()
	r.mu.Unlock()
}

// outOfStep returns the names of the offered tools that are not registered, in
// their order, and then the sorted names of all other registered tools.
func (r *registrar) outOfStep() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.offered {
		if !r.holdsLocked(t) {
			names = append(names, t.Name())
		}
	}
	var others []string
	for name := range r.held {
		if !r.names[name] {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return append(names, others...)
}

// publishGroups passes the changed groups to the registry, and reports whether it took
// them.
func (r *registrar) publishGroups() (taken bool) {
	groups := r.wanted
	taken = true
	names := slices.AppendSeq(slices.Collect(maps.Keys(groups)), maps.Keys(r.groups))
	slices.Sort(names)
	published := make(map[string][]string)
	for _, name := range slices.Compact(names) {
		members := groups[name]
		if !slices.Equal(members, r.groups[name]) &&
			r.safely(func() { r.reg.RegisterToolGroup(name, slices.Clone(members)) }) != nil {
			taken, members = false, r.groups[name] // so that the next call tries again
		}
		if len(members) > 0 {
			published[name] = members
		}
	}
	r.groups = published
	return taken
}

// safely calls a method of the host's registry. It logs a panic and returns it as
// an error.
func (r *registrar) safely(call func()) (err error) {
	if err = hostcode.Do("the registry", call); err != nil {
		r.log.Error("mcphybrid: the host's code panicked", "error", err)
	}
	return err
}

// syncRegistry brings the registry, if there is one, in step with what the session offers.
// The caller holds no lock.
func (s *Session) syncRegistry() {
	if s.registrar != nil {
		s.registrar.sync()
	}
}

// offeredTools implements [offering]: the inline tools, the meta tools and the active tools.
func (s *Session) offeredTools() []Tool {
	v := s.view()
	tools := make([]Tool, 0, len(v.inline)+int(metaKinds)+len(v.active))
	for _, t := range v.inline {
		tools = append(tools, t)
	}
	tools = append(tools, s.metaTools(v)...)
	for _, t := range v.active {
		tools = append(tools, t)
	}
	return tools
}

// offeredTool implements [offering].
func (s *Session) offeredTool(name string) Tool {
	v := s.view()
	if t := s.metaNamed(v, name); t != nil {
		return t
	}
	if t, st := v.lookup(name); st == inline || v.isActive(name) {
		return t
	}
	return nil
}

// usable implements [offering].
func (s *Session) usable(name string) Tool {
	if t, _ := s.view().lookup(name); t != nil {
		return t
	}
	return nil
}

// copyOf implements [offering]. Calls of the copy go through the session.
func (s *Session) copyOf(t Tool) Tool {
	switch t := t.(type) {
	case *BridgeTool:
		return t.copyFor(s.Call)
	case metaTool:
		return &metaTool{s, t.kind}
	}
	return t // never reached: a session offers no other types
}

// groupsOf returns the names of offered tools by group.
func groupsOf(offered []Tool) map[string][]string {
	groups := make(map[string][]string)
	for _, t := range offered {
		if b, ok := t.(*BridgeTool); ok {
			of := GroupServer + b.def.Server
			groups[GroupAll], groups[of] = append(groups[GroupAll], b.name), append(groups[of], b.name)
		}
	}
	return groups
}
