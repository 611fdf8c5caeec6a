package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// watch waits for what happens to a connection, until it is over.
func (s *Server) watch(c *conn) {
	if c.listens() {
		ctx, stop := context.WithCancel(s.life)
		defer stop()
		s.running.Go(func() { s.listen(ctx, c) })
	}
	var refresh <-chan time.Time
	if s.limits.Refresh > 0 {
		t := time.NewTicker(s.limits.Refresh)
		defer t.Stop()
		refresh = t.C
	}
	var idle <-chan time.Time
	if s.limits.Idle > 0 && s.cfg.InProcess == nil {
		idle = time.After(s.limits.Idle)
	}
	for failures := 0; ; {
		select {
		case <-s.life.Done():
			return
		case <-c.over:
			return
		case <-c.exited():
			s.lose(c, c.process.err)
			return
		case <-idle:
			wait, resting := s.rest(c)
			if resting {
				return
			}
			idle = time.After(wait)
			continue
		case <-c.changed:
			s.pause(c, coalesce)
		case <-refresh:
		}
		begun := time.Now()
		switch ok, err := s.listAgain(c); {
		case !ok:
			return
		case err == nil || s.limits.Reconnect < 0:
			failures = 0
			// However often a server says so, most of the time it is left alone.
			s.pause(c, 4*time.Since(begun))
		default:
			s.pause(c, min(s.limits.Reconnect<<min(failures, 16), maxBackoff))
			failures++
			c.tellChanged()
		}
	}
}

// listen is told of changes until ctx ends. A stream of them that ends is opened
// again, as proxies end what is idle: less and less often, unless it lasts.
// What was missed is listed when that is acknowledged.
func (s *Server) listen(ctx context.Context, c *conn) {
	first := max(s.limits.Reconnect, time.Millisecond)
	for wait := first; ; wait = min(2*wait, maxBackoff) {
		begun := time.Now()
		err := c.listen(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, mcp.ErrMethodNotFound): // over, or it can't
			return
		case isLost(err):
			s.lose(c, err)
			return
		case time.Since(begun) >= maxBackoff:
			wait = first
		}
		s.pause(c, wait)
	}
}

// coalesce is how long further changes are waited for after the first, as
// servers tell of them one by one.
const coalesce = 50 * time.Millisecond

// pause waits for d, but no longer than there is c.
func (s *Server) pause(c *conn, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.over:
	case <-c.exited():
	case <-s.life.Done():
	}
}

// listAgain lists the tools again, and reports whether c is still of use, and
// how that went.
func (s *Server) listAgain(c *conn) (ok bool, err error) {
	select { // what was told until now is what is going to be listed
	case <-c.changed:
	default:
	}
	ctx, cancel := context.WithTimeout(s.life, s.limits.StartTimeout)
	defer cancel()
	err = s.list(ctx, c)
	if s.life.Err() != nil {
		return false, err
	}
	if bad := new(badRequestError); isLost(err) || errors.As(err, &bad) { // it has listed them before
		s.lose(c, err)
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if current, _ := s.conn.Peek(); current != c {
		return false, err
	}
	if err != nil {
		s.setLocked(Degraded, s.told(late(err, s.limits.StartTimeout)))
		return true, err
	}
	if s.status.State == Degraded {
		s.setLocked(Ready, nil)
	}
	return true, nil
}

// rest gives up a connection that nobody needs until the next call, and
// reports whether it did. If not, wait is when to look again.
func (s *Server) rest(c *conn) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait = s.limits.Idle - time.Since(s.called)
	if current, _ := s.conn.Peek(); current != c || s.life.Err() != nil || s.calls > 0 || wait > 0 {
		return max(wait, s.limits.Idle/8), false
	}
	s.conn.Forget()
	close(c.over)
	s.running.Go(func() { c.close(exitGrace) })
	s.setLocked(Cached, nil)
	return 0, true
}
