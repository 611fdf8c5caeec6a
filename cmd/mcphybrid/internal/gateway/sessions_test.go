package gateway

//lint:file-ignore SA1019 what the protocol had before 2026-07-28 is served, too

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// begin initializes a session and returns its ID.
func begin(t *testing.T, url, message string) string {
	t.Helper()
	status, header := post(t, url, message, nil)
	require.Equal(t, http.StatusOK, status)
	return header.Get(server.HeaderKeySessionID)
}

// in returns the header of a request in a session.
func in(id string) map[string]string { return map[string]string{server.HeaderKeySessionID: id} }

const pong = `{"jsonrpc":"2.0","id":2,"method":"ping"}`

// One session too many ends the one that never asked anything and, if there is none, the
// one that was silent longest.
func TestSessionsHaveALimit(t *testing.T) {
	g, url, _ := startHTTP(t, gatewayOptions{limits: limits.Limits{Sessions: 3}}, web.Options{})
	status := func(id string) int {
		status, _ := post(t, url, pong, in(id))
		return status
	}
	one, two, three := begin(t, url, ping), begin(t, url, ping), begin(t, url, ping)
	assert.Equal(t, http.StatusOK, status(one))
	assert.Equal(t, http.StatusOK, status(three))
	four := begin(t, url, ping)
	assert.Equal(t, http.StatusNotFound, status(two), "never asked anything")
	assert.Equal(t, http.StatusOK, status(four))
	begin(t, url, ping)
	assert.Equal(t, http.StatusNotFound, status(one), "silent longest")
	assert.Equal(t, http.StatusOK, status(three))
	assert.Equal(t, http.StatusOK, status(four))
	g.mu.Lock()
	defer g.mu.Unlock()
	assert.Len(t, g.clients, 3)
}

// A silent session ends, also one that needs a token.
func TestSilentSessionsEnd(t *testing.T) {
	t.Parallel()
	for name, tokens := range map[string]string{"no tokens": "", "tokens": guestAndOwner} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web, header := web.Options{}, map[string]string{}
			if tokens != "" {
				web.TokenFile, header["Authorization"] = writeSecret(t, tokens), "Bearer for-owner"
			}
			g, url, _ := startHTTP(t, gatewayOptions{servers: kitchenAndVault(), limits: limits.Limits{Idle: time.Second}}, web)
			status, answer := post(t, url, ping, header)
			require.Equal(t, http.StatusOK, status)
			id := answer.Get(server.HeaderKeySessionID)
			require.Eventually(t, func() bool { return g.known(id) == nil }, patience, 10*time.Millisecond, "it is still there")
			header[server.HeaderKeySessionID] = id
			status, _ = post(t, url, pong, header)
			assert.Equal(t, http.StatusNotFound, status)
		})
	}
}

// A session in which a client only listens ends for another one, with its stream. One
// with a call does not.
func TestListeningKeepsNoSession(t *testing.T) {
	t.Parallel()
	g, url, _ := startHTTP(t, gatewayOptions{limits: limits.Limits{Sessions: 3}}, web.Options{})
	busy, told := connect(t, overHTTP(url, transport.WithContinuousListening()), "busy", generations["legacy"]...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = callFor(ctx, busy, 1, "mcp_kitchen__a_hang", nil) }()
	wait(t, told, "notifications/progress")
	for range 6 {
		c, told := connect(t, overHTTP(url, transport.WithContinuousListening()), "listener", generations["legacy"]...)
		assert.Empty(t, heard(t, g, c, told)) // it listens
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	assert.Len(t, g.clients, 3)
	assert.Contains(t, g.clients, busy.GetSessionId())
}

// A client that ends its session cancels the calls in it, and ends the stream on which it
// listens.
func TestEndOfASessionCancels(t *testing.T) {
	g, url, _ := startHTTP(t, gatewayOptions{}, web.Options{})
	c, told := connect(t, overHTTP(url, transport.WithContinuousListening()), "one", generations["legacy"]...)
	other, _ := connect(t, overHTTP(url), "two", generations["legacy"]...)
	ended := make(chan error, 1)
	go func() {
		_, err := callFor(context.Background(), c, 1, "mcp_kitchen__a_hang", nil)
		ended <- err
	}()
	wait(t, told, "notifications/progress")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	require.NoError(t, err)
	r.Header.Set(server.HeaderKeySessionID, c.GetSessionId())
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	assert.Error(t, <-ended)
	for ctx := within(t); say(t, other, "mcp_kitchen__a_cancelled", nil) != "1"; {
		require.NoError(t, ctx.Err(), "its server was not told")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	assert.Len(t, g.clients, 1)
}

// Nobody listens without a session, or in one that is not there.
func TestForeignSessions(t *testing.T) {
	g, url, _ := startHTTP(t, gatewayOptions{}, web.Options{})
	for id, want := range map[string]int{"": http.StatusBadRequest, "mine": http.StatusNotFound} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		r.Header.Set(server.HeaderKeySessionID, id)
		r.Header.Set("Accept", "text/event-stream")
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		require.NoError(t, err)
		resp.Body.Close()
		assert.Equal(t, want, resp.StatusCode, id)
	}
	status, _ := post(t, url, pong, in("mine"))
	assert.Equal(t, http.StatusNotFound, status)
	g.mu.Lock()
	defer g.mu.Unlock()
	assert.Empty(t, g.clients)
}

// Of a client's name, a part is kept.
func TestHugeNames(t *testing.T) {
	g, url, _ := startHTTP(t, gatewayOptions{follow: []string{strings.Repeat("x", 256)}}, web.Options{})
	id := begin(t, url, strings.Replace(ping, `"test"`, `"`+strings.Repeat("x", 1<<20)+`"`, 1))
	g.mu.Lock()
	defer g.mu.Unlock()
	assert.True(t, g.clients[id].follows, "what is left of the name")
}

// slowly opens a connection, sends the beginning of a request and returns what comes back
// within a time.
func slowly(t *testing.T, url, begin string) (answer string, took time.Duration) {
	t.Helper()
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), web.Endpoint)
	c, err := net.Dial("tcp", host)
	require.NoError(t, err)
	defer c.Close()
	begun := time.Now()
	_, err = fmt.Fprintf(c, begin, host)
	require.NoError(t, err)
	_ = c.SetReadDeadline(begun.Add(20 * time.Second))
	buf := make([]byte, 1<<10)
	for {
		n, err := c.Read(buf)
		answer += string(buf[:n])
		if err != nil {
			return answer, time.Since(begun)
		}
	}
}
