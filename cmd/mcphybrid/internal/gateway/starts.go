package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	naming "github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// starts is for calls that wait until a server has started, however others do. The zero value
// is ready to use.
type starts struct {
	mu      sync.Mutex
	anew    map[string]naming.Claim  // servers that come, or are replaced: the one before may still end
	waiting map[string]chan struct{} // by server; closed when its state changes
}

// serve runs a request of a client. If nobody has what it names, and the server of that came or is
// being replaced, it runs again when that has started or failed. All requests that name something of
// a server go through it.
func (g *gateway) serve(ctx context.Context, c *clientCall, run func(context.Context, *clientCall) error) error {
	anew := g.starts.all() // read before what they have: one that has started has all
	err := run(ctx, c)
	lacks := lacking(c.from, anew, err)
	if lacks.Server == "" || !c.from.mayHave(lacks) {
		return err
	}
	g.awaitStart(ctx, lacks.Server)
	return run(ctx, c)
}

// awaitAsked waits for the server that a call of a tool for resources or skills names, if it came
// or is being replaced: what such a tool answers is no error that serve could see.
func (g *gateway) awaitAsked(ctx context.Context, of *conversation, tool string, args json.RawMessage) {
	anew := g.starts.all()
	var in struct {
		Name, Server, URI string
		Arguments         json.RawMessage
	}
	if len(anew) == 0 || json.Unmarshal(args, &in) != nil {
		return
	}
	if tool == mcphybrid.CallToolName || tool == mcphybrid.ReadOnlyCallToolName {
		tool, args = in.Name, in.Arguments
		if in.Server, in.URI = "", ""; json.Unmarshal(args, &in) != nil {
			return
		}
	}
	claim, isAnew := anew[in.Server]
	if !isAnew || tool != mcphybrid.ResourceReadToolName && tool != mcphybrid.SkillLoadToolName {
		return
	}
	if of.mayHave(rules.Subject{Name: claim.Start(), Server: in.Server, URI: in.URI}) {
		g.awaitStart(ctx, in.Server)
	}
}

// lacking returns what a request failed for that ended with err: something of a server that is
// still connecting or among those that come anew. Else the result has no server.
func lacking(of *conversation, anew map[string]naming.Claim, err error) rules.Subject {
	tool, other := new(mcphybrid.UnknownToolError), new(mcphybrid.UnknownResourceError)
	switch {
	case errors.As(err, &tool) && tool.Connecting != "":
		return rules.Subject{Name: tool.Name, Server: tool.Connecting}
	case errors.As(err, &tool):
		return named(anew, tool.Name)
	case !errors.As(err, &other) || other.Servers != nil:
		return rules.Subject{}
	}
	if t := named(anew, other.ID); t.Server != "" && other.Server == "" { // a prompt
		return t
	}
	from := cmp.Or(other.Server, of.server, of.only)
	claim, isAnew := anew[from]
	if !isAnew {
		return rules.Subject{}
	}
	return rules.Subject{Name: claim.Start(), Server: from, URI: other.ID}
}

// mayHave reports whether the client's token may permit something of a server that has not started:
// who may have nothing of it must not learn by waiting that it is there.
func (c *conversation) mayHave(t rules.Subject) bool {
	return c.of == nil || rules.Access(c.of.Access).MayPermit(t)
}

// named returns the tool or prompt with that registered name, if it would belong to one of the
// servers.
func named(anew map[string]naming.Claim, registered string) rules.Subject {
	for _, name := range slices.Sorted(maps.Keys(anew)) {
		if own, ok := anew[name].Own(registered); ok {
			return rules.Subject{Name: registered, Server: name, Own: own}
		}
	}
	return rules.Subject{}
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

// all returns the servers that came, or are being replaced, and have not started.
func (s *starts) all() map[string]naming.Claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.anew)
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
