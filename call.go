package mcphybrid

// A call by name, from the look-up to the result. refusals.go has what the model reads of a refused one.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/nearest"
	"github.com/mcphybrid/mcphybrid/internal/result"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// A ToolCall is a call that passed all checks: its tool is known and permitted,
// and the model's arguments fit the tool's schema.
type ToolCall struct {
	Session   *Session
	Tool      *BridgeTool
	Arguments json.RawMessage // a JSON object
	FromApp   bool            // it is an app's: see [Session.CallFromApp]
	FromCode  bool            // it is made by code of the model's: see [Session.CallFromCode]
}

// A callKind says who reads the result of a call, and which tools may be called.
type callKind uint8

const (
	callByModel  callKind = iota
	callByBridge          // by the model, with the call tool
	callToRead            // likewise, of a tool that says that it only reads
	callFromApp           // by a page of the tool's server
	callFromCode          // by code that the model wrote
)

// A Handler makes a call. It returns either a result or an error.
type Handler func(ctx context.Context, call ToolCall) (*mcp.CallToolResult, error)

// A Middleware wraps a handler to log, approve, limit or change calls. It can
// decide by the tool's Annotations. It runs before the tool is activated: a call
// that it does not pass on activates nothing. The model reads the text of an error
// that it returns.
type Middleware func(next Handler) Handler

// Call runs the tool that the model called: a tool by its registered name, or a
// meta tool. args is a JSON object in any of the forms that providers' clients
// use: a string, []byte or [json.RawMessage] with JSON, a map, or nil.
//
// Every call of a tool takes the same steps, whether it comes from here, from a
// meta tool or from a registry:
//
//  1. Look up the tool. If the name is unknown, its server may be down: one that has never
//     listed its tools, or whose tool a saved state has. Then connect that server, wait for
//     it and look again. Else suggest the nearest names.
//  2. Check that the session may use it. [ReadOnlyCallToolName] also checks that it only
//     reads.
//  3. Remove a null for an optional parameter that can't be null, and validate
//     the arguments.
//  4. Run [Options.Middleware]. The tool that it passes on is looked up and checked again.
//     Arguments that it changes are the host's: they are not validated again.
//  5. Activate the tool if it is deferred, unless the session works [ByBridge].
//  6. Run it, unless it was held back meanwhile: what nobody accepted is not called.
//  7. Take the part of the result that [ServerConfig].ResultSelect asks for, and cut one longer
//     than [Options.MaxResult].
//
// A call that fails in steps 1 to 4 activates nothing.
//
// The result is never nil: always pass it to the model. If the tool ran, the
// result is the tool's and the error is nil, even if the tool itself failed.
// Otherwise the result explains the failure to the model, and the error explains
// it to the host. A meta tool has an error only if its arguments are no object: other mistakes
// are answered in words. The error may wrap [ErrUnknownTool], [ErrNotPermitted],
// [ErrBadArguments], [ErrQuarantined], [ErrChanged], [ErrServerDown], [ErrClosed],
// [context.DeadlineExceeded] after a call timeout, or an error of the server or a
// middleware.
//
// Where a server's result has more than 64 KiB, and its structured content more than 20,000
// values, StructuredContent is not decoded, for middleware too: it is the [json.RawMessage] that
// RawStructuredContent is.
func (s *Session) Call(ctx context.Context, name string, args any) (*mcp.CallToolResult, error) {
	t := s.metaNamed(s.view(), name)
	if t == nil {
		return s.callTool(ctx, name, args, callByModel)
	}
	raw, err := schema.Arguments(args)
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(t.(metaTool).kind, err)), fmt.Errorf("mcphybrid: %w for %q: %w", ErrBadArguments, name, err)
	}
	return t.Call(ctx, raw)
}

// CallFromCode is [Session.Call] for code that the model wrote, in the sandbox of a provider
// (see [SessionOptions.AllowedCallers]) or of the host. The steps are the same, but for what
// follows from it that the code reads the result and not the model: nothing is activated, so
// the model is not sent the definition; the result is not cut, and what it links to can't be
// read for that. name is the registered name of a tool; a meta tool is unknown.
//
// In the handler of a Go tool that runs such code, the call does not count towards the call
// timeout of that tool.
func (s *Session) CallFromCode(ctx context.Context, name string, args any) (*mcp.CallToolResult, error) {
	defer hostcode.Hold(ctx)()
	return s.callTool(ctx, name, args, callFromCode)
}

