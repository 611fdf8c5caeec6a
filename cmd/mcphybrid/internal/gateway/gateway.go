package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/files"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/figures"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/trust"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/version"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/debug"
	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/store"
)

type gatewayOptions struct {
	servers  []mcphybrid.ServerConfig
	source   *source // of the servers; nil if they never change
	ancestry string  // see ancestryVariable
	cache    store.Document
	learn    *mcphybrid.LearnOptions // nil if searches don't learn
	tokens   store.Tokens
	follow   []string         // names of clients
	ask      bool             // servers may ask clients
	logLevel mcp.LoggingLevel // the level that servers are asked for
	wait     time.Duration    // how long a client waits for the servers before it is answered without them
	insists  bool             // the user has said how long: it holds for clients in a hurry, too
	grace    time.Duration    // for running calls, after the signal to end
	limits   limits.Limits
	log      *slog.Logger
	onScreen bool // a screen tells how the servers start

	logCalls     bool // log each call
	logArguments bool // and its arguments
	trust        trust.Options
	guide        debug.Guide // of operators
}

// A gateway is an MCP server with the tools, resources and prompts of a Manager. mcp-go keeps one table of
// tools for all clients, but here each client has a Session, which knows the tools that
// it may list and call. So mcp-go's table has a single tool, which receives every call,
// and lists come from the Session.
//
//	client ── initialize ──▶ client of its own, with a Session
//	       ── tools/list ──▶ Session.Tools
//	       ── tools/call ──▶ one tool of mcp-go ──▶ Session.Call ──▶ server
type gateway struct {
	opts     gatewayOptions
	instance string // by which it knows itself
	mgr      *mcphybrid.Manager
	front    *server.MCPServer
	direct   wire.Sink        // the sink of the only client, or nil
	lines    *wire.LineWriter // is direct, if that is there
	opened   openCalls
	book     *callBook
	figures  *figures.Figures
	followed []*files.Followed
	servers  atomic.Pointer[[]mcphybrid.ServerConfig] // as they should be; shared, do not modify
	logins   *debug.Logins
	numbers  atomic.Uint64 // of clients
	starts   starts
	updates  follows
	all      context.Context    // ends when all servers have started or failed
	waiting  context.Context    // ends with begin, or when a client stops waiting
	begin    context.Context    // the start of the servers
	abandon  context.CancelFunc // ends begin
	started  sync.WaitGroup

	calls    context.Context // ends when calls must
	endCalls context.CancelFunc

	mu        sync.Mutex
	clients   map[string]*conversation        // by mcp-go's session ID
	listeners map[server.ClientSession]string // the server of whose endpoint, or ""
	draining  bool
	running   int        // requests that are being answered
	idle      *sync.Cond // signals that running is 0
}

// defaultWait leaves some clients time: opencode gives up after five seconds, and Codex after
// ten.
const defaultWait = 4 * time.Second

// newGateway returns a gateway and begins to start its servers.
func newGateway(opts gatewayOptions) *gateway {
	opts.limits = opts.limits.WithDefaults()
	g := &gateway{
		opts: opts, instance: rand.Text(),
		opened: openCalls{waiting: make(map[string]*openCall)}, clients: make(map[string]*conversation), listeners: make(map[server.ClientSession]string), book: newCallBook(opts.servers), figures: figures.New(), logins: new(debug.Logins),
	}
	g.idle = sync.NewCond(&g.mu)
	var ready context.CancelFunc
	g.all, ready = context.WithCancel(context.Background())
	var hurry context.CancelFunc
	g.waiting, hurry = context.WithTimeout(g.all, opts.wait)
	g.begin, g.abandon = context.WithCancel(context.Background())
	g.calls, g.endCalls = context.WithCancel(context.Background())
	g.front = g.newFront()
	g.servers.Store(&opts.servers)
	var first []mcphybrid.ServerConfig
	for _, s := range opts.servers {
		first = append(first, g.heard(s))
	}
	log := opts.log
	if opts.onScreen {
		log = slog.New(withoutStarts{log.Handler(), g.all})
	}
	g.mgr = mcphybrid.NewManager(&mcphybrid.Options{
		Servers: first, Cache: opts.cache, Learn: opts.learn, TokenStore: opts.tokens, Logger: opts.trust.Logger(log), Limits: config.Limits{StartTimeout: servers.StartTimeout}, MaxKept: opts.limits.Results,
		Trust: opts.trust.Policy, TrustStore: opts.trust.Store(), OpenURL: g.logins.Open,
		Select: newSelections(), OnEvent: g.event, Extensions: g.extensions(),
		OnResources: func(string) {
			g.tellAll(mcp.MethodNotificationResourcesListChanged, mcp.MethodNotificationPromptsListChanged)
			g.tellOwn()
		},
		Middleware: []mcphybrid.Middleware{g.attribute},
		OnRequest: func(ctx context.Context, server string) {
			if v, ok := ctx.Value(clientCallKey{}).(*clientCall); ok {
				v.reaches(server)
			}
		},
		Ask: ask.Options{Hooks: g.questions(), MaxAtOnce: maxOpenCalls * ask.DefaultMaxPerCall}, // one client's open calls leave room for another's questions
	})
	g.watchTools()
	if opts.trust.File != "" {
		known := files.Follow(g.mgr.Refresh, opts.trust.File)
		known.Quiet = true // we write it too
		g.followed = append(g.followed, known)
	}
	if opts.source != nil {
		g.followed = append(g.followed, opts.source.follow(g))
	}
	g.started.Go(func() {
		if err := g.mgr.Start(g.begin); g.begin.Err() == nil {
			g.logUntold(err)
		}
		ready()
		hurry()
	})
	return g
}

