package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// The transports of mcp-go, each with the same guard around its requests. The
// concrete type is embedded because mcp-go's client looks for optional methods
// of its transport.
type (
	stdioTransport struct {
		*transport.Stdio
		guard
	}
	httpTransport struct {
		*transport.StreamableHTTP
		guard
	}
	inProcessTransport struct {
		*transport.InProcessTransport
		guard
	}
)

func (t stdioTransport) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	return t.send(ctx, r, t.Stdio.SendRequest)
}

// SendNotification heeds its context, as a write to a child does not.
func (t stdioTransport) SendNotification(ctx context.Context, n mcp.JSONRPCNotification) error {
	_, err := detached(ctx, func() (struct{}, error) { return struct{}{}, t.Stdio.SendNotification(ctx, n) })
	return err
}

func (t httpTransport) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	var failed failure
	response, err := t.send(context.WithValue(ctx, failureKey{}, &failed), r, t.StreamableHTTP.SendRequest)
	bad := failed.status.Load() == http.StatusBadRequest
	switch {
	case err == nil && bad && response != nil && response.Error != nil:
		return nil, &badRequestError{response.Error.AsError()}
	case err == nil:
		return response, nil
	}
	// A stream that its caller ends breaks off, too: others' go on.
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	// What mcp-go makes of a stream that breaks off does not say that it did.
	if cause := failed.err.Load(); cause != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, *cause)
	}
	if err = text.WithoutURL(err); bad {
		err = &badRequestError{err}
	}
	return nil, err
}

// A badRequestError is what a server answers that does not understand a
// request, or that was started anew and does not know the session, for which
// others answer with 404.
type badRequestError struct{ err error }

func (e *badRequestError) Error() string { return e.err.Error() }
func (e *badRequestError) Unwrap() error { return e.err }

func (t httpTransport) SendNotification(ctx context.Context, n mcp.JSONRPCNotification) error {
	return text.WithoutURL(t.StreamableHTTP.SendNotification(ctx, n))
}

// SendRequest calls a tool's handler on this goroutine: a switch to another one
// can cost as much as the rest of the call.
func (t inProcessTransport) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	if r.Method != string(mcp.MethodToolsCall) {
		return t.send(ctx, r, t.InProcessTransport.SendRequest)
	}
	response, err := recovered(func() (*transport.JSONRPCResponse, error) { return t.InProcessTransport.SendRequest(ctx, r) })
	return t.check(ctx, r, response, err)
}

// A guard makes a transport's requests end when their context does, whatever
// the server is doing, and keeps the bytes of tools/list results.
type guard struct {
	maxMessage int // bytes of a result
	unasked    *unasked
}

type sendFunc func(context.Context, transport.JSONRPCRequest) (*transport.JSONRPCResponse, error)

func (g guard) send(ctx context.Context, r transport.JSONRPCRequest, send sendFunc) (*transport.JSONRPCResponse, error) {
	g.unasked.ask()
	defer g.unasked.answered()
	response, err := detached(ctx, func() (*transport.JSONRPCResponse, error) { return send(ctx, r) })
	return g.check(ctx, r, response, err)
}

// check returns a response as it is, if it is not too long, and takes from it
// what is to be listed.
func (g guard) check(ctx context.Context, r transport.JSONRPCRequest, response *transport.JSONRPCResponse, err error) (*transport.JSONRPCResponse, error) {
	if err != nil || response == nil || response.Error != nil {
		return response, err
	}
	if n := len(response.Result); n > g.maxMessage {
		return nil, tooLarge(g.maxMessage)
	}
	if l, ok := ctx.Value(listingKey{}).(*listing); ok && r.Method == string(mcp.MethodToolsList) {
		result, err := l.take(response.Result)
		if err != nil {
			return nil, err
		}
		c := *response
		c.Result = result
		return &c, nil
	}
	return response, nil
}

