package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/files"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/config"
)

// A source is the file of the servers. It is read again when it has changed: what the file
// has changed changes, and all other servers go on. A file with a problem that was not there
// before changes nothing.
type source struct {
	path     string
	read     func() (*config.File, error)
	followed *files.Followed
	problems map[string]bool // of what is in use
	notes    map[string]bool // that were logged
	changes  map[string]*change
}

// A change brings one server to what the file has. One of a server begins when the one before it
// has ended.
type change struct {
	stop context.CancelFunc
	done chan struct{}
}

// newSource notes how the file is now. Then it should be loaded.
func newSource(from servers.Sources) *source {
	s := &source{path: from.Config, read: from.Read, problems: make(map[string]bool), notes: make(map[string]bool), changes: make(map[string]*change)}
	s.followed = files.Follow(nil, from.Config)
	s.followed.Quiet, s.followed.Slow = true, true
	return s
}

// load reads the file for the first time. Problems with single servers are logged.
func (s *source) load(log *slog.Logger) (*config.File, error) {
	cfg, err := s.read()
	if err != nil {
		if len(cfg.Servers) == 0 {
			return cfg, err
		}
		log.Warn(err.Error()) // the other servers work
	}
	s.remember(cfg, err, log)
	return cfg, nil
}

// remember notes the problems of what is in use, and tells what has no effect.
func (s *source) remember(cfg *config.File, err error, log *slog.Logger) {
	clear(s.problems)
	for _, problem := range servers.Problems(cfg, err) {
		s.problems[problem.Error()] = true
	}
	s.tell(cfg.Notes, log)
}

// tell logs what has no effect, unless it was logged before.
func (s *source) tell(all []string, log *slog.Logger) {
	notes := make(map[string]bool)
	for _, note := range all {
		if notes[note] = true; !s.notes[note] {
			log.Info(note)
		}
	}
	s.notes = notes
}

// follow returns what reads the file again for g.
func (s *source) follow(g *gateway) *files.Followed {
	s.followed.Read = func() error {
		// To open a pipe would wait for who writes to it, and so would the gateway's end. The first
		// time, it may be a pipe.
		if info, err := os.Stat(s.path); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file; the servers stay as they were", s.path)
		}
		cfg, err := s.read()
		var bad []error
		for _, problem := range servers.Problems(cfg, err) {
			if !s.problems[problem.Error()] {
				bad = append(bad, problem)
			}
		}
		if bad != nil || err != nil && len(cfg.Servers) == 0 {
			if bad == nil {
				bad = []error{err}
			}
			s.tell(cfg.Notes, g.opts.log) // such as the misspelt key without which there is a problem
			return fmt.Errorf("%w; the servers stay as they were", errors.Join(bad...))
		}
		s.remember(cfg, err, g.opts.log)
		s.apply(g, cfg.Servers)
		return nil
	}
	return s.followed
}

// apply begins to change the servers of g to these.
func (s *source) apply(g *gateway, now []mcphybrid.ServerConfig) {
	was := *g.servers.Load()
	named := func(list []mcphybrid.ServerConfig, name string) *mcphybrid.ServerConfig {
		if i := slices.IndexFunc(list, func(c mcphybrid.ServerConfig) bool { return c.Name == name }); i >= 0 && !list[i].Disabled {
			return &list[i]
		}
		return nil
	}
	g.servers.Store(&now)
	var added, removed, changed []string
	for _, c := range was {
		old, next := named(was, c.Name), named(now, c.Name)
		switch {
		case old == nil || next != nil && reflect.DeepEqual(*old, *next):
			continue
		case next == nil:
			removed = append(removed, c.Name)
		default:
			changed = append(changed, c.Name)
		}
		s.begin(g, c.Name, next)
	}
	for _, c := range now {
		if next := named(now, c.Name); next != nil && named(was, c.Name) == nil {
			added = append(added, c.Name)
			s.begin(g, c.Name, next)
		}
	}
	if added != nil || removed != nil || changed != nil {
		g.opts.log.Info("the changed file of the servers is used", "added", added, "removed", removed, "changed", changed)
	}
}

// begin begins to replace the server of that name, if there is one, by next, or by nothing.
func (s *source) begin(g *gateway, name string, next *mcphybrid.ServerConfig) {
	for other, c := range s.changes { // so that they do not become more with each name that was ever there
		select {
		case <-c.done:
			delete(s.changes, other)
		default:
		}
	}
	ctx, stop := context.WithCancel(g.begin)
	c, before := &change{stop, make(chan struct{})}, s.changes[name]
	s.changes[name] = c
	if before != nil {
		before.stop()
	}
	g.started.Go(func() {
		defer close(c.done)
		defer stop()
		if before != nil {
			<-before.done
		}
		g.replace(ctx, name, next)
	})
}

// replace ends the server of that name when its calls have ended, at the latest after the grace
// period, and starts next if that is not nil. One whose start fails is tried again like any other.
func (g *gateway) replace(ctx context.Context, name string, next *mcphybrid.ServerConfig) {
	late, cancel := context.WithTimeout(g.begin, g.opts.grace)
	g.book.running.wait(late, name)
	cancel()
	if g.begin.Err() != nil {
		return
	}
	if next != nil {
		defer g.starts.begin(*next)()
	}
	g.mgr.RemoveServer(name)
	if next == nil {
		g.starts.tell(name)
		g.followAgain(ctx, name)
		return
	}
	g.book.add(name)
	added := g.heard(*next)
	added.KeepFailed = true // operators see why, and it is tried again
	if err := g.mgr.AddServer(ctx, added); ctx.Err() == nil {
		g.logUntold(err)
		g.followAgain(ctx, name)
	}
}

// running counts the calls that servers work on. The zero value counts none.
type running struct {
	mu      sync.Mutex
	calls   map[string]int             // by server; none is 0
	waiting map[string][]chan struct{} // closed when the server has no calls
}

// begin counts a call until the returned function is called.
func (r *running) begin(server string) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil {
		r.calls, r.waiting = make(map[string]int), make(map[string][]chan struct{})
	}
	r.calls[server]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.calls[server]--; r.calls[server] > 0 {
			return
		}
		delete(r.calls, server)
		for _, idle := range r.waiting[server] {
			close(idle)
		}
		delete(r.waiting, server)
	}
}

// wait returns when the server works on no call, or when ctx ends.
func (r *running) wait(ctx context.Context, server string) {
	r.mu.Lock()
	if r.calls[server] == 0 {
		r.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	r.waiting[server] = append(r.waiting[server], idle)
	r.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
