package mcphybrid

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// guarded serves a real server, and only to requests that may pass.
func guarded(t *testing.T, may func(*http.Request) bool) (url string) {
	inner := mcpserver.NewStreamableHTTPServer(mcptest.Server("web", mcptest.Echo("echo", "Echoes")),
		mcpserver.WithStreamableHTTPProtocolVersions(mcp.LATEST_LEGACY_PROTOCOL_VERSION)) // which needs no requests in the background
	return serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !may(r) {
			http.Error(w, "I got "+fmt.Sprint(r.Header), http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}), "127.0.0.1:0")
}

// remote returns a Manager with one remote server, and the error of its start.
func remote(t *testing.T, opts Options, cfg ServerConfig) (*Manager, error) {
	cfg.Name = "web"
	opts.Servers = append(opts.Servers, cfg)
	mgr := NewManager(&opts)
	t.Cleanup(func() { assert.NoError(t, check(mgr)); mgr.Close() })
	return mgr, mgr.Start(t.Context())
}

// A header function is asked for each request, and once more when the server refuses
// its headers. What it returns is secret; its failures name it and cost one request.
func TestHeaderFunc(t *testing.T) {
	t.Parallel()
	var wanted, given atomic.Int64
	var fail atomic.Value
	url := guarded(t, func(r *http.Request) bool {
		return r.Header.Get("Authorization") == fmt.Sprintf("Bearer rotating-%d", wanted.Load()) && r.Header.Get("X-Fixed") == "yes" && r.Header.Get("X-Both") == "func"
	})
	mgr, err := remote(t, Options{Limits: config.Limits{Reconnect: time.Hour}}, ServerConfig{
		URL: url, Headers: map[string]string{"X-Fixed": "yes", "X-Both": "fixed"},
		HeaderFunc: func(context.Context) (http.Header, error) {
			if f, ok := fail.Load().(func() error); ok {
				return nil, f()
			}
			h := http.Header{"Authorization": {fmt.Sprintf("Bearer rotating-%d", given.Load())}, "x-both": {"func"}}
			given.Store(wanted.Load())
			return h, nil
		},
	})
	require.NoError(t, err)
	for range 20 {
		wanted.Add(1)
		_, err := mgr.Call(t.Context(), "mcp_web__echo", nil)
		require.NoError(t, err)
	}

	for want, f := range map[string]func() error{
		"no ticket":                            func() error { return errors.New("no ticket") },
		"ServerConfig.HeaderFunc: panic: oops": func() error { panic("oops") },
	} {
		fail.Store(f)
		_, err = mgr.Call(t.Context(), "mcp_web__echo", nil)
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, `server "web"`)
		assert.Equal(t, StateReady, mgr.Servers()[0].State, "one request failed, not the connection")
	}
	fail.Store((func() error)(func() error { return nil }))
	_, err = mgr.Call(t.Context(), "mcp_web__echo", nil)
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "rotating")
	for _, secret := range mgr.secretValues() {
		assert.NotEqual(t, "yes", secret)
	}
	assert.Contains(t, mgr.secretValues(), "rotating-20")
	assert.NotContains(t, mgr.secretValues(), "rotating-1", "old ones are forgotten")
}

// A host's client makes the requests, but what we limit stays limited.
func TestHTTPClientOfTheHost(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	url := guarded(t, func(r *http.Request) bool { return r.Header.Get("X-Proxy") == "yes" })
	mgr, err := remote(t, Options{}, ServerConfig{URL: url, HTTPClient: &http.Client{
		Timeout: time.Nanosecond, // would end streams
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			r.Header.Set("X-Proxy", "yes")
			return http.DefaultTransport.RoundTrip(r)
		}),
	}})
	require.NoError(t, err)
	_, err = mgr.Call(t.Context(), "mcp_web__echo", nil)
	require.NoError(t, err)
	assert.Greater(t, asked.Load(), int64(2))

	for want, rt := range map[string]roundTripper{
		"ServerConfig.HTTPClient: panic: oops":                             func(*http.Request) (*http.Response, error) { panic("oops") },
		"ServerConfig.HTTPClient returned neither a response nor an error": func(*http.Request) (*http.Response, error) { return nil, nil },
		`refused a redirect to host "elsewhere.example"`: func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 307, Header: http.Header{"Location": {"https://elsewhere.example/"}}, Body: http.NoBody, Request: r}, nil
		},
	} {
		_, err = remote(t, Options{Limits: config.Limits{Reconnect: -1}}, ServerConfig{URL: url, HTTPClient: &http.Client{
			Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error { return nil },
		}})
		assert.ErrorContains(t, err, want)
	}
	_, err = remote(t, Options{Limits: config.Limits{MaxMessage: 100}}, ServerConfig{URL: url, HTTPClient: &http.Client{
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			r.Header.Set("X-Proxy", "yes")
			return http.DefaultTransport.RoundTrip(r)
		}),
	}})
	assert.ErrorContains(t, err, "more bytes than the limit of 100")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A command that prints headers runs for each connection, and again when the server
