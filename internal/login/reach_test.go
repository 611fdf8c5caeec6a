package login

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// names is a server of names, each of which has one IPv4 address.
type names struct {
	mu    sync.Mutex
	leads map[string]string
}

func (n *names) set(name, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leads[name] = to
}

// resolver returns what asks the server.
func (n *names) resolver(t *testing.T) *net.Resolver {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for b := make([]byte, 1500); ; {
			size, from, err := l.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = l.WriteTo(n.answer(b[:size]), from)
		}
	}()
	t.Cleanup(func() { l.Close(); <-served })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", l.LocalAddr().String())
	}}
}

// answer answers a question (RFC 1035, 4.1).
func (n *names) answer(question []byte) []byte {
	var labels []string
	at := 12
	for ; question[at] != 0; at += 1 + int(question[at]) {
		labels = append(labels, string(question[at+1:at+1+int(question[at])]))
	}
	at++ // now at type and class
	n.mu.Lock()
	ip, err := netip.ParseAddr(n.leads[strings.ToLower(strings.Join(labels, "."))])
	n.mu.Unlock()
	a := append([]byte(nil), question[:at+4]...)
	copy(a[2:12], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
	if err == nil && binary.BigEndian.Uint16(question[at:]) == 1 {
		a[7] = 1
		a = append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		a = append(a, ip.AsSlice()...)
	}
	return a
}

// proxied returns a transport that reaches these hosts by way of a server of the test,
// and others directly.
func proxied(t *testing.T, handler http.Handler, hosts ...string) *http.Transport {
	by, err := url.Parse(strings.TrimSuffix(mcptest.ServeHTTP(t, handler, "127.0.0.1:0"), "/mcp"))
	require.NoError(t, err)
	return &http.Transport{Proxy: func(r *http.Request) (*url.URL, error) {
		for _, h := range hosts {
			if r.URL.Hostname() == h {
				return by, nil
			}
		}
		return nil, nil
	}}
}

// leading is an MCP server at http://server/mcp that leads logins to an authorization
// server with these metadata.
func leading(server, issuer string, metadata map[string]any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "/oauth-protected-resource"):
			_ = json.NewEncoder(w).Encode(map[string]any{"resource": "http://" + server + "/mcp", "authorization_servers": []string{issuer}})
		case strings.Contains(r.URL.Path, "/oauth-authorization-server") && metadata != nil:
			_ = json.NewEncoder(w).Encode(metadata)
		case r.URL.Path == "/register":
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"client_id":"c"}`)
		case r.URL.Path == "/token":
			fmt.Fprint(w, `{"access_token":"t","token_type":"bearer"}`)
		case r.URL.Path == "/mcp":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
}

// counted returns the port of a server on this machine, and how many requests it got.
func counted(t *testing.T, h http.Handler) (port string, requests func() int) {
	var mu sync.Mutex
	n := 0
	address := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		mu.Unlock()
		h.ServeHTTP(w, r)
	}), "127.0.0.1:0")
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Port(), func() int { mu.Lock(); defer mu.Unlock(); return n }
}

// metadataOf returns metadata whose endpoints are at these origins.
func metadataOf(issuer, registration, token string) map[string]any {
	return map[string]any{"issuer": issuer, "authorization_endpoint": token + "/authorize", "registration_endpoint": registration + "/register", "token_endpoint": token + "/token"}
}

// agree goes to no page: it returns what a page would.
func agree(_ context.Context, page Page) (string, error) {
	u, err := url.Parse(page.URL)
	return "http://127.0.0.1/?code=code&state=" + url.QueryEscape(u.Query().Get("state")), err
}

// newAccount returns an account whose transport asks these names.
func newAccount(t *testing.T, cfg Config, n *names) *Account {
	cfg.Key, cfg.Log = "k", slog.New(slog.DiscardHandler)
	if cfg.Store == nil {
		cfg.Store = new(Memory)
	}
	a := New(cfg)
	a.web.resolver = n.resolver(t)
	t.Cleanup(a.Close)
	return a
}

// A server on the public internet leads no request of a login to this machine, whatever
// name or address it gives, at any step. Settings that name the place do.
func TestPublicServerLeadsNowhereInside(t *testing.T) {
	t.Parallel()
	const server, outside = "203.0.113.5", "http://198.51.100.7"
	n := &names{leads: map[string]string{"inside.example": "127.0.0.1"}}
	for _, host := range []string{"inside.example", "127.0.0.1", "localhost", "a.localhost", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "0.0.0.0", "127.1", "0x7f000001"} {
		for _, step := range []string{"discovery", "registration", "token", "refresh"} {
			t.Run(host+" "+step, func(t *testing.T) {
				t.Parallel()
				port, requests := counted(t, leading(server, outside, nil))
				inside := "http://" + host + ":" + port
				issuer, m, oauth, opened := outside, metadataOf(outside, outside, outside), config.OAuth{}, false
				switch step {
				case "discovery":
					issuer, oauth.ClientID = inside, "c" // registration would fail too
				case "registration":
					m = metadataOf(outside, inside, outside)
				case "token":
					m = metadataOf(outside, outside, inside)
				}
				a := newAccount(t, Config{OAuth: oauth, URL: "http://" + server + "/mcp", HTTP: proxied(t, leading(server, issuer, m), server, "198.51.100.7")}, n)
				var err error
				if step == "refresh" {
					document, failed := json.Marshal(record{URL: a.cfg.URL, TokenURL: inside + "/token", ClientID: "c", RefreshToken: "r"})
					require.NoError(t, failed)
					require.NoError(t, a.cfg.Store.Update(t.Context(), a.cfg.Key, func([]byte) ([]byte, error) { return document, nil }))
					_, err = a.Header(t.Context(), nil)
				} else {
					err = a.Login(t.Context(), func(ctx context.Context, page Page) (string, error) {
						opened = true
						return agree(ctx, page)
					})
				}
				assert.Equal(t, step == "token", opened, "the page was opened")
				assert.ErrorContains(t, err, fmt.Sprintf("refused to send a request to host %q", strings.Trim(host, "[]")))
				assert.ErrorContains(t, err, "set OAuth.MetadataURL to the metadata of that authorization server")
				assert.Zero(t, requests())
			})
		}
	}
}

// Settings permit what they name.
func TestSettingsLeadAnywhere(t *testing.T) {
	t.Parallel()
	const server = "203.0.113.5"
	n := &names{leads: map[string]string{"inside.example": "127.0.0.1"}}
	var m map[string]any
	port, requests := counted(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { leading(server, "", m).ServeHTTP(w, r) }))
	inside := "http://127.0.0.1:" + port
	m = metadataOf(inside, inside, inside)
	for _, oauth := range []config.OAuth{
		{MetadataURL: inside + "/.well-known/oauth-authorization-server"},
		{ClientID: "c", AuthorizationURL: inside + "/authorize", TokenURL: inside + "/token"},
	} {
		before := requests()
		a := newAccount(t, Config{OAuth: oauth, URL: "http://" + server + "/mcp", HTTP: proxied(t, leading(server, inside, nil), server)}, n)
		require.NoError(t, a.Login(t.Context(), agree))
		assert.Greater(t, requests(), before)
	}
	// That of the token endpoint permits no other.
	before := requests()
	a := newAccount(t, Config{OAuth: config.OAuth{TokenURL: "http://198.51.100.7/token"}, URL: "http://" + server + "/mcp", HTTP: proxied(t, leading(server, inside, nil), server)}, n)
	assert.ErrorContains(t, a.Login(t.Context(), agree), `refused to send a request to host "127.0.0.1"`)
	assert.Equal(t, before, requests())

	// Nor what else is at its host.
	a = newAccount(t, Config{OAuth: config.OAuth{TokenURL: inside + "/token"}, URL: "http://" + server + "/mcp", HTTP: proxied(t, leading(server, inside, nil), server)}, n)
	assert.ErrorContains(t, a.Login(t.Context(), agree), `refused to send a request to host "127.0.0.1"`)
	assert.Equal(t, before, requests())
}

// A server that is not public leads a login inside too, but not to link-local addresses,
// and only while its name does not lead outside.
func TestInternalServerLeadsInside(t *testing.T) {
	t.Parallel()
	n := &names{leads: map[string]string{"login.corp.example": "127.0.0.1", "mcp.corp.example": "127.0.0.1", "cloud.example": "169.254.169.254"}}
	var handler http.Handler
	port, requests := counted(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	issuer := "http://login.corp.example:" + port
	handler = leading("mcp.corp.example:"+port, issuer, metadataOf(issuer, issuer, issuer))
	cfg := Config{URL: "http://mcp.corp.example:" + port + "/mcp", HTTP: new(http.Transport), Store: new(Memory)}
	a := newAccount(t, cfg, n)
	require.NoError(t, a.Login(t.Context(), agree))

	// A refresh may be the first request of a process.
	document, err := json.Marshal(record{URL: cfg.URL, TokenURL: issuer + "/token", ClientID: "c", RefreshToken: "r"})
	require.NoError(t, err)
	store := func() {
		require.NoError(t, cfg.Store.Update(t.Context(), "k", func([]byte) ([]byte, error) { return document, nil }))
	}
	store()
	header, err := newAccount(t, cfg, n).Header(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, "Bearer t", header)

	before := requests()
	for _, leads := range []string{"203.0.113.5", "nowhere"} {
		n.set("mcp.corp.example", leads)
		store()
		_, err = newAccount(t, cfg, n).Header(t.Context(), nil)
		assert.ErrorContains(t, err, `refused to send a request to host "login.corp.example" at 127.0.0.1`, leads)
	}
	n.set("mcp.corp.example", "127.0.0.1")
	public := newAccount(t, cfg, n) // as it was a moment ago
	public.web.reached(netip.MustParseAddr("203.0.113.5"))
	assert.ErrorContains(t, public.Login(t.Context(), agree), `refused to send a request to host "mcp.corp.example" at 127.0.0.1`)
	assert.Equal(t, before, requests())

	for _, cloud := range []string{"http://169.254.169.254", "http://cloud.example", "http://[fe80::1]", "http://[::ffff:169.254.169.254]"} {
		handler = leading("mcp.corp.example:"+port, cloud, nil)
		assert.ErrorContains(t, newAccount(t, Config{URL: cfg.URL, HTTP: new(http.Transport)}, n).Login(t.Context(), agree), "refused to send a request to host")
	}
}

// Of a server behind a proxy only the proxy knows where it is: what its name leads to here
// permits nothing.
func TestServerBehindProxy(t *testing.T) {
	t.Parallel()
	n := &names{leads: map[string]string{"mcp.example": "127.0.0.1"}}
	port, requests := counted(t, http.NotFoundHandler())
	a := newAccount(t, Config{URL: "http://mcp.example/mcp", HTTP: proxied(t, leading("mcp.example", "http://127.0.0.1:"+port, nil), "mcp.example")}, n)
	assert.ErrorContains(t, a.Login(t.Context(), agree), `refused to send a request to host "127.0.0.1"`)
	assert.Zero(t, requests())
}

func TestInternalAddresses(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"10.0.0.1": "internal", "172.16.0.1": "internal", "172.31.255.255": "internal", "172.32.0.0": "public", "192.168.1.1": "internal",
		"100.64.0.0": "internal", "100.127.255.255": "internal", "100.63.255.255": "public", "100.128.0.0": "public",
		"127.0.0.1": "internal", "127.255.255.254": "internal", "128.0.0.1": "public", "0.0.0.0": "internal", "0.1.2.3": "internal", "1.0.0.0": "public",
		"169.254.0.1": "link-local", "169.254.169.254": "link-local", "169.255.0.0": "public", "192.0.0.192": "link-local", "100.100.100.200": "link-local", "168.63.129.16": "link-local", "::ffff:168.63.129.16": "link-local", "168.63.129.17": "public", "fd00:ec2::254": "link-local", "192.0.1.0": "public",
		"224.0.0.1": "internal", "240.0.0.1": "internal", "255.255.255.255": "internal", "8.8.8.8": "public", "203.0.113.5": "public",
		"::": "internal", "::1": "internal", "fc00::1": "internal", "fdff::1": "internal", "fe80::1": "link-local", "fe80::1%eth0": "link-local",
		"fec0::1": "internal", "fbff::1": "public", "2001:db8::1": "public", "2606:4700::1111": "public", "ff02::1": "internal",
		"::ffff:10.0.0.1": "internal", "::ffff:8.8.8.8": "public", "::ffff:169.254.1.1": "link-local", "::10.0.0.1": "internal",
		"64:ff9b::10.0.0.1": "internal", "64:ff9b::8.8.8.8": "public", "64:ff9b::169.254.169.254": "link-local", "64:ff9b:1::8.8.8.8": "internal",
		"::ffff:0:10.0.0.1": "internal", "::ffff:0:8.8.8.8": "public", "2001::1": "internal", "2001:1::1": "public", "2606:4700::5efe:10.0.0.1": "internal",
		"2606:4700::200:5efe:10.0.0.1": "internal", "2606:4700::5efe:8.8.8.8": "public", "198.18.0.1": "internal", "198.20.0.0": "public", "100::1": "internal",
		"2002:a00:1::1": "internal", "2002:808:808::1": "public",
		"localhost": "internal", "LOCALHOST.": "internal", "a.localhost": "internal", "127.1": "internal", "2130706433": "internal", "0x7f.1": "internal",
		"10.0.0.1.": "internal", "0x7f000001": "internal", "0X": "internal",
		"": "name", "localhost.example": "name", "127.evil.example": "name", "example.com": "name", "0xg": "name", "a1": "name",
	} {
		ip, ok := addressIn(host)
		got := "name"
		switch {
		case !ok:
		case isLinkLocal(ip):
			got = "link-local"
		case isInternal(ip):
			got = "internal"
		default:
			got = "public"
		}
		assert.Equal(t, want, got, host)
		assert.False(t, isLinkLocal(ip) && !isInternal(ip), host)
	}
}

// A host's own client maps other spellings of an address to it, after we have looked.
func TestHostsThatAreNotASCII(t *testing.T) {
	t.Parallel()
	sent := 0
	own := roundTripper(func(*http.Request) (*http.Response, error) { sent++; return nil, errClosed })
	g := newReach(&Config{URL: "https://bücher.example/mcp", HTTP: own})
	for _, host := range []string{"127。0。0。1", "１２７．０．０．１", "127.0.0.１", "①②⑦。0。0。①", "ｌｏｃａｌｈｏｓｔ", "loc\u00adalhost", "x.ｌocalhost"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/x", nil)
		require.NoError(t, err)
		_, err = g.RoundTrip(r)
		assert.ErrorContains(t, err, "which is not ASCII", host)
	}
	assert.Zero(t, sent)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://bücher.example/x", nil)
	require.NoError(t, err)
	_, err = g.RoundTrip(r)
	assert.ErrorIs(t, err, errClosed, "its own name is the settings'")
}

// What a resolver of this machine or of a proxy takes for an address is none that counts
// as public unless it is one.
func FuzzAddressIn(f *testing.F) {
	for _, host := range []string{"127.0.0.1", "localhost", "127.1", "0x7f.1", "[::1]", "fe80::1%A.", "a.example", "..", ""} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		ip, ok := addressIn(host)
		if known, err := netip.ParseAddr(host); err == nil {
			assert.True(t, ok)
			assert.Equal(t, known, ip)
		}
		if ok && !isInternal(ip) {
			_, err := netip.ParseAddr(strings.TrimSuffix(host, "."))
			assert.NoError(t, err, "it may lead anywhere")
		}
	})
}
