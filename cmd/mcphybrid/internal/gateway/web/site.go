// Package web is the gateway's side of HTTP: where it listens, whom it lets in, and how many
// connections, messages and sessions they have. It must not know servers, nor MCP beyond a
// message's headers.
package web

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/files"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/figures"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/plain"
	"github.com/mcphybrid/mcphybrid/internal/hosts"
)

const (
	Endpoint = "/mcp"

	// serverEndpoint is where a single server is.
	serverEndpoint = Endpoint + "/{server}"

	// DebugPath is the path of the pages for people.
	DebugPath = "/debug"

	// HealthPath is for who restarts the gateway, or sends it no more clients.
	HealthPath = "/healthz"

	// MetricsPath is for Prometheus.
	MetricsPath = "/metrics"
)

// Options are the flags for HTTP.
type Options struct {
	anywhere  bool // listen where other machines can reach it
	TokenFile string
	Origins   []string // of web pages that may call
	Hosts     []string // names of us beside those of loopback
	Debug     bool     // serve the pages for people
	Metrics   bool     // serve metrics
	Cert, Key string   // files, for TLS
}

// AddFlags adds the flags for HTTP.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Debug, "debug", false, "with -http: show at "+DebugPath+" what there is and what is done, to operators")
	flags.BoolVar(&o.Metrics, "metrics", false, "with -http: show metrics for Prometheus at "+MetricsPath+", to operators")
	flags.BoolVar(&o.anywhere, "listen-anywhere", false, "allow an address that other machines can reach; needs a token")
	flags.StringVar(&o.TokenFile, "token-file", "", "the `file` with the bearer token, or as JSON with several; without it, "+tokens.Variable+" has the token, if any")
	flags.StringVar(&o.Cert, "tls-cert", "", "serve with TLS: the `file` with our certificate and those between it and the root, as PEM")
	flags.StringVar(&o.Key, "tls-key", "", "the `file` with the key of -tls-cert, as PEM")
	flags.Func("origin", "an `origin` of web pages that may call, such as https://example.com; may be repeated", func(origin string) error {
		o.Origins = append(o.Origins, origin)
		return nil
	})
	flags.Func("host", "a `name` by which a proxy on this machine is called, such as mcp.example.com; may be repeated", func(host string) error {
		if host == "" || strings.ContainsAny(host, ":/*@ ") {
			return errors.New("want a name alone, without scheme and port")
		}
		o.Hosts = append(o.Hosts, strings.ToLower(host))
		return nil
	})
}

// CheckFlags returns an error if a flag of Options is given without an address: nothing
// would go by it.
func CheckFlags(address string, given map[string]bool) (err error) {
	if address != "" {
		return nil
	}
	web := flag.NewFlagSet("", flag.ContinueOnError)
	new(Options).AddFlags(web)
	web.VisitAll(func(f *flag.Flag) {
		if given[f.Name] && err == nil {
			err = fmt.Errorf("-%s needs -http", f.Name)
		}
	})
	return err
}

// A Site says where the gateway listens, and whom it serves.
type Site struct {
	Tokens  *tokens.Tokens
	Follows []*files.Followed // with secrets
	Origins []string

	listener *net.TCPListener
	secure   *certificate // nil without TLS
	hosts    []string
	own      string // the origin of pages at our address, if that is of loopback; or ""
	debug    bool
	metrics  bool

	// As of within.
	limits   limits.Limits
	figures  *figures.Figures
	Sessions *Sessions
	Door     *Door
}

// Within has the site count into figures of the gateway and keep limits.
func (w *Site) Within(l limits.Limits, f *figures.Figures) {
	w.limits, w.figures, w.Sessions, w.Door = l, f, newSessions(l.Sessions), newDoor(w.listener, l.Connections)
}

