package gateway

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
)

// A conversation is the gateway's state of one client: a Session that no other
// client has.
type conversation struct {
	id     string // mcp-go's session ID; "" if the protocol has no sessions
	number uint64 // in the log, since the ID is as good as a secret; 0 without one
	*wire.Notices

	// When the client first needs them, it has said who it is.
	scope
	session *mcphybrid.Session // nil until then
	of      *tokens.Holder     // whose rights the session has
	follows bool               // lists the tools again when told that they have changed
	once    bool               // never lists the tools again
	hurries bool               // goes on without the tools that it does not get at once

	subscribed subscriptions

	logs atomic.Pointer[server.SessionWithLogging] // what mcp-go knows of the log messages that it wants, once it has a session

	told   atomic.Bool  // the tools have changed since it last listed them
	listed atomic.Int64 // how many tools it had then
}

// open returns the client with that ID, which may be new.
func (g *gateway) open(id string) *conversation {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.clients[id]
	if c == nil {
		c = &conversation{id: id, Notices: wire.NewNotices()}
		g.clients[id] = c
	}
	return c
}

// registered notes what mcp-go knows of the client.
func (c *conversation) registered(s server.ClientSession) {
	if s, ok := s.(server.SessionWithLogging); ok {
		c.logs.Store(&s)
	}
}

// wantsLog reports whether the client has asked for log messages of that level, for as long as
// its session lasts.
func (c *conversation) wantsLog(level mcp.LoggingLevel) bool {
	s := c.logs.Load()
	return s != nil && level.ShouldSendTo((*s).GetLogLevel())
}

// known returns the client with that ID, or nil.
func (g *gateway) known(id string) *conversation {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.clients[id]
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
	if c != nil && c.session != nil {
		g.book.gone(c)
		c.session.Close()
		g.updates.gone(c)
	}
}

// client returns the client of the request of ctx. Since 2026-07-28, HTTP has
// no sessions: each request is then a client's first and last. So is a request
// of a session that has just ended.
func (g *gateway) client(ctx context.Context) *conversation {
	s := server.ClientSessionFromContext(ctx)
	if s == nil {
		return g.stranger(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.clients[s.SessionID()]
	if c == nil {
		return g.stranger(ctx)
	}
	if c.session == nil {
		name := ""
		if s, ok := s.(server.SessionWithClientInfo); ok {
			name = s.GetClientInfo().Name
		}
		c.scope, c.of, c.number = g.scope(ctx), tokens.HolderOf(ctx), g.numbers.Add(1)
		c.follows = c.server == "" && (slices.Contains(g.opts.follow, "*") || slices.Contains(g.opts.follow, name))
		c.once = slices.Contains(listsOnce, name)
		c.hurries = c.once && !g.opts.insists
		c.session = g.newSession(c, name)
	}
	return c
}

// listsOnce are the names of clients that begin without the tools of a server that has not
// listed them a second after their start, and that never list them again: Codex.
var listsOnce = []string{"codex-mcp-client"}

// hurry is how long such a client waits for servers, unless the user says how long clients
// do. By mcp_tool_search it reaches those that come later.
const hurry = 400 * time.Millisecond

// stranger returns a client of which nothing is kept.
func (g *gateway) stranger(ctx context.Context) *conversation {
	c := &conversation{scope: g.scope(ctx), of: tokens.HolderOf(ctx), Notices: wire.NewNotices()}
	c.Begin()
	c.session = g.newSession(c, "")
	return c
}

// newSession returns a new Session with the rights of a client, which calls itself that name.
func (g *gateway) newSession(c *conversation, name string) *mcphybrid.Session {
	opts := &mcphybrid.SessionOptions{Client: true, Disclosure: mcphybrid.ByBridge, Label: name}
	if c.follows {
		opts.Disclosure = mcphybrid.ByActivation
	}
	if c.of != nil {
		opts.Access = c.of.Access
	}
	if c.id == "" {
		// Nothing is kept for the next request, so a long result that was cut
		// can't be read on.
		opts.Access.Deny = append(slices.Clone(opts.Access.Deny), mcphybrid.PageToolName)
	}
	s := g.mgr.NewSession(opts)
	if c.server == "" {
		return s
	}
	defer s.Close()
	opts.Access = c.onlyServer()
	return s.NewChild(opts)
}
