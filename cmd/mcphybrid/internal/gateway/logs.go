package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
)

// A callBook knows whom a server has worked for. A server's log message does not say whose
// call it is about, and may come long after that call. So it belongs to somebody only if
// the server has never worked for another, as long as the gateway runs: to a client or, with
// a token for each client, to who has that token, in whatever session.
type callBook struct {
	mu      sync.Mutex
	callers map[string]*callers // by the name of a server
	running running
}

// callers are whom a server has worked for.
type callers struct {
	only    any           // the one, or nil
	last    *conversation // of it, that called last, or nil if that is gone
	calls   []*clientCall // of it, that run
	several bool          // or one that is gone
}

func newCallBook(servers []mcphybrid.ServerConfig) *callBook {
	b := &callBook{callers: make(map[string]*callers)}
	for _, s := range servers {
		b.callers[s.Name] = new(callers)
	}
	return b
}

// add notes a new server. One that is back has worked for whom it worked for before.
func (b *callBook) add(server string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.callers[server] == nil {
		b.callers[server] = new(callers)
	}
}

// principal returns to whom the log messages about a client's calls belong: to who has its
// token, if that has a name, else to the client alone.
func principal(c *conversation) any {
	if c.of != nil && c.of.Name != "" {
		return c.of
	}
	return c
}

// begin notes that a server works on a call until the returned function is called.
func (b *callBook) begin(server string, v *clientCall) (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.callers[server]
	if at == nil {
		return func() {}
	}
	who := principal(v.from)
	if at.several = at.several || at.only != nil && at.only != who; at.several {
		at.only, at.last, at.calls = nil, nil, nil
		return func() {}
	}
	at.only, at.last, at.calls = who, v.from, append(at.calls, v)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		at.calls = slices.DeleteFunc(at.calls, func(other *clientCall) bool { return other == v })
		if v.from.id == "" { // without a session, a client is gone with its request
			at.forget(v.from)
		}
	}
}

// gone notes that a client is gone, so that nothing belongs to it.
func (b *callBook) gone(c *conversation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, at := range b.callers {
		at.forget(c)
	}
}

func (at *callers) forget(c *conversation) {
	if at.only == any(c) {
		at.only, at.calls, at.several = nil, nil, true
	}
	at.calls = slices.DeleteFunc(at.calls, func(v *clientCall) bool { return v.from == c })
	if at.last == c {
		at.last = nil
	}
}

// addressees returns the calls that a message of a server may be about, one of each client.
// If there are none, it returns the client that it goes to, or nil.
func (b *callBook) addressees(server string) (calls []*clientCall, c *conversation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.callers[server]
	if at == nil {
		return nil, nil
	}
	for _, v := range at.calls {
		if !slices.ContainsFunc(calls, func(other *clientCall) bool { return other.from == v.from }) {
			calls = append(calls, v)
		}
	}
	return calls, at.last
}

// attribute is a middleware that records which client a server works for.
func (g *gateway) attribute(next mcphybrid.Handler) mcphybrid.Handler {
	return func(ctx context.Context, c mcphybrid.ToolCall) (*mcp.CallToolResult, error) {
		if v, ok := ctx.Value(clientCallKey{}).(*clientCall); ok {
			v.reaches(c.Tool.Server())
			v.runs(c.Tool.Name())
		}
		return next(ctx, c)
	}
}

// hear passes a server's log message to those that it belongs to, if they want it. What
// belongs to nobody is dropped: it could hold what only one of them may see.
func (g *gateway) hear(from string, n mcp.JSONRPCNotification) {
	if n.Method != string(mcp.MethodNotificationMessage) {
		return
	}
	calls, to := g.book.addressees(from)
	if to == nil && len(calls) == 0 && g.direct != nil { // over standard input there is one client
		to = g.known(stdioID)
	}
	if to == nil && len(calls) == 0 {
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
	for _, v := range calls {
		if v.from.Begun() && v.wantsLog(m.Params.Level) {
			v.tell(n.Method, m.Params)
		}
	}
	if len(calls) == 0 && to.Begun() && to.wantsLog(m.Params.Level) { // not by mcp-go, which drops what comes just as an answer ends
		to.TellLog(m.Params, len(data))
	}
}
