package mcphybrid

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

type sessionKey struct{}

// SessionFrom returns the session whose call a tool of [Manager.AddTools] answers, from the
// context of its handler. It is nil for any other context.
func SessionFrom(ctx context.Context) *Session {
	s, _ := ctx.Value(sessionKey{}).(*Session)
	return s
}

// WithProgress returns a context for calls that report their progress. tell is
// called with each progress notification of the tool's server, in the order in
// which the server sends them. It runs on the goroutine that reads the server's
// messages, so it must return soon. It is not called after the call has ended,
// but its last run may end later.
//
// Servers may send no progress at all. Tools of [Manager.AddTools] can't.
func WithProgress(ctx context.Context, tell func(mcp.ProgressNotificationParams)) context.Context {
	return upstream.WithProgress(ctx, tell)
}

// WithMeta returns a context whose calls send meta to the tool's server as the
// _meta of the request, for example a traceparent. The caller must not change
// meta afterwards. A progressToken in it is not sent: use [WithProgress]. Tools of
// [Manager.AddTools] do not get meta.
func WithMeta(ctx context.Context, meta map[string]any) context.Context {
	return upstream.WithMeta(ctx, meta)
}
