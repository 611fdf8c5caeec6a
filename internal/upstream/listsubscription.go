package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// Since protocol 2026-07-28, servers announce changes to those who subscribe. A subscription
// is a request whose answer comes when it ends; what is announced comes before.

// changes returns which changes of its lists the server announces to those who subscribe.
func (c *conn) changes() mcp.SubscriptionFilter {
	can := c.client.GetServerCapabilities()
	return mcp.SubscriptionFilter{
		ToolsListChanged:     can.Tools != nil && can.Tools.ListChanged,
		ResourcesListChanged: can.Resources != nil && can.Resources.ListChanged,
		PromptsListChanged:   can.Prompts != nil && can.Prompts.ListChanged,
	}
}

// endGrace is how long a child may take to answer that a subscription has ended. Not all do.
const endGrace = time.Second

// subscribe sends a request that lasts until ctx ends. Then it tells the child, and waits for the
// answer: with a subscription, servers of the Go SDK forget what else their only session is
// subscribed to, until after they have answered.
func (t stdioTransport) subscribe(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	inner, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var response *transport.JSONRPCResponse
	var err error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		response, err = t.send(inner, r, t.Stdio.SendRequest)
	}()
	select {
	case <-answered:
		return response, err
	case <-ctx.Done():
	}
	late, stop := context.WithTimeout(inner, endGrace)
	defer stop()
	ended := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{Method: string(mcp.MethodNotificationCancelled), Params: mcp.NotificationParams{
		AdditionalFields: map[string]any{"requestId": r.ID},
	}}}
	_ = t.SendNotification(late, ended) // if it fails, there is no answer
	select {
	case <-answered:
		return response, err
	case <-late.Done():
		return nil, ctx.Err()
	}
}

// streamPatience is how long the first listing waits for a server over HTTP to acknowledge the
// subscription: the listing then covers what came before. Behind a proxy that holds back events, the
// lists are read once more when it does.
const streamPatience = 250 * time.Millisecond

// subscribeHTTP subscribes to the changes of a server over HTTP, before the first listing.
func (s *Server) subscribeHTTP(ctx context.Context, c *conn) {
	listening, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	c.ended, c.unsubscribe = ended, stop
	s.running.Go(func() { ended <- c.client.Listen(listening, c.changes()) })
	late := time.NewTimer(streamPatience)
	defer late.Stop()
	select {
	case err := <-ended: // watch learns why
		ended <- err
	case <-ctx.Done():
	case <-late.C:
	case <-c.hears:
		select {
		case <-c.changed: // by the acknowledgement
		default:
		}
	}
}

// subscribe subscribes to the changes of a child, before the first listing. It reports
// whether the connection can still be used: some servers read nothing more while they serve a
// subscription, such as those of mcp-go 1.0.0 and 1.1.0. So the server has to acknowledge
// it and to answer another request, each within a part of the start timeout. One that does
// not is not subscribed to again.
func (s *Server) subscribe(ctx context.Context, c *conn) (usable bool) {
	switch {
	case c.changes().IsEmpty():
		return true
	case c.isModernHTTP():
		s.subscribeHTTP(ctx, c)
		return true
	case c.process == nil || !c.isModern() || s.learned.deaf.Load():
		return true
	}
	patience := s.limits.StartTimeout / 8
	// The end of the transport ends the subscription, not the end of ctx.
	listening, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	s.running.Go(func() {
		defer stop()
		ended <- c.client.Listen(listening, c.changes())
	})
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-ended: // there are no subscriptions, or the child ended: the listing tells
		return true
	case <-ctx.Done(): // so will the listing
		return true
	case <-late.C:
		s.learned.deaf.Store(true)
		stop()
	case <-c.hears:
		c.ended, c.unsubscribe = ended, stop
	}
	probe, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := c.client.Discover(probe, mcp.DiscoverRequest{})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		s.learned.deaf.Store(true)
		stop()
		return false
	}
	select {
	case <-c.changed: // by the acknowledgement; the first listing covers it
	default:
	}
	return true
}

// listen subscribes to changes until ctx ends. Proxies end idle streams, so it
// opens the stream again, at growing intervals unless the stream lasted. The
// acknowledgement of a new stream triggers a listing, which finds missed changes.
func (s *Server) listen(ctx context.Context, c *conn) {
	first := max(s.limits.Reconnect, time.Millisecond)
	for wait := first; ; wait = min(2*wait, maxBackoff) {
		begun := time.Now()
		err := c.listen(ctx)
		switch {
		case ctx.Err() == nil && err == errForgotten:
			wait = first
			continue
		case ctx.Err() != nil || errors.Is(err, mcp.ErrMethodNotFound): // the end, or the server has no subscriptions
			return
		case c.process != nil && err != nil: // the server's word, or the child's end, of which watch learns
			return
		case isLost(err):
			s.lose(c, err)
			return
		case time.Since(begun) >= maxBackoff:
			wait = first
		}
		if s.pause(c, max(wait, waitOf(err))); c.isOver() {
			return
		}
	}
}

// errForgotten is why a child is subscribed to anew for changes of its lists: another
// subscription has ended.
var errForgotten = errors.New("the server may have forgotten the subscription")

// listen subscribes to changes of the lists and returns when the subscription ends. The
// first time, the subscription is the one that was made before the first listing, if any.
func (c *conn) listen(ctx context.Context) error {
	ended, stop := c.ended, c.unsubscribe
	c.ended = nil
	switch {
	case ended != nil:
	case c.process == nil:
		return c.client.Listen(ctx, c.changes())
	default:
		var listening context.Context
		listening, stop = context.WithCancel(ctx)
		defer stop()
		ended = make(chan error, 1)
		go func() { ended <- c.client.Listen(listening, c.changes()) }()
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	case <-c.forgets:
	}
	stop()
	<-ended // before another begins, and before the connection is forgotten
	if err := ctx.Err(); err != nil {
		return err
	}
	return errForgotten
}
