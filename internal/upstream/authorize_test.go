package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// authorized returns an authorizer for a server, with these sources.
func authorized(address string, sources ...HeaderSource) *authorizer {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	return &authorizer{server: u, sources: sources, secrets: new(secrets), changing: new(atomic.Bool), unauthorized: func(scopes []string) error { return fmt.Errorf("log in for %q", scopes) }}
}

func post(t *testing.T, address, body string) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Given", "by mcp-go")
	return r
}

// Headers go to the host of the server alone, and never in plain text if it has TLS.
func TestHeadersGoToTheServerAlone(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]map[string]bool{
		"https://h/mcp": {"https://h/other": true, "http://h/mcp": false, "https://other/mcp": false, "https://h:444/mcp": false},
		"http://h/mcp":  {"http://h/mcp": true, "https://h/mcp": true, "http://other/mcp": false},
	} {
		for to, ok := range want {
			asked := 0
			a := authorized(address, func(context.Context, http.Header, *Refusal) (http.Header, error) { asked++; return nil, nil })
			_, err := a.authorize(post(t, to, ""), nil)
			if ok {
				assert.NoError(t, err, to)
			} else {
				assert.ErrorContains(t, err, "refused to send a request to host ", to)
			}
			assert.Equal(t, ok, asked == 1, to)
			assert.False(t, a.changing.Load(), "no source had headers")
		}
	}
}

// The headers of sources replace those before them; each is hidden, and belongs to its source.
func TestHeadersOfSources(t *testing.T) {
	t.Parallel()
	name := "x-key" // as a host may write it
	own := http.Header{name: {"source-key-1"}, "Fixed": {"replaced-1"}}
	a := authorized("https://h/mcp", func(_ context.Context, given http.Header, _ *Refusal) (http.Header, error) {
		assert.Equal(t, "value", given.Get("Fixed"))
		return own, nil
	})
	a.fixed = map[string]string{"Fixed": "value", "Other": "stays"}
	r := post(t, "https://h/mcp", "")
	got, err := a.authorize(r, nil)
	require.NoError(t, err)
	assert.Equal(t, http.Header{"Given": {"by mcp-go"}, "X-Key": {"source-key-1"}, "Fixed": {"replaced-1"}, "Other": {"stays"}}, got.Header)
	assert.Equal(t, http.Header{"Given": {"by mcp-go"}}, r.Header, "the request is mcp-go's")
	assert.True(t, a.changing.Load())
	assert.True(t, a.secrets.in("source-key-1"))
	got.Header["X-Key"][0] = "changed"
	assert.Equal(t, "source-key-1", own[name][0])

	many := make(http.Header)
	for i := range 65 {
		_, err := authorized("https://h/mcp", func(context.Context, http.Header, *Refusal) (http.Header, error) { return many, nil }).authorize(r, nil)
		assert.NoError(t, err, i)
		many.Set(fmt.Sprint("H", i), "x")
	}
	_, err = authorized("https://h/mcp", func(context.Context, http.Header, *Refusal) (http.Header, error) { return many, nil }).authorize(r, nil)
	assert.EqualError(t, err, "there are 65 headers, more than the limit of 64")
	_, err = authorized("https://h/mcp", func(context.Context, http.Header, *Refusal) (http.Header, error) { return nil, errors.New("no key") }).authorize(r, nil)
	assert.EqualError(t, err, "no key")
}

