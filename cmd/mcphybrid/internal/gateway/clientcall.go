package gateway

import (
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
)

// maxQueued is how many notifications may wait for a slow client. Beyond it,
// the client misses the oldest.
const maxQueued = 1000

// A clientCall is one call of a client. Notifications about it reach the client
// before the answer. They go through a queue, because a server is not read
// while we handle its notification, and must not wait for a client.
type clientCall struct {
	from *conversation
	book *callBook
	open *openCall // by which the client is asked, or nil

	mu      sync.Mutex
	sink    wire.Sink               // nil if notifications can't reach the client
	level   func() mcp.LoggingLevel // of the log messages that the client wants, and up
	token   mcp.ProgressToken       // of the progress that the client wants, or nil
	server  string                  // that runs the call, or ""
	tool    string                  // that it runs, or ""
	badly   bool                    // the tool answered with an error
	left    []func()                // to be called when no server works on it
	queue   []notification
	writing bool       // a goroutine is writing
	ended   bool       // the queue is closed
	idle    *sync.Cond // signals that writing is false
}

type notification struct {
	method string
	params any
}

func (g *gateway) newClientCall(ctx context.Context, meta *mcp.Meta) *clientCall {
	v := &clientCall{from: g.client(ctx), sink: g.direct, book: g.book}
	v.idle = sync.NewCond(&v.mu)
	v.resume(ctx, meta)
	return v
}

// resume has notifications go out with the answer to the request of ctx, as that wants
// them. Over standard output, they always go out.
func (v *clientCall) resume(ctx context.Context, meta *mcp.Meta) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.level = logLevel(ctx)
	if meta != nil {
		v.token = meta.ProgressToken
	}
	if w := wire.EventsOf(ctx); w != nil {
		v.sink = w
	}
}

// pause returns when the client has all queued notifications. Until it comes back there is
// no answer that further ones could go with.
func (v *clientCall) pause() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.writing {
		v.idle.Wait()
	}
	v.token = nil
	if _, ok := v.sink.(*wire.EventWriter); ok {
		v.sink = nil
	}
}

// reaches notes that a server works on the call from now on. A request that is refused
// reaches none.
func (v *clientCall) reaches(server string) {
	left, over := v.book.begin(server, v), v.book.running.begin(server)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.server, v.left = server, append(v.left, left, over)
}

// runs notes which tool the call runs.
func (v *clientCall) runs(tool string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tool = tool
}

// answered notes whether the tool answered with an error.
func (v *clientCall) answered(badly bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.badly = badly
}

// result returns what is known of the call: the server and the tool, if it reached one, and
// whether the tool answered with an error.
func (v *clientCall) result() (server, tool string, badly bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.server, v.tool, v.badly
}

// answeredBy returns the server that ran the call, or "".
func (v *clientCall) answeredBy() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.server
}

// tell queues a notification.
func (v *clientCall) tell(method string, params any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended || v.sink == nil {
		return
	}
	if len(v.queue) == maxQueued {
		v.queue = v.queue[1:]
	}
	v.queue = append(v.queue, notification{method, params})
	if !v.writing {
		v.writing = true
		go v.write()
	}
}

func (v *clientCall) write() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.queue) > 0 {
		n := v.queue[0]
		v.queue = v.queue[1:]
		to := v.sink
		v.mu.Unlock()
		to.Notify(n.method, n.params)
		v.mu.Lock()
	}
	v.writing = false
	v.idle.Broadcast()
}

// end returns when the client has all queued notifications.
func (v *clientCall) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, left := range v.left {
		left()
	}
	v.ended = true
	for v.writing {
		v.idle.Wait()
	}
}

// logLevel returns what tells the level of the log messages that the client of a request
// wants, or "" for none. Since 2026-07-28 the request says it; before, a session's may change.
func logLevel(ctx context.Context) func() mcp.LoggingLevel {
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		level := info.LogLevel
		return func() mcp.LoggingLevel { return level }
	}
	if s, ok := server.ClientSessionFromContext(ctx).(server.SessionWithLogging); ok {
		return s.GetLogLevel
	}
	return func() mcp.LoggingLevel { return "" }
}

// wantsLog reports whether the client has asked for log messages of that level.
func (v *clientCall) wantsLog(level mcp.LoggingLevel) bool {
	v.mu.Lock()
	least := v.level
	v.mu.Unlock()
	return level.ShouldSendTo(least())
}

type clientCallKey struct{}

// with returns ctx for the call of a server. The server gets the client's _meta, and the
// client gets the progress if it asked for that. Of an open call, the first request says
// whether the server is to report it.
func (v *clientCall) with(ctx context.Context, meta *mcp.Meta) context.Context {
	ctx = context.WithValue(ctx, clientCallKey{}, v)
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
	if meta.ProgressToken == nil {
		return ctx
	}
	return mcphybrid.WithProgress(ctx, func(p mcp.ProgressNotificationParams) {
		v.mu.Lock()
		p.ProgressToken = v.token
		v.mu.Unlock()
		if p.ProgressToken != nil {
			v.tell(string(mcp.MethodNotificationProgress), p)
		}
	})
}

// ownMeta are the keys of _meta by which the client speaks about itself to the
// gateway. Towards the server, the gateway is the client.
var ownMeta = map[string]bool{
	mcp.MetaKeyProtocolVersion: true, mcp.MetaKeyClientInfo: true,
	mcp.MetaKeyClientCapabilities: true, mcp.MetaKeyLogLevel: true,
}
