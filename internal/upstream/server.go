// Package upstream connects one MCP server and keeps it connected: a child
// process, an HTTP endpoint or a server in this process. It limits how much the
// server may send and hides the secrets of its configuration.
//
// A [Server] passes raw data to its owner: the elements of all its lists, through
// one callback, and the results of calls. It reads of them only what the protocol asks
// of a client: which tools are tasks or want arguments as headers, and how long lists are
// fresh. A Server owns its goroutines and its child. [Server.Close] ends them all,
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
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
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
	limits  Limits
	publish func(context.Context, List) error

	life    context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup // goroutines

	atWork  atomic.Bool    // the clock of the attempt under way stands still: see holdWhileAtWork
	circuit circuit        // of the calls
	learned learned        // from connections that were made
	asked   broker.Counter // what the server asks, over all connections

	listings   atomic.Int64  // how many were begun
	publishing chan struct{} // has one while a listing is published
	published  int64         // the number of the listing that was published last; for who publishes

	mu            sync.Mutex
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

// New returns a server that is not started. The server calls publish with all
// that it lists, in order, after each listing; calls don't overlap. An error of publish
// fails the listing. publish must return soon after its context ends; the context
// has the deadline of the listing.
func New(cfg Config, limits Limits, publish func(ctx context.Context, all List) error) *Server {
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

// Start makes the first attempt to connect and returns its error. If ctx ends first, the
// attempt ends too. After a failure, the server retries by itself.
//
// The attempt takes at most the start timeout, unless a child is at work: see
// holdWhileAtWork. Then Start returns an error after the start timeout, and the attempt goes
// on.
func (s *Server) Start(ctx context.Context) error {
	timeout := time.NewTimer(s.limits.StartTimeout)
	defer timeout.Stop()
	attempt := s.begin()
	for {
		select {
		case <-timeout.C:
			if s.atWork.Load() {
				return fmt.Errorf("no answer within %v: %w", s.limits.StartTimeout, errAtWork)
			}
			timeout.Reset(lookEach(s.limits.StartTimeout))
			continue
		case <-attempt.Done():
		case <-ctx.Done():
		}
		return end(ctx, attempt)
	}
}

// StartPatiently is Start, but for a child that is at work: it waits for it, too.
func (s *Server) StartPatiently(ctx context.Context) error { return end(ctx, s.begin()) }

// end waits for the end of an attempt, and ends it if ctx ends first.
func end(ctx context.Context, attempt *lazy.Flight[*conn]) error {
	select {
	case <-attempt.Done():
	case <-ctx.Done():
		attempt.Stop(ctx.Err())
		<-attempt.Done()
	}
	return attempt.Err()
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

// Begin makes the first attempt to connect in the background.
func (s *Server) Begin() { s.begin() }

func (s *Server) begin() *lazy.Flight[*conn] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connectLocked()
}

// connectLocked returns the attempt under way. It begins one if there is none.
func (s *Server) connectLocked() *lazy.Flight[*conn] {
	attempt, fresh := s.conn.Begin()
	if fresh {
		s.stopRetryLocked()
		var cause error
		if s.status.isAway() {
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
	s.atWork.Store(false)
	inner, release := hostcode.WithClock(ctx, s.limits.StartTimeout)
	defer release()
	how := newest
	switch {
	case s.cfg.SSE:
		how = olderHTTP
	case s.learned.silent.Load():
		how = handshake
	}
	c, err := s.open(inner, how)
	if how == handshake && err != nil {
		s.learned.silent.Store(false)
		if inner.Err() == nil {
			if c != nil {
				c.close(0)
			}
			c, err = s.open(inner, newest)
		}
	}
	if errors.Is(err, transport.ErrLegacySSEServer) {
		c.close(0)
		var again error
		if c, again = s.open(inner, olderHTTP); again == nil {
			err = nil
		} else if errors.Is(again, ErrUnauthorized) {
			err = again
		} else {
			err = fmt.Errorf("%w; and over the older transport: %w", err, again)
		}
	}
	if err == nil && !s.subscribe(inner, c) {
		c.close(0)
		c, err = s.open(inner, newest)
	}
	if err == nil {
		err = s.list(inner, c)
	} else if c != nil {
		err = c.explain(err)
	}
	if c != nil && c.isModern() && s.cfg.Protocol == "" && refusesVersion(err) {
		c.close(0)
		var again error
		if c, again = s.open(inner, handshake); again == nil {
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

// open makes a connection that is ready for requests. It may return one together with
// an error.
func (s *Server) open(ctx context.Context, how manner) (*conn, error) {
	c, err := dial(&s.cfg, s.limits, s.secrets, &s.asked, how)
	if err == nil {
		if c.process != nil {
			s.running.Go(func() { c.process.holdWhileAtWork(ctx, lookEach(s.limits.StartTimeout), s.works) })
		}
		c.updated = s.hear
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

// told returns err as callers see it: without secrets and of bounded length.
func (s *Server) told(err error) error { return text.Bounded(s.secrets.error(err)) }

// late adds the timeout d to err if err is a deadline error.
func late(err error, d time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v: %w", d, err)
	}
	return err
}

// errOvertaken is why a listing counts no more.
var errOvertaken = errors.New("a later listing was published first")

// list reads the lists over c and publishes them. The host may still work on a list when its
// connection is lost, and the next connection has another one.
func (s *Server) list(ctx context.Context, c *conn) error {
	number := s.listings.Add(1)
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
	if number < s.published {
		return errOvertaken
	}
	if err := s.publish(ctx, all); err != nil {
		return err
	}
	s.published = number
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
	wait := s.limits.backoff(s.status.Failures + s.brief - 1)
	wait -= time.Duration(s.random.Int64N(int64(wait/5) + 1)) // so that many servers don't reconnect at once
	wait = max(wait, waitOf(s.status.Err))
	at := time.Now().Add(wait)
	s.stopRetryLocked()
	s.status.Retry = at
	s.retry = time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.status.Retry.Equal(at) && s.life.Err() == nil { // not stopped a moment ago
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

// setLocked records that the server is in a state, which it enters if it was in another.
func (s *Server) setLocked(state State, err error) {
	if s.status.State != state {
		wasAway := s.status.isAway()
		s.status.State, s.status.entered = state, time.Now()
		if !wasAway || !s.status.isAway() {
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