// callTool calls a tool for the model or its code.
func (s *Session) callTool(ctx context.Context, name string, args any, kind callKind) (*mcp.CallToolResult, error) {
	start := time.Now()
	name = name[:min(len(name), maxAskedName)]
	v := s.view()
	t, err := s.toolToCall(v, name)
	if unknown := new(UnknownToolError); errors.As(err, &unknown) {
		if of, away := s.awayTool(v, name, unknown.Connecting != ""); of != nil {
			if there, down := s.tenant.manager.connectServer(ctx, of, away.Server); down != nil {
				err = upstream.About(down, "tool", away.Own, away.Server)
			} else if there {
				v = s.view()
				t, err = s.toolToCall(v, name)
			}
		}
	}
	if err == nil && kind == callToRead && !t.def.ReadOnly() {
		err = &permissionError{name: name, writes: true}
	}
	var res *mcp.CallToolResult
	if err == nil {
		res, err = s.callFound(ctx, t, args, kind)
	}
	took := time.Since(start)
	s.count(t, took, err != nil || res.IsError)
	e := Event{Kind: EventCall, Tools: []string{name}, Took: took, Err: err, FromCode: kind == callFromCode}
	if err == nil {
		e.ToolError = result.Failure(res)
	}
	if t != nil {
		e.Server = t.def.Server
	}
	s.emit(e)
	if err != nil {
		return mcp.NewToolResultError(s.refusalFor(v, name, err)), err
	}
	return res, nil
}

// awayTool returns the owner of a tool that is not here but whose server may have it: a
// tool that a saved state shows, or one of a server that was never up, unless the caller has
// seen that one connecting. It is nil if there is none that the session may use.
//
// The server may have listed its tools since v, or may be connecting by now. What counts is
// that v has no list of it: then the caller waits until it is connected, and looks again.
func (s *Session) awayTool(v *view, name string, connecting bool) (of *owner, t rules.Subject) {
	if kept := v.restored[name]; kept != nil {
		return kept.owner, kept.def.subject()
	}
	if connecting {
		return nil, t
	}
	of, t = s.tenant.manager.unlistedServerOf(name, v.catalogs)
	if of == nil || !v.rights.Permit(t) || !rules.Access(s.tenant.opts.Access).Permits(t) || !s.tenant.manager.permits(of, t) {
		return nil, t
	}
	return of, t
}

// toolToCall returns the tool with that name if the session may call it.
func (s *Session) toolToCall(v *view, name string) (*BridgeTool, error) {
	if v.ended {
		return nil, prefixed(ErrClosed, "")
	}
	t, _ := v.lookup(name)
	kept := v.restored[name]
	if kept != nil { // another tool of this name is not what the model means
		t = v.same(kept.BridgeTool)
	}
	if t != nil {
		return t, nil
	}
	if t, _ := v.find(name); t != nil && (kept == nil || t.is(kept.BridgeTool)) {
		return nil, &permissionError{name: name}
	}
	if held := v.quarantined(name); held != nil {
		if !v.rights.Permit(held.def.subject()) {
			return nil, &permissionError{name: name}
		}
		return nil, held
	}
	connecting, isConnecting := s.tenant.manager.connecting(name)
	if isConnecting && !v.rights.Permit(connecting) {
		connecting = rules.Subject{} // who may not use it does not learn that a server comes
	}
	removed := v.removed(name)
	if removed != nil && !v.rights.Permit(removed.subject) {
		return nil, &permissionError{name: name}
	}
	unknown := &UnknownToolError{Name: name, Connecting: connecting.Server}
	if removed != nil {
		unknown.Gone = removed.since
		return nil, unknown
	}
	if kept != nil {
		if _, there := s.tenant.manager.status(kept.owner, kept.def.Server); !there {
			unknown.Away = kept.def.Server
			return nil, unknown
		}
	}
	if unknown.Away = s.awayServerOf(v, name); unknown.Away != "" {
		return nil, unknown
	}
	unknown.Nearest = nearest.Names(name, func(yield func(string) bool) {
		for t, st := range v.each() {
			if st != hidden && !yield(t.name) {
				return
			}
		}
	}, maxNearest)
	return nil, unknown
}

