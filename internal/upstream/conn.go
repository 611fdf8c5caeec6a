package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A conn is one live connection to a server. It is opened once, before anyone
// else has it.
type conn struct {
	client  *client.Client
	process *process        // nil unless the server is a child
	http    *http.Transport // nil unless it is spoken to over HTTP
	changed chan struct{}   // holds one: the server said that its tools have changed
	over    chan struct{}   // closed once the connection is no longer used
	opened  time.Time       // when it was ready to be used

	progress progressTable
	logLevel mcp.LoggingLevel // from which on it is asked for log messages, or ""
}

// dial makes a connection to the server and, if it is a command, runs it. It
// does not wait for an answer.
func dial(cfg *Config, l Limits, hide *secrets) (*conn, error) {
	c := &conn{changed: make(chan struct{}, 1), over: make(chan struct{}), logLevel: cfg.LogLevel}
	g := guard{maxMessage: l.MaxMessage, unasked: &unasked{max: l.MaxUnasked}}
	switch {
	case cfg.InProcess != nil:
		c.client = client.NewClient(inProcessTransport{transport.NewInProcessTransport(cfg.InProcess), g})
	case cfg.URL != "":
		c.http = ownTransport()
		t, err := transport.NewStreamableHTTP(cfg.URL,
			transport.WithHTTPBasicClient(&http.Client{
				Transport:     &limitedHTTP{base: c.http, maxMessage: l.MaxMessage, unasked: g.unasked},
				CheckRedirect: sameHost,
			}),
			transport.WithHTTPHeaders(cfg.Headers),
			transport.WithHTTPLogger(slog.New(secretHandler{cfg.Log.Handler(), hide})),
		)
		if err != nil {
			return nil, err
		}
		c.client = client.NewClient(httpTransport{t, g})
	default:
		p, err := startProcess(cfg, hide)
		if err != nil {
			return nil, err
		}
		c.process = p
		t := transport.NewIO(newFrameReader(p.out, l.MaxMessage, g.unasked, p.expectExit), p, nil)
		transport.WithCommandLogger(slog.New(slog.DiscardHandler))(t) // how a pipe ends, for each that uses it
		c.client = client.NewClient(stdioTransport{t, g})
	}
	// Handlers run where messages are read: they must not wait for any.
	c.client.OnNotification(func(n mcp.JSONRPCNotification) {
		switch n.Method {
		case mcp.MethodNotificationToolsListChanged,
			mcp.MethodNotificationSubscriptionsAcknowledged: // changes before were not told
			c.tellChanged()
		case string(mcp.MethodNotificationProgress):
			c.progress.tell(n, cfg.Log)
			return
		}
		if cfg.OnNotification != nil {
			hosted(cfg.Log, func() { cfg.OnNotification(n) })
		}
	})
	return c, nil
}

// tellChanged has the tools listed again. It never waits.
func (c *conn) tellChanged() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// exited returns a channel that is closed when the server's process has ended.
func (c *conn) exited() <-chan struct{} {
	if c.process == nil {
		return nil
	}
	return c.process.exited
}

// ownTransport returns an HTTP transport that shares no connection with others,
// so that closing a server closes its connections.
func ownTransport() *http.Transport {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t = t.Clone()
		t.MaxIdleConnsPerHost = t.MaxIdleConns // all are of one server
		return t
	}
	// The host has put something else there.
	return &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
}

// open initializes the connection.
func (c *conn) open(ctx context.Context) error {
	// mcp-go ties a child to this context; ours has its own end.
	if err := c.client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	var hello mcp.InitializeRequest
	hello.Params.ClientInfo = mcp.Implementation{Name: "mcphybrid", Version: version()}
	if _, err := c.client.Initialize(ctx, hello); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if c.logLevel != "" && c.client.GetServerCapabilities().Logging != nil {
		var r mcp.SetLevelRequest
		r.Params.Level = c.logLevel
		//lint:ignore SA1019 servers before 2026-07-28 have it
		if err := c.client.SetLevel(ctx, r); err != nil && (isLost(err) || ctx.Err() != nil) {
			return fmt.Errorf("logging/setLevel: %w", err)
		} // else it logs as it likes
	}
	return nil
}

// listens reports whether the server has to be asked to tell of changes, as one
// over HTTP must be; others do so unasked.
func (c *conn) listens() bool {
	return c.http != nil && c.client.ProtocolVersion() >= mcp.ProtocolVersion20260728
}

// listen asks to be told of changes, and returns when the server tells no more.
func (c *conn) listen(ctx context.Context) error {
	return c.client.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true})
}

// list returns the elements of the server's tools/list result, as many pages
// as it has.
func (c *conn) list(ctx context.Context, limits Limits) ([]Element, error) {
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
			l.elements[i].Problem = fmt.Errorf("the x-mcp-header annotations of %q are invalid", text.Line(e.decoded, text.MaxName))
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
