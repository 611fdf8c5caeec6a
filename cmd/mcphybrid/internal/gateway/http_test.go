package gateway

//lint:file-ignore SA1019 what the protocol had before 2026-07-28 is served, too

import (
	"context"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/figures"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// post sends a message and returns the status of the answer.
func post(t *testing.T, url, message string, headers map[string]string) (status int, header http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(message))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for key, value := range headers {
		if key == "Host" {
			r.Host = value
		}
		r.Header.Set(key, value)
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header
}

func TestWhoMayCall(t *testing.T) {
	t.Setenv(tokens.Variable, "right")
	_, url, _ := startHTTP(t, gatewayOptions{}, web.Options{Origins: []string{"https://page.example"}})
	right, own := "Bearer right", strings.TrimSuffix(url, web.Endpoint)
	for _, test := range []struct {
		name    string
		headers map[string]string
		want    int
	}{
		{"token", map[string]string{"Authorization": right}, http.StatusOK},
		{"the scheme in other letters", map[string]string{"Authorization": "bEARER right"}, http.StatusOK},
		{"two spaces", map[string]string{"Authorization": "Bearer  right"}, http.StatusOK},
		{"no scheme", map[string]string{"Authorization": "right"}, http.StatusUnauthorized},
		{"no token", nil, http.StatusUnauthorized},
		{"wrong token", map[string]string{"Authorization": "Bearer wrong"}, http.StatusUnauthorized},
		{"longer token", map[string]string{"Authorization": right + "er"}, http.StatusUnauthorized},
		{"other scheme", map[string]string{"Authorization": "Basic right"}, http.StatusUnauthorized},
		{"a page that may", map[string]string{"Authorization": right, "Origin": "https://page.example"}, http.StatusOK},
		{"a page that may, without token", map[string]string{"Origin": "https://page.example"}, http.StatusUnauthorized},
		{"another page", map[string]string{"Authorization": right, "Origin": "https://evil.example"}, http.StatusForbidden},
		{"a page of this machine", map[string]string{"Authorization": right, "Origin": "http://localhost:3000"}, http.StatusForbidden},
		{"our own page", map[string]string{"Authorization": right, "Origin": own}, http.StatusOK},
		{"our own page, without token", map[string]string{"Origin": own}, http.StatusUnauthorized},
		{"our own page under a name that leads here", map[string]string{"Authorization": right, "Origin": own, "Host": "evil.example"}, http.StatusForbidden},
		{"a page at our address with TLS", map[string]string{"Authorization": right, "Origin": strings.Replace(own, "http:", "https:", 1)}, http.StatusForbidden},
		{"a page at another port", map[string]string{"Authorization": right, "Origin": own + "0"}, http.StatusForbidden},
		{"a page at another name of this machine", map[string]string{"Authorization": right, "Origin": strings.Replace(own, "127.0.0.1", "localhost", 1)}, http.StatusForbidden},
		{"a page of nobody", map[string]string{"Authorization": right, "Origin": "null"}, http.StatusForbidden},
		{"a name that leads here", map[string]string{"Authorization": right, "Host": "evil.example"}, http.StatusForbidden},
	} {
		status, header := post(t, url, ping, test.headers)
		assert.Equal(t, test.want, status, test.name)
		if status == http.StatusUnauthorized {
			assert.Equal(t, "Bearer", header.Get("WWW-Authenticate"), test.name)
		}
	}

	r, err := http.NewRequest(http.MethodOptions, url, nil)
	require.NoError(t, err)
	r.Header.Set("Origin", "https://page.example")
	r.Header.Set("Access-Control-Request-Method", http.MethodPost)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	assert.Equal(t, "https://page.example", resp.Header.Get("Access-Control-Allow-Origin"))

	c, _ := connect(t, overHTTP(url, transport.WithHTTPHeaders(map[string]string{"Authorization": right})), "test")
	assert.Equal(t, "{}", say(t, c, "mcp_kitchen__a_arguments", nil))
}

func TestDebugPage(t *testing.T) {
	get := func(url, host, password string) (status int, page string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		r.Host = host
		if password != "" {
			r.SetBasicAuth("me", password)
		}
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := c.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(data)
	}
	_, url, _ := startHTTP(t, gatewayOptions{}, web.Options{Debug: true})
	url = strings.TrimSuffix(url, web.Endpoint) + web.DebugPath
	status, page := get(url, "", "")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, page, "<html")
	status, _ = get(url, "evil.example", "")
	assert.Equal(t, http.StatusMisdirectedRequest, status)

	t.Setenv(tokens.Variable, "right")
	_, url, _ = startHTTP(t, gatewayOptions{}, web.Options{Debug: true})
	url = strings.TrimSuffix(url, web.Endpoint) + web.DebugPath
	for password, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "right": http.StatusOK} {
		status, _ = get(url, "", password)
		assert.Equal(t, want, status, password)
	}
	_, url, _ = startHTTP(t, gatewayOptions{}, web.Options{})
	status, _ = get(strings.TrimSuffix(url, web.Endpoint)+web.DebugPath, "", "right")
	assert.Equal(t, http.StatusNotFound, status, "only where it is asked for")
}

