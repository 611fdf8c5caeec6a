// Package registrar keeps a host's table of tools in step with what a session
// offers, though the table may lock, call back, panic and be used by others.
package registrar

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// A Tool is what a registry holds. Its dynamic type must be comparable.
type Tool interface {
	comparable
	Name() string
}

// A Registry is a host's table of tools. Its methods may be called from
// several goroutines at once.
type Registry[T Tool] interface {
	Register(t T)
	Unregister(t T)
	Get(name string) (T, bool)
	RegisterToolGroup(group string, names []string)
	SetDeferredActivator(activate func(name string) bool)
}

// A Registrar keeps a host's registry in step with what a session offers. It
// never waits for the registry while another call of it runs, in this or in
// another goroutine, so that the registry may lock and call back as it likes.
//
// That leaves the order in which concurrent calls reach the registry open, and
// is made up for in two ways. Each registration is of a copy of its own and
// Unregister goes by identity, so that a late Unregister can't remove what was
// registered since. And whoever has changed something looks again whether it
// is what is wanted by then: the last to change something sees it right.
type Registrar[T Tool] struct {
	reg     Registry[T]
	session Session[T]
	log     *slog.Logger

	mu      sync.Mutex
	held    map[string][]*registration[T] // by name: all that the registry may hold
	pending map[string]int                // by name: activations that register and have not published
	begun   uint64                        // activations that ever began
	syncing bool                          // a goroutine is in sync
	again   bool                          // there is something new for it
	idle    sync.Cond                     // signals that no goroutine is in sync
	groups  map[string][]string           // as published; only the one in sync uses it
}

// A Session says what belongs in its registry. Its methods are called without
// a lock of the registrar's.
type Session[T Tool] interface {
	// Offer returns all that belongs in the registry now.
	Offer() Offer[T]

	// Offered returns the tool of that name that belongs there, or nil.
	Offered(name string) T

	// Known returns the tool of that name that the session may use, offered or
	// not, or nil.
	Known(name string) T

	// Copy returns a copy of t for the registry, which is not equal to t.
	Copy(t T) T
}

// A registration is one copy of a tool that a registry was given.
type registration[T Tool] struct {
	of   T
	copy T
	done bool // Register has returned; guarded by the registrar's mu
}

// An Offer is what belongs in a registry.
type Offer[T Tool] struct {
	Tools  []T // in the order in which they are registered
	Groups map[string][]string
}

// New returns the registrar of a session's registry.
func New[T Tool](reg Registry[T], session Session[T], log *slog.Logger) *Registrar[T] {
	r := &Registrar[T]{
		reg: reg, session: session, log: log,
		held: make(map[string][]*registration[T]), pending: make(map[string]int),
	}
	r.idle.L = &r.mu
	return r
}

// Open fills the registry.
func (r *Registrar[T]) Open(activate func(name string) bool) {
	_ = r.safely(func() { r.reg.SetDeferredActivator(activate) })
	r.Sync()
}

// Close empties the registry, when nothing is offered any more. Unlike the
// others it waits until that is done.
func (r *Registrar[T]) Close() {
	_ = r.safely(func() { r.reg.SetDeferredActivator(nil) })
	r.Sync()
	r.mu.Lock()
	for r.syncing {
		r.idle.Wait()
	}
	r.mu.Unlock()
}

