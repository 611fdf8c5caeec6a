package mcphybrid

import (
	"context"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/result"
)

// A tool that is not for the model is in no catalog's list of tools: no partition, index,
// registry or name leads to it. An app reaches it here, by its server and its own name.

// AppTools returns the tools that an app of the server may call. An app is a page of that
// server which the host shows to the user (MCP Apps). The tools are those that the session
// may use and whose _meta.ui.visibility has "app", as it does by default: first those that
// are for the model too, then the others, each in the server's order. A user's server
// comes before the system's of the same name. For an unknown server there are none.
//
// A tool whose visibility lacks "model" is here and nowhere else: no list, search, prompt
// or call of the model has it.
func (s *Session) AppTools(server string) (tools []*BridgeTool) {
	v := s.view()
	for _, t := range s.serverNamed(v, server).all() {
		if t.def.Apps.app && v.appMayUse(t) {
			tools = append(tools, t)
		}
	}
	return tools
}

// CallFromApp runs a tool for an app of the server. tool is the server's own name for it,
// by which apps call, and args are those of [Session.Call]. The steps are the same too, but
// for three things: a server that has never listed its tools is not connected, the result is not cut,
// and nothing is activated. The call is in no [snapshot.Stats].
//
// The error may wrap [ErrUnknownTool], as for a tool that is not for apps,
// [ErrNotPermitted], [ErrBadArguments], [ErrQuarantined], [ErrChanged], [ErrServerDown],
// [ErrClosed], [context.DeadlineExceeded] after a call timeout, or an error of the server or a
// middleware. With an error, the result is nil.
func (s *Session) CallFromApp(ctx context.Context, server, tool string, args any) (*mcp.CallToolResult, error) {
	start := time.Now()
	tool = tool[:min(len(tool), maxAskedName)]
	e := Event{Kind: EventCall, Tools: []string{tool}, Server: server, FromApp: true}
	t, err := s.appTool(server, tool)
	var res *mcp.CallToolResult
	if err == nil {
		e.Tools[0] = t.name
		res, err = s.callFound(ctx, t, args, callFromApp)
	}
	if e.Took, e.Err = time.Since(start), err; err == nil {
		e.ToolError = result.Failure(res)
	}
	s.emit(e)
	return res, err
}

// hasAppToolsOf reports whether c has the same tools that are for apps only as prev.
func (c *catalog) hasAppToolsOf(prev *catalog) bool {
	of := func(c *catalog) (list []*BridgeTool) {
		for _, s := range c.list.servers {
			if s != nil {
				list = append(list, s.appTools...)
			}
		}
		return list
	}
	return slices.EqualFunc(of(c), of(prev), func(a, b *BridgeTool) bool { return a.name == b.name && a.def == b.def })
}

// all returns all tools of a server: those that are for the model, then the others. s may be
// nil.
func (s *serverTools) all() []*BridgeTool {
	if s == nil {
		return nil
	}
	return slices.Concat(s.tools, s.appTools)
}

// serverNamed returns what the catalogs took of a server, or nil. A user's server that has
// listed nothing yet is not the system's of that name: its pages are not that one's.
func (s *Session) serverNamed(v *view, name string) *serverTools {
	for _, c := range slices.Backward(v.catalogs) {
		if of := c.byServer()[name]; of != nil {
			return of
		}
		if _, there := s.tenant.manager.status(c.owner, name); there {
			return nil
		}
	}
	return nil
}

// appMayUse reports whether an app may use t: as the model, were the tool for it, by the
// access lists and the rules.
func (p *partition) appMayUse(t *BridgeTool) bool {
	return p.rights.Permit(t.def.subject()) && p.policy.byRules(p.policy.matchesOf(t), p.applies, p.included).standing != hidden
}

// appTool returns the tool of that own name if an app of the server may call it.
func (s *Session) appTool(server, own string) (*BridgeTool, error) {
	v := s.view()
	if v.ended {
		return nil, prefixed(ErrClosed, "")
	}
	of := s.serverNamed(v, server)
	for _, t := range of.all() {
		switch {
		case t.def.Own != own || !t.def.Apps.app:
		case !v.appMayUse(t):
			return nil, &permissionError{name: t.name}
		default:
			return t, nil
		}
	}
	if of != nil {
		for _, e := range of.changed {
			if e.Quarantined && e.def != nil && e.def.Own == own && e.def.Apps.app && v.rights.Permit(e.def.subject()) {
				return nil, e
			}
		}
	}
	return nil, &UnknownToolError{Name: own}
}