// The start says where the page is, and warns if anybody may press its buttons.
func TestPageIsAnnounced(t *testing.T) {
	for _, test := range []struct {
		opts        web.Options
		token       string
		told, warns bool
	}{
		{web.Options{Debug: true}, "", true, true}, {web.Options{Debug: true}, "right", true, false}, {web.Options{}, "", false, false},
	} {
		t.Setenv(tokens.Variable, test.token)
		site, err := web.Listen("127.0.0.1:0", test.opts)
		require.NoError(t, err)
		site.Within(limits.Limits{}, figures.New())
		defer site.Door.Close()
		book := new(logBook)
		announce(book.logger(), site, false)
		page := strings.TrimSuffix(site.URL(), web.Endpoint) + web.DebugPath
		assert.Equal(t, test.told, strings.Contains(book.String(), `"msg":"the page for operators","url":"`+page+`"`), book)
		assert.Equal(t, test.warns, strings.Contains(book.String(), `"level":"WARN","msg":"without a token, every program and user of this machine may open the page and press its buttons: set `+tokens.Variable), book)
	}
}

// An operator's buttons work, for nobody else and no other site, and the log has who pressed
// which.
func TestButtonsOfTheGateway(t *testing.T) {
	book := new(logBook)
	_, url, _ := startHTTP(t, gatewayOptions{log: book.logger()}, web.Options{TokenFile: writeSecret(t, commandtest.SeveralTokens), Debug: true})
	page := strings.TrimSuffix(url, web.Endpoint) + web.DebugPath
	press := func(query, token, site string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, page+"?"+query, nil)
		require.NoError(t, err)
		r.SetBasicAuth("me", token)
		r.Header.Set("Sec-Fetch-Site", site)
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := c.Do(r)
		require.NoError(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	const restart = "do=restart&of=kitchen"
	assert.Equal(t, http.StatusForbidden, press(restart, "for-guest", "same-origin"))
	assert.Equal(t, http.StatusUnauthorized, press(restart, "", "same-origin"))
	assert.Equal(t, http.StatusForbidden, press(restart, "for-me", "cross-site"))
	assert.NotContains(t, book.String(), "an operator's action")
	assert.Equal(t, http.StatusSeeOther, press(restart, "for-me", "same-origin"))
	done := `"msg":"an operator's action","action":"restart","server":"kitchen","user":"me"`
	mcptest.Soon(t, func() bool { return strings.Contains(book.String(), done) }, "the log has not %s: %s", done, book)
	assert.Equal(t, http.StatusSeeOther, press("do=restart&of=pantry", "for-me", "same-origin"))
	failed := `"level":"WARN","msg":"an operator's action failed","action":"restart","server":"pantry","user":"me","error":`
	mcptest.Soon(t, func() bool { return strings.Contains(book.String(), failed) }, "the log has not %s: %s", failed, book)
	_, _, body := get(t, page, "for-me")
	assert.Contains(t, body, `Restart of server pantry <span class="bad">failed: there is no such server</span>`)
	assert.NotContains(t, body, "mgr.")
}

// An operator logs in to a server from the page, which says where.
func TestLoginAtThePage(t *testing.T) {
	a := mcptest.NewAuthority(t, server.NewStreamableHTTPServer(mcptest.Server("web", mcptest.Echo("echo", "Echoes"))))
	book := new(logBook)
	g, url, _ := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "web", URL: a.Server}}, log: book.logger()}, web.Options{Debug: true})
	page := strings.TrimSuffix(url, web.Endpoint) + web.DebugPath
	<-g.all.Done()
	_, _, body := get(t, page, "")
	assert.Contains(t, body, ">Log in</button>")
	pressed := make(chan int)
	go func() {
		status, _ := post(t, page+"?do=login&of=web", "", nil)
		pressed <- status
	}()
	link := regexp.MustCompile(`<a href="([^"]*)"[^>]*>log in</a> at 127\.0\.0\.1:`)
	var to []string
	mcptest.Soon(t, func() bool {
		_, _, body = get(t, page, "")
		to = link.FindStringSubmatch(body)
		return to != nil
	}, "the page does not say where: %s", body)
	mcptest.Browse(t, html.UnescapeString(to[1]))
	assert.Equal(t, http.StatusOK, <-pressed, "it leads back to the page")
	_, _, body = get(t, page, "")
	assert.Contains(t, body, `Login to server web <span class="good">is done</span>`)
	assert.NotContains(t, body, "log in</a>")
	assert.Equal(t, mcphybrid.StateReady, g.mgr.Servers()[0].State)
	assert.Contains(t, book.String(), `"action":"login","server":"web"`)
}