// refuses them.
func TestHeadersHelper(t *testing.T) {
	t.Parallel()
	skipUnlessUnix(t)
	counter := filepath.Join(t.TempDir(), "runs")
	runs := func() int {
		data, err := os.ReadFile(counter)
		require.NoError(t, err)
		return len(data)
	}
	var wanted atomic.Value
	wanted.Store("web=1")
	url := guarded(t, func(r *http.Request) bool { return r.Header.Get("X-Key") == wanted.Load() })
	mgr, err := remote(t, Options{}, ServerConfig{
		URL: url, Headers: map[string]string{"X-Key": "fixed"},
		HeadersHelper: `printf . >>` + counter + `; test "$CLAUDE_CODE_MCP_SERVER_URL" = ` + url +
			` && printf '{"X-Key": "%s=%d"}' "$CLAUDE_CODE_MCP_SERVER_NAME" $(wc -c <` + counter + `)`,
	})
	require.NoError(t, err)
	for range 3 {
		_, err = mgr.Call(t.Context(), "mcp_web__echo", nil)
		require.NoError(t, err)
	}
	assert.Equal(t, 1, runs())
	wanted.Store("web=2")
	_, err = mgr.Call(t.Context(), "mcp_web__echo", nil)
	require.NoError(t, err)
	assert.Equal(t, 2, runs())

	for command, want := range map[string]string{
		"echo key=SECRET-VALUE":            "headersHelper: the command did not print a JSON object of strings",
		`echo '{"A": null}'`:               "headersHelper: the command did not print a JSON object of strings",
		"echo SECRET-VALUE >&2; exit 3":    "headersHelper: the command failed: exit status 3",
		"yes SECRET-VALUE":                 "headersHelper: the command printed more than 65536 bytes",
		"sleep 600 & sleep 600":            "no answer within 200ms",
		"exit 3 # --token hunter2-hunter2": "exit status 3",
	} {
		start := time.Now()
		limits := config.Limits{Reconnect: -1}
		if strings.HasPrefix(command, "sleep") {
			limits.StartTimeout = 200 * time.Millisecond
		}
		_, err := remote(t, Options{Limits: limits}, ServerConfig{URL: url, HeadersHelper: command})
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "SECRET")
		assert.Less(t, time.Since(start), 20*time.Second, strings.Fields(command)[0])
	}
	_, err = remote(t, Options{}, ServerConfig{Command: "x", HeadersHelper: "y"})
	assert.ErrorContains(t, err, "go with url")
}

// A server that wants a certificate gets the one of the host's client.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	inner := mcpserver.NewStreamableHTTPServer(mcptest.Server("web", mcptest.Echo("echo", "Echoes")))
	web := httptest.NewUnstartedServer(inner)
	web.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	client := web.Client()
	trusting := client.Transport.(*http.Transport)
	t.Cleanup(trusting.CloseIdleConnections)
	_, err := remote(t, Options{Limits: config.Limits{Reconnect: -1}}, ServerConfig{URL: web.URL, HTTPClient: client})
	assert.ErrorContains(t, err, "certificate required")
	with := trusting.Clone()
	with.TLSClientConfig.Certificates = web.TLS.Certificates
	t.Cleanup(with.CloseIdleConnections)
	mgr, err := remote(t, Options{}, ServerConfig{URL: web.URL, HTTPClient: &http.Client{Transport: with}})
	require.NoError(t, err)
	_, err = mgr.Call(t.Context(), "mcp_web__echo", nil)
	assert.NoError(t, err)
}

// Nobody waits for a header function or an authorization server that hangs.
func TestCredentialsHang(t *testing.T) {
	t.Parallel()
	for _, sse := range []bool{false, true} {
		release := make(chan struct{})
		start := time.Now()
		mgr, err := remote(t, Options{Limits: config.Limits{StartTimeout: 100 * time.Millisecond}}, ServerConfig{
			URL: "http://127.0.0.1:1/", SSE: sse,
			HeaderFunc: func(context.Context) (http.Header, error) { <-release; return nil, nil },
		})
		assert.ErrorContains(t, err, "no answer within 100ms")
		mgr.Close()
		assert.Less(t, time.Since(start), DefaultStartTimeout)
		close(release)
	}

	a := mcptest.NewAuthority(t, echoHandler())
	d := newLoginDesk(t, t.TempDir(), ServerConfig{Name: "web", URL: a.Server, CallTimeout: 200 * time.Millisecond})
	_ = d.Start(t.Context())
	require.NoError(t, d.Login(t.Context(), "web"))
	var asked atomic.Int32
	release := make(chan struct{})
	a.Mu.Lock()
	a.Answer = func(http.ResponseWriter, *http.Request) bool { asked.Add(1); <-release; return false }
	a.Mu.Unlock()
	a.Expire()
	soon(t, func() bool { // a slow machine may take all the time to get there
		return strings.Contains(fmt.Sprint(d.call()), "no answer within 200ms") && asked.Load() > 0
	})
	// The request that opens the stream of the older transport is not one of those that
	// are left alone when their time is up.
	start := time.Now()
	older := newLoginDesk(t, d.folder, ServerConfig{Name: "web", URL: a.Server, SSE: true, StartTimeout: 100 * time.Millisecond})
	assert.ErrorContains(t, older.Start(t.Context()), "no answer within 100ms")
	assert.Less(t, time.Since(start), DefaultStartTimeout)
	d.Close() // does not wait for an answer
	close(release)
}
