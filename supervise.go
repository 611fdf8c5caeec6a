package mcphybrid

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A server is one configured MCP server: how it is doing, and what keeps it
// so. Whatever happens to it, one of three things follows: an attempt to
// connect, another listing of its tools over the connection that there is, or
// nothing until it is called. What either finds goes to the same place,
// publish.
type server struct {
	cfg     ServerConfig
	secrets *secrets // of cfg
	invalid error    // what is wrong with cfg, or nil
	limits  limits
	log     *slog.Logger

	// publish puts the tools that the server has now into the catalog. The
	// same tool is the same *definition each time.
	publish func(defs []*definition, problems []error) error

	life    context.Context // ends with close
	end     context.CancelFunc
	running sync.WaitGroup // goroutines

	mu     sync.Mutex
	status ServerStatus
	conn   lazy[*conn]            // there while it serves
	brief  int                    // connections in a row that were lost within maxBackoff
	calls  int                    // that have the connection
	called time.Time              // when the last of them ended
	known  map[string]*definition // by own name; only used by who lists
	listed time.Time              // when the tools were last listed; zero if never
	random *rand.Rand             // of the server's name, so that it is the same in each run
}

func newServer(cfg ServerConfig, invalid error, l limits, log *slog.Logger, publish func([]*definition, []error) error) *server {
	if cfg.StartTimeout > 0 {
		l.startTimeout = cfg.StartTimeout
	}
	if cfg.CallTimeout > 0 {
		l.callTimeout = cfg.CallTimeout
	}
	h := fnv.New64a()
	h.Write([]byte(cfg.Name))
	s := &server{
		cfg: cfg, secrets: newSecrets(&cfg, os.Environ()), invalid: invalid, limits: l, log: log, publish: publish,
		status: ServerStatus{Name: cfg.Name, State: StateConfigured, Since: time.Now()},
		known:  make(map[string]*definition),
		random: rand.New(rand.NewPCG(h.Sum64(), 0)),
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.conn = lazy[*conn]{load: s.connect, settle: s.connected, life: s.life, run: s.running.Go, mu: &s.mu}
	return s
}

// start makes the first attempt to connect, within the start timeout, and
// returns how it went. If ctx ends before, so does the attempt. If it fails,
// others follow by themselves.
func (s *server) start(ctx context.Context) error {
	s.mu.Lock()
	attempt := s.connectLocked()
	s.mu.Unlock()
	select {
	case <-attempt.ended:
	case <-ctx.Done():
		attempt.stop(ctx.Err())
		<-attempt.ended
	}
	return attempt.err
}

// begin makes the first attempt to connect in the background.
func (s *server) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connectLocked()
}

// connectLocked returns the attempt that is being made, which it begins if
// there is none.
func (s *server) connectLocked() *flight[*conn] {
	attempt, fresh := s.conn.begin()
	if fresh {
		s.status.Retry = time.Time{}
		s.setLocked(StateConnecting, nil)
	}
	return attempt
}

// connect makes an attempt: it makes a connection, reads the tools and
// publishes them, within the start timeout.
func (s *server) connect(ctx context.Context) (*conn, error) {
	if s.invalid != nil {
		return nil, s.invalid
	}
	inner, cancel := context.WithTimeout(ctx, s.limits.startTimeout)
	defer cancel()
	c, err := dial(&s.cfg, s.limits, s.log, s.secrets)
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
		err = late(err, s.limits.startTimeout)
	}
	if c != nil {
		c.close(0) // before the next attempt
	}
	return nil, s.told(err)
}

// connected notes how an attempt went. It is called with mu held.
func (s *server) connected(c *conn, err error) {
	s.status.Took = time.Since(s.status.Since) // it is connecting
	switch {
	case err == nil:
		c.opened = time.Now()
		s.called = c.opened
		s.status.Failures = 0
		s.setLocked(StateReady, nil)
		s.running.Go(func() { s.watch(c) })
		return
	case c != nil: // closed meanwhile
		s.running.Go(func() { c.close(0) })
	}
	s.status.Failures++
	s.setLocked(StateDown, err)
	s.retryLocked()
}

// told returns err as it is told: without secrets, and of bounded length.
func (s *server) told(err error) error { return text.Bounded(s.secrets.error(err)) }

// late says in err, if it is of a deadline, that this was after d.
func late(err error, d time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v: %w", d, err)
	}
	return err
}

// list reads the tools over c and publishes them.
func (s *server) list(ctx context.Context, c *conn) error {
	elements, err := c.list(ctx, s.limits)
	if err != nil {
		return c.explain(err)
	}
	defs, problems, err := parseDefinitions(ctx, s.cfg, elements, s.limits.maxDefinition)
	if err != nil {
		return err
	}
	for i, err := range problems {
		problems[i] = s.secrets.error(err)
	}
	for i, d := range defs {
		defs[i] = s.same(d)
	}
	s.mu.Lock()
	s.listed, s.status.Tools = time.Now(), len(defs)
	s.mu.Unlock()
	return s.publish(defs, problems)
}

func (s *server) lastListed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed
}

// same returns the definition of a tool that the server listed before just as
// it does now, and d if it is new or changed. Only one goroutine at a time
// lists a server's tools.
func (s *server) same(d *definition) *definition {
	if old := s.known[d.name]; old != nil && bytes.Equal(old.raw, d.raw) {
		return old
	}
	d.call = func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
		return s.call(ctx, d, args)
	}
	if len(s.known) >= 2*s.limits.maxTools { // names without end
		clear(s.known)
	}
	s.known[d.name] = d
	return d
}

// lose gives up a connection, which err says is broken, and sees to another
// one. Only the first call of it for a connection does anything.
func (s *server) lose(c *conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn.value != c || s.life.Err() != nil {
		return
	}
	s.conn.forget()
	close(c.over)
	s.running.Go(func() { c.close(0) })
	if s.brief++; time.Since(c.opened) >= maxBackoff {
		s.brief = 0
	}
	s.setLocked(StateDown, s.told(err))
	s.retryLocked()
}

// The time before an attempt doubles with each that fails, up to maxBackoff, and
// with each connection that is lost within maxBackoff.
const maxBackoff = time.Minute

// retryLocked plans the next attempt to connect.
func (s *server) retryLocked() {
	if s.limits.reconnect < 0 || s.invalid != nil || s.life.Err() != nil {
		return
	}
	wait := s.limits.reconnect << min(max(s.status.Failures+s.brief-1, 0), 16)
	wait = min(wait, max(maxBackoff, s.limits.reconnect))
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

func (s *server) setLocked(state State, err error) {
	s.status.State, s.status.Err, s.status.Since = state, err, time.Now()
}

func (s *server) snapshot() ServerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// close ends the connection, or the attempt to make one. It returns when
// nothing of it is left.
func (s *server) close() {
	s.end()
	s.mu.Lock()
	c := s.conn.value
	s.conn.forget()
	s.status.Retry = time.Time{}
	s.setLocked(StateDown, ErrClosed)
	s.mu.Unlock()
	if c != nil {
		close(c.over)
		c.close(exitGrace)
	}
	s.running.Wait()
}
