package codemode

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
)

// ToolName is the tool's own name. The model knows it by the registered one, which begins with the
// name that the host gives to AddTools: mcp_code__run_script.
const ToolName = "run_script"

// Options bound a script. A limit that is zero or negative has its default.
type Options struct {
	// Calls is how many calls of tools and searches a script may make: 100 by default.
	Calls int

	// Steps is how many steps it may take, each about an expression that is evaluated: 10 million
	// by default.
	Steps int

	// Memory is how many bytes the values may have that it makes, all together, also those that
	// it does not need any more: 128 MiB by default.
	Memory int

	// Time is how long it may run, not counting its calls: 10 seconds by default. The call
	// timeout of [mcphybrid.Options.Limits] holds besides, and does not count calls either.
	Time time.Duration
}

const (
	defaultCalls  = 100
	defaultSteps  = 10_000_000
	defaultMemory = 128 << 20
	defaultTime   = 10 * time.Second
)

// maxScript is how many bytes a script may have: parsing and changing it takes some thousand times
// that.
const maxScript = 32 << 10

// description is short, since each request carries it. It never changes.
const description = "Runs JavaScript that calls MCP tools, and shows you only what it returns. Use it where a task takes several calls, or little of a long result. " +
	"await tools.NAME({…}), as in tools.mcp_github__list_issues({state: \"open\"}), returns a tool's structured content, or else its text, and throws if it fails. " +
	"First return search(\"keywords\"), or search(\"select:NAME,NAME\"), to read signatures. There are no files, network, modules, timers or clock."

// Tool returns the tool that runs scripts, for [mcphybrid.Manager.AddTools]. It asks to be inline,
// and its definition is always the same. opts may be nil.
//
// The tool works for each session of the Manager that may use it, and for the tools that this
// session may use.
func Tool(opts *Options) server.ServerTool {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Calls, o.Steps = cmp.Or(max(o.Calls, 0), defaultCalls), cmp.Or(max(o.Steps, 0), defaultSteps)
	o.Memory, o.Time = cmp.Or(max(o.Memory, 0), defaultMemory), cmp.Or(max(o.Time, 0), defaultTime)
	tool := mcp.NewTool(ToolName, mcp.WithDescription(description),
		mcp.WithString("script", mcp.Required(), mcp.Description("The body of an async function; it ends with return")))
	tool.Annotations = mcp.ToolAnnotation{}
	tool.Meta = mcp.NewMetaFromMap(map[string]any{"anthropic/alwaysLoad": true})
	return server.ServerTool{Tool: tool, Handler: func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		script := withoutFence(request.GetString("script", ""))
		session, ok := ctx.Value(sessionKey{}).(*mcphybrid.Session)
		if !ok {
			session = mcphybrid.SessionFrom(ctx)
		}
		switch {
		case session == nil:
			return mcp.NewToolResultError("A script runs only in a call of a session."), nil
		case ctx.Value(running{}) != nil:
			return mcp.NewToolResultError("A script can't run another one."), nil
		case len(script) > maxScript:
			return mcp.NewToolResultErrorf("The script has %d bytes, more than the limit of %d. Divide the task.", len(script), maxScript), nil
		}
		returned, err := runScript(context.WithValue(ctx, running{}, true), session, script, o)
		if err != nil {
			return mcp.NewToolResultError(strings.ToUpper(err.Error()[:1]) + err.Error()[1:]), nil
		}
		return mcp.NewToolResultText(returned), nil
	}}
}

type sessionKey struct{}

// WithSession returns a context for a call of the model's by which a script may use the tools of
// another session than the model's own. So the model can be in a session that has nothing but
// the tool that runs scripts, and its requests carry no other definition and no section:
//
//	work := mgr.NewSession(nil)
//	model := work.NewChild(&mcphybrid.SessionOptions{Access: mcphybrid.Access{
//		Allow: []string{"mcp_code__run_script", mcphybrid.PageToolName}}})
//	…
//	res, err := model.Call(codemode.WithSession(ctx, work), call.Name, call.Arguments)
func WithSession(ctx context.Context, s *mcphybrid.Session) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

// running is in the context of calls that scripts make.
type running struct{}

// isOwn reports whether t is the tool that runs scripts.
func isOwn(t *mcphybrid.BridgeTool) bool {
	return t.OriginalName() == ToolName && t.Description() == description
}

// withoutFence returns a script without the fence of Markdown around it.
func withoutFence(script string) string {
	lines := strings.Split(strings.TrimSpace(script), "\n")
	if n := len(lines); n > 2 && strings.HasPrefix(lines[0], "```") && lines[n-1] == "```" {
		lines[0], lines[n-1] = "", "" // lines keep their numbers
		return strings.Join(lines, "\n")
	}
	return script
}
