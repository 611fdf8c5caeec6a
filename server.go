package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// A State is how far a server is.
type State string

const (
	StateConfigured State = "configured" // known, not started
	StateConnecting State = "connecting" // starting, or listing its tools
	StateReady      State = "ready"      // serving
	StateDown       State = "down"       // failed to start, or ended
)

// A ServerStatus tells how one server is.
type ServerStatus struct {
	Name  string
	State State
	Since time.Time     // when State was entered
	Took  time.Duration // from the start until it was ready or failed
	Tools int           // in the catalog
	Err   error         // why it is down, else nil
}

// limits bound what a server may send and how long it may take.
type limits struct {
	startTimeout  time.Duration
	callTimeout   time.Duration
	maxMessage    int // bytes
	maxDefinition int // bytes
	maxTools      int // per server
}

// A server is one configured MCP server: its connection and how it is doing.
type server struct {
	cfg     ServerConfig
	invalid error // what is wrong with cfg, or nil
	limits  limits
	log     *slog.Logger

	mu      sync.Mutex
	status  ServerStatus
	conn    *conn // nil unless ready
	closed  bool
	abort   context.CancelFunc // ends start, if it runs; or nil
	started sync.WaitGroup     // done when start has returned
}

func newServer(cfg ServerConfig, invalid error, l limits, log *slog.Logger) *server {
	if cfg.StartTimeout > 0 {
		l.startTimeout = cfg.StartTimeout
	}
	if cfg.CallTimeout > 0 {
		l.callTimeout = cfg.CallTimeout
	}
	return &server{
		cfg: cfg, invalid: invalid, limits: l, log: log,
		status: ServerStatus{Name: cfg.Name, State: StateConfigured, Since: time.Now()},
	}
}

// start connects to the server and lists its tools, within the start timeout.
// The connection outlives ctx. Besides the usable tools it returns an error
// for each that is not. It is called once.
func (s *server) start(ctx context.Context) (defs []*definition, problems []error, err error) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.limits.startTimeout)
	defer cancel()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, nil, ErrClosed
	}
	s.abort = cancel
	s.started.Add(1)
	s.mu.Unlock()
	defer s.started.Done()

	s.setState(StateConnecting, nil)
	c, defs, problems, err := s.connect(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v: %w", s.limits.startTimeout, err)
	}
	err = bounded(err)

	s.mu.Lock()
	s.status.Took = time.Since(begun)
	s.status.Tools = len(defs)
	if err == nil && s.closed {
		err = ErrClosed
	}
	if err == nil {
		s.conn = c
	}
	s.mu.Unlock()
	if err != nil {
		if c != nil {
			c.close(0)
		}
		s.setState(StateDown, err)
		return nil, nil, err
	}
	s.setState(StateReady, nil)
	if c.process != nil {
		// The supervisor: it ends with the process, which ends with close.
		go func() {
			<-c.process.exited
			s.setState(StateDown, c.process.err)
		}()
	}
	return defs, problems, nil
}

// connect makes the connection and reads the tools. The connection may be
// there even if there is an error.
func (s *server) connect(ctx context.Context) (c *conn, defs []*definition, problems []error, err error) {
	if s.invalid != nil {
		return nil, nil, nil, s.invalid
	}
	if c, err = dial(&s.cfg, s.limits.maxMessage, s.log); err != nil {
		return nil, nil, nil, err
	}
	elements, err := c.list(ctx, s.limits)
	if err != nil {
		return c, nil, nil, c.explain(err)
	}
	defs, problems, err = parseDefinitions(ctx, s.cfg, elements, s.limits.maxDefinition)
	for _, d := range defs {
		d.call = func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
			return s.call(ctx, d.name, args)
		}
	}
	return c, defs, problems, err
}

func (s *server) setState(state State, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.State == StateDown && state != StateConnecting {
		return // the first reason is the one to keep
	}
	s.status.State, s.status.Err, s.status.Since = state, err, time.Now()
}

func (s *server) snapshot() ServerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// call runs a tool by its own name, within the call timeout.
func (s *server) call(ctx context.Context, tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
	s.mu.Lock()
	c, status := s.conn, s.status
	s.mu.Unlock()
	if c == nil || status.State != StateReady {
		if status.Err != nil {
			return nil, fmt.Errorf("%w: %w", ErrServerDown, status.Err)
		}
		return nil, ErrServerDown
	}
	return withTimeout(ctx, s.limits.callTimeout, func(ctx context.Context) (*mcp.CallToolResult, error) {
		var r mcp.CallToolRequest
		r.Params.Name = tool
		r.Params.Arguments = args
		result, err := c.client.CallTool(ctx, r)
		if isLost(err) {
			err = fmt.Errorf("%w: %w", ErrServerDown, err)
		}
		return result, bounded(err)
	})
}