// A request that is refused is sent once more if there are other headers for it, with its
// body; for want of scopes, at most so often too.
func TestRefusedRequestsAreSentOnceMore(t *testing.T) {
	t.Parallel()
	lacking := `Bearer error="insufficient_scope", scope="more"`
	for name, test := range map[string]struct {
		keys      []string // of the source, in turn; the last one for ever
		answers   []int    // in turn, the last one for ever
		challenge string
		plain     bool // the body can be read once
		want      string
		sent      int
	}{
		"taken":                  {[]string{"1", "2"}, []int{200}, "", false, "200", 1},
		"another key":            {[]string{"1", "2"}, []int{401, 200}, "", false, "200", 2},
		"refused twice":          {[]string{"1", "2", "3"}, []int{401}, "", false, "401", 2},
		"the same key":           {[]string{"1"}, []int{401, 200}, "", false, "401", 1},
		"a body that is gone":    {[]string{"1", "2"}, []int{401, 200}, "", true, "401", 1},
		"forbidden":              {[]string{"1", "2"}, []int{403}, "", false, "403", 1},
		"lacks scopes":           {[]string{"1", "2"}, []int{403, 200}, lacking, false, "200", 2},
		"lacks them for good":    {[]string{"1"}, []int{403}, lacking, false, `log in for ["more"]`, 1},
		"lacks them once more":   {[]string{"1", "2", "3"}, []int{403}, lacking, false, `log in for ["more"]`, 2},
		"first one, then scopes": {[]string{"1", "2", "3"}, []int{401, 403}, lacking, false, `log in for ["more"]`, 2},
	} {
		asked, bodies := 0, []string(nil)
		a := authorized("https://h/mcp", func(context.Context, http.Header, *Refusal) (http.Header, error) {
			asked++
			return http.Header{"Authorization": {"Bearer key-number-" + test.keys[min(asked, len(test.keys))-1]}}, nil
		})
		r := post(t, "https://h/mcp", "the body")
		if test.plain {
			r.GetBody = nil
		}
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			bodies = append(bodies, string(body))
			return &http.Response{StatusCode: test.answers[min(len(bodies), len(test.answers))-1], Header: http.Header{"Www-Authenticate": {test.challenge}}, Body: http.NoBody}, nil
		})
		failed := new(outcome)
		resp, err := a.send(r, base, failed)
		assert.Len(t, bodies, test.sent, name)
		for _, body := range bodies {
			assert.Equal(t, "the body", body, name)
		}
		if err != nil {
			assert.EqualError(t, err, test.want, name)
			assert.ErrorAs(t, err, new(scopeError), name)
		} else {
			assert.Equal(t, test.want, fmt.Sprint(resp.StatusCode), name)
		}
	}
}

// A request without a body is sent once more without one.
func TestRefusedRequestsWithoutABody(t *testing.T) {
	t.Parallel()
	keys := 0
	a := authorized("https://h/mcp", func(context.Context, http.Header, *Refusal) (http.Header, error) {
		keys++
		return http.Header{"Authorization": {fmt.Sprint("Bearer key-number-", keys)}}, nil
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://h/mcp", nil)
	require.NoError(t, err)
	sent := 0
	resp, err := a.send(r, roundTripper(func(r *http.Request) (*http.Response, error) {
		sent++
		assert.Nil(t, r.Body)
		return &http.Response{StatusCode: []int{401, 200}[min(sent, 2)-1], Body: http.NoBody}, nil
	}), new(outcome))
	require.NoError(t, err)
	assert.Equal(t, 200, resp.StatusCode)
	assert.Equal(t, 2, sent)
}

// With an account, a request is sent three times at most. Other sources are told of the first
// refusal only.
func TestAccountIsAskedTwice(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		keys []string
		sent int
	}{
		"always another": {[]string{"1", "2", "3", "4"}, 3},
		"no other one":   {[]string{"1", "2"}, 2},
		"the same":       {[]string{"1"}, 1},
	} {
		var told, again []bool
		a := authorized("https://h/mcp", func(_ context.Context, _ http.Header, refused *Refusal) (http.Header, error) {
			told = append(told, refused != nil)
			return nil, nil
		})
		a.account = func(_ context.Context, _ http.Header, refused *Refusal) (http.Header, error) {
			again = append(again, refused != nil && refused.Again)
			return http.Header{"Authorization": {"Bearer key-number-" + test.keys[min(len(again), len(test.keys))-1]}}, nil
		}
		sent := 0
		resp, err := a.send(post(t, "https://h/mcp", ""), roundTripper(func(*http.Request) (*http.Response, error) {
			sent++
			return &http.Response{StatusCode: 401, Body: http.NoBody}, nil
		}), new(outcome))
		require.NoError(t, err, name)
		assert.Equal(t, 401, resp.StatusCode, name)
		assert.Equal(t, test.sent, sent, name)
		assert.Equal(t, []bool{false, true, false}[:len(told)], told, name)
		assert.Equal(t, []bool{false, false, true}[:len(again)], again, name)
	}
}

// A request that can't be sent fails with the reason, and the outcome knows it.
func TestRequestsThatAreNotSent(t *testing.T) {
	t.Parallel()
	a := authorized("https://h/mcp")
	failed := new(outcome)
	_, err := a.send(post(t, "https://other/mcp", ""), nil, failed)
	assert.ErrorContains(t, err, `refused to send a request to host "other"`)
	assert.NotNil(t, failed.refused.Load())
	failed = new(outcome)
	_, err = a.send(post(t, "https://h/mcp", ""), roundTripper(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }), failed)
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, io.ErrUnexpectedEOF, *failed.err.Load())
	a.sources = []HeaderSource{func(_ context.Context, _ http.Header, refused *Refusal) (http.Header, error) {
		if refused != nil {
			assert.Equal(t, []string{"Bearer"}, refused.Challenges)
			assert.Equal(t, "by mcp-go", refused.Sent.Get("Given"))
			return nil, errors.New("no new key")
		}
		return nil, nil
	}}
	_, err = a.send(post(t, "https://h/mcp", ""), roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 401, Header: http.Header{"Www-Authenticate": {"Bearer"}}, Body: http.NoBody}, nil
	}), new(outcome))
	assert.ErrorContains(t, err, "no new key")
}

