package upstream

import (
	"context"
	"errors"
	"time"
)

// watch handles the events of a connection until the connection is over.
func (s *Server) watch(c *conn) {
	if c.ended != nil {
		ctx, stop := context.WithCancel(s.life)
		defer stop()
		s.running.Go(func() { s.listen(ctx, c) })
	}
	var refresh <-chan time.Time
	if s.limits.Refresh > 0 {
		refresh = time.After(c.refresh(s.limits.Refresh))
	}
	var idle <-chan time.Time
	if s.limits.IdleTimeout > 0 && s.cfg.InProcess == nil {
		idle = time.After(s.limits.IdleTimeout)
	}
	var due <-chan time.Time // a listing that waits for pace
	pace := relistDelay{most: s.limits.Refresh}
	for failures := 0; ; {
		select {
		case <-s.life.Done():
			return
		case <-c.over:
			return
		case <-c.exited():
			s.lose(c, c.ending())
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
		case <-c.differs:
			if due == nil {
				due = time.After(pace.wait())
			}
			continue
		case <-due:
		}
		if due != nil {
			due = nil
			pace.listed()
		}
		begun := time.Now()
		switch ok, err := s.listAgain(c); {
		case !ok:
			return
		case err == nil || s.limits.Reconnect < 0:
			failures = 0
			// Spend at most a fifth of the time on listing, even if the server
			// announces changes all the time.
			s.pause(c, 4*time.Since(begun))
		default:
			s.pause(c, max(backoff(s.limits.Reconnect, failures), waitOf(err)))
			failures++
			c.tellChanged()
		}
		if refresh != nil {
			refresh = time.After(c.refresh(s.limits.Refresh))
		}
	}
}

// How often lists are read again is between these if a server says how long they are fresh.
const (
	minFresh = 10 * time.Second
	maxFresh = time.Hour
)

// refresh returns after which time the lists are read again, by default or as the server
// says.
func (c *conn) refresh(byDefault time.Duration) time.Duration {
	if fresh := time.Duration(c.fresh.Load()); fresh > 0 {
		return min(max(fresh, minFresh), maxFresh)
	}
	return byDefault
}

// coalesce is how long watch waits for more changes after the first. Servers
// announce them one by one.
const coalesce = 50 * time.Millisecond

// pause waits for d or until c is over, whichever comes first.
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

// listAgain lists all again. ok reports whether c is still usable; err is
// the error of the listing.
func (s *Server) listAgain(c *conn) (ok bool, err error) {
	for _, told := range []chan struct{}{c.changed, c.differs} { // the listing covers these
		select {
		case <-told:
		default:
		}
	}
	ctx, cancel := context.WithTimeout(s.life, s.limits.StartTimeout)
	defer cancel()
	announced := c.tools.count()
	err = s.list(ctx, c)
	c.tools.list(announced)
	if s.life.Err() != nil {
		return false, err
	}
	if bad := new(badRequestError); isLost(err) || errors.As(err, &bad) { // the request worked before
		s.lose(c, err)
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if current, _ := s.conn.Peek(); current != c {
		return false, err
	}
	if err != nil {
		state := Degraded
		if errors.Is(err, ErrUnauthorized) {
			state = Unauthorized
		}
		s.setLocked(state, s.told(late(err, s.limits.StartTimeout)))
		return true, err
	}
	if s.status.State == Degraded || s.status.State == Unauthorized {
		s.setLocked(Ready, nil)
	}
	return true, nil
}

// rest closes a connection that had no call for Limits.IdleTimeout and has no subscription, and
// reports whether it did. If not, wait is the time until the next check.
func (s *Server) rest(c *conn) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait = s.limits.IdleTimeout - time.Since(s.called)
	if current, _ := s.conn.Peek(); current != c || s.life.Err() != nil || s.calls > 0 || len(s.subscriptions) > 0 || wait > 0 {
		return max(wait, s.limits.IdleTimeout/8), false
	}
	s.conn.Forget()
	close(c.over)
	s.running.Go(func() { c.close(exitGrace) })
	s.circuit.close()
	s.setLocked(Cached, nil)
	return 0, true
}