// logUntold logs each error of a start that the log does not have as the state of its server.
func (g *gateway) logUntold(err error) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	servers := g.mgr.Servers()
	for _, err := range all {
		if err == nil {
			continue
		}
		told := slices.ContainsFunc(servers, func(s mcphybrid.ServerStatus) bool {
			isAtWork := s.State == mcphybrid.StateConnecting && s.Failures == 0
			return !isAtWork && strings.HasPrefix(err.Error(), fmt.Sprintf("mcphybrid: server %q: ", s.Name))
		})
		if !told {
			g.opts.log.Warn(err.Error())
		}
	}
}

// heard returns a server whose log messages reach clients.
func (g *gateway) heard(s mcphybrid.ServerConfig) mcphybrid.ServerConfig {
	s.LogLevel = g.opts.logLevel
	s.OnNotification = func(n mcp.JSONRPCNotification) { g.hear(s.Name, n) }
	return g.asChild(s)
}

// newFront returns the MCP server that clients connect to.
func (g *gateway) newFront() *server.MCPServer {
	hooks := &server.Hooks{}
	hooks.AddOnRegisterSession(func(_ context.Context, s server.ClientSession) { g.open(s.SessionID()).registered(s) })
	hooks.AddOnUnregisterSession(func(_ context.Context, s server.ClientSession) { g.gone(s.SessionID()) })
	hooks.AddBeforeInitialize(func(_ context.Context, _ any, r *mcp.InitializeRequest) { forgetMost(&r.Params) })
	hooks.AddAfterInitialize(func(ctx context.Context, _ any, _ *mcp.InitializeRequest, r *mcp.InitializeResult) {
		// mcp-go registers the session only after the answer. The client may be
		// quicker.
		g.open(server.ClientSessionFromContext(ctx).SessionID())
		r.Instructions = g.instructions(g.client(ctx))
	})
	hooks.AddAfterDiscover(func(ctx context.Context, _ any, _ *mcp.DiscoverRequest, r *mcp.DiscoverResult) {
		r.Instructions = g.instructions(g.client(ctx))
	})
	hooks.AddAfterListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest, r *mcp.ListToolsResult) {
		r.Tools = g.list(ctx)
	})
	hooks.AddBeforeCallTool(func(_ context.Context, _ any, r *mcp.CallToolRequest) {
		r.Params.Arguments, r.Params.Name, r.Params.Task = called(r.Params.Name), anyTool, nil
	})
	front := server.NewMCPServer("mcphybrid", version.Of(),
		append(g.addResources(hooks), g.addSkills(hooks), server.WithToolCapabilities(true), server.WithLogging(), server.WithHooks(hooks))...)
	g.refuseItself(hooks)
	g.addNotices(front, hooks)
	g.addSubscriptions(hooks)
	front.AddTool(mcp.NewTool(anyTool), g.call)
	front.AddResource(mcp.NewResource(anyURI, anyPrompt), g.read)
	front.AddPrompt(mcp.NewPrompt(anyPrompt), g.prompt)
	return front
}

// anyTool is the single tool that mcp-go knows. In a call of it, Arguments hold the name
// that the client called; the original arguments are kept separately.
const anyTool = "any"

type called string

// awaitServers waits until clients wait for servers no longer, or a request must end.
func (g *gateway) awaitServers(ctx context.Context) {
	select {
	case <-g.waiting.Done():
	case <-g.calls.Done():
	case <-ctx.Done():
	}
}

// awaitListing waits until a client is to be told what there is: as long as for all servers at the
// start, and for the one that it has alone also if that came or is being replaced.
func (g *gateway) awaitListing(ctx context.Context, c *conversation) {
	g.awaitServers(ctx)
	claim, isAnew := g.starts.all()[c.server]
	if !isAnew || !c.mayHave(rules.Subject{Name: claim.Start(), Server: c.server}) {
		return
	}
	ctx, enough := context.WithTimeout(ctx, g.opts.wait)
	defer enough()
	g.awaitStart(ctx, c.server)
}