// withTimeout calls f with a context that ends after d, and says so in the
// error if it was that.
func withTimeout(ctx context.Context, d time.Duration, f func(context.Context) (*mcp.CallToolResult, error)) (*mcp.CallToolResult, error) {
	inner, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	result, err := f(inner)
	if err != nil && inner.Err() != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("no answer within %v: %w", d, context.DeadlineExceeded)
	}
	return result, err
}

// close ends the connection, or the start that is to make one. It returns when
// nothing of it is left.
func (s *server) close() {
	s.mu.Lock()
	c := s.conn
	s.conn, s.closed = nil, true
	if s.abort != nil {
		s.abort()
	}
	s.mu.Unlock()
	s.started.Wait()
	s.setState(StateDown, ErrClosed)
	if c != nil {
		c.close(exitGrace)
	}
}

// A conn is one live connection to a server. The client is initialized once,
// before anyone else has it.
type conn struct {
	client  *client.Client
	process *process        // nil unless the server is a child
	http    *http.Transport // nil unless it is spoken to over HTTP
}

// dial makes a connection to the server and, if it is a command, runs it. It
// does not wait for an answer.
func dial(cfg *ServerConfig, maxMessage int, log *slog.Logger) (*conn, error) {
	g := guard{maxMessage: maxMessage}
	switch {
	case cfg.InProcess != nil:
		t := transport.NewInProcessTransport(cfg.InProcess)
		return &conn{client: client.NewClient(inProcessTransport{t, g})}, nil
	case cfg.URL != "":
		base := ownTransport()
		t, err := transport.NewStreamableHTTP(cfg.URL,
			transport.WithHTTPBasicClient(&http.Client{
				Transport:     &limitedHTTP{base: base, maxMessage: maxMessage},
				CheckRedirect: sameHost,
			}),
			transport.WithHTTPHeaders(cfg.Headers),
			transport.WithHTTPLogger(slog.New(withoutURLs{log.Handler()})),
		)
		if err != nil {
			return nil, err
		}
		return &conn{client: client.NewClient(httpTransport{t, g}), http: base}, nil
	default:
		p, err := startProcess(cfg)
		if err != nil {
			return nil, err
		}
		t := transport.NewIO(newFrameReader(p.out, maxMessage, p.expectExit), p, nil)
		return &conn{client: client.NewClient(stdioTransport{t, g}), process: p}, nil
	}
}

// ownTransport returns an HTTP transport that shares no connection with others,
// so that closing a server closes its connections.
func ownTransport() *http.Transport {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		return t.Clone()
	}
	// The host has put something else there.
	return &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
}

// list initializes the connection and returns the elements of the server's
// tools/list result, as many pages as it has.
func (c *conn) list(ctx context.Context, limits limits) ([]element, error) {
	// mcp-go ties a child to this context; ours has its own end.
	if err := c.client.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ClientInfo = mcp.Implementation{Name: "mcphybrid", Version: version()}
	if _, err := c.client.Initialize(ctx, hello); err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	l := &listing{limits: limits}
	result, err := c.client.ListTools(context.WithValue(ctx, listingKey{}, l), mcp.ListToolsRequest{})
	if errors.Is(err, mcp.ErrMethodNotFound) {
		return nil, nil // a server without tools
	}
	if err != nil {
		return nil, fmt.Errorf("tools/list: %w", err)
	}
	// The protocol tells a client to leave some out, which mcp-go has done.
	accepted := make(map[string]bool, len(result.Tools))
	for _, t := range result.Tools {
		accepted[t.Name] = true
	}
	for i, e := range l.elements {
		if e.decoded != "" && !accepted[e.decoded] {
			l.elements[i].problem = fmt.Errorf("the x-mcp-header annotations of %q are invalid", cleanLine(e.decoded, maxNameLength))
		}
	}
	return l.elements, nil
}

// explain adds to err how the server's process ended, if that is why.
func (c *conn) explain(err error) error {
	if c.process == nil || !isLost(err) {
		return err
	}
	// The pipes close a moment before the process is reaped.
	if c.process.waitExit(termGrace) {
		return c.process.err
	}
	return err
}

// close ends the connection, leaving a child grace to end by itself, and
// returns when nothing of it is left.
func (c *conn) close(grace time.Duration) {
	_ = c.client.Close() // how a server that we end ends is of no interest
	if c.process != nil {
		c.process.stop(grace)
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// version returns the version of this module in the running program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	const path = "github.com/mcphybrid/mcphybrid"
	if info.Main.Path == path {
		return info.Main.Version
	}
	for _, dep := range info.Deps {
		if dep.Path == path {
			return dep.Version
		}
	}
	return "unknown"
}
