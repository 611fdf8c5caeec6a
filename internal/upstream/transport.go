package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// These are the transports of mcp-go with a guard around their requests. Each
// embeds the concrete type because mcp-go's client looks for optional methods.
//
// Over HTTP, the probe is a transport of its own: with the first result, mcp-go's opens the
// stream on which servers ask, or never does if the version is a newer one, as it is
// while that of server/discover is not judged.
type (
	stdioTransport struct {
		*transport.Stdio
		guard
		broker *broker.Broker
	}
	httpTransport struct {
		*transport.StreamableHTTP
		probe *transport.StreamableHTTP // for server/discover
		guard
		unauthorized error                  // of requests with status 401
		locked       *atomic.Pointer[error] // of server/discover, if that wants a login
		broker       *broker.Broker
	}
)

// SetRequestHandler has the server's requests go over the broker.
func (t stdioTransport) SetRequestHandler(h transport.RequestHandler) {
	t.Stdio.SetRequestHandler(t.broker.Handle(h))
}

// SetRequestHandler has the server's requests go over the broker.
func (t httpTransport) SetRequestHandler(h transport.RequestHandler) {
	t.StreamableHTTP.SetRequestHandler(t.broker.Handle(h))
}

func (t stdioTransport) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	if r.Method == string(mcp.MethodSubscriptionsListen) || ctx.Value(resourceStreamKey{}) != nil {
		return t.subscribe(ctx, r)
	}
	return t.send(ctx, r, t.Stdio.SendRequest)
}

// SendNotification returns when ctx ends. A write to a child alone would not.
func (t stdioTransport) SendNotification(ctx context.Context, n mcp.JSONRPCNotification) error {
	_, err := hostcode.Detached(ctx, "the write to the server", func() (struct{}, error) { return struct{}{}, t.Stdio.SendNotification(ctx, n) })
	return err
}

// SetProtocolVersion sets the version that goes with each request.
func (t httpTransport) SetProtocolVersion(version string) {
	t.StreamableHTTP.SetProtocolVersion(version)
	t.probe.SetProtocolVersion(version)
}

// RequiresLegacyProtocol says that the stream on which the transport listens does not
// decide the protocol: with a newer one, the transport does not open it.
func (t httpTransport) RequiresLegacyProtocol() bool { return false }

// SendRequest takes a server that refuses server/discover for want of a login, and then
// fails to initialize, for one that wants a login: a server of protocol 2026-07-28 does not
// know initialize.
func (t httpTransport) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	response, err := t.request(ctx, r)
	switch mcp.MCPMethod(r.Method) {
	case mcp.MethodServerDiscover:
		if refusesWhatItHas(err) {
			response, err = t.request(ctx, r)
		}
		if errors.Is(err, ErrUnauthorized) {
			t.locked.Store(&err)
		}
	case mcp.MethodInitialize:
		locked := t.locked.Load()
		says := errors.Is(err, ErrUnauthorized) || errors.As(err, new(*busyError)) // what is to be done
		if failed := err != nil && !says || err == nil && response != nil && response.Error != nil; failed && locked != nil {
			return nil, *locked
		}
	}
	return response, err
}

func (t httpTransport) request(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	var failed outcome
	to := t.StreamableHTTP
	if r.Method == string(mcp.MethodServerDiscover) {
		to = t.probe
	}
	response, err := t.send(broker.WithRequest(context.WithValue(ctx, failureKey{}, &failed)), r, to.SendRequest)
	status := int(failed.status.Load())
	bad := status == http.StatusBadRequest
	if busy := failed.busy.Load(); busy != nil && (err != nil || response != nil && response.Error != nil) && ctx.Err() == nil {
		return nil, busy
	}
	switch {
	case err == nil && bad && response != nil && response.Error != nil:
		return nil, &badRequestError{response.Error.AsError()}
	case err == nil:
		return response, nil
	}
	// If the caller ended the request, its stream breaks off too. Other requests
	// go on.
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	// The error of mcp-go does not tell that the stream broke off, or why.
	if cause := failed.err.Load(); cause != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, *cause)
	}
	if cause := failed.refused.Load(); cause != nil {
		return nil, *cause
	}
	if errors.Is(err, transport.ErrAuthorizationRequired) {
		return nil, t.unauthorized
	}
	// mcp-go takes every refusal to initialize for a server of the older transport.
	if errors.Is(err, transport.ErrLegacySSEServer) && !bad && status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
		return nil, fmt.Errorf("request failed with status %d", status)
	}
	if err = text.WithoutURL(err); bad {
		err = &badRequestError{err}
	}
	return nil, err
}

// A badRequestError is an answer with status 400. Either the server does not
// understand the request, or it was restarted and does not know the session.
// Other servers answer the latter with 404.
type badRequestError struct{ err error }

func (e *badRequestError) Error() string { return e.err.Error() }
func (e *badRequestError) Unwrap() error { return e.err }

func (t httpTransport) SendNotification(ctx context.Context, n mcp.JSONRPCNotification) error {
	return text.WithoutURL(t.StreamableHTTP.SendNotification(context.WithValue(ctx, failureKey{}, new(outcome)), n))
}