// Listen opens an address. A port alone means loopback.
func Listen(address string, opts Options) (*Site, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("-http %q: %w", address, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	w := &Site{Origins: opts.Origins, hosts: opts.Hosts, debug: opts.Debug, metrics: opts.Metrics}
	if err := w.readFiles(opts); err != nil {
		return nil, err
	}
	switch {
	case len(w.hosts) > 0 && !w.Tokens.AreNeeded():
		return nil, fmt.Errorf("-host %q: whoever the proxy lets in could call, so it needs a token: set %s, or -token-file", w.hosts[0], tokens.Variable)
	case hosts.IsLoopback(host):
	case !opts.anywhere:
		return nil, fmt.Errorf("-http %q: other machines could reach it; if they should, add -listen-anywhere and a token", address)
	case !w.Tokens.AreNeeded():
		return nil, fmt.Errorf("-http %q: other machines can reach it, so it needs a token: set %s, or -token-file", address, tokens.Variable)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	w.listener = listener.(*net.TCPListener)
	if own := w.listener.Addr().String(); w.listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		w.own = w.scheme() + own
	}
	return w, nil
}

// readFiles reads the files with secrets, and notes to read them again when they change.
func (w *Site) readFiles(opts Options) (err error) {
	if opts.TokenFile != "" {
		w.Follows = append(w.Follows, files.Follow(func() error { return w.Tokens.Read(opts.TokenFile) }, opts.TokenFile))
	}
	if w.Tokens, err = tokens.Read(opts.TokenFile); err != nil {
		return err
	}
	if opts.Cert == "" && opts.Key == "" {
		return nil
	}
	w.secure = &certificate{certFile: opts.Cert, keyFile: opts.Key}
	w.Follows = append(w.Follows, files.Follow(w.secure.read, opts.Cert, opts.Key))
	return w.secure.read()
}

// URL returns the address of the [Endpoint].
func (w *Site) URL() string { return w.scheme() + w.listener.Addr().String() + Endpoint }

// Page returns the address of the pages for people, or "" if there are none.
func (w *Site) Page() string {
	if !w.debug {
		return ""
	}
	return w.scheme() + w.listener.Addr().String() + DebugPath
}

func (w *Site) scheme() string {
	if w.secure != nil {
		return "https://"
	}
	return "http://"
}

// A Front is what a site serves.
type Front struct {
	Messages       http.Handler // of clients, in its sessions
	Has            func(server string) bool
	Debug, Metrics http.Handler    // pages for operators, each only if the flags say so
	Health         http.Handler    // for anybody
	Streams        context.Context // ends endless streams
	Log            *slog.Logger
}

// Server returns what serves.
//
//	door ──▶ guard ──▶ intake ──▶ Sessions ──▶ messages
//	connections, token, messages, sessions
func (w *Site) Server(f Front) *http.Server {
	mux := http.NewServeMux()
	messages := newIntake(w.limits).withMessage(w.Sessions.withSession(endingWith(f.Streams, sane(f.Messages))))
	mux.Handle(Endpoint, w.guard(messages))
	mux.Handle(serverEndpoint, w.guard(withServer(f.Has, messages)))
	if w.debug {
		page := w.guardPage(endingWith(f.Streams, f.Debug))
		mux.Handle(DebugPath, page)
		mux.Handle(DebugPath+"/{$}", page)
	}
	if w.metrics {
		mux.Handle(MetricsPath, w.guardPage(f.Metrics))
	}
	mux.Handle(HealthPath, withoutMessage(f.Health))
	mux.HandleFunc("/", func(out http.ResponseWriter, r *http.Request) {
		refuse(out, r, http.StatusNotFound, "there is nothing here: see "+Endpoint+", or "+Endpoint+"/SERVER for one server", limits.SmallMessage)
	})
	return &http.Server{
		Handler:           writingWithin(w.limits.Write, mux),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    limits.MaxHeader,
		ConnContext:       withVisit,
		ErrorLog:          slog.NewLogLogger(f.Log.Handler(), slog.LevelWarn),
	}
}

type serverKey struct{}

// ServerOf returns the server of the endpoint to which a request was sent, or "" if that has
// all servers.
func ServerOf(ctx context.Context) string {
	server, _ := ctx.Value(serverKey{}).(string)
	return server
}

// withServer puts the server that a request's path names into its context, and refuses a server that is
// not there.
func withServer(has func(string) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		server := r.PathValue("server")
		if r.Method != http.MethodOptions && !has(server) { // a preflight has no token: it learns no names
			refuse(out, r, http.StatusNotFound, fmt.Sprintf("there is no server %q here: %s has all servers", plain.Printable(server, plain.MaxName), Endpoint), limits.SmallMessage)
			return
		}
		next.ServeHTTP(out, r.WithContext(context.WithValue(r.Context(), serverKey{}, server)))
	})
}

// withoutMessage refuses all but requests for a page.
func withoutMessage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 || r.Method != http.MethodGet && r.Method != http.MethodHead {
			refuse(out, r, http.StatusMethodNotAllowed, "only GET without a body", limits.SmallMessage)
			return
		}
		next.ServeHTTP(out, r)
	})
}

// writingWithin gives each answer a time to be read. Longer ones get more as they are
// written.
func writingWithin(d time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(out).SetWriteDeadline(time.Now().Add(d))
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
