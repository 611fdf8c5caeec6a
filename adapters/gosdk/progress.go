package gosdk

import (
	"context"
	"strconv"
	"sync/atomic"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxReports is how many reports of one call may wait for a slow client. More are dropped.
const maxReports = 64

// reporting returns a context whose calls report their progress to the client, if it asked
// for that. When end returns, the last report is out.
func reporting(ctx context.Context, req *mcp.CallToolRequest) (with context.Context, end func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return ctx, func() {}
	}
	reports := make(chan *mcp.ProgressNotificationParams, maxReports)
	over, sent := make(chan struct{}), make(chan struct{})
	send := func(p *mcp.ProgressNotificationParams) {
		_ = req.Session.NotifyProgress(ctx, p) // a client that has gone does not get the result either
	}
	go func() {
		defer close(sent)
		for {
			select {
			case p := <-reports:
				send(p)
				continue
			case <-over:
			}
			for len(reports) > 0 {
				send(<-reports)
			}
			return
		}
	}()
	// The function runs where the server's messages are read, so it must not wait for the
	// client.
	with = mcphybrid.WithProgress(ctx, func(p mcpgo.ProgressNotificationParams) {
		select {
		case reports <- &mcp.ProgressNotificationParams{ProgressToken: token, Progress: p.Progress, Total: p.Total, Message: p.Message}:
		default:
		}
	})
	return with, func() {
		close(over)
		<-sent
	}
}

// A reported is a call of the Manager that asks for progress.
type reported struct {
	listener listener
	token    any // of the Manager
}

var lastToken atomic.Int64

// report asks for the progress of a call of the Manager, if meta does. end is called when
// the call has ended. The host may use the session too, and other Managers may, so the
// server gets a token of our own.
func (s *source) report(ctx context.Context, meta mcp.Meta) (end func()) {
	token := meta[progressToken]
	l, ok := ctx.Value(listenerKey{}).(listener)
	if token == nil || !ok {
		delete(meta, progressToken)
		return func() {}
	}
	own := "mcphybrid-" + strconv.FormatInt(lastToken.Add(1), 10)
	meta[progressToken] = own
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reported[own] = reported{l, token}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.reported, own)
	}
}

const progressToken = "progressToken"

// progress passes on a report of a call of the Manager. It returns false if p is none.
func (s *source) progress(p *mcp.ProgressNotificationParams) bool {
	token, ok := p.ProgressToken.(string)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	call, ok := s.reported[token]
	if !ok {
		return false
	}
	// Half of the places are for changes of lists, none of which may be lost.
	if c := call.listener.NotificationChannel(); len(c) < cap(c)/2 {
		fields := map[string]any{progressToken: call.token, "progress": p.Progress, "total": p.Total, "message": p.Message}
		tell(call.listener, string(mcpgo.MethodNotificationProgress), fields)
	}
	return true
}
