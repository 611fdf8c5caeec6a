// Package registrar keeps a host's table of tools in step with the tools that a
// session offers. The host's table may lock, call back or panic, and other
// goroutines may use it.
package registrar

import (
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/foreign"
)

// A Tool is what a registry holds. Its dynamic type must be comparable.
type Tool interface {
	Name() string
}

// A Registry is a host's table of tools. Its methods may be called from
// several goroutines at once.
type Registry interface {
	Register(t Tool)
	Unregister(t Tool)
	Get(name string) (Tool, bool)
	RegisterToolGroup(group string, names []string)
	SetDeferredActivator(activate func(name string) bool)
}

// A Registrar keeps a host's registry in step with the tools that a session
// offers. It holds no lock during calls to the registry, so the registry may lock
// and call back.
//
// Concurrent calls therefore reach the registry in any order. Two rules keep the
// result correct. Each registration uses its own copy of a tool and Unregister
// goes by identity, so a late Unregister can't remove a newer registration. And
// each goroutine checks again after a change whether the registry has the tool
// that the session offers now, so the last one leaves it right.
type Registrar struct {
	reg     Registry
	session Session
	log     *slog.Logger

	mu      sync.Mutex
	held    map[string][]*registration // by name: the copies that the registry may hold
	pending map[string]int             // by name: activations between Begin and Finish
	begun   uint64                     // activations that ever began
	syncing bool                       // a goroutine is in Sync
	again   bool                       // Sync must run once more
	idle    sync.Cond                  // signals that no goroutine is in Sync

	// These are used only in Sync.
	offered []Tool              // last
	names   map[string]bool     // of these
	wanted  map[string][]string // the groups of these; nil once they are published
	groups  map[string][]string // as published
}

// A Session says which tools belong in its registry. The registrar holds no lock
// while it calls these methods.
type Session interface {
	// Offer returns all tools that belong in the registry now, in the order of
	// registration.
	Offer() []Tool

	// Groups returns the names of offered tools, by group. They are the same for the
	// same tools.
	Groups(offered []Tool) map[string][]string

	// Offered returns the offered tool with this name, or nil.
	Offered(name string) Tool

	// Known returns the tool with this name that the session may use, offered or
	// not, or nil.
	Known(name string) Tool

	// Copy returns a copy of t for the registry. The copy is not equal to t.
	Copy(t Tool) Tool
}

// A registration is one copy of a tool passed to the registry.
type registration struct {
	of   Tool
	copy Tool
	done bool // Register has returned; guarded by Registrar.mu
}

// New returns the registrar of a session's registry.
func New(reg Registry, session Session, log *slog.Logger) *Registrar {
	r := &Registrar{
		reg: reg, session: session, log: log,
		held: make(map[string][]*registration), pending: make(map[string]int),
	}
	r.idle.L = &r.mu
	return r
}

// Open gives the registry its activator and registers the offered tools.
func (r *Registrar) Open(activate func(name string) bool) {
	_ = r.safely(func() { r.reg.SetDeferredActivator(activate) })
	r.Sync()
}

// Close empties the registry. The session must offer no tools any more. Unlike
// the other methods, Close waits until the registry is in step.
func (r *Registrar) Close() {
	_ = r.safely(func() { r.reg.SetDeferredActivator(nil) })
	r.Sync()
	r.mu.Lock()
	for r.syncing {
		r.idle.Wait()
	}
	r.mu.Unlock()
}

// Begin registers t, which is offered or about to be, and keeps it registered
// until [Registrar.Finish]. It reports whether the registry has t. If so, the
// caller must call Finish.
func (r *Registrar) Begin(t Tool) bool {
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
	r.Finish(t)
	return false
}

// stores reports whether the registry has one of copies. It asks the registry,
// because a later registration may have replaced a copy, and because a Register
// that has not returned yet may have stored one (it may be our caller).
func (r *Registrar) stores(name string, copies []Tool) (found bool) {
	if len(copies) > 0 {
		_ = r.safely(func() {
			t, ok := r.reg.Get(name)
			found = ok && slices.Contains(copies, t)
		})
	}
	return found
}

// Finish ends what [Registrar.Begin] began, when it is decided whether t is
// offered.
func (r *Registrar) Finish(t Tool) {
	r.mu.Lock()
	if r.pending[t.Name()]--; r.pending[t.Name()] == 0 {
		delete(r.pending, t.Name())
	}
	r.mu.Unlock()
	r.settle(t.Name(), t)
}

// holdsLocked reports whether t is registered or being registered. The goroutine
// that registers it settles its name.
func (r *Registrar) holdsLocked(t Tool) bool {
	return slices.ContainsFunc(r.held[t.Name()], func(g *registration) bool { return g.of == t })
}

// register registers a copy of t and reports whether the registry took it
// without a panic.
func (r *Registrar) register(t Tool) bool {
	g := &registration{of: t, copy: r.session.Copy(t)}
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
// out those under way: the goroutine that registers them settles the name next.
func (r *Registrar) takeLocked(name string) (regs []*registration) {
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

func (r *Registrar) unregister(regs []*registration) {
	for _, g := range regs {
		_ = r.safely(func() { r.reg.Unregister(g.copy) })
	}
}

// settle makes the registry hold the tool that the session offers under name, or
// none. last is the tool that the caller just registered under name, or nil. It may
// have replaced a newer one.
func (r *Registrar) settle(name string, last Tool) {
	for {
		r.mu.Lock()
		begun, pending := r.begun, r.pending[name] > 0
		r.mu.Unlock()
		want := r.session.Offered(name)
		if want == nil && pending {
			// The caller of Begin relies on the registry having the tool: it may
			// be replaced by a newer one but must not be removed.
			want = r.session.Known(name)
		}
		r.mu.Lock()
		switch {
		case want == nil && r.begun != begun:
			// An activation may have begun, and even finished, meanwhile.
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

// Sync brings the whole registry in step. If a call of Sync is already running,
// in another goroutine or further up in this one, that call does the work and
// this one returns at once.
func (r *Registrar) Sync() {
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
		if tools := r.session.Offer(); !slices.Equal(tools, r.offered) {
			r.offered, r.names, r.wanted = tools, make(map[string]bool, len(tools)), r.session.Groups(tools)
			for _, t := range tools {
				r.names[t.Name()] = true
			}
		}
		for _, name := range r.unsettled() {
			r.settle(name, nil)
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

// unsettled returns the names of the offered tools that are not registered, in
// their order, and then the sorted names of all other registered tools.
func (r *Registrar) unsettled() (names []string) {
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
func (r *Registrar) publishGroups() (taken bool) {
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
func (r *Registrar) safely(call func()) (err error) {
	if err = foreign.Do("the registry", call); err != nil {
		r.log.Error("mcphybrid: the host's code panicked", "error", err)
	}
	return err
}

// Held returns how many copies of tools with that name the registrar remembers,
// because the registry may hold them. At rest there are at most as many as
// goroutines registered tools of that name at once.
func (r *Registrar) Held(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held[name])
}

// Registry returns the registry that r keeps in step.
func (r *Registrar) Registry() Registry { return r.reg }
