package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// AddSession adds what the server of a session offers, under the name of cfg, which may
// have all settings but how to reach it. client is the one that connected the session. The
// Manager follows the server's changes. From revision 2026-07-28 of MCP on, servers tell
// these only to a client that has handlers for them: see [Following].
//
// Calls report their progress to [mcphybrid.WithProgress]. What a server reports right
// before its result may come too late, and is dropped then.
//
// The session stays the host's: it closes it, and its client answers what the server asks.
// A server that has gone does not come back: remove it, and add a new session.
func AddSession(ctx context.Context, mgr *mcphybrid.Manager, cfg mcphybrid.ServerConfig, client *mcp.Client, session *mcp.ClientSession) error {
	s := &source{
		session: session, follower: follow(client),
		listeners: make(map[string]listener), reported: make(map[string]reported),
	}
	cfg.InProcess = s
	return mgr.AddServer(ctx, cfg)
}

// Following returns opts with handlers for changes of lists where there are none, so that
// servers tell them.
func Following(opts mcp.ClientOptions) *mcp.ClientOptions {
	if opts.ToolListChangedHandler == nil {
		opts.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) {}
	}
	if opts.ResourceListChangedHandler == nil {
		opts.ResourceListChangedHandler = func(context.Context, *mcp.ResourceListChangedRequest) {}
	}
	if opts.PromptListChangedHandler == nil {
		opts.PromptListChangedHandler = func(context.Context, *mcp.PromptListChangedRequest) {}
	}
	return &opts
}

// AddServer adds what a server in this process offers, under the name of cfg, which may
// have all settings but how to reach it. The Manager follows its changes. close ends the
// connection: call it after the Manager's Close, or when the server is removed.
func AddServer(ctx context.Context, mgr *mcphybrid.Manager, cfg mcphybrid.ServerConfig, server *mcp.Server) (close func() error, err error) {
	here, there := mcp.NewInMemoryTransports()
	served, err := server.Connect(ctx, there, nil)
	if err != nil {
		return nil, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "mcphybrid", Version: "1"}, Following(mcp.ClientOptions{}))
	session, err := client.Connect(ctx, here, nil)
	if err != nil {
		return nil, errors.Join(err, served.Close())
	}
	if err := AddSession(ctx, mgr, cfg, client, session); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return session.Close, nil
}

// A source is a server for the Manager, which asks a session of the SDK.
type source struct {
	session  *mcp.ClientSession
	follower *follower

	mu        sync.Mutex
	listeners map[string]listener // the Manager's, by id
	reported  map[string]reported // calls that run, by the tokens that the server got
}

// A listener is the Manager's side of one connection.
type listener = mcpserver.ClientSession

type listenerKey struct{}

func (s *source) RegisterSession(_ context.Context, l listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[l.SessionID()] = l
	s.follower.set(s, true)
	return nil
}

func (s *source) UnregisterSession(_ context.Context, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, id)
	s.follower.set(s, len(s.listeners) > 0)
}

func (s *source) WithContext(ctx context.Context, l listener) context.Context {
	return context.WithValue(ctx, listenerKey{}, l)
}

// changed passes on that a list has changed.
func (s *source) changed(method string) {
	switch method {
	case mcpgo.MethodNotificationToolsListChanged, mcpgo.MethodNotificationResourcesListChanged, mcpgo.MethodNotificationPromptsListChanged:
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		tell(l, method, nil)
	}
}

// tell sends a notification to a listener, unless it has as many that it did not read yet.
func tell(l listener, method string, fields map[string]any) {
	n := mcpgo.JSONRPCNotification{JSONRPC: mcpgo.JSONRPC_VERSION}
	n.Method, n.Params.AdditionalFields = method, fields
	select {
	case l.NotificationChannel() <- n:
	default:
	}
}

// A response is one of JSON-RPC.
type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *problem        `json:"error,omitempty"`
}

