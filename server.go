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

	mu     sync.Mutex
	status ServerStatus
	conn   *conn // nil unless ready
	closed bool
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
	s.setState(StateConnecting, nil)
	ctx, cancel := context.WithTimeout(ctx, s.limits.startTimeout)
	defer cancel()
	var c *conn
	if err = s.invalid; err == nil {
		c, err = dial(&s.cfg, s.limits.maxMessage, s.log)
	}
	if err == nil {
		var elements []json.RawMessage
		elements, problems, err = c.list(ctx, s.limits.maxTools)
		for i := range problems {
			problems[i] = fmt.Errorf("mcphybrid: server %q: %w", s.cfg.Name, problems[i])
		}
		if err == nil {
			var malformed []error
			defs, malformed = parseDefinitions(s.cfg.Name, s.cfg.Prefix, elements, s.cfg.Tools, s.limits.maxDefinition)
			problems = append(problems, malformed...)
		} else {
			err = c.explain(err)
			c.close(0)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v: %w", s.limits.startTimeout, err)
	}
	for _, d := range defs {
		d.call = func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
			return s.call(ctx, d.name, args)
		}
	}

	s.mu.Lock()
	s.status.Took = time.Since(begun)
	s.status.Tools = len(defs)
	if err == nil && s.closed {
		err = ErrClosed
		defer c.close(0)
	}
	if err == nil {
		s.conn = c
	}
	s.mu.Unlock()
	if err != nil {
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
		return result, err
	})
}

// withTimeout calls f with a context that ends after d, and says so in the
// error if it was that.
func withTimeout(ctx context.Context, d time.Duration, f func(context.Context) (*mcp.CallToolResult, error)) (*mcp.CallToolResult, error) {
	bounded, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	result, err := f(bounded)
	if err != nil && bounded.Err() != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("no answer within %v: %w", d, context.DeadlineExceeded)
	}
	return result, err
}

// close ends the connection. It returns when nothing of it is left.
func (s *server) close() {
	s.mu.Lock()
	c := s.conn
	s.conn, s.closed = nil, true
	s.mu.Unlock()
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
		base := http.DefaultTransport.(*http.Transport).Clone()
		t, err := transport.NewStreamableHTTP(cfg.URL,
			transport.WithHTTPBasicClient(&http.Client{
				Transport:     &limitedHTTP{base: base, maxMessage: maxMessage},
				CheckRedirect: sameHost,
			}),
			transport.WithHTTPHeaders(cfg.Headers),
			transport.WithHTTPLogger(log),
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
		t := transport.NewIO(newFrameReader(p.out, maxMessage), p, nil)
		return &conn{client: client.NewClient(stdioTransport{t, g}), process: p}, nil
	}
}

// list initializes the connection and returns the elements of the server's
// tools/list result, as many pages as it has, and an error for each element
// that the protocol tells a client to leave out.
func (c *conn) list(ctx context.Context, maxTools int) (elements []json.RawMessage, problems []error, err error) {
	// mcp-go ties a child to this context; ours has its own end.
	if err := c.client.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, nil, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ClientInfo = mcp.Implementation{Name: "mcphybrid", Version: version()}
	if _, err := c.client.Initialize(ctx, hello); err != nil {
		return nil, nil, fmt.Errorf("initialize: %w", err)
	}
	l := &listing{maxTools: maxTools}
	result, err := c.client.ListTools(context.WithValue(ctx, listingKey{}, l), mcp.ListToolsRequest{})
	if errors.Is(err, mcp.ErrMethodNotFound) {
		return nil, nil, nil // a server without tools
	}
	if err != nil {
		return nil, nil, fmt.Errorf("tools/list: %w", err)
	}
	accepted := make(map[string]bool, len(result.Tools))
	for _, t := range result.Tools {
		accepted[t.Name] = true
	}
	for i, raw := range l.elements {
		if name := l.decoded[i]; name != "" && !accepted[name] {
			problems = append(problems, fmt.Errorf("tool %d: the x-mcp-header annotations of %q are invalid", i, name))
			continue
		}
		elements = append(elements, raw)
	}
	return elements, problems, nil
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
