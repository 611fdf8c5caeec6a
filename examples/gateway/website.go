package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/debug"
)

const (
	endpoint = "/mcp"

	// debugPath is the path of the pages for people.
	debugPath = "/debug"
)

type webOptions struct {
	anywhere  bool // listen where other machines can reach it
	tokenFile string
	origins   []string // of web pages that may call
	debug     bool     // serve the pages for people
}

// A website says where the gateway listens, and whom it serves.
type website struct {
	listener *net.TCPListener
	token    string // "" if none is needed
	origins  []string
	debug    bool
}

// listen opens an address. A port alone means loopback.
func listen(address string, opts webOptions) (*website, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("-http %q: %w", address, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	w := &website{origins: opts.origins, debug: opts.debug}
	if w.token, err = readToken(opts.tokenFile); err != nil {
		return nil, err
	}
	switch {
	case isLoopback(host):
	case !opts.anywhere:
		return nil, fmt.Errorf("-http %q: other machines could reach it; if they should, add -listen-anywhere and a token", address)
	case w.token == "":
		return nil, fmt.Errorf("-http %q: other machines can reach it, so it needs a token: set %s, or -token-file", address, tokenVariable)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	w.listener = listener.(*net.TCPListener)
	return w, nil
}

func (w *website) url() string { return "http://" + w.listener.Addr().String() + endpoint }

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// serveHTTP serves any number of clients until ctx ends.
//
//	door ──▶ guard ──▶ intake ──▶ sessionTable ──▶ eventWriter ──▶ mcp-go
//	connections, token, messages, sessions         answers
func (g *gateway) serveHTTP(ctx context.Context, w *website) error {
	limits := g.opts.limits
	streams, endStreams := context.WithCancel(context.Background())
	defer endStreams()
	sessions := newSessionTable(limits.sessions)
	front := server.NewStreamableHTTPServer(g.front, server.WithEndpointPath(endpoint),
		server.WithSessionIdManagerResolver(sessions), server.WithSessionIdleTTL(limits.idle),
		server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)),
		server.WithStreamableHTTPCORS(server.WithCORSAllowedOrigins(w.origins...)))
	sessions.end = func(id string) { endSession(front, id) }
	mux := http.NewServeMux()
	mux.Handle(endpoint, w.guard(newIntake(limits).withMessage(sessions.withSession(
		endingWith(streams, sane(withEvents(limits.write, g.withNotices(front))))))))
	if w.debug {
		mux.Handle(debugPath, w.guardPage(debug.Handler(g.mgr)))
	}
	mux.HandleFunc("/", func(out http.ResponseWriter, r *http.Request) {
		refuse(out, r, http.StatusNotFound, "there is nothing here: see "+endpoint, smallMessage)
	})
	s := &http.Server{
		Handler:           writingWithin(limits.write, mux),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       withVisit,
		ErrorLog:          slog.NewLogLogger(g.opts.log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(newDoor(w.listener, limits.connections)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	g.drain()
	endStreams()
	late, cancel := context.WithTimeout(context.Background(), endGrace)
	defer cancel()
	_ = front.Shutdown(late) // ends its goroutine
	if s.Shutdown(late) != nil {
		s.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// writingWithin gives each answer a time to be read. Longer ones get more as they are
// written.
func writingWithin(d time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(out).SetWriteDeadline(time.Now().Add(d))
		next.ServeHTTP(out, r)
	})
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

// endingWith ends the endless streams of notifications with ctx. Other requests
// end with their answers.
func endingWith(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Header.Get(mcp.HeaderMethod) == string(mcp.MethodSubscriptionsListen) {
			inner, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			r = r.WithContext(inner)
		}
		next.ServeHTTP(out, r)
	})
}

// sane drops messages that would reach another client's request. Since
// 2026-07-28 there are no sessions, and a client cancels a request by closing
// its connection. But mcp-go looks up the request of a notification by its
// number, which other clients use too.
func sane(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
			body, _ := r.Body.(message)
			var about struct{ Method string }
			if json.Unmarshal(body.data, &about) == nil && about.Method == string(mcp.MethodNotificationCancelled) {
				out.WriteHeader(http.StatusAccepted)
				return
			}
		}
		next.ServeHTTP(out, r)
	})
}
