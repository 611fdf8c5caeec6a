package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A call over HTTP whose stream announces other tools before the result returns when they
// are listed. The listings take no time here: the one after a slow one is put off for longer than
// a call waits.
func TestCallWaitsForWhatItEnables(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := goSDK(refusesAsJSON)
		s.session = false
		called := 0 // one request follows the other
		web := roundTripper(func(r *http.Request) (*http.Response, error) {
			var body []byte
			if r.Body != nil {
				body, _ = io.ReadAll(r.Body)
			}
			r = r.Clone(r.Context())
			r.Body = io.NopCloser(bytes.NewReader(body))
			var in struct {
				ID     json.RawMessage
				Method string
			}
			_ = json.Unmarshal(body, &in)
			w := httptest.NewRecorder()
			w.Header().Set("Content-Type", "text/event-stream")
			switch in.Method {
			case "tools/call":
				called++
				fmt.Fprint(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
				fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", in.ID, greeting)
			case "tools/list":
				tools := `{"name":"greet","inputSchema":{"type":"object"}}`
				for i := range called {
					tools += fmt.Sprintf(`,{"name":"enabled_%d","inputSchema":{"type":"object"}}`, i)
				}
				fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"tools\":[%s]}}\n\n", in.ID, tools)
			default:
				s.ServeHTTP(w, r)
			}
			return w.Result(), nil
		})
		srv := newTestOf(t, Config{Server: config.Server{Name: "web", URL: "http://127.0.0.1:1/mcp", HTTPClient: &http.Client{Transport: web}}}, config.Limits{})
		require.NoError(t, srv.Start(t.Context()))
		for i := range 5 {
			_, err := srv.call(t.Context(), "greet")
			require.NoError(t, err)
			tools, _ := srv.listed()
			assert.Len(t, tools, 2+i)
		}
	})
}

// What a server lists beside tools is asked for by its URI or name, and what bars it comes
// before the request.
func TestReadPromptAndComplete(t *testing.T) {
	t.Parallel()
	s := mcptest.Server("s", mcptest.Echo("a", ""))
	asked := 0
	s.AddResource(mcp.NewResource("mem://a", "a"), func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		asked++
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, Text: "read"}}, nil
	})
	s.AddPrompt(mcp.NewPrompt("p", mcp.WithArgument("x")), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		asked++
		return mcp.NewGetPromptResult(r.Params.Name+" "+r.Params.Arguments["x"], nil), nil
	})
	srv := started(t, config.Server{Name: "s", InProcess: s}, config.Limits{})
	read, err := srv.Read(t.Context(), nil, "mem://a")
	require.NoError(t, err)
	assert.Equal(t, []mcp.ResourceContents{mcp.TextResourceContents{URI: "mem://a", Text: "read"}}, read.Contents)
	prompt, err := srv.Prompt(t.Context(), nil, "p", map[string]string{"x": "y"})
	require.NoError(t, err)
	assert.Equal(t, "p y", prompt.Description)
	_, err = srv.Read(t.Context(), nil, "mem://b")
	assert.Error(t, err)
	barred := errors.New("barred")
	bar := func() error { return barred }
	before := asked
	_, err = srv.Read(t.Context(), bar, "mem://a")
	assert.ErrorIs(t, err, barred)
	_, err = srv.Prompt(t.Context(), bar, "p", nil)
	assert.ErrorIs(t, err, barred)
	_, err = srv.Complete(t.Context(), bar, mcp.CompleteParams{})
	assert.ErrorIs(t, err, barred)
	_, err = srv.Call(t.Context(), Tool{Name: "a", Bar: bar}, nil)
	assert.ErrorIs(t, err, barred)
	assert.Equal(t, before, asked)
}

// answeredBy returns the configuration of a server over HTTP without a network, so that time
// may stand still.
func answeredBy(h http.Handler) config.Server {
	return config.Server{Name: "web", URL: "http://127.0.0.1:1/mcp", HTTPClient: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result(), nil
	})}}
}

