// Package upstream connects one MCP server and keeps it connected: a child
// process, an HTTP endpoint or a server in this process. It limits how much the
// server may send and hides the secrets of its configuration.
//
// A [Server] passes raw data to its owner: the elements of all its lists, through
// one callback, and the results of calls. It reads of them only what the protocol asks
// of a client: which tools are tasks or want arguments as headers, how long lists are
// fresh, and whether others may have them. A Server owns its goroutines and its child. [Server.Close] ends them all,
// except a goroutine inside code that ignores its context, and one that cancels a task
// at the server, within five seconds.
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

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/internal/lazy"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Server supervises one configured MCP server. After each event it does one of
// three things: it tries to connect, it lists all again over the current
// connection, or it waits for a call. Both connecting and listing pass the lists
// to publish. The methods are safe for concurrent use.
type Server struct {
	cfg     Config
	secrets *secrets // of cfg
	limits  config.Limits
	publish func(context.Context, List) error

	life    context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup // goroutines

	circuit circuit        // of the calls
	learned learned        // from connections that were made
	asked   broker.Counter // what the server asks, over all connections

	dialled    int           // connections; for the attempt under way
	publishing chan struct{} // has one while a listing is published
	published  int           // the number of the connection whose lists were published last; for who publishes

	mu            sync.Mutex
	turn          *turn // of the attempt under way
	atWork        bool  // its clock stands still: see holdWhileAtWork
	status        Status
	feed          statusFeed               // of status
	retry         *time.Timer              // begins the next attempt, or nil
	conn          lazy.Value[*conn]        // loaded while the server is connected
	brief         int                      // connections in a row lost within maxBackoff
	calls         int                      // calls under way over conn, or waiting for it
	called        time.Time                // when the last call ended
	subscriptions map[string]*subscription // by URI
	random        *rand.Rand               // seeded with the server's name, so each run is the same
}

