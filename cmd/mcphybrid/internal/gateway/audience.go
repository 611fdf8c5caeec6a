package gateway

import (
	"context"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
)

// addNotices makes the front notice when clients are ready to be told of changes. Those
// of a protocol before 2026-07-28 say so. Others ask for it, but over standard input and
// output mcp-go does not tell us who did.
func (g *gateway) addNotices(front *server.MCPServer, hooks *server.Hooks) {
	front.AddNotificationHandler("notifications/initialized", func(ctx context.Context, _ mcp.JSONRPCNotification) {
		if c := g.of(ctx); c != nil {
			c.Begin()
		}
	})
	hooks.AddBeforeAny(func(ctx context.Context, _ any, _ mcp.MCPMethod, _ any) {
		c := g.of(ctx)
		if c == nil {
			return
		}
		if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
			c.Begin()
		}
		if w := wire.EventsOf(ctx); w != nil {
			w.Carry(c.Notices, false)
		}
	})
	hooks.AddBeforeSubscriptionsListen(func(ctx context.Context, _ any, _ *mcp.SubscriptionsListenRequest) {
		if s := server.ClientSessionFromContext(ctx); s != nil && s.SessionID() == "" {
			g.listen(ctx, s)
		}
	})
}

// withNotices has notices written to the streams that clients keep open.
func (g *gateway) withNotices(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		c := g.known(r.Header.Get(server.HeaderKeySessionID))
		if w, ok := out.(*wire.EventWriter); ok && c != nil && r.Method == http.MethodGet {
			w.Carry(c.Notices, true)
		}
		next.ServeHTTP(out, r)
	})
}

// of returns the client of ctx, or nil.
func (g *gateway) of(ctx context.Context) *conversation {
	s := server.ClientSessionFromContext(ctx)
	if s == nil {
		return nil
	}
	return g.known(s.SessionID())
}

// listen tells a client that listens by a request, until ctx ends.
func (g *gateway) listen(ctx context.Context, s server.ClientSession) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listeners[s] = web.ServerOf(ctx)
	context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.listeners, s)
	})
}

// tellAll tells all clients that lists have changed, including those that only listen.
func (g *gateway) tellAll(methods ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, method := range methods {
		for _, c := range g.clients {
			c.Tell(method)
		}
		for s := range g.listeners {
			tellListener(s, method)
		}
	}
}

// tellListener tells a client that listens by a request, if it has asked for that.
func tellListener(s server.ClientSession, method string) {
	var asked mcp.SubscriptionFilter
	if has, ok := s.(server.SessionWithSubscriptionFilter); ok {
		asked, _ = has.SubscriptionFilter()
	}
	switch method {
	case mcp.MethodNotificationToolsListChanged:
		if !asked.ToolsListChanged {
			return
		}
	case mcp.MethodNotificationResourcesListChanged:
		if !asked.ResourcesListChanged {
			return
		}
	case mcp.MethodNotificationPromptsListChanged:
		if !asked.PromptsListChanged {
			return
		}
	}
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{Method: method}}
	select {
	case s.NotificationChannel() <- n:
	default: // there are enough that it has not read
	}
}