// recovered returns what f does. A panic in f is an error.
func recovered[T any](f func() (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// detached returns what f does, or ctx's error as soon as ctx ends. What f
// returns after that is dropped: a write to a child that does not read may not
// heed ctx. f's goroutine then lives until the connection is closed. A panic in
// f is an error.
func detached[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		value, err := recovered(f)
		done <- answer{value, err}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// A listing collects the elements of tools/list results, page by page, before
// mcp-go decodes them: its types lose most keywords of a schema, and one
// element that they can't hold fails the whole list.
type listing struct {
	limits   limits
	elements []element
	pages    int
	bytes    int // of all elements
}

// An element is one of a tools/list result.
type element struct {
	raw     json.RawMessage
	decoded string // its name, if mcp-go was given it
	problem error  // why it can't be used, or nil
}

type listingKey struct{}

// maxCursor bounds what leads to the next page, in bytes: all are remembered.
const maxCursor = 4 << 10

// take keeps the tools of one result and returns the result with only those
// that mcp-go can decode.
func (l *listing) take(result json.RawMessage) (json.RawMessage, error) {
	var page map[string]json.RawMessage
	if err := json.Unmarshal(result, &page); err != nil {
		return nil, fmt.Errorf("tools/list result: %w", text.JSONError(result, err))
	}
	var tools []json.RawMessage
	if err := json.Unmarshal(page["tools"], &tools); err != nil {
		return nil, errors.New(`tools/list result: "tools" is not a list`)
	}
	if len(l.elements)+len(tools) > l.limits.maxTools {
		return nil, fmt.Errorf("it lists more tools than the limit of %d", l.limits.maxTools)
	}
	if l.pages++; l.pages > l.limits.maxPages { // they may be empty
		return nil, fmt.Errorf("it lists its tools on more pages than the limit of %d", l.limits.maxPages)
	}
	if len(page["nextCursor"]) > maxCursor {
		return nil, fmt.Errorf("the cursor of a page has more bytes than the limit of %d", maxCursor)
	}
	decodable := []json.RawMessage{}
	for _, raw := range tools {
		if len(raw) > l.limits.maxDefinition {
			l.elements = append(l.elements, element{problem: definitionTooLarge(len(raw), l.limits.maxDefinition)})
			continue
		}
		if l.bytes += len(raw); l.bytes > maxListing*l.limits.maxMessage {
			return nil, fmt.Errorf("its tools have more bytes than the limit of %d", maxListing*l.limits.maxMessage)
		}
		e := element{raw: raw}
		var t mcp.Tool
		if json.Unmarshal(raw, &t) == nil {
			decodable = append(decodable, raw)
			e.decoded = t.Name
		}
		l.elements = append(l.elements, e)
	}
	page["tools"], _ = json.Marshal(decodable) // raw values always marshal
	return json.Marshal(page)
}

// maxListing is how many messages of the greatest size the tools of a server
// may fill.
const maxListing = 4

// sameHost refuses a redirect to another host: the headers of a server's
// configuration, secrets among them, are for that server.
func sameHost(r *http.Request, via []*http.Request) error {
	if r.URL.Host != via[0].URL.Host || via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
		return fmt.Errorf("refused a redirect to host %q", r.URL.Host)
	}
	if len(via) >= 10 {
		return fmt.Errorf("stopped after %d redirects", len(via))
	}
	return nil
}

// A failure is how the connection of a request failed, before or within the
// answer.
type failure struct {
	err    atomic.Pointer[error]
	status atomic.Int32 // of the answer, or 0
	sent   atomic.Bool  // the request; what is sent for it from then on answers the server's
}

type failureKey struct{}

var errBroken = errors.New("the connection failed")

func (f *failure) noteStatus(status int) {
	if f != nil {
		f.status.Store(int32(status))
	}
}

func (f *failure) note(err error) {
	if f != nil { // nil if nobody asks
		f.err.Store(&err)
	}
}

// isLost reports whether err means that there is no connection to the server,
// or none any more.
func isLost(err error) bool {
	return errors.Is(err, transport.ErrTransportClosed) ||
		errors.Is(err, transport.ErrSessionTerminated) ||
		errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, os.ErrClosed) ||
		errors.Is(err, errUnread) ||
		errors.Is(err, errBroken)
}