// New returns a server that is not started. Its limits count as they are: with a MaxTimeouts of 0
// no call is refused, with an IdleTimeout of 0 no connection is closed. The server calls publish with all
// that it lists, in order, after each listing; calls don't overlap. An error of publish
// fails the listing. publish must return soon after its context ends; the context
// has the deadline of the listing.
func New(cfg Config, limits config.Limits, publish func(ctx context.Context, all List) error) *Server {
	h := fnv.New64a()
	h.Write([]byte(cfg.Name))
	s := &Server{
		cfg: cfg, secrets: newSecrets(&cfg.Server, os.Environ()), limits: limits, publish: publish,
		circuit: newCircuit(limits), publishing: make(chan struct{}, 1), subscriptions: make(map[string]*subscription),
		status: Status{State: Configured, Since: time.Now(), entered: time.Now()},
		random: rand.New(rand.NewPCG(h.Sum64(), 0)),
	}
	if s.cfg.Unauthorized == nil {
		s.cfg.Unauthorized = func([]string) error { return errUnauthorized }
	}
	if s.cfg.Account != nil {
		s.cfg.Account.Hold, s.cfg.Account.Hides = s.secrets.hold, s.secrets.in
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.conn = lazy.Value[*conn]{Load: s.connect, Settle: s.connected, Life: s.life, Ended: ErrClosed, Run: s.running.Go, Mu: &s.mu}
	return s
}

// Start makes the first attempt to connect and returns its error. If ctx ends first, it returns
// the error of ctx, and the attempt goes on. After a failure, the server retries by itself.
//
// The attempt takes at most the start timeout, from the child's turn to start, and more while
// the child is at work: see holdWhileAtWork.
func (s *Server) Start(ctx context.Context) error { return s.Begin()(ctx) }

// Begin makes the first attempt to connect in the background. Children begin in the order of
// these calls. The rest of [Server.Start] is for the caller to call, or not.
func (s *Server) Begin() (start func(context.Context) error) {
	s.mu.Lock()
	attempt := s.connectLocked()
	s.mu.Unlock()
	return func(ctx context.Context) error {
		select {
		case <-attempt.Done():
			return attempt.Err()
		case <-ctx.Done():
		}
		select {
		case <-attempt.Done():
			return attempt.Err()
		default:
			return fmt.Errorf("%w: %w", s.whyLate(), ctx.Err())
		}
	}
}

// NotReady returns why a server that was started is not ready now, by its last attempt that
// failed or the connection that it lost, or nil if it is not away. While a first attempt is under
// way, it is why that takes long, and the error of ctx if somebody waited for it no longer than that.
func (s *Server) NotReady(ctx context.Context) error {
	st := s.Status()
	switch {
	case !st.IsAway():
		return nil
	case st.State != Connecting || st.hasFailed():
		return st.Err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", s.whyLate(), ctx.Err())
	}
	return s.whyLate()
}

// Again connects after a login. If the server was not refusing requests, it only lists
// its tools again, in the background.
func (s *Server) Again(ctx context.Context) error {
	for {
		s.mu.Lock()
		c, early := s.conn.Peek() // early began before the login
		attempt := early
		refusing := s.status.State == Unauthorized
		if c == nil {
			attempt = s.connectLocked()
			s.turn.hurry()
		}
		s.mu.Unlock()
		if c != nil && refusing {
			s.lose(c, s.cfg.Unauthorized(nil))
			continue
		}
		if c != nil {
			c.tellChanged()
			return nil
		}
		select {
		case <-attempt.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := attempt.Err(); err == nil || early == nil {
			return err
		}
	}
}

// errRestarted is why a connection ended that [Server.Restart] gave up.
var errRestarted = errors.New("it was told to restart")

// Restart gives up the connection, if there is one, and makes the next attempt at once.
// It returns the attempt's error. If ctx ends first, the attempt goes on.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	c, _ := s.conn.Peek()
	s.mu.Unlock()
	s.learned.forget()
	if c != nil {
		s.lose(c, errRestarted)
	}
	s.mu.Lock()
	attempt := s.connectLocked()
	s.turn.hurry() // somebody waits
	s.mu.Unlock()
	select {
	case <-attempt.Done():
		return attempt.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// LoggedOut gives up the connection after a logout. The next attempt to make one tells
// whether the server works without a login.
func (s *Server) LoggedOut(ctx context.Context) error {
	for {
		s.mu.Lock()
		c, attempt := s.conn.Peek()
		s.mu.Unlock()
		switch {
		case c != nil:
			s.lose(c, s.cfg.Unauthorized(nil))
			return nil
		case attempt == nil:
			return nil
		}
		select {
		case <-attempt.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// told returns err as callers see it: its cause first, without secrets and of bounded length.
func (s *Server) told(err error) error { return text.Bounded(cause.Explain(s.secrets.error(err))) }

// errOvertaken is why a listing counts no more.
var errOvertaken = errors.New("the list of a later connection was published first")

// list reads the lists over c and publishes them, unless those of a later connection are: c may
// be lost while its list is read, or while the host works on one.
func (s *Server) list(ctx context.Context, c *conn) error {
	all, err := c.list(ctx, s.limits)
	if err != nil {
		return c.explain(err)
	}
	for i, err := range all.Failed {
		if errors.Is(err, ErrUnauthorized) {
			return err
		}
		all.Failed[i] = s.told(err)
	}
	select {
	case s.publishing <- struct{}{}:
		defer func() { <-s.publishing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.number < s.published {
		return errOvertaken
	}
	if err := s.publish(ctx, all); err != nil {
		return err
	}
	s.published = c.number
	return nil
}

// lose drops connection c because of err and plans the next attempt. Only the
// first call for a connection has an effect.
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
	s.failLocked(s.told(err))
}

// setLocked records that the server is in a state, which it enters if it was in another.
func (s *Server) setLocked(state State, err error) {
	if s.status.State != state {
		wasAway := s.status.IsAway()
		s.status.State, s.status.entered = state, time.Now()
		if !wasAway || !s.status.IsAway() {
			s.status.Since = s.status.entered
		}
	}
	s.status.Err = err
	s.noteLocked()
}

// Status returns the server's current status.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.circuit.status(s.status)
}

// SetCached says that the server's tools are known from elsewhere. One that was not tried
// yet is [Cached] then: the first call connects it. SetCached reports whether these tools
// count, as they do unless the server is connected or connecting.
func (s *Server) SetCached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.status.State {
	case Down, Unauthorized: // as before
	case Configured, Cached:
		s.setLocked(Cached, nil)
	default:
		return false
	}
	return true
}

// ListAgain has a connected server list all again, in the background, because another
// process has other lists of it: at once, or after a [relistDelay] if that happens again and again.
// It reports whether the server is connected.
func (s *Server) ListAgain() bool {
	s.mu.Lock()
	c, _ := s.conn.Peek()
	s.mu.Unlock()
	if c != nil {
		tell(c.differs)
	}
	return c != nil
}

// Close ends the connection or the attempt to make one. It returns when the
// goroutines and the child are gone.
func (s *Server) Close() {
	s.end()
	s.mu.Lock()
	c, _ := s.conn.Peek()
	s.conn.Forget()
	s.stopRetryLocked()
	s.setLocked(Down, ErrClosed)
	s.mu.Unlock()
	if c != nil {
		close(c.over)
		c.close(exitGrace)
	}
	if s.cfg.Account != nil {
		s.cfg.Account.Close()
	}
	s.running.Wait()
}