// Scopes that repeat a secret are told to nobody.
func TestLackingScopesWithoutSecrets(t *testing.T) {
	t.Parallel()
	a := authorized("https://h/mcp")
	a.secrets.hold("key", []string{"our-secret-key"})
	refusal := func(status int, scope string) *Refusal {
		return a.refusal(nil, &http.Response{StatusCode: status, Header: http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="` + scope + `"`}}})
	}
	assert.Equal(t, []string{"a", "b"}, refusal(403, "a our-secret-key b").Scopes)
	assert.Nil(t, refusal(403, "our-secret-key"))
	assert.Nil(t, refusal(401, "a").Scopes)
	assert.Nil(t, refusal(200, "a"))
}

// A host's transport that returns nothing is told of by the name of its setting.
func TestHostTransportThatReturnsNothing(t *testing.T) {
	t.Parallel()
	nothing := roundTripper(func(*http.Request) (*http.Response, error) { return nil, nil })
	_, err := Transport(&http.Client{Transport: nothing}).RoundTrip(post(t, "https://h", ""))
	assert.EqualError(t, err, "ServerConfig.HTTPClient returned neither a response nor an error")
	assert.Equal(t, hostTransport{http.DefaultTransport}, Transport(new(http.Client)))
	assert.IsType(t, new(http.Transport), Transport(nil))
}

func shellHelper(t *testing.T, command string) *helper {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a POSIX shell")
	}
	return newHelper(&config.Server{Name: "srv", URL: "https://h/mcp", HeadersHelper: command})
}

// A command that fails leaves no process, nor does one whose output does not end with it.
func TestHelperLeavesNoProcess(t *testing.T) {
	t.Parallel()
	mark := fmt.Sprintf("%s=%d-helper", mcptest.ChildMark, os.Getpid())
	_, err := shellHelper(t, mark+` sleep 71 & echo '{}'`).headers(t.Context(), nil, nil)
	assert.EqualError(t, err, "headersHelper: the command has ended, but a process that it started keeps its output open")
	_, err = shellHelper(t, mark+` sleep 71 & exit 3`).headers(t.Context(), nil, nil)
	assert.EqualError(t, err, "headersHelper: the command failed: exit status 3")
	mcptest.Soon(t, func() bool {
		return !strings.Contains(strings.Join(mcptest.Children(os.Getpid()), "\n"), "sleep 71")
	}, "it is left")
}

// A helper's command prints headers, and knows the server. What else it does is an error.
func TestHelperPrintsHeaders(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		`echo '{"x-key":"'$CLAUDE_CODE_MCP_SERVER_NAME'","Url":"'$CLAUDE_CODE_MCP_SERVER_URL'"}'`: "",
		`echo '{}'`:         "",
		`echo '{"a":1}'`:    "headersHelper: the command did not print a JSON object of strings",
		`echo '{"a":null}'`: "headersHelper: the command did not print a JSON object of strings",
		`echo null`:         "headersHelper: the command did not print a JSON object of strings",
		`true`:              "headersHelper: the command did not print a JSON object of strings",
		`echo '{}'; exit 3`: "headersHelper: the command failed: exit status 3",
	} {
		got, err := shellHelper(t, command).headers(t.Context(), nil, nil)
		if want != "" {
			assert.EqualError(t, err, want, command)
			continue
		}
		assert.NoError(t, err, command)
		if strings.Contains(command, "key") {
			assert.Equal(t, http.Header{"X-Key": {"srv"}, "Url": {"https://h/mcp"}}, got)
		} else {
			assert.Empty(t, got)
		}
	}
	for bytes, ok := range map[int]bool{64 << 10: true, 64<<10 + 1: false} {
		_, err := shellHelper(t, fmt.Sprintf(`printf '{}%%%ds' ''`, bytes-2)).headers(t.Context(), nil, nil)
		if ok {
			assert.NoError(t, err, bytes)
		} else {
			assert.EqualError(t, err, "headersHelper: the command printed more than 65536 bytes")
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	h := shellHelper(t, `echo '{}'`)
	h.turn <- struct{}{}
	_, err := h.headers(ended, nil, nil)
	assert.ErrorIs(t, err, context.Canceled, "another one has the turn")
}

// A command runs once, and once more when what it printed last is refused, unless for want
// of scopes.
func TestHelperRunsAgain(t *testing.T) {
	t.Parallel()
	h := shellHelper(t, `echo '{"N":"'$$'"}'`)
	ask := func(refused *Refusal) string {
		got, err := h.headers(t.Context(), nil, refused)
		require.NoError(t, err)
		return got.Get("N")
	}
	first := ask(nil)
	assert.Equal(t, first, ask(nil))
	assert.Equal(t, first, ask(&Refusal{Sent: http.Header{"N": {"older"}}}), "those were not refused")
	assert.Equal(t, first, ask(&Refusal{Sent: http.Header{"N": {first}}, Scopes: []string{"more"}}))
	second := ask(&Refusal{Sent: http.Header{"N": {first}, "Other": {"x"}}})
	assert.NotEqual(t, first, second)
	assert.Equal(t, second, ask(nil))
}

// A command that is given up ends, with what it has started.
func TestHelperIsGivenUp(t *testing.T) {
	t.Parallel()
	begun := filepath.Join(t.TempDir(), "begun")
	ctx, cancel := context.WithCancel(t.Context())
	h := shellHelper(t, `sleep 60 & echo $! >'`+begun+`.new'; mv '`+begun+`.new' '`+begun+`'; wait`)
	failed := make(chan error)
	go func() {
		_, err := h.headers(ctx, nil, nil)
		failed <- err
	}()
	mcptest.Soon(t, func() bool { _, err := os.Stat(begun); return err == nil })
	cancel()
	err := <-failed
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "headersHelper: the command did not end within 10s")
	assert.Empty(t, h.turn)
	data, err := os.ReadFile(begun)
	require.NoError(t, err)
	if runtime.GOOS == "linux" {
		mcptest.Soon(t, func() bool {
			line, _ := os.ReadFile("/proc/" + strings.TrimSpace(string(data)) + "/cmdline")
			return !strings.HasPrefix(string(line), "sleep")
		})
	}
}
