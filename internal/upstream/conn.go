package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A conn is one live connection to a server. dial creates it and open prepares
// it before other goroutines use it.
type conn struct {
	number  int // of the connections to the server, from 1
	client  *client.Client
	process *process         // nil unless the server is a child
	http    bool             // it uses streamable HTTP
	sse     *sseTransport    // nil unless it uses the older HTTP
	own     *ownTransport    // of this connection alone, or nil
	changed chan struct{}    // capacity 1: the server said that its lists changed
	tools   announcedChanges // which changes of tools the server announced
	differs chan struct{}    // capacity 1: another process has other lists
	hears   chan struct{}    // capacity 1: the server acknowledged a subscription
	ended   chan error       // gets the end of the subscription that was made before the first listing; or nil
	forgets chan struct{}    // capacity 1: a subscription to a resource of a child has ended
	over    chan struct{}    // closed when the connection is no longer used
	opened  time.Time        // when it became ready

	unsubscribe context.CancelFunc // ends that subscription
	endReplies  context.CancelFunc // ends those to the server's requests over HTTP; nil without HTTP

	silent   atomic.Bool                         // server/discover got no answer in time
	changing atomic.Bool                         // requests have headers that are not in the configuration, such as a login's
	fresh    atomic.Int64                        // how long the lists may be kept, a time.Duration; 0 if the server does not say
	mirrored atomic.Pointer[map[string]mcp.Tool] // by name: see listing
	progress progressTable
	stream   *serverStream // nil unless it uses streamable HTTP
	streams  resourceStreams
	updated  func(mcp.JSONRPCNotification) // takes updates of resources
	broker   *broker.Broker                // takes the server's questions; nil if nobody answers any
	logLevel mcp.LoggingLevel              // least level of log messages to request, or ""
	protocol string                        // the version to speak, or "" for any

	instructions string // how to use the server, as it says; "" if it says nothing
}

// dial creates a connection to the server and starts the child if there is a
// command. It does not wait for an answer. The server's questions are counted in
// asked.
func dial(cfg *Config, l config.Limits, hide *secrets, asked *broker.Counter, how manner) (*conn, error) {
	c := &conn{changed: make(chan struct{}, 1), differs: make(chan struct{}, 1), hears: make(chan struct{}, 1), forgets: make(chan struct{}, 1), over: make(chan struct{}), logLevel: cfg.LogLevel, protocol: cfg.Protocol}
	c.broker = broker.New(broker.Config{Server: cfg.Name, User: cfg.User, Options: cfg.Ask, Log: cfg.Log, Counter: asked})
	g := guard{maxMessage: l.MaxMessage, maxValues: l.MaxValues, preferEarlier: c.broker != nil && cfg.Protocol == "" && cfg.Command == "", unsolicited: &unsolicited{max: l.MaxUnasked, maxBytes: l.MaxMessage}, silent: &c.silent, large: newBypass()}
	answers := answers(c.broker, cfg.supported())
	if how == handshake || cfg.Protocol != "" && !mcp.IsModernProtocol(cfg.Protocol) {
		//lint:ignore SA1019 for servers that refuse the version they offer
		answers = append(answers, client.WithLegacyProtocolOnly())
	}
	switch {
	case cfg.InProcess != nil:
		c.client = client.NewClient(newInProcessTransport(cfg.InProcess, g, c.broker), answers...)
	case cfg.URL != "":
		if how != olderHTTP {
			c.stream = &serverStream{answered: make(chan struct{})}
		}
		web, err := c.httpClient(cfg, g, hide, how == olderHTTP)
		if err != nil {
			return nil, err
		}
		log := slog.New(secretHandler{cfg.Log.Handler(), hide}).With("server", cfg.Name)
		if how == olderHTTP {
			if c.sse, err = newSSETransport(cfg, g, web, log); err != nil {
				return nil, err
			}
			c.broker = nil // the server can't ask: see eventBody
			c.client = client.NewClient(c.sse)
			break
		}
		c.http = true
		// A server that is slow to start is not an old one: over HTTP, old ones answer too.
		answers = append(answers, client.WithDiscoverTimeout(max(l.StartTimeout/2, time.Millisecond)))
		options := []transport.StreamableHTTPCOption{transport.WithHTTPBasicClient(web), transport.WithHTTPLogger(log)}
		probe, err := transport.NewStreamableHTTP(cfg.URL, options...)
		if err != nil {
			return nil, err
		}
		//lint:ignore SA1019 servers before 2026-07-28 announce changes there, and some ask only there
		t, err := transport.NewStreamableHTTP(cfg.URL, append(options, transport.WithContinuousListening())...)
		if err != nil {
			return nil, err
		}
		c.client = client.NewClient(httpTransport{t, probe, g, cfg.Unauthorized(nil), new(atomic.Pointer[error]), c.broker}, answers...)
	default:
		p, err := startProcess(&cfg.Server, hide)
		if err != nil {
			return nil, err
		}
		c.process = p
		frames := newFrameReader(p.words, l.MaxMessage, l.MaxValues, g.unsolicited, p.expectExit)
		frames.begins = p.words.areOver
		frames.large = g.large
		t := transport.NewIO(frames, p, nil)
		transport.WithCommandLogger(slog.New(slog.DiscardHandler))(t) // it would log the end of a pipe once per request
		c.client = client.NewClient(stdioTransport{t, g, c.broker}, answers...)
	}
	// Handlers run on the goroutine that reads messages: they must not wait for one.
	c.client.OnNotification(func(n mcp.JSONRPCNotification) {
		switch n.Method {
		case mcp.MethodNotificationToolsListChanged:
			c.tools.announce()
		case mcp.MethodNotificationSubscriptionsAcknowledged:
			if c.streams.acknowledged(n) {
				return
			}
			c.tellChanged() // the server announced no earlier changes
			tell(c.hears)   // last: who hears it takes that back
		}
		switch n.Method {
		case mcp.MethodNotificationToolsListChanged, mcp.MethodNotificationResourcesListChanged, mcp.MethodNotificationPromptsListChanged:
			c.tellChanged()
		case string(mcp.MethodNotificationProgress):
			c.progress.tell(n, cfg.Log)
			return
		case string(mcp.MethodNotificationCancelled):
			c.broker.Withdraw(n)
		case mcp.MethodNotificationResourceUpdated:
			c.updated(n)
		}
		if cfg.OnNotification != nil {
			hostcode.Logged(cfg.Log, "ServerConfig.OnNotification", func() { cfg.OnNotification(n) })
		}
	})
	return c, nil
}

