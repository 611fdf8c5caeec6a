// Package upstream has one MCP server: the child process or the HTTP connection
// that it is reached by, the limits on what it sends, the secrets that must not
// be seen of its configuration, and the supervision that keeps it connected. What
// goes up is raw: the elements of its tools/list result, to one callback, and the
// results of calls. What they mean is for who made the [Server]. Each Server owns
// its goroutines and its child; after [Server.Close] none is left, but for one
// that waits in code which heeds no context.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/lazy"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Server is one configured MCP server: how it is doing, and what keeps it
// so. Whatever happens to it, one of three things follows: an attempt to
// connect, another listing of its tools over the connection that there is, or
// nothing until it is called. What either finds goes to the same place,
// publish. Its methods may be called concurrently.
type Server struct {
	cfg     Config
	secrets *secrets // of cfg
	limits  Limits
	publish func(context.Context, []Element) error

	life    context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup // goroutines

	mu     sync.Mutex
	status Status
	conn   lazy.Value[*conn] // there while it serves
	brief  int               // connections in a row that were lost within maxBackoff
	calls  int               // that have the connection
	called time.Time         // when the last of them ended
	random *rand.Rand        // of the server's name, so that it is the same in each run
}

// New returns a server that is not started. publish is told of the tools each
// time that they were listed, all of them and in their order; one call ends
// before the next is made. Its error fails the listing. It must return soon after
// its context ends, which has the time of the listing.
func New(cfg Config, limits Limits, publish func(ctx context.Context, tools []Element) error) *Server {
	h := fnv.New64a()
	h.Write([]byte(cfg.Name))
	s := &Server{
		cfg: cfg, secrets: newSecrets(&cfg, os.Environ()), limits: limits, publish: publish,
		status: Status{State: Configured, Since: time.Now()},
		random: rand.New(rand.NewPCG(h.Sum64(), 0)),
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.conn = lazy.Value[*conn]{Load: s.connect, Settle: s.connected, Life: s.life, Ended: ErrClosed, Run: s.running.Go, Mu: &s.mu}
	return s
}

// Start makes the first attempt to connect, within the start timeout, and
// returns how it went. If ctx ends before, so does the attempt. If it fails,
// others follow by themselves.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	attempt := s.connectLocked()
	s.mu.Unlock()
	select {
	case <-attempt.Done():
	case <-ctx.Done():
		attempt.Stop(ctx.Err())
		<-attempt.Done()
	}
	return attempt.Err()
}

// Begin makes the first attempt to connect in the background.
func (s *Server) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connectLocked()
}

// connectLocked returns the attempt that is being made, which it begins if
// there is none.
func (s *Server) connectLocked() *lazy.Flight[*conn] {
	attempt, fresh := s.conn.Begin()
	if fresh {
		s.status.Retry = time.Time{}
		s.setLocked(Connecting, nil)
	}
	return attempt
}

// connect makes an attempt: it makes a connection, reads the tools and
// publishes them, within the start timeout.
func (s *Server) connect(ctx context.Context) (*conn, error) {
	if s.cfg.Invalid != nil {
		return nil, s.cfg.Invalid
	}
	inner, cancel := context.WithTimeout(ctx, s.limits.StartTimeout)
	defer cancel()
	c, err := dial(&s.cfg, s.limits, s.secrets)
	if err == nil {
		err = c.open(inner)
	}
	if err == nil {
		err = s.list(inner, c)
	} else if c != nil {
		err = c.explain(err)
	}
	if err == nil {
		return c, nil
	}
	switch cause := context.Cause(ctx); {
	case s.life.Err() != nil:
		err = ErrClosed
	case cause != nil:
		err = cause
	default:
		err = late(err, s.limits.StartTimeout)
	}
	if c != nil {
		c.close(0) // before the next attempt
	}
	return nil, s.told(err)
}

// connected notes how an attempt went. It is called with mu held.
func (s *Server) connected(c *conn, err error) {
	s.status.Took = time.Since(s.status.Since) // it is connecting
	switch {
	case err == nil:
		c.opened = time.Now()
		s.called = c.opened
		s.status.Failures = 0
		s.setLocked(Ready, nil)
		s.running.Go(func() { s.watch(c) })
		return
	case c != nil: // closed meanwhile
		s.running.Go(func() { c.close(0) })
	}
	s.status.Failures++
	s.setLocked(Down, err)
	s.retryLocked()
}

// told returns err as it is told: without secrets, and of bounded length.
func (s *Server) told(err error) error { return text.Bounded(s.secrets.error(err)) }

// late says in err, if it is of a deadline, that this was after d.
func late(err error, d time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v: %w", d, err)
	}
	return err
}

// list reads the tools over c and publishes them.
func (s *Server) list(ctx context.Context, c *conn) error {
	elements, err := c.list(ctx, s.limits)
	if err != nil {
		return c.explain(err)
	}
	return s.publish(ctx, elements)
}

// lose gives up a connection, which err says is broken, and sees to another
// one. Only the first call of it for a connection does anything.
func (s *Server) lose(c *conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if current, _ := s.conn.Peek(); current != c || s.life.Err() != nil {
		return
	}
	s.conn.Forget()
	close(c.over)
	s.running.Go(func() { c.close(0) })
	if s.brief++; time.Since(c.opened) >= maxBackoff {
		s.brief = 0
	}
	s.setLocked(Down, s.told(err))
	s.retryLocked()
}

// The time before an attempt doubles with each that fails, up to maxBackoff, and
// with each connection that is lost within maxBackoff.
const maxBackoff = time.Minute

// retryLocked plans the next attempt to connect.
func (s *Server) retryLocked() {
	if s.limits.Reconnect < 0 || s.cfg.Invalid != nil || s.life.Err() != nil {
		return
	}
	wait := s.limits.Reconnect << min(max(s.status.Failures+s.brief-1, 0), 16)
	wait = min(wait, max(maxBackoff, s.limits.Reconnect))
	wait -= time.Duration(s.random.Int64N(int64(wait/5) + 1)) // so that many do not come at once
	at := time.Now().Add(wait)
	s.status.Retry = at
	s.running.Go(func() {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-s.life.Done():
			return
		case <-t.C:
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.status.Retry.Equal(at) {
			s.connectLocked()
		}
	})
}

func (s *Server) setLocked(state State, err error) {
	s.status.State, s.status.Err, s.status.Since = state, err, time.Now()
}

// Status tells how the server is.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// SetCached says that the tools of the server, which was not started, are known
// from elsewhere. It is then connected when one is called.
func (s *Server) SetCached() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(Cached, nil)
}

// Close ends the connection, or the attempt to make one. It returns when
// nothing of it is left.
func (s *Server) Close() {
	s.end()
	s.mu.Lock()
	c, _ := s.conn.Peek()
	s.conn.Forget()
	s.status.Retry = time.Time{}
	s.setLocked(Down, ErrClosed)
	s.mu.Unlock()
	if c != nil {
		close(c.over)
		c.close(exitGrace)
	}
	s.running.Wait()
}
