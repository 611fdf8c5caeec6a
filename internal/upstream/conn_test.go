package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An inquirer answers a call after it was answered a question of its own, which it puts
// on the stream of the call.
type inquirer struct {
	*wire
	method, params string
	begun          chan struct{}            // if not nil, it takes the question back after something comes here
	can            chan map[string]struct{} // what the client declares
	answered       chan json.RawMessage
}

func newInquirer(method, params string) *inquirer {
	s := goSDK(refusesAsJSON)
	return &inquirer{s, method, params, nil, make(chan map[string]struct{}, 1), make(chan json.RawMessage, 1)}
}

func (s *inquirer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var in struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Capabilities map[string]json.RawMessage
		}
	}
	_ = json.Unmarshal(body, &in)
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch in.Method {
	case "initialize":
		can := make(map[string]struct{})
		for name := range in.Params.Capabilities {
			can[name] = struct{}{}
		}
		s.can <- can
	case "tools/call":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":%q,\"params\":%s}\n\n", s.method, s.params)
		w.(http.Flusher).Flush()
		if s.begun != nil {
			<-s.begun
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"q\"}}\n\n")
			w.(http.Flusher).Flush()
		}
		answer := <-s.answered
		s.answered <- answer
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", in.ID, greeting)
		return
	case "":
		if r.Method == http.MethodPost {
			s.answered <- body
			w.WriteHeader(http.StatusAccepted)
			return
		}
	}
	s.wire.ServeHTTP(w, r)
}

// A server over HTTP may ask what the host has a hook for, is told so, and nothing else.
func TestQuestionsOfAServer(t *testing.T) {
	t.Parallel()
	all := ask.Hooks{
		Elicit: func(context.Context, ask.Asker, mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"a": "x"}}}, nil
		},
		Sample: func(context.Context, ask.Asker, mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{SamplingMessage: mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent("yes")}, Model: "m"}, nil
		},
		Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///x"}}, nil },
	}
	methods := map[string]struct{ method, params string }{
		"elicitation": {"elicitation/create", `{"message":"What?","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`},
		"sampling":    {"sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"?"}}],"maxTokens":9}`},
		"roots":       {"roots/list", `{}`},
	}
	for has, hooks := range map[string]ask.Hooks{"elicitation": {Elicit: all.Elicit}, "sampling": {Sample: all.Sample}, "roots": {Roots: all.Roots}} {
		for asked, question := range methods {
			t.Run(has+" asked for "+asked, func(t *testing.T) {
				t.Parallel()
				s := newInquirer(question.method, question.params)
				srv := newTestOf(t, Config{Server: config.Server{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0")},
					Ask: ask.Options{Hooks: hooks, Timeout: time.Minute, MaxPerCall: 9, MaxAtOnce: 9, MaxBytes: 10_000}}, config.Limits{})
				require.NoError(t, srv.Start(t.Context()))
				can := <-s.can
				for name := range methods {
					_, ok := can[name]
					assert.Equal(t, name == has, ok, name)
				}
				_, err := srv.call(t.Context(), "greet")
				require.NoError(t, err)
				var answer struct{ Result, Error json.RawMessage }
				require.NoError(t, json.Unmarshal(<-s.answered, &answer))
				assert.Equal(t, has == asked, answer.Result != nil, "%s%s", answer.Result, answer.Error)
			})
		}
	}
}

// A question that the server takes back ends.
func TestQuestionIsWithdrawn(t *testing.T) {
	t.Parallel()
	s := newInquirer("roots/list", "{}")
	s.begun = make(chan struct{})
	hooks := ask.Hooks{Roots: func(ctx context.Context, _ ask.Asker) ([]mcp.Root, error) {
		close(s.begun)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second):
			assert.Fail(t, "it goes on")
		}
		return nil, ctx.Err()
	}}
	srv := newTestOf(t, Config{Server: config.Server{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0")},
		Ask: ask.Options{Hooks: hooks, Timeout: time.Hour, MaxPerCall: 9, MaxAtOnce: 9, MaxBytes: 10_000}}, config.Limits{})
	require.NoError(t, srv.Start(t.Context()))
	_, err := srv.call(t.Context(), "greet")
	assert.NoError(t, err)
}

// A question that comes beside the answers is of the call under way, unless a call of somebody else
// was never answered: then it may be about that.
func TestWhoseQuestionItIs(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{true, false} {
		s := goSDK(refusesAsJSON)
		questions, answers, hangs := make(chan struct{}), make(chan struct{}), make(chan struct{})
		url := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			switch {
			case r.Method == http.MethodGet:
				w.Header().Set("Content-Type", "text/event-stream")
				w.(http.Flusher).Flush()
				for {
					select {
					case <-questions:
						fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"roots/list\"}\n\n")
						w.(http.Flusher).Flush()
					case <-r.Context().Done():
						return
					}
				}
			case bytes.Contains(body, []byte(`"result"`)):
				answers <- struct{}{}
				w.WriteHeader(http.StatusAccepted)
				return
			case bytes.Contains(body, []byte(`"hang"`)):
				close(hangs)
				<-r.Context().Done()
				return
			case bytes.Contains(body, []byte(`"asks"`)):
				questions <- struct{}{}
				<-answers
			}
			s.ServeHTTP(w, r)
		}), "127.0.0.1:0")
		var asked []ask.Asker
		hooks := ask.Hooks{Roots: func(_ context.Context, from ask.Asker) ([]mcp.Root, error) {
			asked = append(asked, from)
			return nil, nil
		}}
		srv := newTestOf(t, Config{Server: config.Server{Name: "web", URL: url},
			Ask: ask.Options{Hooks: hooks, Timeout: time.Minute, MaxPerCall: 9, MaxAtOnce: 9, MaxBytes: 10_000}}, config.Limits{})
		require.NoError(t, srv.Start(t.Context()))
		first, second := broker.NewCaller("first", hooks, hooks), broker.NewCaller("second", hooks, hooks)
		defer first.End()
		defer second.End()
		tool := "greet"
		ctx, cancel := context.WithCancel(broker.WithCaller(t.Context(), first))
		if !answered {
			tool = "hang"
			go func() { <-hangs; cancel() }()
		}
		_, err := srv.call(ctx, tool)
		assert.Equal(t, answered, err == nil, err)
		cancel()
		_, err = srv.call(broker.WithCaller(t.Context(), second), "asks")
		require.NoError(t, err)
		want := ask.Asker{Server: "web"}
		if answered {
			want = ask.Asker{Server: "web", User: "second", Tool: "asks"}
		}
		assert.Equal(t, []ask.Asker{want}, asked)
	}
}

