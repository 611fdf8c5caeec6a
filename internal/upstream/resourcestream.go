package upstream

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// unsubscribeGrace is how long a server may take to answer that it tells no more.
const unsubscribeGrace = 5 * time.Second

// follow subscribes to a resource over the connection, calls agreed once the server tells of
// its updates, and returns at the end of ctx, of the connection or of the subscription. ctx ends
// with life, which is the server's. With a protocol before 2026-07-28, the server has within to
// agree.
func (c *conn) follow(life, ctx context.Context, uri string, within time.Duration, agreed func()) error {
	if c.isOver() { // the server may have an earlier subscription that nobody ended
		return transport.ErrTransportClosed
	}
	if c.isModern() {
		return c.followStream(ctx, uri, agreed)
	}
	c.stream.await(ctx)
	// An answer that nobody waits for would leave open whether there is something to end.
	if err := c.subscribe(life, within, uri); err != nil {
		return err
	}
	agreed()
	select {
	case <-c.over:
		return nil
	case <-ctx.Done():
	}
	ctx, stop := c.while(life)
	defer stop()
	ctx, late := context.WithTimeout(ctx, unsubscribeGrace)
	defer late()
	var r mcp.UnsubscribeRequest
	r.Params.URI = uri
	//lint:ignore SA1019 servers before 2026-07-28 have it
	_ = c.client.Unsubscribe(ctx, r) // if it fails, the server tells what nobody hears
	return nil
}

func (c *conn) subscribe(ctx context.Context, within time.Duration, uri string) error {
	ctx, stop := c.while(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var r mcp.SubscribeRequest
	r.Params.URI = uri
	//lint:ignore SA1019 servers before 2026-07-28 have it
	return late(c.client.Subscribe(ctx, r), within)
}

// while returns a context that ends with ctx, with the connection, and when stop is called.
func (c *conn) while(ctx context.Context) (_ context.Context, stop context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-c.over:
			end(transport.ErrTransportClosed)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { end(nil) }
}

// A resourceStream is a subscriptions/listen request for one resource. Each has one of its own:
// then no other is interrupted when one begins or ends.
type resourceStream struct {
	uri     string
	agreed  func()
	refuse  context.CancelCauseFunc // ends it
	waiting *resourceStreams
	id      string
}

type resourceStreamKey struct{}

func (c *conn) followStream(ctx context.Context, uri string, agreed func()) error {
	inner, stop := c.while(ctx)
	defer stop()
	inner, end := context.WithCancelCause(inner)
	defer end(nil)
	st := &resourceStream{uri: uri, agreed: agreed, refuse: end, waiting: &c.streams}
	defer st.forget()
	// mcp-go's Listen would end the stream for changes of the lists.
	_, err := c.client.Complete(context.WithValue(inner, resourceStreamKey{}, st), mcp.CompleteRequest{})
	if c.process != nil {
		tell(c.forgets)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case inner.Err() != nil:
		return context.Cause(inner)
	}
	return err
}

// ask returns the request that opens the stream. r is one for a completion.
func (st *resourceStream) ask(r transport.JSONRPCRequest) transport.JSONRPCRequest {
	filter, _ := json.Marshal(mcp.SubscriptionFilter{ResourceSubscriptions: []string{st.uri}})
	params := map[string]json.RawMessage{"notifications": filter}
	if has, ok := r.Params.(map[string]json.RawMessage); ok {
		params["_meta"] = has["_meta"]
	}
	r.Method, r.Params = string(mcp.MethodSubscriptionsListen), params
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	r.Header = r.Header.Clone()
	r.Header.Set(mcp.HeaderMethod, r.Method)
	st.id = idText(r.ID)
	st.waiting.mu.Lock()
	defer st.waiting.mu.Unlock()
	if st.waiting.byID == nil {
		st.waiting.byID = make(map[string]*resourceStream)
	}
	st.waiting.byID[st.id] = st
	return r
}

func (st *resourceStream) forget() {
	st.waiting.mu.Lock()
	defer st.waiting.mu.Unlock()
	if st.waiting.byID[st.id] == st {
		delete(st.waiting.byID, st.id)
	}
}

// resourceStreams are those of a connection that the server has not acknowledged, by the IDs
// of their requests.
type resourceStreams struct {
	mu   sync.Mutex
	byID map[string]*resourceStream
}

// acknowledged takes the acknowledgement of a stream, and reports whether it is one of these.
func (t *resourceStreams) acknowledged(n mcp.JSONRPCNotification) bool {
	id := idText(n.Params.Meta[mcp.MetaKeySubscriptionID])
	t.mu.Lock()
	st := t.byID[id]
	delete(t.byID, id)
	t.mu.Unlock()
	if st == nil {
		return false
	}
	var agreed struct{ Notifications *mcp.SubscriptionFilter }
	raw, err := json.Marshal(n.Params.AdditionalFields)
	if err == nil && json.Unmarshal(raw, &agreed) == nil && agreed.Notifications != nil && !slices.Contains(agreed.Notifications.ResourceSubscriptions, st.uri) {
		st.refuse(errNotAgreed)
		return true
	}
	st.agreed()
	return true
}

// idText returns the ID of a request as text.
func idText(id any) string {
	raw, _ := json.Marshal(id)
	return string(raw)
}
