package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/debug"
)

const (
	// tokenVariable is the environment variable with the bearer token.
	tokenVariable = "MCPHYBRID_GATEWAY_TOKEN"

	endpoint = "/mcp"

	// debugPath is the path of the pages for people.
	debugPath = "/debug"

	// maxBody bounds a request; arguments of a call are some kilobytes.
	maxBody = 16 << 20

	// sessionTTL is how long a client may be silent before its session ends,
	// because most clients leave without notice. The protocol has such a client
	// begin another session.
	sessionTTL = 12 * time.Hour
)

type webOptions struct {
	anywhere  bool // listen where other machines can reach it
	tokenFile string
	origins   []string // of web pages that may call
	debug     bool     // serve the pages for people
}

// A website says where the gateway listens, and whom it serves.
type website struct {
	listener net.Listener
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
	w.listener, err = net.Listen("tcp", net.JoinHostPort(host, port))
	return w, err
}

func (w *website) url() string { return "http://" + w.listener.Addr().String() + endpoint }

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// readToken returns the token in a file or, without one, in the environment.
func readToken(file string) (string, error) {
	if file == "" {
		return os.Getenv(tokenVariable), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("-token-file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("-token-file: %s is empty", file)
	}
	return token, nil
}

// serveHTTP serves any number of clients until ctx ends.
func (g *gateway) serveHTTP(ctx context.Context, w *website) error {
	streams, endStreams := context.WithCancel(context.Background())
	defer endStreams()
	front := server.NewStreamableHTTPServer(g.front, server.WithEndpointPath(endpoint),
		server.WithStateful(true), server.WithSessionIdleTTL(sessionTTL),
		server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)),
		server.WithStreamableHTTPCORS(server.WithCORSAllowedOrigins(w.origins...)))
	mux := http.NewServeMux()
	mux.Handle(endpoint, w.guard(endingWith(streams, sane(withEvents(front)))))
	if w.debug {
		mux.Handle(debugPath, w.guardPage(debug.Handler(g.mgr)))
	}
	s := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
		ErrorLog:          slog.NewLogLogger(g.opts.log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(w.listener) }()
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

// guard admits only requests with the token, and web pages only from the
// permitted origins: a page in a browser can reach this machine too.
func (w *website) guard(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + w.token))
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin != "" && !slices.Contains(w.origins, origin) {
			http.Error(out, "this origin may not call: see -origin", http.StatusForbidden)
			return
		}
		preflight := r.Method == http.MethodOptions && origin != "" // has no token
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if w.token != "" && !preflight && subtle.ConstantTimeCompare(got[:], want[:]) == 0 {
			out.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(out, "the bearer token is missing or wrong", http.StatusUnauthorized)
			return
		}
		r.Body = http.MaxBytesReader(out, r.Body, maxBody)
		next.ServeHTTP(out, r)
	})
}

// guardPage admits only requests with the token as the password that a browser
// asks for. The host must be the one that we listen on: otherwise, another page
// could read this one under a name of its own that leads here.
func (w *website) guardPage(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(w.token))
	own, _, _ := net.SplitHostPort(w.listener.Addr().String())
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if host = strings.Trim(host, "[]"); host != own && !isLoopback(host) && w.token == "" {
			http.Error(out, "there is no such host here", http.StatusMisdirectedRequest)
			return
		}
		_, password, _ := r.BasicAuth()
		got := sha256.Sum256([]byte(password))
		if w.token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 0 {
			out.Header().Set("WWW-Authenticate", `Basic realm="the gateway's token as password"`)
			http.Error(out, "the password is the gateway's token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(out, r)
	})
}

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
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(out, err.Error(), http.StatusRequestEntityTooLarge)
				return
			}
			var message struct{ Method string }
			if json.Unmarshal(body, &message) == nil && message.Method == string(mcp.MethodNotificationCancelled) {
				out.WriteHeader(http.StatusAccepted)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		next.ServeHTTP(out, r)
	})
}