// A child that is neither dead nor alive is explained by what killed it, if anything did.
func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &conn{process: &process{exited: make(chan struct{})}}
		lost, other, reason := fmt.Errorf("x: %w", errBroken), errors.New("other"), errors.New("it floods")
		begun := time.Now()
		assert.Same(t, other, c.explain(other))
		assert.Same(t, other, (&conn{}).explain(other))
		assert.Same(t, lost, (&conn{}).explain(lost))
		assert.Zero(t, time.Since(begun))
		assert.Same(t, lost, c.explain(lost))
		assert.Equal(t, 5*time.Second, time.Since(begun))
		c.process.killed.Store(&reason)
		assert.Same(t, reason, c.explain(lost))
		c.process.err = errors.New("exit status 1")
		close(c.process.exited)
		assert.Same(t, c.process.err, c.explain(lost))
	})
}

// Arguments that are no JSON, and tools that are not listed, have no headers.
func TestMirrorOfWhatIsNoCall(t *testing.T) {
	t.Parallel()
	tool := mcp.NewToolWithRawSchema("run", "", json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`))
	c := new(conn)
	assert.Nil(t, c.mirror("run", json.RawMessage(`{"region":"eu"}`)), "nothing is listed yet")
	c.mirrored.Store(&map[string]mcp.Tool{"run": tool})
	assert.Equal(t, http.Header{"Mcp-Param-Region": {"eu"}}, c.mirror("run", json.RawMessage(`{"region":"eu"}`)))
	assert.Nil(t, c.mirror("walk", json.RawMessage(`{"region":"eu"}`)))
	assert.Nil(t, c.mirror("run", json.RawMessage(`{`)))
}

// What is lost is the connection, not the answer.
func TestIsLost(t *testing.T) {
	t.Parallel()
	for _, err := range []error{transport.ErrTransportClosed, transport.ErrSessionTerminated, io.ErrClosedPipe, errUnread, errBroken} {
		assert.Equal(t, err != io.ErrClosedPipe, isLost(fmt.Errorf("x: %w", err)), err)
	}
	assert.False(t, isLost(nil))
	assert.False(t, isLost(ErrUnauthorized))
}

// The transport of a server is its own: what others use stays as it is.
func TestNewTransport(t *testing.T) {
	t.Parallel()
	shared := http.DefaultTransport.(*http.Transport)
	before := shared.MaxIdleConnsPerHost
	own := newTransport()
	assert.NotSame(t, shared, own)
	assert.Equal(t, before, shared.MaxIdleConnsPerHost)
	assert.Equal(t, shared.MaxIdleConns, own.MaxIdleConnsPerHost)
	assert.NotSame(t, own, newTransport())
}

// A server that hangs when its session ends does not delay the end for long.
func TestSessionThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, "")
		s.says("DELETE", "hangs")
		srv := s.open(Config{}, storyLimits())
		require.NoError(t, srv.Start(t.Context()))
		begun := time.Now()
		srv.Close()
		assert.Equal(t, termGrace, time.Since(begun))
	})
}

// A question that no call has caused ends with the connection.
func TestQuestionsEndWithTheConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, "")
		begun, ended := make(chan struct{}), make(chan error, 1)
		srv := s.open(Config{Ask: ask.Options{Timeout: time.Hour, MaxPerCall: 9, MaxAtOnce: 9, MaxBytes: 1 << 20, Hooks: ask.Hooks{
			Roots: func(ctx context.Context, _ ask.Asker) ([]mcp.Root, error) {
				close(begun)
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, ctx.Err()
			},
		}}}, storyLimits())
		require.NoError(t, srv.Start(t.Context()))
		synctest.Wait()
		s.push(`{"jsonrpc":"2.0","id":99,"method":"roots/list"}`)
		<-begun
		at := time.Now()
		srv.Close()
		assert.ErrorIs(t, <-ended, context.Canceled)
		assert.Less(t, time.Since(at), time.Minute)
	})
}

// A server that is closed keeps no connection of its own transport.
func TestIdleConnectionsEnd(t *testing.T) {
	t.Parallel()
	var open, all atomic.Int32
	web := httptest.NewUnstartedServer(mcpserver.NewStreamableHTTPServer(mcptest.Server("s", mcptest.Echo("a", ""))))
	web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
			all.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	web.Start()
	defer web.Close()
	srv := started(t, config.Server{Name: "s", URL: web.URL}, config.Limits{})
	assert.Positive(t, all.Load())
	srv.Close()
	mcptest.Soon(t, func() bool { return open.Load() == 0 })
}
