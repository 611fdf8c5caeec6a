package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"

	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/files"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/plain"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/debug"
)

// serveHTTP serves any number of clients until ctx ends.
//
//	web.Site ──▶ wire.WithEvents ──▶ mcp-go ──▶ gateway.go
//	guards       answers
func (g *gateway) serveHTTP(ctx context.Context, w *web.Site) error {
	limits := g.opts.limits
	w.Within(limits, g.figures)
	streams, endStreams := context.WithCancel(context.Background())
	defer endStreams()
	mcp := server.NewStreamableHTTPServer(g.front, server.WithEndpointPath(web.Endpoint),
		server.WithSessionIdManagerResolver(w.Sessions),
		server.WithDisableLocalhostProtection(true), // the site guards itself
		server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)),
		server.WithStreamableHTTPCORS(server.WithCORSAllowedOrigins(w.Origins...)))
	w.Sessions.End = func(id string) { endSession(mcp, id) }
	g.started.Go(func() { w.Sessions.EndSilent(streams, limits.Idle) })
	s := w.Server(web.Front{
		Has:      g.hasServer,
		Messages: wire.WithEvents(limits.Write, g.withNotices(mcp)),
		Debug:    g.page(), Metrics: g.metrics(w), Health: http.HandlerFunc(g.health),
		Streams: streams, Log: g.opts.log,
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Serve(s) }()
	for _, f := range w.Follows {
		f.Then = func() {
			w.Sessions.EndOthers(w.Tokens.IsCurrent)
			g.reportIdle(w.Tokens)
		}
	}
	g.started.Go(func() {
		<-g.all.Done()
		g.reportIdle(w.Tokens)
	})
	defer files.FollowAll(append(g.followed, w.Follows...), g.opts.log)()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	g.drain()
	g.endCalls() // lists that wait for servers are answered without them
	endStreams()
	late, cancel := context.WithTimeout(context.Background(), endGrace)
	defer cancel()
	if s.Shutdown(late) != nil {
		s.Close()
	}
	_ = mcp.Shutdown(late) // ends its goroutine, and all sessions: not before they have their last answers
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// guideOf says to people at the pages where the servers and logins come from.
func guideOf(s servers.Sources) debug.Guide {
	g := debug.Guide{Program: "the gateway", File: absolute(s.Config), Watched: true}
	if s.Logins != "" {
		g.Login = "mcphybrid login -config " + plain.Quoted(g.File) + " -tokens " + plain.Quoted(absolute(s.Logins))
	}
	return g
}

// absolute returns the whole path of a file, if it can be told.
func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// page returns the pages for operators. The site guards them.
func (g *gateway) page() http.Handler {
	guide := g.opts.guide
	guide.Logins, guide.Approve = g.logins, g.opts.trust.Approve
	if g.opts.source != nil {
		guide.Unused = g.opts.source.followed.Unread
	}
	guide.Done = func(ctx context.Context, a debug.Action, err error) {
		args := []any{"action", a.Name, "server", a.Server}
		if a.Tool != "" {
			args = append(args, "tool", a.Tool)
		}
		if who := tokens.HolderOf(ctx); who != nil && who.Name != "" {
			args = append(args, "user", who.Name)
		}
		if err != nil {
			g.opts.log.Warn("an operator's action failed", append(args, "error", err)...)
			return
		}
		g.opts.log.Info("an operator's action", args...)
	}
	return guide.Operator(g.mgr, debug.AnyHost)
}

// reportIdle logs the patterns of tokens that match no tool: one to deny is perhaps
// misspelled.
func (g *gateway) reportIdle(t *tokens.Tokens) {
	for _, h := range t.All() {
		s := g.mgr.NewSession(&mcphybrid.SessionOptions{Access: h.Access})
		for _, err := range s.Problems() {
			g.opts.log.Warn(err.Error(), "user", h.Name)
		}
		s.Close()
	}
}

// endSession makes mcp-go forget a session, as if its client had ended it.
func endSession(front *server.StreamableHTTPServer, id string) {
	header := http.Header{server.HeaderKeySessionID: {id}}
	front.Handle(nowhere{}, &server.HTTPRequest{Method: http.MethodDelete, Header: header, Context: context.Background()})
}

// nowhere is where an answer goes that nobody waits for.
type nowhere struct{}

func (nowhere) Header() http.Header         { return make(http.Header) }
func (nowhere) WriteHeader(int)             {}
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Flush()                      {}
func (nowhere) CanStream() bool             { return false }
