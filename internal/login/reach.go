package login

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// An MCP server says where the requests of a login go. One on the public internet must
// not have us send them where only we can: to this machine, into a private network, to the
// metadata of a cloud. So they are refused when the connection begins, whatever name leads
// there. A server that is not public itself may name others like it, as in the network of
// a company or in development. What the settings name, the server does not.

// A reach is the transport of an account. It knows where requests may go.
type reach struct {
	base     http.RoundTripper
	direct   *http.Transport // base without a proxy, but with dial; nil if base is the host's
	server   string          // the name of its host
	metadata bool            // the settings have MetadataURL, which names all else
	tokens   string          // TokenURL in the settings, or ""
	resolver *net.Resolver   // nil for the usual one

	mu       sync.Mutex
	public   bool // the server was reached at a public address, or has one
	internal bool // at another one
}

func newReach(cfg *Config) *reach {
	g := &reach{base: cfg.HTTP, metadata: cfg.MetadataURL != ""}
	if u, err := url.Parse(cfg.URL); err == nil {
		g.server = u.Hostname()
	}
	if u, err := url.Parse(cfg.TokenURL); err == nil {
		g.tokens = u.String()
	}
	if ip, ok := addressIn(g.server); ok {
		g.reached(ip)
	}
	own, ok := cfg.HTTP.(*http.Transport)
	if !ok {
		return g
	}
	g.direct = own.Clone()
	g.direct.Proxy, g.direct.DialContext, g.direct.DialTLSContext = nil, g.dial, nil
	//lint:ignore SA1019 a host may have set it for http.DefaultTransport, and it would be used instead of dial
	g.direct.DialTLS = nil
	return g
}

func (g *reach) close() {
	if own, ok := g.base.(*http.Transport); ok {
		own.CloseIdleConnections()
		g.direct.CloseIdleConnections()
	}
}

func (g *reach) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Hostname()
	if g.metadata || r.URL.String() == g.tokens {
		return g.base.RoundTrip(r)
	}
	if !g.isServer(host) && strings.ContainsFunc(host, func(c rune) bool { return c > unicode.MaxASCII }) {
		return nil, fmt.Errorf("refused to send a request to host %q, which is not ASCII: it may be another spelling of an address", text.Line(host, maxSaid))
	}
	if ip, ok := addressIn(host); ok {
		if err := g.check(r.Context(), host, ip); err != nil {
			return nil, err
		}
	}
	if g.direct == nil { // the host's transport decides where names lead
		return g.base.RoundTrip(r)
	}
	if proxy := g.base.(*http.Transport).Proxy; proxy != nil {
		switch by, err := proxy(r); {
		case err != nil:
			return nil, err
		case by != nil: // the proxy does
			if g.isServer(host) {
				g.proxied()
			}
			return g.base.RoundTrip(r)
		}
	}
	return g.direct.RoundTrip(r)
}

// dialTimeout is as long as that of [http.DefaultTransport].
const dialTimeout = 30 * time.Second

// dial connects to an address, unless its name leads where the account may not go.
func (g *reach) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: dialTimeout, Resolver: g.resolver, ControlContext: func(ctx context.Context, _, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		return g.check(ctx, host, to.Addr())
	}}
	conn, err := dialer.DialContext(ctx, network, address)
	if err == nil && g.isServer(host) {
		if to, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
			g.reached(to.Addr())
		}
	}
	return conn, err
}

func (g *reach) isServer(host string) bool { return strings.EqualFold(host, g.server) }

// reached notes an address of the server.
func (g *reach) reached(ip netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if isInternal(ip) {
		g.internal = true
	} else {
		g.public = true
	}
}

// proxied notes that a proxy knows where the server is, and we don't: unless its address
// says so, it counts as public.
func (g *reach) proxied() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.public = g.public || !g.internal
}

// check fails if the account may not go to the address of a host.
func (g *reach) check(ctx context.Context, host string, ip netip.Addr) error {
	switch {
	case !isInternal(ip), g.isServer(host) && !g.isPublic(): // where its MCP requests go too
		return nil
	case !g.isServer(host) && !isLinkLocal(ip) && g.isInternal(ctx):
		return nil
	}
	return &outOfReach{host, ip}
}

func (g *reach) isPublic() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.public
}

// isInternal reports whether the server has no public address. It looks that up if the
// account has not reached the server yet.
func (g *reach) isInternal(ctx context.Context) bool {
	g.mu.Lock()
	public, internal := g.public, g.internal
	g.mu.Unlock()
	if public || internal || g.direct == nil {
		return internal && !public
	}
	all, _ := cmp.Or(g.resolver, net.DefaultResolver).LookupNetIP(ctx, "ip", g.server) // none with an error
	for _, ip := range all {
		if !isInternal(ip) {
			return false
		}
	}
	return len(all) > 0
}

// outOfReach says that a request may not go to an address.
type outOfReach struct {
	host string
	ip   netip.Addr
}

func (e *outOfReach) Error() string {
	at := ""
	if e.ip.IsValid() && e.ip.String() != e.host {
		at = fmt.Sprintf(" at %s", e.ip)
	}
	return fmt.Sprintf("refused to send a request to host %q%s: the MCP server may not lead there, since that is an internal address, and not like its own: "+
		"if you want to log in there, set OAuth.MetadataURL to the metadata of that authorization server", text.Line(e.host, maxSaid), at)
}