func TestTooLargeRequest(t *testing.T) {
	_, url, _ := startHTTP(t, gatewayOptions{}, web.Options{})
	for _, headers := range []map[string]string{nil, {mcp.HeaderProtocolVersion: mcp.LATEST_PROTOCOL_VERSION}} {
		status, _ := post(t, url, `"`+strings.Repeat("x", limits.DefaultMessage)+`"`, headers)
		assert.GreaterOrEqual(t, status, 400)
		assert.Less(t, status, 500)
	}
}

// What says who may call over HTTP is refused without it: nothing would go by it.
func TestFlagsThatNeedHTTP(t *testing.T) {
	config := writeConfig(t, "kitchen")
	for _, args := range [][]string{
		{"-token-file", "x"}, {"-tls-cert", "x"}, {"-tls-key", "x"}, {"-metrics"}, {"-debug"}, {"-listen-anywhere"}, {"-origin", "https://page.example"}, {"-host", "mcp.example"},
	} {
		err := run(t.Context(), append([]string{"-config", config}, args...), strings.NewReader(""), nil, t.Output())
		assert.EqualError(t, err, args[0]+" needs -http")
	}
}

func TestNamesToFollow(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]string{"": nil, "a": {"a"}, "a, b c ,d": {"a", "b c", "d"}, " * ": {"*"}, "a,,": {"a"}, ",": nil} {
		assert.Equal(t, want, names(list), "%q", list)
	}
}

// A client's session ends when the client ends it.
func TestClientGoes(t *testing.T) {
	g, url, _ := startHTTP(t, gatewayOptions{}, web.Options{})
	c, _ := connect(t, overHTTP(url), "test", generations["legacy"]...)
	say(t, c, "mcp_kitchen__a_arguments", nil)
	count := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.clients)
	}
	require.Equal(t, 1, count())
	require.NoError(t, c.Close())
	for ctx := within(t); count() > 0; {
		require.NoError(t, ctx.Err())
	}
	status, _ := post(t, url, ping[:len(ping)-1]+`,"x":1}`, map[string]string{"Mcp-Session-Id": "mcp-session-00000000-0000-0000-0000-000000000000"})
	assert.Equal(t, http.StatusOK, status, "initialize begins a session, whatever it carries")
	status, _ = post(t, url, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": "mcp-session-00000000-0000-0000-0000-000000000000"})
	assert.Equal(t, http.StatusNotFound, status, "nobody's session")
}

// A client that listens is told of a server that comes late, in both
// generations of the protocol.
func TestListeners(t *testing.T) {
	g, url, _ := startHTTP(t, gatewayOptions{}, web.Options{})
	<-g.waiting.Done()
	legacy, toldLegacy := connect(t, overHTTP(url, transport.WithContinuousListening()), "legacy", generations["legacy"]...)
	modern, toldModern := connect(t, overHTTP(url), "modern", generations["modern"]...)
	failed := make(chan error, 1)
	stop, err := modern.ListenAsync(context.Background(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(err error) { failed <- err })
	require.NoError(t, err)
	defer stop()
	wait(t, toldModern, mcp.MethodNotificationSubscriptionsAcknowledged)
	for _, c := range []*client.Client{legacy, modern} {
		assert.Contains(t, toolNames(t, c), "mcp_kitchen__a_long")
	}
	require.True(t, g.mgr.RemoveServer("kitchen"))
	wait(t, toldLegacy, mcp.MethodNotificationToolsListChanged)
	wait(t, toldModern, mcp.MethodNotificationToolsListChanged)
	for _, c := range []*client.Client{legacy, modern} {
		assert.NotContains(t, toolNames(t, c), "mcp_kitchen__a_long")
	}
}
