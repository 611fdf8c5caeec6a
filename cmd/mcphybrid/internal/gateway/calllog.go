package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/figures"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/plain"
)

// A request is what a client asks of a server.
type request struct {
	method string // such as tools/call
	name   string // of the tool or the prompt, as the client gave it
	args   any    // what else the client gave: only logged if that is asked for
	meta   *mcp.Meta
}

// reasons has why requests are refused or fail, in words of ours: the text of an error may
// quote arguments, or be the server's.
var reasons = []struct {
	err     error
	outcome figures.Outcome
	reason  string
}{
	{errNotBegun, figures.Refused, "shutting down"},
	{errStopped, figures.Failed, "shutting down"},
	{errState, figures.Refused, "unknown request state"},
	{errResponse, figures.Refused, "wrong input response"},
	{errMirrored, figures.Refused, "bad headers"},
	{errCapability, figures.Refused, "missing capability"},
	{mcphybrid.ErrUnknownTool, figures.Refused, "unknown tool"},
	{mcphybrid.ErrUnknownResource, figures.Refused, "unknown resource or prompt"},
	{mcphybrid.ErrNotPermitted, figures.Refused, "not permitted"},
	{mcphybrid.ErrBadArguments, figures.Refused, "bad arguments"},
	{mcphybrid.ErrQuarantined, figures.Refused, "held back"},
	{mcphybrid.ErrChanged, figures.Refused, "changed since it was shown"},
	{mcphybrid.ErrAuthorizationRequired, figures.Failed, "login required"},
	{mcphybrid.ErrServerDown, figures.Failed, "server down"},
	{context.DeadlineExceeded, figures.Failed, "timeout"},
}

// endOf returns how a request ended that has that error, and why if there is one. ctx is
// that of the request; answeredBadly says that the tool answered with an error.
func endOf(ctx context.Context, err error, answeredBadly bool) (end figures.Outcome, reason string) {
	switch {
	case err == nil && answeredBadly:
		return figures.ToolError, ""
	case err == nil:
		return figures.OK, ""
	case ctx.Err() != nil:
		return figures.Cancelled, ""
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.outcome, r.reason
		}
	}
	return figures.Failed, "error"
}

// record logs a request that has ended, and counts it. c is nil if it was not begun.
func (g *gateway) record(ctx context.Context, q request, c *clientCall, began time.Time, err error) {
	took := time.Since(began)
	var by, tool string
	badly := false
	if c != nil {
		by, tool, badly = c.result()
	}
	end, reason := endOf(ctx, err, badly)
	g.figures.Count(by, end, took)

	level := slog.LevelInfo
	if end == figures.Failed {
		level = slog.LevelWarn
	}
	if !g.opts.logCalls || !g.opts.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("client", plain.Printable(clientName(ctx), plain.MaxName))}
	if c != nil && c.from.number > 0 {
		attrs = append(attrs, slog.Uint64("session", c.from.number))
	}
	if who := tokens.HolderOf(ctx); who != nil && who.Name != "" {
		attrs = append(attrs, slog.String("user", who.Name))
	}
	attrs = append(attrs, slog.String("method", q.method))
	if q.name != "" {
		attrs = append(attrs, slog.String("tool", plain.Printable(q.name, plain.MaxName)))
	}
	if called := cmp.Or(tool, q.target()); called != "" && called != q.name {
		attrs = append(attrs, slog.String("calls", called))
	}
	if by != "" {
		attrs = append(attrs, slog.String("server", by))
	}
	attrs = append(attrs, slog.String("outcome", string(end)))
	if reason != "" {
		attrs = append(attrs, slog.String("reason", reason))
	}
	attrs = append(attrs, slog.Float64("ms", float64(took.Microseconds())/1000))
	if g.opts.logArguments {
		attrs = append(attrs, slog.String("arguments", plain.Printable(q.arguments(), maxLoggedArguments)))
	}
	g.opts.log.LogAttrs(ctx, level, "call", attrs...)
}

// maxLoggedArguments is how many bytes of a call's arguments are logged.
const maxLoggedArguments = 2000

// target returns the registered name of the tool that a call of [mcphybrid.CallToolName]
// asks for, or "". Anything else in its place may be an argument.
func (q request) target() string {
	args, ok := q.args.(json.RawMessage)
	if !ok || q.name != mcphybrid.CallToolName && q.name != mcphybrid.ReadOnlyCallToolName {
		return ""
	}
	var in struct{ Name string }
	if json.Unmarshal(args, &in) != nil || !strings.HasPrefix(in.Name, "mcp_") || len(in.Name) > plain.MaxName {
		return ""
	}
	if strings.Trim(in.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return ""
	}
	return in.Name
}

// arguments returns what the client gave, as JSON.
func (q request) arguments() string {
	data, err := json.Marshal(q.args)
	if err != nil {
		return ""
	}
	return string(data)
}

// clientName returns what the client of a request calls itself. Since 2026-07-28 it does
// so in each request.
func clientName(ctx context.Context) string {
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.ClientInfo != nil {
		return info.ClientInfo.Name
	}
	if s, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		return s.GetClientInfo().Name
	}
	return ""
}
