package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
)

// An inProcessTransport calls a server's HandleMessage. It does what mcp-go's
// InProcessTransport does, which takes an MCPServer only.
type inProcessTransport struct {
	server  config.InProcessServer
	session *mcpserver.InProcessSession
	life    context.Context // until Close
	end     context.CancelFunc
	flush   chan chan struct{} // what comes here is closed when all notifications so far were passed on

	mu       sync.Mutex
	notified func(mcp.JSONRPCNotification) // guarded by mu
	started  bool                          // guarded by mu
	closed   bool                          // guarded by mu
	guard
}

func newInProcessTransport(s config.InProcessServer, g guard, d *broker.Broker) *inProcessTransport {
	var sample mcpserver.SamplingHandler
	var elicit mcpserver.ElicitationHandler
	var roots mcpserver.RootsHandler
	can := d.Capabilities()
	if can.Sampling != nil {
		sample = d
	}
	if can.Elicitation != nil {
		elicit = d
	}
	if can.Roots != nil {
		roots = d
	}
	session := mcpserver.NewInProcessSessionWithHandlers(mcpserver.GenerateInProcessSessionID(), sample, elicit, roots)
	t := &inProcessTransport{server: s, session: session, flush: make(chan chan struct{}), guard: g}
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// Start registers the session. From then on, the server can notify it.
func (t *inProcessTransport) Start(ctx context.Context) error {
	t.mu.Lock()
	started, closed := t.started, t.closed
	t.started = true
	t.mu.Unlock()
	switch {
	case closed:
		return transport.ErrTransportClosed
	case started:
		return nil
	}
	// The host may have passed a nil pointer.
	if err := hostcode.Try("the server", func() error { return t.server.RegisterSession(ctx, t.session) }); err != nil {
		t.mu.Lock()
		t.started = false // there is nothing to unregister
		t.mu.Unlock()
		return err
	}
	t.mu.Lock()
	closed = t.closed
	t.mu.Unlock()
	if closed { // meanwhile: Close came too early to unregister
		return errors.Join(transport.ErrTransportClosed, t.unregister())
	}
	go t.forward()
	return nil
}

// forward passes on the server's notifications until the transport is closed.
func (t *inProcessTransport) forward() {
	pass := func(n mcp.JSONRPCNotification) {
		t.mu.Lock()
		notified := t.notified
		t.mu.Unlock()
		if notified != nil {
			notified(n)
		}
	}
	sent := t.session.ClientNotifications()
	for {
		select {
		case <-t.life.Done():
			return
		case n := <-sent:
			pass(n)
		case done := <-t.flush:
			for range len(sent) {
				pass(<-sent)
			}
			close(done)
		}
	}
}

// passed returns when what the server has sent so far was passed on, as it is when a result
// comes behind it over a wire, or at the end of ctx.
func (t *inProcessTransport) passed(ctx context.Context) {
	done := make(chan struct{})
	select {
	case t.flush <- done:
	case <-t.life.Done():
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-t.life.Done():
	case <-ctx.Done():
	}
}

// SendRequest calls a tool's handler on this goroutine. Switching to another
// goroutine can cost as much as the rest of the call.
func (t *inProcessTransport) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	if r.Method != string(mcp.MethodToolsCall) {
		return t.send(ctx, r, t.handle)
	}
	response, err := hostcode.Call("the server", func() (*transport.JSONRPCResponse, error) { return t.handle(ctx, declare(ctx, r)) })
	t.passed(ctx)
	return t.check(ctx, r, response, err)
}

// An ownRequest is the context of a request to a server in this process, without what
// mcp-go's server keeps in the context of a request that the host itself answers, such as
// its headers: it would compare them with our message and refuse that.
type ownRequest struct{ context.Context }

var serverPackage = reflect.TypeOf(mcpserver.InProcessSession{}).PkgPath()

func (c ownRequest) Value(key any) any {
	if t := reflect.TypeOf(key); t != nil && t.PkgPath() == serverPackage {
		return nil
	}
	return c.Context.Value(key)
}

// handle has the server handle a request. The request ends with the session.
func (t *inProcessTransport) handle(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	request, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(t.life, end)()
	answer, err := json.Marshal(t.server.HandleMessage(t.server.WithContext(broker.WithRequest(ownRequest{ctx}), t.session), request))
	if t.life.Err() != nil {
		return nil, transport.ErrTransportClosed
	}
	if err != nil {
		return nil, err
	}
	response := new(transport.JSONRPCResponse)
	return response, json.Unmarshal(answer, response)
}

// SendNotification returns once the server has handled n.
func (t *inProcessTransport) SendNotification(ctx context.Context, n mcp.JSONRPCNotification) error {
	message, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return hostcode.Do("the server", func() { t.server.HandleMessage(ownRequest{ctx}, message) })
}

// SetNotificationHandler sets what is called with the server's notifications.
func (t *inProcessTransport) SetNotificationHandler(notified func(mcp.JSONRPCNotification)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notified = notified
}

// Close ends the session and its requests. The server goes on.
func (t *inProcessTransport) Close() error {
	t.mu.Lock()
	first, started := !t.closed, t.started
	t.closed = true
	t.mu.Unlock()
	t.end()
	if !first || !started {
		return nil
	}
	return t.unregister()
}

func (t *inProcessTransport) unregister() error {
	return hostcode.Do("the server", func() { t.server.UnregisterSession(context.Background(), t.session.SessionID()) })
}

// GetSessionId returns "": only HTTP has sessions on the wire.
func (t *inProcessTransport) GetSessionId() string { return "" }
