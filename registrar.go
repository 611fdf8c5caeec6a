package mcphybrid

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// A registrar keeps a host's registry in step with what a session offers. It
// never waits for the registry while another call of it runs, in this or in
// another goroutine, so that the registry may lock and call back as it likes.
//
// That leaves the order in which concurrent calls reach the registry open, and
// is made up for in two ways. Each registration is of a copy of its own and
// Unregister goes by identity, so that a late Unregister can't remove what was
// registered since. And whoever has changed something looks again whether it
// is what is wanted by then: the last to change something sees it right.
type registrar struct {
	reg     Registry
	offer   func() offer           // all that belongs in the registry now
	offered func(name string) Tool // the one of that name, or nil
	known   func(name string) Tool // the catalog's tool of that name, offered or not, or nil
	log     *slog.Logger

	mu      sync.Mutex
	held    map[string][]registration // by name: all that the registry may hold
	pending map[string]int            // by name: activations that register and have not published
	syncing bool                      // a goroutine is in sync
	again   bool                      // there is something new for it
	idle    sync.Cond                 // signals that no goroutine is in sync
	groups  map[string][]string       // as published; only the one in sync uses it
}

// A registration is one copy of a tool that a registry was given.
type registration struct {
	of   Tool
	copy Tool
}

// An offer is what belongs in a registry.
type offer struct {
	names  []string // of the tools, in the order in which they are registered
	groups map[string][]string
}

// newRegistrar returns a registrar without its functions.
func newRegistrar(reg Registry, log *slog.Logger) *registrar {
	r := &registrar{
		reg: reg, log: log,
		held: make(map[string][]registration), pending: make(map[string]int),
	}
	r.idle.L = &r.mu
	return r
}

// open fills the registry.
func (r *registrar) open(activate func(name string) bool) {
	_ = r.safely(func() { r.reg.SetDeferredActivator(activate) })
	r.sync()
}

// close empties the registry, when nothing is offered any more. Unlike the
// others it waits until that is done.
func (r *registrar) close() {
	_ = r.safely(func() { r.reg.SetDeferredActivator(nil) })
	r.sync()
	r.mu.Lock()
	for r.syncing {
		r.idle.Wait()
	}
	r.mu.Unlock()
}

// begin registers t, which is about to be offered, and reports whether the
// registry holds it now. If so, finish must follow, once t is offered or will
// not be.
func (r *registrar) begin(t Tool) bool {
	r.mu.Lock()
	r.pending[t.Name()]++
	r.mu.Unlock()
	if r.register(t) {
		return true
	}
	r.finish(t)
	return false
}

func (r *registrar) finish(t Tool) {
	r.mu.Lock()
	if r.pending[t.Name()]--; r.pending[t.Name()] == 0 {
		delete(r.pending, t.Name())
	}
	r.mu.Unlock()
	r.settle(t.Name(), t)
}

// holds reports whether t is registered.
func (r *registrar) holds(t Tool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return holds(r.held[t.Name()], t)
}

func holds(regs []registration, t Tool) bool {
	return slices.ContainsFunc(regs, func(g registration) bool { return g.of == t })
}

// register registers a copy of t and reports whether that went well.
func (r *registrar) register(t Tool) bool {
	c := t.(interface{ fresh() Tool }).fresh()
	if err := r.safely(func() { r.reg.Register(c) }); err != nil {
		_ = r.safely(func() { r.reg.Unregister(c) })
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[t.Name()] = append(r.held[t.Name()], registration{t, c})
	return true
}

// settle makes the registry hold under name what the session offers under it.
// last is what the caller registered under name just before, or nil: it may
// have replaced something newer.
func (r *registrar) settle(name string, last Tool) {
	for {
		want := r.offered(name)
		if want == nil && r.isPending(name) {
			// Whoever activates it was told, or will be, that the registry has
			// it: what stands there must be right, but must not go.
			want = r.known(name)
		}
		r.mu.Lock()
		regs := r.held[name]
		if want == nil {
			delete(r.held, name)
			r.mu.Unlock()
			if len(regs) == 0 {
				return
			}
			for _, g := range regs {
				_ = r.safely(func() { r.reg.Unregister(g.copy) })
			}
			last = nil
			continue
		}
		r.mu.Unlock()
		if holds(regs, want) && (last == nil || last == want) {
			return
		}
		if !r.register(want) {
			return
		}
		last = want
	}
}

func (r *registrar) isPending(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending[name] > 0
}

// sync brings the whole registry in step. If another goroutine is at it, or
// this one further up, that one goes on until all is in step, and sync
// returns at once.
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
		held := slices.Sorted(maps.Keys(r.held))
		r.mu.Unlock()
		o := r.offer()
		for _, name := range append(o.names, held...) {
			r.settle(name, nil)
		}
		r.publishGroups(o.groups)
		r.mu.Lock()
	}
	r.syncing = false
	r.idle.Broadcast()
	r.mu.Unlock()
}

// publishGroups tells the registry of the groups that have changed.
func (r *registrar) publishGroups(groups map[string][]string) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(groups)), maps.Keys(r.groups))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if !slices.Equal(groups[name], r.groups[name]) {
			_ = r.safely(func() { r.reg.RegisterToolGroup(name, slices.Clone(groups[name])) })
		}
	}
	r.groups = groups
}

// safely calls a method of the host's registry.
func (r *registrar) safely(call func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the registry: %v", p)
			r.log.Error("mcphybrid: the registry panicked", "panic", p)
		}
	}()
	call()
	return nil
}