// list returns the tools that the client may call now, in the order of its Session.
func (g *gateway) list(ctx context.Context) []mcp.Tool {
	c := g.client(ctx)
	ready := c.Ask(mcp.MethodNotificationToolsListChanged)
	waits, enough := ctx, context.CancelFunc(func() {})
	if c.hurries {
		waits, enough = context.WithTimeout(ctx, hurry)
	}
	g.awaitListing(waits, c)
	enough()
	ready()
	c.told.Store(false) // the client is told of changes from here on
	if c.server != "" {
		return c.listOwn(g.opts.trust.File != "", server.IsModernRequest(ctx))
	}
	come := g.haveCome(c)
	session := c.session
	if !c.follows {
		// A Session never changes what it has shown, but a client that lists
		// again wants the current tools.
		session = g.newSession(c, "")
	}
	all := session.Tools()
	c.listed.Store(int64(len(all)))
	if come && !c.follows && !session.IsSearchMode() {
		all = withoutSearch(all)
	}
	tools := []mcp.Tool{}
	for _, t := range all {
		tools = append(tools, listed(t, g.opts.trust.File != "", server.IsModernRequest(ctx)))
	}
	return tools
}

// call runs every call of a tool.
func (g *gateway) call(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	name, _ := r.Params.Arguments.(called)
	header, args := r.Header, r.Params.RawArguments // not all of r, which an open call would keep
	q := request{"tools/call", string(name), args, r.Params.Meta}
	result, asks, err := converse(ctx, g, q, r.Params.MultiRoundTripParams, func(ctx context.Context, c *clientCall) (*mcp.CallToolResult, error) {
		if err := checkMirrored(ctx, header, c.from, string(name), args); err != nil {
			return nil, err
		}
		header = nil // it may be large, and is not needed while the call waits
		args := c.from.ownURI(string(name), args)
		g.awaitAsked(ctx, c.from, string(name), args)
		result, err := g.callTool(ctx, c.from, string(name), args)
		if result != nil {
			copied := *result
			copied.Result, copied.MultiRoundTripResult = fromHere(result.Result), mcp.MultiRoundTripResult{} // the gateway asks for itself
			if from := c.answeredBy(); from != "" {
				copied.Content = c.from.relink(from, result.Content)
			}
			result = &copied
		}
		g.tellGrown(c.from)
		c.answered(result != nil && result.IsError)
		return result, err
	})
	if asks != nil {
		return &mcp.CallToolResult{Result: mcp.Result{ResultType: mcp.ResultTypeInputRequired}, MultiRoundTripResult: *asks}, nil
	}
	if refused := refusedBy(err); refused != nil {
		return nil, refused
	}
	switch err {
	case errNotBegun:
		return mcp.NewToolResultErrorf("%s was not called: %v.", name, err), nil
	case errStopped:
		return mcp.NewToolResultErrorf("%s was stopped: %v.", name, err), nil
	}
	return result, nil // if there is an error, the result says so in words for the model
}

// fromHere returns what a server's answer says beside its content, without what it says
// to the gateway alone: which server answered, and that the answer is complete. mcp-go
// says both for the gateway to clients that know it; others show it to the model.
func fromHere(r mcp.Result) mcp.Result {
	r.ResultType = ""
	if r.Meta == nil {
		return r
	}
	meta := *r.Meta
	meta.AdditionalFields = maps.Clone(meta.AdditionalFields)
	if delete(meta.AdditionalFields, mcp.MetaKeyServerInfo); len(meta.AdditionalFields) == 0 && meta.ProgressToken == nil {
		r.Meta = nil
	} else {
		r.Meta = &meta
	}
	return r
}

// Why a request has no answer.
var (
	errNotBegun = errors.New("the gateway is shutting down")
	errStopped  = errors.New("the gateway is shutting down")
)

// pass runs a request of a client, unless the gateway is draining.
func (g *gateway) pass(ctx context.Context, q request, run func(context.Context, *clientCall) error) (err error) {
	var c *clientCall
	defer func(asked context.Context, began time.Time) { g.record(asked, q, c, began, err) }(ctx, time.Now())
	if !g.enter() {
		return errNotBegun
	}
	defer g.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.calls, cancel)()
	g.awaitServers(ctx)
	c = g.newClientCall(ctx, q.meta)
	defer c.end()
	err = g.serve(c.with(broker.Declare(ctx, g.answerable(ctx, nil)), q.meta), c, run)
	if err != nil && g.calls.Err() != nil {
		return errStopped
	}
	return err
}

// enter counts a new call unless the gateway is draining.
func (g *gateway) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining {
		return false
	}
	g.running++
	return true
}

func (g *gateway) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running--; g.running <= 0 {
		g.idle.Broadcast()
	}
}

// drain refuses new calls and returns when all running ones have answers. After a
// grace period it answers with errors. It does not wait for clients that don't read.
func (g *gateway) drain() {
	g.opened.close()
	late := time.AfterFunc(g.opts.grace, g.endCalls)
	defer late.Stop()
	giveUp := time.AfterFunc(g.opts.grace+endGrace, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running = 0
		g.idle.Broadcast()
	})
	defer giveUp.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining = true
	for g.running > 0 {
		g.idle.Wait()
	}
}

// close ends all servers.
func (g *gateway) close() {
	g.endCalls()
	g.opened.close()
	g.abandon()
	_ = g.mgr.Close() // the error of a server that we end is of no interest
	g.started.Wait()
	g.opened.running.Wait()
}