// answers returns the options of a client that answers what d can answer, and supports
// these extensions.
func answers(d *broker.Broker, extensions map[string]any) []client.ClientOption {
	can := d.Capabilities()
	can.Extensions = extensions
	options := []client.ClientOption{client.WithClientCapabilities(can)}
	if can.Elicitation != nil {
		options = append(options, client.WithElicitationHandler(d))
	}
	if can.Sampling != nil {
		options = append(options, client.WithSamplingHandler(d))
	}
	if can.Roots != nil {
		options = append(options, client.WithRootsHandler(d))
	}
	return options
}

// tellChanged makes watch list all again. It never blocks.
func (c *conn) tellChanged() { tell(c.changed) }

func tell(told chan struct{}) {
	select {
	case told <- struct{}{}:
	default:
	}
}

// isOver reports whether the connection is no longer used.
func (c *conn) isOver() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// exited returns a channel that is closed when the child or the stream of all answers
// has ended, or nil if there is neither.
func (c *conn) exited() <-chan struct{} {
	switch {
	case c.process != nil:
		return c.process.exited
	case c.sse != nil:
		return c.sse.gone.Done()
	}
	return nil
}

// ending returns why exited is closed.
func (c *conn) ending() error {
	if c.process != nil {
		return c.process.err
	}
	return context.Cause(c.sse.gone)
}

// newTransport returns an HTTP transport that shares no connection with others,
// so that closing a server closes its connections.
func newTransport() *http.Transport {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t = t.Clone()
		t.MaxIdleConnsPerHost = t.MaxIdleConns // there is only one host
		return t
	}
	// The host program replaced http.DefaultTransport with another type.
	return &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
}

// open initializes the connection.
func (c *conn) open(ctx context.Context) error {
	// mcp-go ends the connection with this context. Ours outlives open.
	if c.sse != nil {
		if err := c.sse.begin(ctx, c.client); err != nil {
			return err
		}
	} else if err := c.client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	var hello mcp.InitializeRequest
	hello.Params.ClientInfo = mcp.Implementation{Name: "mcphybrid", Version: version()}
	hello.Params.ProtocolVersion = c.protocol
	said, err := c.client.Initialize(ctx, hello)
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	c.instructions = text.Cut(said.Instructions, MaxInstructions)
	if err := c.speaks(c.protocol); err != nil {
		return err
	}
	if c.logLevel != "" && c.client.GetServerCapabilities().Logging != nil {
		var r mcp.SetLevelRequest
		r.Params.Level = c.logLevel
		//lint:ignore SA1019 servers before 2026-07-28 have it
		if err := c.client.SetLevel(ctx, r); err != nil && (isLost(err) || ctx.Err() != nil) {
			return fmt.Errorf("logging/setLevel: %w", err)
		} // otherwise, the server chooses the level
	}
	return nil
}

// isModernHTTP reports whether the connection uses HTTP and protocol 2026-07-28 or
// later. Then the client must send some arguments as headers too.
func (c *conn) isModernHTTP() bool {
	return c.http && c.isModern()
}

func (c *conn) isModern() bool { return c.client.ProtocolVersion() >= mcp.ProtocolVersion20260728 }

// mirror returns the headers that a call must have because of its arguments.
func (c *conn) mirror(tool string, args any) http.Header {
	mirrored := c.mirrored.Load()
	if mirrored == nil {
		return nil
	}
	t, ok := (*mirrored)[tool]
	if !ok {
		return nil
	}
	params, err := json.Marshal(map[string]any{"arguments": args})
	if err != nil {
		return nil
	}
	header := make(http.Header)
	for name, value := range mcp.GenerateParamHeaders(&t, params) {
		header.Set(name, value)
	}
	return header
}

// explain returns how the child ended if that is the reason for err, else err.
func (c *conn) explain(err error) error {
	if c.process == nil || !isLost(err) {
		return err
	}
	// The pipes close before the process is reaped. A child that only closes its
	// output is killed after termGrace: see expectExit.
	if c.process.waitExit(5 * termGrace) {
		return c.process.err
	}
	if reason := c.process.killed.Load(); reason != nil {
		return *reason
	}
	return err
}

// close ends the connection and waits until the child is gone. The child has
// grace to end by itself.
func (c *conn) close(grace time.Duration) {
	c.broker.Close()
	if c.endReplies != nil {
		c.endReplies()
	}
	if c.http && c.unsubscribe != nil {
		c.unsubscribe()
	}
	_ = c.client.Close() // an error of a connection that we end does not matter
	if c.process != nil {
		c.process.stop(grace)
	}
	if c.own != nil {
		c.own.end()
	}
}

// version returns the version of this module in the running program.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionIn(info)
}

// versionIn returns the version of this module in a program, of which nothing may be known.
func versionIn(info *debug.BuildInfo) string {
	if info == nil {
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
