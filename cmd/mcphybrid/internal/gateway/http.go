package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/files"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
	"github.com/mcphybrid/mcphybrid/debug"
)

// serveHTTP serves any number of clients until ctx ends.
//
//	web.Site ──▶ EventWriter ──▶ mcp-go
//	guards       answers
func (g *gateway) serveHTTP(ctx context.Context, w *web.Site) error {
	limits := g.opts.limits
	w.Within(limits, g.figures)
	streams, endStreams := context.WithCancel(context.Background())
	defer endStreams()
	mcp := server.NewStreamableHTTPServer(g.front, server.WithEndpointPath(web.Endpoint),
		server.WithSessionIdManagerResolver(w.Sessions), server.WithSessionIdleTTL(limits.Idle),
		server.WithDisableLocalhostProtection(true), // the site guards itself
		server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)),
		server.WithStreamableHTTPCORS(server.WithCORSAllowedOrigins(w.Origins...)))
	w.Sessions.End = func(id string) { endSession(mcp, id) }
	s := w.Server(web.Front{
		Has:      g.hasServer,
		Messages: wire.WithEvents(limits.Write, g.withNotices(mcp)),
		Debug:    debug.Handler(g.mgr, debug.AnyHost), Metrics: g.metrics(w), Health: http.HandlerFunc(g.health),
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
	defer files.FollowAll(append(g.follows, w.Follows...), g.opts.log)()
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