// A guard ends requests when their context ends, even if the server hangs. It
// also limits the size of results and hands them, still raw, to who asked: lists, tasks,
// skills.
type guard struct {
	maxMessage    int  // bytes of a message
	maxValues     int  // values of a message that is decoded as a whole
	preferEarlier bool // speak a protocol before 2026-07-28 if the server has one: see config.Server.Protocol
	unsolicited   *unsolicited
	silent        *atomic.Bool // set when server/discover got no answer in time
	large         *bypass
}

type sendFunc func(context.Context, transport.JSONRPCRequest) (*transport.JSONRPCResponse, error)

func (g guard) send(ctx context.Context, r transport.JSONRPCRequest, send sendFunc) (*transport.JSONRPCResponse, error) {
	if l, ok := ctx.Value(listingKey{}).(*listing); ok && r.Method == lists[Tools].method {
		r = l.ask(r)
	}
	if st, ok := ctx.Value(resourceStreamKey{}).(*resourceStream); ok {
		r = st.ask(r)
	}
	if q, ok := ctx.Value(skillQueryKey{}).(*skillQuery); ok {
		r = q.ask(r)
	}
	r = declare(ctx, r)
	g.unsolicited.ask()
	defer g.unsolicited.answered()
	response, err := hostcode.Detached(ctx, "the server", func() (*transport.JSONRPCResponse, error) { return g.large.send(ctx, r, send) })
	if r.Method == string(mcp.MethodServerDiscover) && errors.Is(err, context.DeadlineExceeded) {
		g.silent.Store(true)
	}
	return g.check(ctx, r, response, err)
}

// check returns an error if the response is too long, or has too many values. It passes the result of a
// list to the listing in ctx, results that have to do with tasks to the *taken in
// ctx, and answers about skills to who asked. Of server/discover it tells whether we speak one of the
// versions. It returns other responses unchanged.
func (g guard) check(ctx context.Context, r transport.JSONRPCRequest, response *transport.JSONRPCResponse, err error) (*transport.JSONRPCResponse, error) {
	if err != nil || response == nil {
		return response, err
	}
	if response.Error != nil {
		if err := missingCapability(response.Error); err != nil {
			return nil, err
		}
		return response, nil
	}
	if n := len(response.Result); n > g.maxMessage {
		return nil, tooLarge(g.maxMessage)
	}
	if l, ok := ctx.Value(listingKey{}).(*listing); ok && r.Method == lists[l.kind].method {
		result, err := l.takePage(response.Result)
		if err == nil && text.CountValues(result) > g.maxValues { // beside the elements, such as _meta
			err = tooMany(g.maxValues)
		}
		if err != nil {
			return nil, err
		}
		c := *response
		c.Result = result
		return &c, nil
	}
	if q, ok := ctx.Value(skillQueryKey{}).(*skillQuery); ok {
		result, err := q.take(response.Result)
		if err != nil {
			return nil, err
		}
		c := *response
		c.Result = result
		return &c, nil
	}
	if text.CountValues(response.Result) > g.maxValues {
		return nil, tooMany(g.maxValues)
	}
	if r.Method == string(mcp.MethodServerDiscover) {
		return discovered(r, response, g.preferEarlier), nil
	}
	if err := takeInputs(ctx, response.Result); err != nil {
		return nil, err
	}
	return take(ctx, r, response), nil
}

// sameHost refuses redirects to another host or from https to http. The
// configured headers may hold secrets and are only for the configured server.
func sameHost(r *http.Request, via []*http.Request) error {
	if r.URL.Host != via[0].URL.Host || via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
		return fmt.Errorf("refused a redirect to host %q", r.URL.Host)
	}
	if len(via) >= 10 {
		return fmt.Errorf("stopped after %d redirects", len(via))
	}
	return nil
}

// An outcome records how the connection of a request failed, before or within the
// answer. Its methods do nothing if it is nil, which is for answers to the server
// and other requests of which nobody wants to know.
type outcome struct {
	err     atomic.Pointer[error]     // why the connection broke
	refused atomic.Pointer[error]     // why we don't read the answer
	status  atomic.Int32              // HTTP status of the answer, or 0
	busy    atomic.Pointer[busyError] // what the answer says about the rate of requests
	sent    atomic.Bool               // the request was sent; later POSTs answer requests of the server
}

type failureKey struct{}

var errBroken = errors.New("the connection failed")

func (f *outcome) noteStatus(resp *http.Response) {
	if f != nil {
		f.status.Store(int32(resp.StatusCode))
		f.busy.Store(busyFrom(resp))
	}
}

func (f *outcome) note(err error) {
	if f != nil {
		f.err.Store(&err)
	}
}

// refuse records err and returns it.
func (f *outcome) refuse(err error) error {
	if f != nil {
		f.refused.Store(&err)
	}
	return err
}

// isLost reports whether err means that there is no connection to the server.
func isLost(err error) bool {
	return errors.Is(err, transport.ErrTransportClosed) ||
		errors.Is(err, transport.ErrSessionTerminated) ||
		errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, os.ErrClosed) ||
		errors.Is(err, errUnread) ||
		errors.Is(err, errBroken)
}