// Values of an argument are the server's.
func TestComplete(t *testing.T) {
	t.Parallel()
	s := mcpserver.NewMCPServer("s", "1", mcpserver.WithCompletions(), mcpserver.WithPromptCompletionProvider(completes{}))
	s.AddPrompt(mcp.NewPrompt("p", mcp.WithArgument("x")), nil)
	srv := started(t, config.Server{Name: "s", InProcess: s}, config.Limits{})
	got, err := srv.Complete(t.Context(), nil, mcp.CompleteParams{Ref: mcp.PromptReference{Type: "ref/prompt", Name: "p"}, Argument: mcp.CompleteArgument{Name: "x", Value: "y"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"p x y"}, got.Completion.Values)
}

type completes struct{}

func (completes) CompletePromptArgument(_ context.Context, prompt string, arg mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	return &mcp.Completion{Values: []string{prompt + " " + arg.Name + " " + arg.Value}}, nil
}

// A call that wants a page opened first is made once more when the user has opened it, also if
// it must not be repeated otherwise.
func TestCallAfterAPage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opens bool
		wants int // calls that want a page
		calls int
		ok    bool
	}{
		"opened":     {true, 1, 2, true},
		"once more":  {true, 2, 2, false},
		"not opened": {false, 1, 1, false},
		"no page":    {true, 0, 1, true},
	} {
		calls, opened := 0, 0
		tool := mcpserver.ServerTool{Tool: mcp.NewTool("pay"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if calls++; calls <= test.wants {
				return nil, mcp.URLElicitationRequiredError{Elicitations: []mcp.ElicitationParams{{Mode: mcp.ElicitationModeURL, URL: "https://pay.example/1", ElicitationID: "1", Message: "Pay"}}}
			}
			return mcp.NewToolResultText("paid"), nil
		}}
		hooks := ask.Hooks{Elicit: func(_ context.Context, _ ask.Asker, p mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			assert.Equal(t, "https://pay.example/1", p.URL, name)
			opened++
			action := mcp.ElicitationResponseActionDecline
			if test.opens {
				action = mcp.ElicitationResponseActionAccept
			}
			return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: action}}, nil
		}}
		cfg := inProcess("s", tool)
		cfg.Protocol = mcp.LATEST_LEGACY_PROTOCOL_VERSION
		srv := newTestOf(t, Config{Server: cfg, Ask: ask.Options{Hooks: hooks, Timeout: time.Minute, MaxPerCall: 9, MaxAtOnce: 9, MaxBytes: 10_000}}, config.Limits{})
		require.NoError(t, srv.Start(t.Context()), name)
		_, err := srv.call(t.Context(), "pay")
		assert.Equal(t, test.ok, err == nil, "%s: %v", name, err)
		assert.Equal(t, test.calls, calls, name)
		assert.Equal(t, min(test.wants, 1), opened, name)
	}
}

// A call that is refused for want of a login says so, and so does the status until the server
// lists again. For want of scopes, the login is good for other calls.
func TestCallIsUnauthorized(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		states []State
	}{
		"login":  {http.StatusUnauthorized, []State{Connecting, Ready, Unauthorized, Ready}},
		"scopes": {http.StatusForbidden, []State{Connecting, Ready}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := both()
			s.events, s.discovered = false, discovers(newVersions, `{"tools":{}}`)
			srv := newTest(t, answeredBy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(mcp.HeaderMethod) == "tools/call" {
					w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="more"`)
					w.WriteHeader(test.status)
					return
				}
				s.ServeHTTP(w, r)
			})), config.Limits{})
			var states []State
			srv.OnStatus(func(_ context.Context, st Status) { states = append(states, st.State) })
			require.NoError(t, srv.Start(t.Context()))
			c := srv.connection()
			_, err := srv.call(t.Context(), "greet")
			assert.ErrorIs(t, err, ErrUnauthorized, name)
			assert.NotErrorIs(t, err, ErrDown, name)
			synctest.Wait()
			if st := srv.Status(); name == "login" {
				assert.Equal(t, Unauthorized, st.State)
				assert.ErrorIs(t, st.Err, ErrUnauthorized)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			assert.Equal(t, test.states, states, name)
			assert.Same(t, c, srv.connection(), name)
			assert.NoError(t, srv.Status().Err, name)
		})
	}
}

// What was refused over a connection that is no more says nothing of the next one.
func TestRefusedOverAnotherConnection(t *testing.T) {
	t.Parallel()
	srv := started(t, inProcess("s", mcptest.Echo("a", "")), config.Limits{})
	first := srv.connection()
	srv.lose(first, errors.New("gone"))
	require.NoError(t, srv.Connect(t.Context()))
	srv.refused(first, errUnauthorized)
	assert.Equal(t, Ready, srv.Status().State)
	srv.refused(srv.connection(), errUnauthorized)
	assert.Equal(t, Unauthorized, srv.Status().State)
}