// callFound makes a call of a tool that may be called, from the check of its arguments on.
// Every call goes through it, those of apps too.
func (s *Session) callFound(ctx context.Context, t *BridgeTool, args any, kind callKind) (*mcp.CallToolResult, error) {
	refused := func(written []byte, more int, violations ...Violation) error {
		e := &ArgumentsError{Tool: t.name, Violations: violations, More: more, Schema: t.InputSchema()}
		if kind != callFromApp { // the model is told how often it made the same call
			e.Repeated = s.countRefusal(t.name, written)
		}
		return e
	}
	raw, err := schema.Arguments(args)
	if err != nil {
		return nil, refused(schema.Written(args, err), 0, Violation{Problem: text.Line(err.Error(), maxErrorLength)})
	}
	raw = schema.DropNulls(raw, t.def.InputSchema)
	if problems, more := s.tenant.validators.Of(t.def.InputSchema).Validate(raw); len(problems) > 0 {
		return nil, refused(raw, more, publicViolations(problems)...)
	}
	result, err := s.tenant.handler(ctx, ToolCall{Session: s, Tool: t, Arguments: raw, FromApp: kind == callFromApp, FromCode: kind == callFromCode})
	if err == nil && result == nil {
		err = errors.New("mcphybrid: a middleware returned neither a result nor an error")
	}
	if err != nil {
		return nil, err
	}
	if kind == callFromApp || kind == callFromCode {
		return result, nil
	}
	s.link(t.origin(), result.Content)
	// The host's code may have made the result: its JSON is of the host's making too.
	return hostcode.Call("the tool's result", func() (*mcp.CallToolResult, error) { return s.serve(ctx, t, result, kind), nil })
}

// wrapped returns the handler that makes calls, wrapped in middleware.
func wrapped(middleware []Middleware) Handler {
	handler := func(ctx context.Context, c ToolCall) (*mcp.CallToolResult, error) {
		if c.Session == nil || c.Tool == nil {
			return nil, errors.New("mcphybrid: a middleware passed on a call without a session or a tool")
		}
		return c.Session.execute(ctx, c)
	}
	for i, wrap := range slices.Backward(middleware) {
		wrapped, what := wrap(handler), fmt.Sprintf("mcphybrid: Options.Middleware[%d]", i)
		handler = func(ctx context.Context, c ToolCall) (*mcp.CallToolResult, error) {
			return hostcode.Call(what, func() (*mcp.CallToolResult, error) { return wrapped(ctx, c) })
		}
	}
	return handler
}

// execute activates and runs the tool, behind all middleware. Meanwhile a person
// may have approved the call, the tool may have changed, and a middleware may have
// replaced it.
func (s *Session) execute(ctx context.Context, c ToolCall) (*mcp.CallToolResult, error) {
	changed := func(now *BridgeTool) error {
		if now.owner == c.Tool.owner && (now.def == c.Tool.def || now.def.Trusted.Hash() == c.Tool.def.Trusted.Hash()) {
			return nil
		}
		return fmt.Errorf("mcphybrid: tool %q was not called: %w", now.name, ErrChanged)
	}
	t, err := s.toolToCall(s.view(), c.Tool.name)
	if c.FromApp {
		t, err = s.appTool(c.Tool.def.Server, c.Tool.def.Own)
	}
	if err == nil {
		err = changed(t)
	}
	if err != nil {
		return nil, err
	}
	if !c.FromApp && !c.FromCode && s.Disclosure() != ByBridge && !s.inUse(t) {
		callable, without := s.activate(s.view().withNeeded([]string{t.name}))
		switch {
		case isNamed(callable, t.name):
			if t = callable[0]; changed(t) != nil { // while the registry took it
				return nil, changed(t)
			}
		case !isNamed(without, t.name): // the tool has just left the catalog
			if _, err := s.toolToCall(s.view(), t.name); err != nil {
				return nil, err
			}
			return nil, &UnknownToolError{Name: t.name}
		}
	}
	return t.Call(broker.WithCaller(context.WithValue(ctx, sessionKey{}, s), s.caller), c.Arguments)
}

// countRefusal records a rejected call and returns how many times in a row the same
// call was rejected before.
func (s *Session) countRefusal(name string, args json.RawMessage) int {
	sum := sha256.Sum256(slices.Concat([]byte(name), []byte{0}, args))
	text := hex.EncodeToString(sum[:8])
	s.mu.Lock()
	defer s.mu.Unlock()
	before := 0
	if s.refused != nil && s.refused.Sum == text {
		before = s.refused.Times
	}
	s.refused = &saved.Refusal{Sum: text, Times: before + 1}
	return before
}