// Begin sees to it that t, which is about to be offered or already is, is
// registered until finish, and reports whether it is. If so, finish must
// follow.
func (r *Registrar[T]) Begin(t T) bool {
	var copies []T
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

// stores reports whether the registry has one of copies. That they were
// registered does not tell: what was registered later, and is gone again, may
// have replaced them. One whose Register has not returned may be there too:
// perhaps it is from there that we are called.
func (r *Registrar[T]) stores(name string, copies []T) (found bool) {
	if len(copies) > 0 {
		_ = r.safely(func() {
			t, ok := r.reg.Get(name)
			found = ok && slices.Contains(copies, t)
		})
	}
	return found
}

// Finish ends what begin began, once t is offered or will not be.
func (r *Registrar[T]) Finish(t T) {
	r.mu.Lock()
	if r.pending[t.Name()]--; r.pending[t.Name()] == 0 {
		delete(r.pending, t.Name())
	}
	r.mu.Unlock()
	r.settle(t.Name(), t)
}

// holdsLocked reports whether t is registered or about to be: whoever is at it
// sees to the rest.
func (r *Registrar[T]) holdsLocked(t T) bool {
	return slices.ContainsFunc(r.held[t.Name()], func(g *registration[T]) bool { return g.of == t })
}

// register registers a copy of t and reports whether that went well.
func (r *Registrar[T]) register(t T) bool {
	g := &registration[T]{of: t, copy: r.session.Copy(t)}
	r.mu.Lock()
	r.held[t.Name()] = append(r.held[t.Name()], g)
	r.mu.Unlock()
	err := r.safely(func() { r.reg.Register(g.copy) })
	r.mu.Lock()
	g.done = true
	var gone []*registration[T]
	if err != nil {
		// It may have replaced what was there before, or not: all of it goes.
		gone = r.takeLocked(t.Name())
	}
	r.mu.Unlock()
	r.unregister(gone)
	return err == nil
}

// takeLocked returns what was registered under name and forgets it, but for
// what is under way: to unregister that could be too early, or, when it has
// just replaced something newer, too late. Whoever is at it settles the name
// next.
func (r *Registrar[T]) takeLocked(name string) (regs []*registration[T]) {
	var underway []*registration[T]
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

func (r *Registrar[T]) unregister(regs []*registration[T]) {
	for _, g := range regs {
		_ = r.safely(func() { r.reg.Unregister(g.copy) })
	}
}

// settle makes the registry hold under name what the session offers under it.
// last is what the caller registered under name just before, or nil: it may
// have replaced something newer.
func (r *Registrar[T]) settle(name string, last T) {
	var none T
	for {
		r.mu.Lock()
		begun, pending := r.begun, r.pending[name] > 0
		r.mu.Unlock()
		want := r.session.Offered(name)
		if want == none && pending {
			// Whoever activates it was told, or will be, that the registry has
			// it: what stands there must be right, but must not go.
			want = r.session.Known(name)
		}
		r.mu.Lock()
		switch {
		case want == none && r.begun != begun:
			// An activation of it may have begun, and even finished, since.
			r.mu.Unlock()
		case want == none:
			regs := r.takeLocked(name)
			r.mu.Unlock()
			if len(regs) == 0 {
				return
			}
			r.unregister(regs)
			last = regs[0].copy // which may have stood where something newer belongs
		case r.holdsLocked(want) && (last == none || last == want):
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

// Sync brings the whole registry in step. If another goroutine is at it, or
// this one further up, that one goes on until all is in step, and sync
// returns at once.
func (r *Registrar[T]) Sync() {
	r.mu.Lock()
	r.again = true
	if r.syncing {
		r.mu.Unlock()
		return
	}
	r.syncing = true
	var none T
	for r.again {
		r.again = false
		r.mu.Unlock()
		o := r.session.Offer()
		for _, name := range r.unsettled(o.Tools) {
			r.settle(name, none)
		}
		r.publishGroups(o.Groups)
		r.mu.Lock()
	}
	r.syncing = false
	r.idle.Broadcast()
	r.mu.Unlock()
}

// unsettled returns the names of those of tools that are not registered, in
// their order, and of all else that is.
func (r *Registrar[T]) unsettled(tools []T) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	offered := make(map[string]bool, len(tools))
	for _, t := range tools {
		offered[t.Name()] = true
		if !r.holdsLocked(t) {
			names = append(names, t.Name())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.held)) {
		if !offered[name] {
			names = append(names, name)
		}
	}
	return names
}

// publishGroups tells the registry of the groups that have changed.
func (r *Registrar[T]) publishGroups(groups map[string][]string) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(groups)), maps.Keys(r.groups))
	slices.Sort(names)
	published := make(map[string][]string)
	for _, name := range slices.Compact(names) {
		members := groups[name]
		if !slices.Equal(members, r.groups[name]) &&
			r.safely(func() { r.reg.RegisterToolGroup(name, slices.Clone(members)) }) != nil {
			members = r.groups[name] // to be told again
		}
		if len(members) > 0 {
			published[name] = members
		}
	}
	r.groups = published
}

// safely calls a method of the host's registry.
func (r *Registrar[T]) safely(call func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the registry: %v", p)
			r.log.Error("mcphybrid: the registry panicked", "panic", p)
		}
	}()
	call()
	return nil
}

// Registry returns the registry that r keeps in step.
func (r *Registrar[T]) Registry() Registry[T] { return r.reg }
