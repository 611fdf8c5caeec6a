package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// curiousServers has a server that asks in the middle of a call, and one that asks by its
// answer.
func curiousServers() []mcphybrid.ServerConfig {
	return []mcphybrid.ServerConfig{
		{Name: "curious", InProcess: mcptest.Curious("curious"), Protocol: mcp.LATEST_LEGACY_PROTOCOL_VERSION},
		{Name: "modern", InProcess: mcptest.Curious("modern"), Protocol: mcp.ProtocolVersion20260728},
	}
}

// An asked is the answer to a call of a client of protocol 2026-07-28.
type asked struct {
	status int
	Error  *struct {
		Code    int
		Message string
		Data    map[string]any
	}
	Result struct {
		ResultType    string
		RequestState  string
		InputRequests map[string]struct {
			Method string
			Params map[string]any
		}
		Content []struct{ Text string }
		IsError bool
	}
}

func (a asked) text() string {
	if len(a.Result.Content) == 0 {
		return ""
	}
	return a.Result.Content[0].Text
}

// A roundTripper is a client that has to do the rounds itself.
type roundTripper struct {
	url, token string
	can        string // its capabilities; all if ""
}

// call returns the answer to a call. more are further members of its params.
func (c roundTripper) call(t *testing.T, name string, args any, more map[string]any) (a asked) {
	t.Helper()
	status, data := c.send(t, name, args, more, nil)
	if i := bytes.Index(data, []byte("data: ")); i >= 0 {
		data = data[i+len("data: "):]
	}
	require.NoError(t, json.Unmarshal(data, &a), "%s", data)
	a.status = status
	return a
}