type problem struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// problemOf returns an error as the server told it, if it did.
func problemOf(err error) *problem {
	if told, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return &problem{told.Code, told.Message, told.Data}
	}
	return &problem{Code: mcpgo.INTERNAL_ERROR, Message: err.Error()}
}

// HandleMessage answers a request of the Manager's client.
func (s *source) HandleMessage(ctx context.Context, message json.RawMessage) mcpgo.JSONRPCMessage {
	var in struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if err := json.Unmarshal(message, &in); err != nil {
		return response{JSONRPC: "2.0", ID: json.RawMessage("null"), Error: &problem{Code: mcpgo.PARSE_ERROR, Message: err.Error()}}
	}
	if in.ID == nil {
		return nil // a notification
	}
	out := response{JSONRPC: "2.0", ID: in.ID}
	var err error
	if out.Result, err = s.answer(ctx, in.Method, in.Params); err != nil {
		out.Result, out.Error = nil, problemOf(err)
	}
	return out
}

func (s *source) answer(ctx context.Context, method string, params json.RawMessage) (any, error) {
	switch mcpgo.MCPMethod(method) {
	case mcpgo.MethodInitialize:
		return s.initialize(ctx, params)
	case mcpgo.MethodPing:
		return struct{}{}, s.reach(ctx)
	case mcpgo.MethodToolsList:
		return ask(ctx, params, s.session.ListTools)
	case mcpgo.MethodToolsCall:
		return s.call(ctx, params)
	case mcpgo.MethodResourcesList:
		return ask(ctx, params, s.session.ListResources)
	case mcpgo.MethodResourcesTemplatesList:
		return ask(ctx, params, s.session.ListResourceTemplates)
	case mcpgo.MethodResourcesRead:
		return ask(ctx, params, s.session.ReadResource)
	case mcpgo.MethodPromptsList:
		return ask(ctx, params, s.session.ListPrompts)
	case mcpgo.MethodPromptsGet:
		return ask(ctx, params, s.session.GetPrompt)
	case mcpgo.MethodCompletionComplete:
		return ask(ctx, params, s.session.Complete)
	}
	return nil, &jsonrpc.Error{Code: mcpgo.METHOD_NOT_FOUND, Message: fmt.Sprintf("gosdk: there is no method %q", method)}
}

// initialize returns what the SDK's client was told, in the revision that is asked for.
func (s *source) initialize(ctx context.Context, params json.RawMessage) (any, error) {
	var asked struct{ ProtocolVersion string }
	if err := json.Unmarshal(params, &asked); err != nil {
		return nil, err
	}
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	told := *s.session.InitializeResult()
	told.ProtocolVersion = asked.ProtocolVersion
	return told, nil
}

// reach asks the server for a list that it has, to see whether it is still there. Newer
// revisions of MCP have no ping.
func (s *source) reach(ctx context.Context) (err error) {
	switch has := s.session.InitializeResult().Capabilities; {
	case has == nil:
	case has.Tools != nil:
		_, err = s.session.ListTools(ctx, nil)
	case has.Resources != nil:
		_, err = s.session.ListResources(ctx, nil)
	case has.Prompts != nil:
		_, err = s.session.ListPrompts(ctx, nil)
	}
	return err
}

// ask passes on a request.
func ask[P, R any](ctx context.Context, params json.RawMessage, call func(context.Context, *P) (*R, error)) (any, error) {
	var p P
	if len(params) > 0 {
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
	}
	return call(ctx, &p)
}

func (s *source) call(ctx context.Context, params json.RawMessage) (any, error) {
	var in struct {
		Meta      mcp.Meta `json:"_meta"`
		Name      string
		Arguments json.RawMessage
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	defer s.report(ctx, in.Meta)()
	call := &mcp.CallToolParams{Meta: in.Meta, Name: in.Name}
	if in.Arguments != nil {
		call.Arguments = in.Arguments // numbers keep their digits
	}
	return s.session.CallTool(ctx, call)
}
