package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
)

// A subscription is what the server is asked to tell of one resource, for all listeners
// together. It is made anew over each connection, until the last listener leaves. Its
// fields are guarded by the server's mu.
type subscription struct {
	uri       string
	listeners map[*listener]struct{}
	made      bool // the server has agreed, over whatever connection
	keepers   int  // goroutines of keep: one for each connection that is in use or ends

	ctx     context.Context // ends when the last listener leaves, and with the server
	end     context.CancelFunc
	settled chan struct{} // closed when the first attempt has ended
	err     error         // of that attempt; not changed after settled
	gone    chan struct{} // closed when another one for the same URI may be made
}

// A listener is told of updates of one resource. Its fields are guarded by the server's mu.
type listener struct {
	updated func(uri string)
	of      *subscription // nil after it left
	waiting []string      // URIs to tell, each once
	telling bool          // a goroutine tells them
}

// maxUntold is how many updates wait for a listener. If there are more, the resource that it
// listens to stands for all parts of it.
const maxUntold = 64

var (
	errNoSubscriptions = errors.New("the server has no subscriptions to resources")
	errNotAgreed       = errors.New("the server does not agree to tell of its updates")
)

// Subscribe has updated called with the URI of the resource, or of a part of it, after the
// server said that it has changed: one call after the other, without a lock. After a new
// connection it is called too, since changes may have been missed. Until stop is called,
// Subscribe keeps the connection from resting. It fails as Read does, if the server has no
// subscriptions, and beyond [config.Limits.MaxSubscriptions].
func (s *Server) Subscribe(ctx context.Context, bar Precheck, uri string, updated func(uri string)) (stop func(), err error) {
	l := &listener{updated: updated}
	_, err = s.request(ctx, "", true, bar, func(ctx context.Context, c *conn) (any, error) {
		return nil, s.join(ctx, c, uri, l)
	})
	if err != nil {
		return nil, err
	}
	return func() { s.leave(l) }, nil
}

// join adds l to the subscription for uri, which it makes over c if there is none. It returns
// when the server has agreed.
func (s *Server) join(ctx context.Context, c *conn, uri string, l *listener) error {
	if can := c.client.GetServerCapabilities().Resources; can == nil || !can.Subscribe {
		return errNoSubscriptions
	}
	for {
		s.mu.Lock()
		u := s.subscriptions[uri]
		switch {
		case s.life.Err() != nil:
			s.mu.Unlock()
			return ErrClosed
		case u == nil && len(s.subscriptions) >= s.limits.MaxSubscriptions:
			s.mu.Unlock()
			return fmt.Errorf("there are subscriptions to more of its resources than the limit of %d, Limits.MaxSubscriptions", s.limits.MaxSubscriptions)
		case u == nil:
			u = &subscription{uri: uri, listeners: make(map[*listener]struct{}), settled: make(chan struct{}), gone: make(chan struct{})}
			u.ctx, u.end = context.WithCancel(s.life)
			s.subscriptions[uri] = u
			s.keepLocked(u, c)
		case u.ctx.Err() != nil: // its end goes to the server before the next begins
			s.mu.Unlock()
			select {
			case <-u.gone:
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		l.of = u
		u.listeners[l] = struct{}{}
		s.mu.Unlock()
		select {
		case <-u.settled:
			return u.err
		case <-ctx.Done():
			s.leave(l)
			return ctx.Err()
		}
	}
}

// leave ends what l is told, and the subscription with its last listener.
func (s *Server) leave(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := l.of
	if u == nil {
		return
	}
	l.of, l.waiting = nil, nil
	if delete(u.listeners, l); len(u.listeners) == 0 {
		u.end()
		s.forgetLocked(u)
	}
}

// forgetLocked removes a subscription that has ended, if no connection has it.
func (s *Server) forgetLocked(u *subscription) {
	if u.ctx.Err() != nil && u.keepers == 0 && s.subscriptions[u.uri] == u {
		delete(s.subscriptions, u.uri)
		close(u.gone)
	}
}

// subscribeLocked makes all subscriptions over a new connection.
func (s *Server) subscribeLocked(c *conn) {
	for _, u := range s.subscriptions {
		if u.ctx.Err() == nil {
			s.keepLocked(u, c)
		}
	}
}

func (s *Server) keepLocked(u *subscription, c *conn) {
	u.keepers++
	s.running.Go(func() {
		err := s.keep(u, c)
		s.mu.Lock()
		defer s.mu.Unlock()
		u.keepers--
		if !u.made && u.err == nil { // it never worked
			if u.err = err; u.err == nil {
				u.err = context.Canceled // all have left
			}
			close(u.settled)
			u.end()
			for l := range u.listeners {
				l.of = nil
			}
			clear(u.listeners)
		}
		s.forgetLocked(u)
	})
}

// keep subscribes over c until u ends, c is over, or the first attempt fails. A server may end
// the stream of a subscription, and so may proxies: then it is opened again, at growing intervals.
func (s *Server) keep(u *subscription, c *conn) error {
	first := max(s.limits.Reconnect, time.Millisecond)
	for wait := first; ; wait = min(2*wait, maxBackoff) {
		begun := time.Now()
		err := c.follow(s.life, u.ctx, u.uri, s.limits.CallTimeout, func() { s.agreed(u) })
		s.mu.Lock()
		made := u.made
		s.mu.Unlock()
		switch {
		case u.ctx.Err() != nil:
			return nil
		case !made && err == nil:
			return errNotAgreed
		case !made:
			return err
		case isLost(err):
			s.lose(c, err)
			return nil
		case time.Since(begun) >= maxBackoff:
			wait = first
		}
		pause := time.NewTimer(max(wait, waitOf(err)))
		select {
		case <-pause.C:
		case <-c.over:
		case <-u.ctx.Done():
		}
		pause.Stop()
		select {
		case <-c.over:
			return nil
		default:
		}
	}
}

// agreed notes that the server tells of updates from now on. It did not before, if it had
// agreed over an earlier connection or stream.
func (s *Server) agreed(u *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case u.err != nil:
	case !u.made:
		u.made = true
		close(u.settled)
	default:
		s.tellLocked(u, u.uri)
	}
}

// missed has all listeners told that they may have missed something.
func (s *Server) missed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.subscriptions {
		if u.made {
			s.tellLocked(u, u.uri)
		}
	}
}