// send returns the whole answer to a call, with the notifications before it. meta are
// further members of _meta.
func (c roundTripper) send(t *testing.T, name string, args any, more, meta map[string]any) (status int, body []byte) {
	t.Helper()
	can := c.can
	if can == "" {
		can = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`
	}
	own := map[string]any{mcp.MetaKeyProtocolVersion: mcp.ProtocolVersion20260728, mcp.MetaKeyClientCapabilities: json.RawMessage(can)}
	maps.Copy(own, meta)
	params := map[string]any{"name": name, "arguments": args, "_meta": own}
	maps.Copy(params, more)
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url, bytes.NewReader(message))
	require.NoError(t, err)
	for key, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + c.token,
		mcp.HeaderProtocolVersion: mcp.ProtocolVersion20260728, "Mcp-Method": "tools/call", "Mcp-Name": name,
	} {
		r.Header.Set(key, value)
	}
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := web.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, body
}

// responses are the answers to all questions of a round.
func (a asked) responses(answer any) map[string]any {
	list := make(map[string]any)
	for name := range a.Result.InputRequests {
		list[name] = answer
	}
	return map[string]any{"inputResponses": list, "requestState": a.Result.RequestState}
}

func accepted(color string) map[string]any {
	return map[string]any{"action": "accept", "content": map[string]any{"color": color}}
}

var elicits = map[string]any{"kind": "elicit", "text": "Which?"}

// A client of protocol 2026-07-28 is asked by the answer to its call, whichever way the
// server asks, over each transport and through the tool that calls others.
func TestQuestionsByAnswers(t *testing.T) {
	_, url, _ := startHTTP(t, gatewayOptions{ask: true, servers: curiousServers()}, web.Options{})
	modern := slices.Clone(generations["modern"])
	for name, open := range map[string]connector{"http": overHTTP(url), "stdio": overStdio("-ask", "-config", writeConfig(t, "curious"))} {
		t.Run(name, func(t *testing.T) {
			c, _ := connect(t, open, "test", append(modern, client.WithElicitationHandler(answerer{"red"}))...)
			want := `{"action":"accept","content":{"color":"red"}}`
			assert.JSONEq(t, want, say(t, c, "mcp_curious__ask", map[string]any{"kind": "elicit", "text": "red"}))
			assert.JSONEq(t, want, say(t, c, mcphybrid.CallToolName, map[string]any{"name": "mcp_curious__ask", "arguments": map[string]any{"kind": "elicit", "text": "red"}}))
			assert.NotContains(t, say(t, c, "mcp_curious__ask", map[string]any{"kind": "roots"}), "file://", "it can't tell its roots")
		})
	}
	for _, server := range []string{"mcp_curious__ask", "mcp_modern__ask"} {
		c := roundTripper{url: url}
		for kind, answer := range map[string]any{
			"elicit": accepted("blue"),
			"page":   map[string]any{"action": "accept"},
			"sample": map[string]any{"role": "assistant", "model": "m", "content": map[string]any{"type": "text", "text": "blue"}},
			"roots":  map[string]any{"roots": []any{map[string]any{"uri": "file:///blue"}}},
		} {
			args := map[string]any{"kind": kind, "text": "https://example.com/"}
			first := c.call(t, server, args, nil)
			require.Equal(t, string(mcp.ResultTypeInputRequired), first.Result.ResultType, "%s %s", server, kind)
			require.Len(t, first.Result.InputRequests, 1)
			second := c.call(t, server, args, first.responses(answer))
			require.Equal(t, string(mcp.ResultTypeComplete), second.Result.ResultType, "%s %s %+v", server, kind, second)
			if kind == "page" {
				assert.Contains(t, second.text(), `"accept"`)
			} else {
				assert.Contains(t, second.text(), "blue")
			}
			third := c.call(t, server, args, first.responses(answer))
			assert.Equal(t, mcp.INVALID_PARAMS, third.Error.Code, "a state is good once")
			assert.Equal(t, http.StatusBadRequest, third.status)
		}
	}
	assert.Contains(t, roundTripper{url: url}.call(t, "mcp_modern__ask", elicits, nil).Result.InputRequests, "q", "the server's name for it")
}

// What a client can't answer it is not asked. A server of protocol 2026-07-28 learns that
// with the call, another one that the user declined.
func TestQuestionsOfOtherCapabilities(t *testing.T) {
	_, url, _ := startHTTP(t, gatewayOptions{ask: true, servers: curiousServers()}, web.Options{})
	for _, can := range []string{`{}`, `{"sampling":{}}`} {
		got := roundTripper{url: url, can: can}.call(t, "mcp_curious__ask", elicits, nil)
		assert.JSONEq(t, `{"action":"decline"}`, got.text())
	}
	page := map[string]any{"kind": "page", "text": "https://example.com/"}
	got := roundTripper{url: url, can: `{"elicitation":{"form":{}}}`}.call(t, "mcp_curious__ask", page, nil)
	assert.JSONEq(t, `{"action":"decline"}`, got.text())
}

// A request state opens one call, for the client that has it, with the request that began
// it. Everything else is refused, and leaves the call as it was.
func TestRequestStates(t *testing.T) {
	_, url, _ := startHTTP(t, gatewayOptions{ask: true, servers: curiousServers()}, web.Options{TokenFile: writeSecret(t, strings.Replace(guestAndOwner, "kitchen/*", "*", 1))})
	owner, guest := roundTripper{url: url, token: "for-owner"}, roundTripper{url: url, token: "for-guest"}
	first := owner.call(t, "mcp_curious__ask", elicits, nil)
	good := first.responses(accepted("red"))
	refused := func(why string, got asked) {
		t.Helper()
		if assert.NotNil(t, got.Error, why) {
			assert.Equal(t, mcp.INVALID_PARAMS, got.Error.Code, why)
		}
	}
	refused("another client", guest.call(t, "mcp_curious__ask", elicits, good))
	refused("another tool", owner.call(t, "mcp_modern__ask", elicits, good))
	refused("other arguments", owner.call(t, "mcp_curious__ask", map[string]any{"kind": "elicit", "text": "What?"}, good))
	refused("another state", owner.call(t, "mcp_curious__ask", elicits, map[string]any{"requestState": first.Result.RequestState + "-TAMPERED", "inputResponses": good["inputResponses"]}))
	for _, wrong := range []any{5, nil, "red", map[string]any{}, map[string]any{"action": "hack"}} {
		refused(fmt.Sprint(wrong), owner.call(t, "mcp_curious__ask", elicits, first.responses(wrong)))
	}
	again := owner.call(t, "mcp_curious__ask", elicits, map[string]any{"requestState": first.Result.RequestState, "inputResponses": map[string]any{"other": accepted("red")}})
	require.NotEmpty(t, again.Result.RequestState, "what has no answer is asked again")
	assert.NotEqual(t, first.Result.RequestState, again.Result.RequestState)
	assert.Equal(t, first.Result.InputRequests, again.Result.InputRequests)
	refused("a used state", owner.call(t, "mcp_curious__ask", elicits, good))
	assert.JSONEq(t, `{"action":"accept","content":{"color":"red"}}`, owner.call(t, "mcp_curious__ask", elicits, again.responses(accepted("red"))).text())

	given := map[string]any{"inputResponses": map[string]any{"q": accepted("blue"), "other": 5}}
	assert.Contains(t, owner.call(t, "mcp_modern__ask", elicits, given).text(), "blue", "an answer that the client knew beforehand")
	asks := owner.call(t, "mcp_modern__ask", elicits, map[string]any{"inputResponses": map[string]any{"q": 5}})
	assert.Contains(t, asks.Result.InputRequests, "q", "one that is none")

	none := roundTripper{url: url, token: "for-owner", can: `{}`}
	refused("who can't be asked", none.call(t, "mcp_curious__ask", elicits, asks.responses(accepted("red"))))
}

// 40 clients are asked at once, and each answers for itself. All calls end.
func TestManyAreAskedByAnswers(t *testing.T) {
	g, url, _ := startHTTP(t, gatewayOptions{ask: true, servers: curiousServers()}, web.Options{})
	c := roundTripper{url: url}
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := make(map[string]int)
	for i := range 40 {
		wg.Go(func() {
			server := []string{"mcp_curious__ask", "mcp_modern__ask"}[i%2]
			color := []string{"red", "blue"}[i/2%2]
			args := map[string]any{"kind": "elicit", "text": fmt.Sprint(i)}
			first := c.call(t, server, args, nil)
			for first.Result.ResultType != string(mcp.ResultTypeInputRequired) {
				first = c.call(t, server, args, nil)
			}
			second := c.call(t, server, args, first.responses(accepted(color)))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case second.Error != nil: // a later call of the same client took its place
				got["ended"]++
			case strings.Contains(second.text(), color):
				got["right"]++
			default:
				got["wrong"]++
			}
		})
	}
	wg.Wait()
	assert.Equal(t, 40, got["right"]+got["ended"], got)
	assert.GreaterOrEqual(t, got["right"], 16, got)
	g.opened.mu.Lock()
	defer g.opened.mu.Unlock()
	assert.Empty(t, g.opened.waiting)
}

// Of one client, so many calls wait at most, and the oldest gives way. Of all, so many.
func TestOpenCallsHaveALimit(t *testing.T) {
	c := &openCalls{waiting: make(map[string]*openCall)}
	ended := make(map[int]bool)
	wait := func(i int, owner any, small bool) (*question, *mcp.MultiRoundTripResult) {
		q := &question{request: mcp.NewRootsInputRequest(), answer: make(chan response, 1)}
		o := &openCall{owner: owner, small: small, end: func() { ended[i] = true }, changed: make(chan struct{}, 1), done: make(chan struct{}), asked: map[string]*question{"q": q}}
		return q, c.hold(o)
	}
	for i := range 16 + 2 {
		_, asks := wait(i, "ana", true)
		require.NotNil(t, asks)
		assert.Len(t, asks.RequestState, 26)
	}
	assert.Equal(t, map[int]bool{0: true, 1: true}, ended)
	assert.Len(t, c.waiting, 16)
	for i := range 64 {
		wait(100+i, fmt.Sprint(i), true)
	}
	assert.Len(t, c.waiting, 64)
	for _, refused := range []bool{true, false} {
		q, asks := wait(1000, "late", refused)
		assert.Nil(t, asks)
		assert.Equal(t, ask.ErrDeclined, (<-q.answer).err)
	}
	q, asks := wait(1001, "ana", true)
	assert.NotNil(t, asks, "its own oldest gives way")
	assert.Empty(t, q.answer)
	assert.True(t, ended[2])

	_, small := sumOf("", request{args: json.RawMessage(`{"x":"` + strings.Repeat("x", maxOpenArguments) + `"}`)})
	assert.False(t, small)
	_, small = sumOf("", request{meta: mcp.NewMetaFromMap(map[string]any{"x": strings.Repeat("x", 256<<10)})})
	assert.False(t, small)
	c.close()
	assert.Empty(t, c.waiting)
	assert.Len(t, ended, 3+64)
	_, asks = wait(2000, "ana", true)
	assert.Nil(t, asks)
	assert.False(t, c.enter())
}

// asksInRounds has a tool that asks that many questions at once by its answer, and then
// has work do the rest.
func asksInRounds(name string, questions int, work func(context.Context, mcp.CallToolRequest)) mcphybrid.ServerConfig {
	s := server.NewMCPServer(name, "1", server.WithLogging())
	s.AddTool(mcp.NewTool("ask"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if len(r.Params.InputResponses) > 0 {
			work(ctx, r)
			return mcp.NewToolResultText("done"), nil
		}
		b := server.NewInputRequestBuilder("")
		for i := range questions {
			b.Elicit(fmt.Sprint("q", i), mcp.ElicitationParams{Message: fmt.Sprint(i), RequestedSchema: json.RawMessage(`{"type":"object","properties":{"color":{"type":"string"}}}`)})
		}
		return b.ToolResult(), nil
	})
	return mcphybrid.ServerConfig{Name: name, Protocol: mcp.ProtocolVersion20260728, InProcess: s}
}

// The questions of all calls that one client leaves open are no reason to refuse those of
// another.
func TestOpenCallsLeaveRoomForQuestionsOfOthers(t *testing.T) {
	servers := []mcphybrid.ServerConfig{asksInRounds("kitchen", ask.DefaultMaxPerCall, nil)}
	_, url, _ := startHTTP(t, gatewayOptions{ask: true, servers: servers}, web.Options{TokenFile: writeSecret(t, guestAndOwner)})
	for range 16 {
		require.NotEmpty(t, roundTripper{url: url, token: "for-guest"}.call(t, "mcp_kitchen__ask", nil, nil).Result.RequestState)
	}
	got := roundTripper{url: url, token: "for-owner"}.call(t, "mcp_kitchen__ask", nil, nil)
	assert.Len(t, got.Result.InputRequests, ask.DefaultMaxPerCall, got.text())
}

// A client that answers a part of the questions waits for the others with few bytes. With
// more, the others are declined. All answers at once may be larger.
func TestOpenCallsKeepFewAnswers(t *testing.T) {
	given := make(chan map[string]bool, 1)
	kitchen := asksInRounds("kitchen", 4, func(_ context.Context, r mcp.CallToolRequest) {
		accepts := make(map[string]bool)
		for name, answer := range r.Params.InputResponses {
			assert.NoError(t, answer.DecodeFor(mcp.MethodElicitationCreate))
			accepts[name] = answer.Elicitation.Action == mcp.ElicitationResponseActionAccept
		}
		given <- accepts
	})
	_, url, _ := startHTTP(t, gatewayOptions{ask: true, servers: []mcphybrid.ServerConfig{kitchen}}, web.Options{})
	c := roundTripper{url: url}
	large := accepted(strings.Repeat("x", 256<<10*2/5))
	got := c.call(t, "mcp_kitchen__ask", nil, nil)
	for i := range 3 {
		require.Len(t, got.Result.InputRequests, 4-i, got.text())
		got = c.call(t, "mcp_kitchen__ask", nil, map[string]any{"requestState": got.Result.RequestState, "inputResponses": map[string]any{fmt.Sprint("q", i): large}})
	}
	require.Equal(t, "done", got.text(), "it waits no longer")
	assert.Equal(t, map[string]bool{"q0": true, "q1": true, "q2": true, "q3": false}, <-given)

	got = c.call(t, "mcp_kitchen__ask", nil, nil)
	got = c.call(t, "mcp_kitchen__ask", nil, got.responses(large))
	require.Equal(t, "done", got.text())
	assert.Len(t, <-given, 4)
}

// A call that waits for its client keeps neither the messages that began it and went on with
// it, nor their answers.
func TestOpenCallsKeepNoMessages(t *testing.T) {
	g, url, _ := startHTTP(t, gatewayOptions{ask: true, servers: curiousServers()}, web.Options{})
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc >> 20
	}
	before := used()
	c := roundTripper{url: url}
	large := func(state string) map[string]any {
		more := map[string]any{"inputResponses": map[string]any{"other": strings.Repeat("x", 4<<20)}}
		if state != "" {
			more["requestState"] = state
		}
		return more
	}
	for i := range 8 {
		args := map[string]any{"kind": "elicit", "text": fmt.Sprint(i)}
		first := c.call(t, []string{"mcp_curious__ask", "mcp_modern__ask"}[i%2], args, large(""))
		require.NotEmpty(t, first.Result.RequestState)
		second := c.call(t, []string{"mcp_curious__ask", "mcp_modern__ask"}[i%2], args, large(first.Result.RequestState))
		require.NotEmpty(t, second.Result.RequestState, "what has no answer is asked again")
	}
	mcptest.Soon(t, func() bool { return used() < before+16 })
	g.opened.mu.Lock()
	assert.Len(t, g.opened.waiting, 8)
	g.opened.mu.Unlock()
	wire.WithEvents(time.Second, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx := g.front.WithContext(r.Context(), server.NewInProcessSession("x", nil))
		require.NotNil(t, wire.EventsOf(ctx))
		assert.Nil(t, wire.EventsOf(g.callerOnly(ctx)))
		assert.NotNil(t, server.ClientSessionFromContext(g.callerOnly(ctx)))
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))
}

// Progress goes out with the token of the request that waits, if it has one.
func TestProgressOfLaterRounds(t *testing.T) {
	_, url, _ := startHTTP(t, gatewayOptions{ask: true, servers: []mcphybrid.ServerConfig{asksInRounds("p", 1, func(ctx context.Context, r mcp.CallToolRequest) {
		s := server.ServerFromContext(ctx)
		_ = s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": 1.0})
	})}}, web.Options{})
	c := roundTripper{url: url}
	for token, wants := range map[any]map[string]any{
		"SECOND": {"progressToken": "SECOND"},
		nil:      {},
	} {
		call := func() string {
			_, body := c.send(t, "mcp_p__ask", nil, nil, map[string]any{"progressToken": "FIRST"})
			var first asked
			require.NoError(t, json.Unmarshal(body[bytes.IndexByte(body, '{'):], &first), "%s", body)
			_, body = c.send(t, "mcp_p__ask", nil, first.responses(accepted("red")), wants)
			assert.Contains(t, string(body), "done")
			assert.NotContains(t, string(body), "FIRST", "it has its answer")
			return string(body)
		}
		if token == nil {
			assert.NotContains(t, call(), "SECOND")
			continue
		}
		// In one process, mcp-go may send the progress after the answer.
		mcptest.Soon(t, func() bool { return strings.Contains(call(), `"SECOND"`) })
	}
	v := &clientCall{token: "FIRST"}
	v.pause()
	assert.Nil(t, v.token, "no request waits")
}

// A log level is that of the request that waits.
func TestLogLevelOfLaterRounds(t *testing.T) {
	for _, level := range []mcp.LoggingLevel{mcp.LoggingLevelDebug, mcp.LoggingLevelError} {
		ctx := server.WithRequestProtocolInfo(t.Context(), &server.RequestProtocolInfo{Modern: true, LogLevel: level})
		v := new(clientCall)
		v.resume(server.WithRequestProtocolInfo(t.Context(), &server.RequestProtocolInfo{Modern: true, LogLevel: mcp.LoggingLevelWarning}), nil)
		assert.True(t, v.wantsLog(mcp.LoggingLevelError))
		assert.False(t, v.wantsLog(mcp.LoggingLevelInfo))
		v.resume(ctx, nil)
		assert.Equal(t, level == mcp.LoggingLevelDebug, v.wantsLog(mcp.LoggingLevelInfo))
	}
}

// A question that ends without an answer ends the call that waits for its client. The
// gateway's end does, too, and that of the token.
func TestOpenCallsEnd(t *testing.T) {
	c := &openCalls{waiting: make(map[string]*openCall)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	o := &openCall{small: true, end: func() { close(ended) }, changed: make(chan struct{}, 1), done: make(chan struct{}), asked: make(map[string]*question)}
	over := make(chan error)
	go func() {
		_, err := c.ask(ctx, o, mcp.NewRootsInputRequest())
		over <- err
	}()
	<-o.changed
	require.NotNil(t, c.hold(o))
	cancel()
	require.ErrorIs(t, <-over, context.Canceled)
	<-ended
	assert.Empty(t, c.waiting)
	assert.Empty(t, o.asked)

	file := writeSecret(t, strings.Replace(guestAndOwner, "kitchen/*", "*", 1))
	g, url, end := startHTTP(t, gatewayOptions{ask: true, servers: curiousServers()}, web.Options{TokenFile: file})
	for _, token := range []string{"for-guest", "for-owner"} {
		require.NotEmpty(t, roundTripper{url: url, token: token}.call(t, "mcp_curious__ask", elicits, nil).Result.RequestState)
	}
	open := make(map[string]*openCall)
	g.opened.mu.Lock()
	for _, o := range g.opened.waiting {
		open[o.owner.(*tokens.Holder).Name] = o
	}
	g.opened.mu.Unlock()
	require.Len(t, open, 2)
	require.NoError(t, os.WriteFile(file, []byte(`{"tokens":[{"name":"owner","token":"for-owner","operator":true}]}`), 0o600))
	<-open["guest"].done
	select {
	case <-open["owner"].done:
		t.Error("it has ended before")
	default:
	}
	end()
	<-open["owner"].done
}

// An impostor answers calls and asks in one.
type impostor struct{ *server.MCPServer }

func (i impostor) HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
	var r struct {
		ID     mcp.RequestId
		Method string
	}
	if json.Unmarshal(message, &r) == nil && r.Method == string(mcp.MethodToolsCall) {
		return mcp.NewJSONRPCResultResponse(r.ID, map[string]any{
			"content": []any{map[string]any{"type": "text", "text": "done"}}, "requestState": "theirs",
			"inputRequests": map[string]any{"password": map[string]any{"method": "elicitation/create", "params": map[string]any{"message": "Password?"}}},
		})
	}
	return i.MCPServer.HandleMessage(ctx, message)
}

// What a client is asked it learns from the gateway alone.
func TestQuestionsInAnswers(t *testing.T) {
	var servers []mcphybrid.ServerConfig
	for name, protocol := range map[string]string{"old": mcp.LATEST_LEGACY_PROTOCOL_VERSION, "new": mcp.ProtocolVersion20260728} {
		servers = append(servers, mcphybrid.ServerConfig{Name: name, Protocol: protocol, InProcess: impostor{mcptest.Server(name, mcptest.Echo("echo", "Says it"))}})
	}
	_, url, _ := startHTTP(t, gatewayOptions{ask: true, servers: servers}, web.Options{})
	for _, name := range []string{"mcp_old__echo", "mcp_new__echo"} {
		got := roundTripper{url: url}.call(t, name, map[string]any{"text": "x"}, nil)
		require.Equal(t, "done", got.text())
		assert.Equal(t, string(mcp.ResultTypeComplete), got.Result.ResultType)
		assert.Empty(t, got.Result.InputRequests)
		assert.Empty(t, got.Result.RequestState)
	}
}
