package main

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
)

// A clientCall is one call of a client.
type clientCall struct {
	ctx  context.Context // of the request, by which mcp-go finds the client
	from *conversation
}

type clientCallKey struct{}

// withNotifications returns the context of a call, by which its server gets
// the client's _meta, and the client the progress if it asked for that.
func (g *gateway) withNotifications(v *clientCall, meta *mcp.Meta) context.Context {
	ctx := context.WithValue(v.ctx, clientCallKey{}, v)
	if meta == nil {
		return ctx
	}
	fields := make(map[string]any)
	for key, value := range meta.AdditionalFields {
		if !ownMeta[key] {
			fields[key] = value
		}
	}
	ctx = mcphybrid.WithMeta(ctx, fields)
	token := meta.ProgressToken
	if token == nil {
		return ctx
	}
	return mcphybrid.WithProgress(ctx, func(p mcp.ProgressNotificationParams) {
		p.ProgressToken = token
		g.tell(v.ctx, string(mcp.MethodNotificationProgress), p)
	})
}

// ownMeta are the keys of _meta by which the client speaks about itself to the
// gateway. Towards the server, the gateway is the client.
var ownMeta = map[string]bool{
	mcp.MetaKeyProtocolVersion: true, mcp.MetaKeyClientInfo: true,
	mcp.MetaKeyClientCapabilities: true, mcp.MetaKeyLogLevel: true,
}

// tell sends a notification to the client of a request, ahead of its answer.
// One over HTTP that does not keep up misses some.
func (g *gateway) tell(ctx context.Context, method string, params any) {
	if g.direct != nil {
		g.direct(method, params)
		return
	}
	var fields map[string]any
	if data, err := json.Marshal(params); err == nil && json.Unmarshal(data, &fields) == nil {
		_ = g.front.SendNotificationToClient(ctx, method, fields)
	}
}

// attribute is a middleware that notes which client a server works for.
func (g *gateway) attribute(next mcphybrid.Handler) mcphybrid.Handler {
	return func(ctx context.Context, c mcphybrid.ToolCall) (*mcp.CallToolResult, error) {
		if v, ok := ctx.Value(clientCallKey{}).(*clientCall); ok {
			g.mu.Lock()
			g.underWay[v] = c.Tool.Server()
			g.mu.Unlock()
			defer func() {
				g.mu.Lock()
				delete(g.underWay, v)
				g.mu.Unlock()
			}()
		}
		return next(ctx, c)
	}
}

// hear passes on a server's log message to the client that it is for. A server
// does not say that. It is for the one whose call it works on or, if it works
// on none, for the only one there is. What may be for several is nobody's: it
// could hold what one of them must not see.
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
	if v := g.addressee(from); v == nil {
		g.opts.log.Debug("a message for nobody", "server", from, "level", m.Params.Level)
	} else if v.ctx != nil {
		_ = g.front.SendLogMessageToClient(v.ctx, m)
	} else {
		_ = g.front.SendLogMessageToSpecificClient(v.from.id, m)
	}
}

// addressee returns a call of the client that a server's message is for, or
// one without a context if it runs none, or nil.
func (g *gateway) addressee(from string) *clientCall {
	g.mu.Lock()
	defer g.mu.Unlock()
	var found *clientCall
	for v, at := range g.underWay {
		if at != from {
			continue
		}
		if found != nil && found.from != v.from {
			return nil
		}
		found = v
	}
	if found != nil || len(g.clients) != 1 {
		return found
	}
	for _, c := range g.clients {
		if c != nil {
			return &clientCall{from: c}
		}
	}
	return nil
}

// event tells a client whose Session has new active tools.
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

// tellChanged tells a client that its tools have changed, once until it has
// listed them.
func (g *gateway) tellChanged(c *conversation) {
	if !c.told.Swap(true) {
		_ = g.front.SendNotificationToSpecificClient(c.id, mcp.MethodNotificationToolsListChanged, nil)
	}
}

// tellAll tells all clients that the inline tools have changed, those too that
// have no session and only listen.
func (g *gateway) tellAll() {
	g.front.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
}

// A catalogWatch is a registry that tells of changes.
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
