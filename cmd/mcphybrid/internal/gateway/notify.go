package gateway

import (
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
)

// event tells a client that its Session has new active tools, and calls that wait for a
// server that its state has changed.
func (g *gateway) event(e mcphybrid.Event) {
	if e.Kind == mcphybrid.EventServer {
		g.starts.tell(e.Server)
	}
	if e.Kind != mcphybrid.EventActivate {
		return
	}
	g.mu.Lock()
	var found *conversation
	for _, c := range g.clients {
		if c.session == e.Session {
			found = c
		}
	}
	g.mu.Unlock()
	if found != nil {
		g.tellChanged(found)
	}
}

// tellChanged tells a client that its tools have changed, at most once until the client
// lists them again.
func (g *gateway) tellChanged(c *conversation) {
	if !c.told.Swap(true) {
		c.Tell(mcp.MethodNotificationToolsListChanged)
	}
}

// tellGrown tells a client that follows if a call has given it one more tool, such as the one
// that reads on in a result that was cut.
func (g *gateway) tellGrown(c *conversation) {
	if had := c.listed.Load(); c.follows && had > 0 && int64(len(c.session.Tools())) > had {
		g.tellChanged(c)
	}
}

// watchTools has all clients told when there are other tools: a client's list depends on
// the deferred ones, too. The Session that watches has no search, so that it has all tools.
func (g *gateway) watchTools() {
	g.mgr.NewSession(&mcphybrid.SessionOptions{
		Registry: &catalogWatch{ToolRegistry: mcphybrid.NewRegistry(), changed: func() { g.tellAll(mcp.MethodNotificationToolsListChanged) }},
		Access:   mcphybrid.Access{Deny: []string{mcphybrid.SearchToolName}},
	})
}

// tellOwn tells clients of one server that its tools may have changed: those that are for apps
// only are in no Session's list.
func (g *gateway) tellOwn() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.clients {
		if c.server != "" {
			c.Tell(mcp.MethodNotificationToolsListChanged)
		}
	}
	for s, server := range g.listeners {
		if server != "" {
			tellListener(s, mcp.MethodNotificationToolsListChanged)
		}
	}
}

// A catalogWatch is a registry that reports changes of the tools.
type catalogWatch struct {
	*mcphybrid.ToolRegistry
	changed func()
}

// RegisterToolGroup implements [mcphybrid.Registry]. It is called once after
// the tools of a group have changed.
func (w *catalogWatch) RegisterToolGroup(group string, names []string) {
	w.ToolRegistry.RegisterToolGroup(group, names)
	if group == mcphybrid.GroupAll {
		w.changed()
	}
}
