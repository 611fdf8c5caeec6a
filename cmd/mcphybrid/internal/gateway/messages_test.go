package gateway

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const slowPost = "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"

// Who may not call is answered before the message is there, and the connection ends. So
// is who asks for what there is not.
func TestStrangersDoNotKeepConnections(t *testing.T) {
	t.Setenv(tokens.Variable, "right")
	_, url, _ := startHTTP(t, gatewayOptions{}, web.Options{Debug: true})
	for begin, want := range map[string]string{
		slowPost + "\r\n{":                                                  " 401 ",
		slowPost + "\r\n":                                                   " 401 ",
		slowPost + "Connection: close\r\n\r\n":                              " 401 ",
		slowPost + "Expect: 100-continue\r\n\r\n":                           " 401 ",
		slowPost + "Origin: https://evil.example\r\n\r\n":                   " 403 ",
		"POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000\r\n\r\n{":      " 404 ",
		"POST /debug HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000\r\n\r\n{": " 401 ",
		"GET /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer right\r\nContent-Length: 1000\r\n\r\n{": " 400 ",
	} {
		answer, took := slowly(t, url, begin)
		line, _, _ := strings.Cut(answer, "\r\n")
		assert.Contains(t, line+" ", want, begin)
		assert.Contains(t, answer, "Connection: close")
		assert.Less(t, took, 10*time.Second, begin)
	}
}

// A client that may call has a time to send its message.
func TestMessagesHaveATime(t *testing.T) {
	_, url, _ := startHTTP(t, gatewayOptions{limits: limits.Limits{Read: 100 * time.Millisecond}}, web.Options{})
	answer, took := slowly(t, url, slowPost+"\r\n{")
	assert.Contains(t, answer, " 408 ")
	assert.Contains(t, answer, "did not come whole within 100ms")
	assert.Less(t, took, 10*time.Second)
}

// Longer calls than that go on.
func TestReadTimeoutIsNotForCalls(t *testing.T) {
	_, url, _ := startHTTP(t, gatewayOptions{limits: limits.Limits{Read: 400 * time.Millisecond, Write: 400 * time.Millisecond}}, web.Options{})
	c, _ := connect(t, overHTTP(url), "test", generations["legacy"]...)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 1200*time.Millisecond, errLate)
	defer cancel()
	_, err := call(ctx, c, "mcp_kitchen__a_hang", nil)
	require.Error(t, err)
	require.ErrorIs(t, context.Cause(ctx), errLate, "it ended by itself")
	assert.Equal(t, "{}", say(t, c, "mcp_kitchen__a_arguments", nil))
}

// A message with too many values is refused before it is decoded. One with as many, in
// texts too, is not.
func TestBombs(t *testing.T) {
	_, url, _ := startHTTP(t, gatewayOptions{limits: limits.Limits{Values: 1000}}, web.Options{})
	id := begin(t, url, ping)
	with := func(argument string) int {
		status, _ := post(t, url, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"mcp_kitchen__a_arguments","arguments":{"text":`+argument+`}}}`, in(id))
		return status
	}
	assert.Equal(t, http.StatusRequestEntityTooLarge, with("["+strings.Repeat("[],", 1000)+"[]]"))
	assert.Equal(t, http.StatusRequestEntityTooLarge, with(strings.Repeat(`{"a":`, 500)+"1"+strings.Repeat("}", 500)))
	assert.Equal(t, http.StatusOK, with(`"`+strings.Repeat(`[{\",:\\`, 1000)+`"`))
	assert.Equal(t, http.StatusOK, with("["+strings.Repeat("1,", 900)+"1]"))
}
