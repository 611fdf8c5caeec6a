package upstream

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
)

// Children start a few at a time. If sixty launchers such as npx started at once, each would
// get too little of the processors to answer in time. And a launcher downloads a package
// once: another of the same package waits until it has, which looks as if it hung. So of
// one package, one child starts at a time.

// startsAtOnce is how many children start at once: as many as there are processors, but a
// few where there are few, since launchers wait for the network too.
var startsAtOnce = max(4, runtime.NumCPU())

// maxTurn is how long a child that starts keeps others waiting that are not of its package.
const maxTurn = 10 * time.Second

// errQueued is why a server connects for long.
var errQueued = errors.New("it waits for its turn: servers start a few at a time, and those of one package one at a time")

// IsQueued reports whether a server is not ready because its turn to start has not come.
func IsQueued(err error) bool { return errors.Is(err, errQueued) }

// Turns let children start a few at a time, in the order in which they ask. A nil Turns lets
// all start at once.
type Turns struct {
	mu       sync.Mutex
	free     int
	packages map[string]bool // of which a child starts
	waiting  []*turn         // the first is next
}

// NewTurns returns Turns for all the children of a program.
func NewTurns() *Turns { return &Turns{free: startsAtOnce, packages: make(map[string]bool)} }

// A turn is one child's. The nil turn has come, and keeps nobody waiting.
type turn struct {
	of   *Turns
	pack string        // what a launcher launches, or ""
	come chan struct{} // closed when the child may start

	// The rest is guarded by of.mu.
	takesRoom, takesPack bool        // what it keeps from others
	room                 *time.Timer // makes room after maxTurn
}

// ask returns a turn for a child of that package, or of none if it is "". The turn may have
// come already. The caller must call end.
func (t *Turns) ask(pack string) *turn {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	asked := &turn{of: t, pack: pack, come: make(chan struct{})}
	t.waiting = append(t.waiting, asked)
	t.goOnLocked()
	return asked
}

func (t *Turns) goOnLocked() {
	for t.free > 0 {
		i := slices.IndexFunc(t.waiting, func(w *turn) bool { return !t.packages[w.pack] })
		if i < 0 {
			return
		}
		next := t.waiting[i]
		t.waiting = slices.Delete(t.waiting, i, i+1)
		t.free--
		next.takesRoom = true
		if next.pack != "" {
			t.packages[next.pack], next.takesPack = true, true
		}
		next.room = time.AfterFunc(maxTurn, next.makeRoom)
		close(next.come)
	}
}

// wait waits until the turn has come, and calls waits first if it has not. It returns the
// cause of ctx if that ends first.
func (t *turn) wait(ctx context.Context, waits func()) error {
	select {
	case <-t.hasCome():
		return nil
	default:
	}
	waits()
	select {
	case <-t.come:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hasCome returns a channel that is closed when the turn has come.
func (t *turn) hasCome() <-chan struct{} {
	if t == nil {
		return always
	}
	return t.come
}

// always is closed.
var always = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// hurry has the turn come at once, beside those whose turn it is.
func (t *turn) hurry() {
	t.change(func() {
		if i := slices.Index(t.of.waiting, t); i >= 0 {
			t.of.waiting = slices.Delete(t.of.waiting, i, i+1)
			close(t.come)
		}
	})
}

// makeRoom lets a child of another package start.
func (t *turn) makeRoom() {
	t.change(func() {
		if t.takesRoom {
			t.takesRoom = false
			t.room.Stop()
			t.of.free++
		}
	})
}

// end lets another child start, whatever its package. A turn that has not come never does.
func (t *turn) end() {
	t.makeRoom()
	t.change(func() {
		t.of.waiting = slices.DeleteFunc(t.of.waiting, func(w *turn) bool { return w == t })
		if t.takesPack {
			t.takesPack = false
			delete(t.of.packages, t.pack)
		}
	})
}

func (t *turn) change(do func()) {
	if t == nil {
		return
	}
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	do()
	t.of.goOnLocked()
}

// packageLaunchers download what they launch, at the first start.
var packageLaunchers = []string{"npx", "pnpx", "bunx", "uvx"}

// launched returns the launcher of a child and what it launches: the first argument that is
// no option. It returns "" if the child has no such launcher.
func launched(cfg *config.Server) string {
	name := strings.TrimSuffix(filepath.Base(cfg.Command), ".cmd") // on Windows
	if i := slices.IndexFunc(cfg.Args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }); i >= 0 && slices.Contains(packageLaunchers, name) {
		return name + " " + cfg.Args[i]
	}
	return ""
}
