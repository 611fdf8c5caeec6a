package gateway

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	naming "github.com/mcphybrid/mcphybrid/internal/names"
)

// starts is for calls that wait until a server has started, however others do. The zero value
// is ready to use.
type starts struct {
	mu      sync.Mutex
	anew    map[string]naming.Claim  // servers that come, or are replaced: the one before may still end
	waiting map[string]chan struct{} // by server; closed when its state changes
}

// awaitServerOf waits until the server to which an unknown tool would belong has started or
// failed. It reports whether there is such a server.
func (g *gateway) awaitServerOf(ctx context.Context, unknown *mcphybrid.UnknownToolError) bool {
	server := cmp.Or(unknown.Connecting, g.starts.ofNamed(unknown.Name))
	if server == "" {
		return false
	}
	g.awaitStart(ctx, server)
	return true
}

// afterStart makes a request for a resource or a prompt of that server, or of "" if none is
// named. If the server came or was replaced, and does not have it yet, the request is made again
// when it has started or failed.
func (g *gateway) afterStart(ctx context.Context, server string, request func() error) error {
	isAnew := g.starts.isAnew(server) // read before what it has: one that has started has all
	err := request()
	if !isAnew || !errors.Is(err, mcphybrid.ErrUnknownResource) {
		return err
	}
	g.awaitStart(ctx, server)
	return request()
}

// awaitStart waits until that server has started or failed, or until ctx ends, but not longer than
// a start may take; one that downloads has longer.
func (g *gateway) awaitStart(ctx context.Context, server string) {
	ctx, enough := context.WithTimeout(ctx, servers.StartTimeout)
	defer enough()
	for {
		changed := g.starts.next(server)
		isConnecting := slices.ContainsFunc(g.mgr.Servers(), func(s mcphybrid.ServerStatus) bool {
			return s.Name == server && s.State == mcphybrid.StateConnecting
		})
		if !isConnecting && !g.starts.isAnew(server) {
			g.starts.tell(server) // so that nothing stays of it
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// ofNamed returns the server in anew to which the unknown tool or prompt with that registered
// name would belong, or "".
func (s *starts) ofNamed(registered string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.anew)) {
		if _, ok := s.anew[name].Own(registered); ok {
			return name
		}
	}
	return ""
}

// isAnew reports whether that server came, or is being replaced, and has not started.
func (s *starts) isAnew(server string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.anew[server]
	return ok
}

// next returns a channel that is closed when the state of that server changes.
func (s *starts) next(server string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = make(map[string]chan struct{})
	}
	if s.waiting[server] == nil {
		s.waiting[server] = make(chan struct{})
	}
	return s.waiting[server]
}

// tell wakes the calls that wait for that server.
func (s *starts) tell(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tellLocked(server)
}

func (s *starts) tellLocked(server string) {
	if s.waiting[server] != nil {
		close(s.waiting[server])
		delete(s.waiting, server)
	}
}

// begin notes that a server comes, or is replaced, until the returned function is called.
func (s *starts) begin(next mcphybrid.ServerConfig) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.anew == nil {
		s.anew = make(map[string]naming.Claim)
	}
	s.anew[next.Name] = naming.Alone(next.Name, next.Prefix)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.anew, next.Name)
		s.tellLocked(next.Name)
	}
}
