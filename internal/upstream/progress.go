package upstream

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
)

type (
	progressKey struct{}
	metaKey     struct{}
)

// WithProgress returns a context whose calls ask the server for progress
// notifications. tell receives them in order, on the goroutine that reads
// messages, so it must return soon. No new call of tell begins after the tool
// call has ended, but one may still be running.
func WithProgress(ctx context.Context, tell func(mcp.ProgressNotificationParams)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

// WithMeta returns a context whose calls send meta, without a progressToken, as
// the _meta of the request. The caller must not change meta afterwards.
func WithMeta(ctx context.Context, meta map[string]any) context.Context {
	return context.WithValue(ctx, metaKey{}, meta)
}

// meta returns the _meta of a request with the options of its context, or nil. The
// caller calls end when the request has ended.
func (c *conn) meta(ctx context.Context) (m *mcp.Meta, end func()) {
	if meta, _ := ctx.Value(metaKey{}).(map[string]any); len(meta) > 0 {
		fields := maps.Clone(meta)
		delete(fields, "progressToken")
		m = &mcp.Meta{AdditionalFields: fields}
	}
	tell, _ := ctx.Value(progressKey{}).(func(mcp.ProgressNotificationParams))
	if tell == nil {
		return m, func() {}
	}
	if m == nil {
		m = new(mcp.Meta)
	}
	token := c.progress.add(tell)
	m.ProgressToken = token
	return m, func() { c.progress.remove(token) }
}

// A progressTable maps progress tokens to the callbacks of calls over one
// connection.
type progressTable struct {
	mu    sync.Mutex
	last  int
	tells map[string]func(mcp.ProgressNotificationParams)
}

func (t *progressTable) add(tell func(mcp.ProgressNotificationParams)) (token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	token = strconv.Itoa(t.last)
	if t.tells == nil {
		t.tells = make(map[string]func(mcp.ProgressNotificationParams))
	}
	t.tells[token] = tell
	return token
}

func (t *progressTable) remove(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tells, token)
}

// tell passes a notification to the callback of its call. It drops a
// notification that is malformed or has an unknown token.
func (t *progressTable) tell(n mcp.JSONRPCNotification, log *slog.Logger) {
	fields, err := json.Marshal(n.Params.AdditionalFields)
	if err != nil {
		return
	}
	var p mcp.ProgressNotificationParams
	if json.Unmarshal(fields, &p) != nil {
		return
	}
	token, _ := p.ProgressToken.(string)
	t.mu.Lock()
	tell := t.tells[token]
	t.mu.Unlock()
	if tell != nil {
		hostcode.Logged(log, "the function of WithProgress", func() { tell(p) })
	}
}
