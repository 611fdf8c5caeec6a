package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/lazy"
)

// An attempt to connect begins when a server is started or called, or some time after one has
// failed. There is one at a time, and all who want the connection wait for it.

// connectLocked returns the attempt under way. It begins one if there is none.
func (s *Server) connectLocked() *lazy.Flight[*conn] {
	attempt, fresh := s.conn.Begin()
	if fresh {
		s.stopRetryLocked()
		s.turn, s.atWork = nil, false
		if s.cfg.Command != "" && s.cfg.Invalid == nil {
			s.turn = s.cfg.Turns.ask(launched(&s.cfg.Server))
		}
		var cause error
		if s.status.IsAway() {
			cause = s.status.Err
		}
		s.setLocked(Connecting, cause)
	}
	return attempt
}

// connect makes one attempt within the start timeout: it connects, lists all that
// there is and publishes it.
func (s *Server) connect(ctx context.Context) (*conn, error) {
	if s.cfg.Invalid != nil {
		return nil, s.cfg.Invalid
	}
	turn, err := s.awaitTurn(ctx)
	defer turn.end()
	if err != nil {
		if s.life.Err() != nil {
			err = ErrClosed
		}
		return nil, err
	}
	inner, release := hostcode.WithClock(ctx, s.limits.StartTimeout)
	defer release()
	how := newest
	switch {
	case s.cfg.SSE:
		how = olderHTTP
	case s.learned.silent.Load():
		how = handshake
	}
	c, err := s.open(inner, turn, how)
	if how == handshake && err != nil {
		s.learned.silent.Store(false)
		if inner.Err() == nil {
			if c != nil {
				c.close(0)
			}
			c, err = s.open(inner, turn, newest)
		}
	}
	if errors.Is(err, transport.ErrLegacySSEServer) {
		c.close(0)
		var again error
		if c, again = s.open(inner, turn, olderHTTP); again == nil {
			err = nil
		} else if errors.Is(again, ErrUnauthorized) {
			err = again
		} else {
			err = fmt.Errorf("%w; and over the older transport: %w", err, again)
		}
	}
	if err == nil && !s.subscribe(inner, c) {
		c.close(0)
		c, err = s.open(inner, turn, newest)
	}
	if err == nil {
		err = s.list(inner, c)
	} else if c != nil {
		err = c.explain(err)
	}
	if c != nil && c.isModern() && s.cfg.Protocol == "" && refusesVersion(err) {
		c.close(0)
		var again error
		if c, again = s.open(inner, turn, handshake); again == nil {
			again = s.list(inner, c)
		} else if c != nil {
			again = c.explain(again)
		}
		if again != nil {
			again = fmt.Errorf("%w; and with a protocol before %s: %w", err, mcp.ProtocolVersion20260728, again)
		}
		err = again
	}
	if err == nil {
		return c, nil
	}
	switch {
	case s.life.Err() != nil:
		err = ErrClosed
	case errors.Is(err, context.DeadlineExceeded) && launched(&s.cfg.Server) != "" && c != nil && c.process.words.isSilent():
		err = fmt.Errorf("no answer within %v, and not a word: its launcher waits while another one installs the same package, or was ended less than a minute ago while it did: %w", s.limits.StartTimeout, err)
	case errors.Is(err, ErrUnauthorized):
		if s.cfg.NamesNone != nil && s.cfg.Account.NamesNone(inner) {
			err = s.cfg.NamesNone()
		}
	default:
		err = late(err, s.limits.StartTimeout)
		if c != nil && c.process != nil {
			err = c.process.words.explain(err, s.secrets)
		}
	}
	if c != nil {
		c.close(0) // before the next attempt
	}
	return nil, s.told(err)
}

// awaitTurn waits until a child may start.
func (s *Server) awaitTurn(ctx context.Context) (*turn, error) {
	s.mu.Lock()
	turn, cause := s.turn, s.status.Err
	s.mu.Unlock()
	waited := false
	err := turn.wait(ctx, func() {
		waited = true
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lateLocked(errQueued)
	})
	if waited {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.status.State == Connecting {
			s.status.entered = time.Now() // waiting is no part of the attempt
			s.setLocked(Connecting, cause)
		}
	}
	return turn, err
}

// open makes a connection that is ready for requests. It may return one together with
// an error. The turn is over when a child has spoken, and one that does not work makes room.
func (s *Server) open(ctx context.Context, turn *turn, how manner) (*conn, error) {
	c, err := dial(&s.cfg, s.limits, s.secrets, &s.asked, how)
	if err == nil {
		s.dialled++
		c.number = s.dialled
		if c.process != nil {
			s.running.Go(func() {
				defer turn.end()
				c.process.holdWhileAtWork(ctx, lookEach(s.limits.StartTimeout), func(at bool) { s.works(turn, at) })
			})
		}
		c.updated = func(n mcp.JSONRPCNotification) { s.hear(c, n) }
		if c.stream != nil {
			c.stream.reopened = func() { c.tellChanged(); s.missed() }
		}
		err = c.open(ctx)
	}
	if err == nil && c.silent.Load() {
		s.learned.silent.Store(true)
	}
	return c, err
}

// connected records the result of an attempt. The caller holds mu.
func (s *Server) connected(c *conn, err error) {
	s.status.Took = time.Since(s.status.entered)
	switch {
	case err == nil:
		c.opened = time.Now()
		s.status.Failures = 0
		s.circuit.close()
		s.setLocked(Ready, nil)
		s.running.Go(func() { s.watch(c) })
		s.subscribeLocked(c)
		return
	case c != nil: // the server was closed meanwhile
		s.running.Go(func() { c.close(0) })
	}
	s.status.Failures++
	s.failLocked(err)
}

// late adds the timeout d to err if err is a deadline error.
func late(err error, d time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v: %w", d, err)
	}
	return err
}

// failLocked records why there is no connection and plans the next attempt.
func (s *Server) failLocked(err error) {
	state := Down
	if errors.Is(err, ErrUnauthorized) {
		state = Unauthorized
	}
	s.status.Err = err
	s.retryLocked()
	s.setLocked(state, err)
}

// retryLocked plans the next attempt to connect. The delay doubles with each failed attempt
// and with each connection lost within maxBackoff.
func (s *Server) retryLocked() {
	if s.limits.Reconnect < 0 || s.cfg.Invalid != nil || s.life.Err() != nil {
		return
	}
	wait := backoff(s.limits.Reconnect, s.status.Failures+s.brief-1)
	wait -= time.Duration(s.random.Int64N(int64(wait/5) + 1)) // so that many servers don't reconnect at once
	wait = max(wait, waitOf(s.status.Err))
	at := time.Now().Add(wait)
	s.stopRetryLocked()
	s.status.Retry = at
	s.retry = time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.status.Retry.Equal(at) { // not stopped a moment ago
			s.connectLocked()
		}
	})
}

// stopRetryLocked drops the plan of retryLocked.
func (s *Server) stopRetryLocked() {
	s.status.Retry = time.Time{}
	if s.retry != nil {
		s.retry.Stop()
	}
}
