package upstream

// The client for the requests to a server over HTTP. conn.go opens the connection, authorize.go has
// the headers of each request.

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
)

// httpClient returns the client for the requests to the server: the host's if there
// is one, with our guards around it.
func (c *conn) httpClient(cfg *Config, g guard, hide *secrets, older bool) (*http.Client, error) {
	server, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	to := &http.Client{CheckRedirect: sameHost}
	base := Transport(cfg.HTTPClient)
	if theirs := cfg.HTTPClient; theirs != nil {
		to.Jar = theirs.Jar
		if check := theirs.CheckRedirect; check != nil {
			to.CheckRedirect = func(r *http.Request, via []*http.Request) error {
				if err := sameHost(r, via); err != nil {
					return err
				}
				return hostcode.Try("ServerConfig.HTTPClient", func() error { return check(r, via) })
			}
		}
	}
	if t, ok := base.(*http.Transport); ok {
		c.own = &ownTransport{Transport: t}
		base = c.own
	}
	a := &authorizer{server: server, fixed: cfg.Headers, secrets: hide, unauthorized: cfg.Unauthorized, changing: &c.changing}
	if cfg.HeadersHelper != "" {
		a.sources = append(a.sources, newHelper(&cfg.Server).headers)
	}
	if f := cfg.HeaderFunc; f != nil {
		a.sources = append(a.sources, func(ctx context.Context, _ http.Header, _ *Refusal) (http.Header, error) {
			return hostcode.Detached(ctx, "ServerConfig.HeaderFunc", func() (http.Header, error) { return f(ctx) })
		})
	}
	if cfg.Account != nil {
		a.account = logIn(cfg.Account)
	}
	life, end := context.WithCancel(context.Background())
	c.endReplies = end
	to.Transport = &limitedHTTP{base: base, authorizer: a, maxMessage: g.maxMessage, maxValues: g.maxValues, unsolicited: g.unsolicited, older: older, stream: c.stream, replies: newReplies(life), large: g.large}
	return to, nil
}

// An ownTransport is the transport of one connection, with which its requests end. What stays open
// in the network would be used by nobody, for a minute and a half.
type ownTransport struct {
	*http.Transport
	ended atomic.Bool
}

var errEnded = errors.New("the connection has ended")

func (t *ownTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.ended.Load() {
		return nil, errEnded
	}
	resp, err := t.Transport.RoundTrip(r)
	if t.ended.Load() { // meanwhile: a request undoes what CloseIdleConnections did before
		t.CloseIdleConnections()
	}
	return resp, err
}

func (t *ownTransport) end() {
	t.ended.Store(true)
	t.CloseIdleConnections()
}

// Transport returns what makes the requests of a host's client, or a new transport
// for nil.
func Transport(c *http.Client) http.RoundTripper {
	switch {
	case c == nil:
		return newTransport()
	case c.Transport == nil:
		return hostTransport{http.DefaultTransport}
	}
	return hostTransport{c.Transport}
}

// A hostTransport is the transport of a host. It may panic.
type hostTransport struct{ http.RoundTripper }

func (t hostTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := hostcode.Call("ServerConfig.HTTPClient", func() (*http.Response, error) { return t.RoundTripper.RoundTrip(r) })
	if resp == nil && err == nil {
		err = errors.New("ServerConfig.HTTPClient returned neither a response nor an error")
	}
	return resp, err
}
