package main

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
)

// A conversation is the gateway's state of one client: a Session that no other
// client has.
type conversation struct {
	id      string // mcp-go's session ID; "" if the protocol has no sessions
	number  uint64 // in the log, since the ID is as good as a secret; 0 without one
	of      *holder
	session *mcphybrid.Session
	follows bool        // lists the tools again when told that they have changed
	told    atomic.Bool // they have changed since it last listed them
}

// open notes a client with that ID. Its Session is made when the client first
// needs it, because by then the client has said who it is.
func (g *gateway) open(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.clients[id]; !ok && id != "" {
		g.clients[id] = nil
	}
}

// maxClientName is how many bytes of a client's name are kept.
const maxClientName = 256

// forgetMost drops what a client tells of itself and we don't use. mcp-go keeps the rest
// as long as the session.
func forgetMost(p *mcp.InitializeParams) {
	p.ClientInfo = mcp.Implementation{Name: strings.Clone(p.ClientInfo.Name[:min(len(p.ClientInfo.Name), maxClientName)])}
	can := p.Capabilities
	p.Capabilities = mcp.ClientCapabilities{Elicitation: can.Elicitation, Sampling: can.Sampling, Roots: can.Roots}
}

// gone closes a client's Session.
func (g *gateway) gone(id string) {
	g.mu.Lock()
	c := g.clients[id]
	delete(g.clients, id)
	g.mu.Unlock()
	if c != nil {
		g.book.gone(c)
		c.session.Close()
	}
}

// client returns the client of the request of ctx. Since 2026-07-28, HTTP has
// no sessions: each request is then a client's first and last. So is a request
// of a session that has just ended.
func (g *gateway) client(ctx context.Context) *conversation {
	s := server.ClientSessionFromContext(ctx)
	if s == nil {
		return g.newClient("", "", holderOf(ctx))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c, ok := g.clients[s.SessionID()]
	if !ok {
		return g.newClient("", "", holderOf(ctx))
	}
	if c == nil {
		name := ""
		if s, ok := s.(server.SessionWithClientInfo); ok {
			name = s.GetClientInfo().Name
		}
		c = g.newClient(s.SessionID(), name, holderOf(ctx))
		g.clients[s.SessionID()] = c
	}
	return c
}

func (g *gateway) newClient(id, name string, of *holder) *conversation {
	c := &conversation{id: id, of: of}
	if id != "" {
		c.number = g.numbers.Add(1)
	}
	c.follows = id != "" && (slices.Contains(g.opts.follow, "*") || slices.Contains(g.opts.follow, name))
	c.session = g.mgr.NewSession(c.sessionOptions())
	return c
}

func (c *conversation) sessionOptions() *mcphybrid.SessionOptions {
	opts := &mcphybrid.SessionOptions{Client: true, Disclosure: mcphybrid.ByBridge}
	if c.follows {
		opts.Disclosure = mcphybrid.ByActivation
	}
	if c.of != nil {
		opts.Access = c.of.access
	}
	if c.id == "" {
		// Nothing is kept for the next request, so a long result that was cut
		// can't be read on.
		opts.Access.Deny = append(slices.Clone(opts.Access.Deny), mcphybrid.PageToolName)
	}
	return opts
}