// hear passes on what a notification of the server says of a resource. What still arrives over
// a connection that is over doesn't count: each listener is told once there is a new one.
func (s *Server) hear(c *conn, n mcp.JSONRPCNotification) {
	uri, _ := n.Params.AdditionalFields["uri"].(string)
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-c.over:
		return
	default:
	}
	for _, u := range s.subscriptions {
		if uri == u.uri || isPart(uri, u.uri) {
			s.tellLocked(u, uri)
		}
	}
}

// isPart reports whether a URI leads to something below another one.
func isPart(uri, of string) bool {
	rest, ok := strings.CutPrefix(uri, strings.TrimSuffix(of, "/"))
	return ok && of != "" && len(rest) > 1 && rest[0] == '/'
}

// tellLocked has the listeners of u told of uri, each by a goroutine of its own.
func (s *Server) tellLocked(u *subscription, uri string) {
	if s.life.Err() != nil {
		return
	}
	for l := range u.listeners {
		if slices.Contains(l.waiting, uri) {
			continue
		}
		if len(l.waiting) == maxUntold {
			l.waiting = append(l.waiting[:0], u.uri)
		} else {
			l.waiting = append(l.waiting, uri)
		}
		if !l.telling {
			l.telling = true
			s.running.Go(func() { s.tellUpdates(l) })
		}
	}
}

// tellUpdates tells l what waits. The host's code may take its time: neither the server nor
// [Server.Close] waits for it.
func (s *Server) tellUpdates(l *listener) {
	for {
		s.mu.Lock()
		if s.life.Err() != nil || len(l.waiting) == 0 {
			l.telling = false
			s.mu.Unlock()
			return
		}
		uri := l.waiting[0]
		l.waiting = slices.Delete(l.waiting, 0, 1)
		s.mu.Unlock()
		_, err := hostcode.Detached(s.life, "the function for updates of a resource", func() (struct{}, error) {
			l.updated(uri)
			return struct{}{}, nil
		})
		if err != nil && s.life.Err() == nil && s.cfg.Log != nil {
			s.cfg.Log.Error(err.Error())
		}
	}
}
