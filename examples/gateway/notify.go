package main

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
)

// attribute is a middleware that records which client a server works for.
func (g *gateway) attribute(next mcphybrid.Handler) mcphybrid.Handler {
	return func(ctx context.Context, c mcphybrid.ToolCall) (*mcp.CallToolResult, error) {
		if v, ok := ctx.Value(clientCallKey{}).(*clientCall); ok {
			g.mu.Lock()
			g.underWay[v] = c.Tool.Server()
			g.mu.Unlock()
			v.mu.Lock()
			v.server = c.Tool.Server()
			v.mu.Unlock()
			defer func() {
				g.mu.Lock()
				delete(g.underWay, v)
				g.mu.Unlock()
			}()
		}
		return next(ctx, c)
	}
}

// hear passes a server's log message to the client that it belongs to. The message does
// not name the client. It goes to the client whose call the server runs or, if the
// server runs none, to the only client. If several clients are possible, hear drops it:
// it could hold something that one of them must not see.
func (g *gateway) hear(from string, n mcp.JSONRPCNotification) {
	if n.Method != string(mcp.MethodNotificationMessage) {
		return
	}
	data, err := json.Marshal(n.Params.AdditionalFields)
	var m mcp.LoggingMessageNotification
	if err != nil || json.Unmarshal(data, &m.Params) != nil {
		return
	}
	m.Method = n.Method
	if m.Params.Logger == "" {
		m.Params.Logger = from
	}
	switch v, only := g.addressee(from); {
	case v != nil && v.wantsLog(m.Params.Level):
		v.tell(n.Method, m.Params)
	case only != nil:
		_ = g.front.SendLogMessageToSpecificClient(only.id, m)
	}
}

// addressee returns the call that a server's message belongs to, or the only client if
// the server runs no call, or neither.
func (g *gateway) addressee(from string) (v *clientCall, only *conversation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for other, at := range g.underWay {
		switch {
		case at != from:
		case v != nil && v.from != other.from:
			return nil, nil
		default:
			v = other
		}
	}
	if v == nil && len(g.clients) == 1 {
		for _, only = range g.clients {
		}
	}
	return v, only
}

// event tells a client that its Session has new active tools.
func (g *gateway) event(e mcphybrid.Event) {
	if e.Kind != mcphybrid.EventActivate {
		return
	}
	g.mu.Lock()
	var found *conversation
	for _, c := range g.clients {
		if c != nil && c.session == e.Session {
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
		_ = g.front.SendNotificationToSpecificClient(c.id, mcp.MethodNotificationToolsListChanged, nil)
	}
}

// tellAll tells all clients that the inline tools have changed, including clients that
// only listen and have no session.
func (g *gateway) tellAll() {
	g.front.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
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
