package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A wire is an HTTP server that answers as a published one was seen to.
type wire struct {
	discovered string            // result of server/discover; "" if there is none
	can        string            // the capabilities in the result of initialize; "" if there is none
	session    bool              // before 2026-07-28, initialize begins one, and nothing is answered without it
	events     bool              // answers are events of a stream
	results    map[string]string // by method
	refuses    refusal           // protocol 2026-07-28; nil if the server speaks it
	lacks      refusal           // a method that is in none of these

	mu    sync.Mutex
	asked map[string]int // by "method version", or GET for the stream of a session
}

type refusal func(w http.ResponseWriter, id json.RawMessage, method string)

func (s *wire) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in := struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}{Method: r.Method}
	if r.Method == http.MethodPost {
		_ = json.NewDecoder(r.Body).Decode(&in)
	}
	version := r.Header.Get("Mcp-Protocol-Version")
	s.mu.Lock()
	if s.asked == nil {
		s.asked = make(map[string]int)
	}
	if key := in.Method + " " + version; r.Method == http.MethodPost {
		s.asked[strings.TrimSpace(key)]++
	} else {
		s.asked[in.Method]++ // its version may not be known to mcp-go yet
	}
	s.mu.Unlock()

	answer := func(result string) {
		message := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, in.ID, result)
		if s.events {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", message)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, message)
	}
	const session = "GLWUUSGL"
	modern := version == mcp.ProtocolVersion20260728
	result, has := s.results[in.Method]
	switch {
	case in.Method == "server/discover" && s.discovered != "":
		answer(s.discovered)
	case in.Method == "initialize" && s.can != "":
		if s.session {
			w.Header().Set("Mcp-Session-Id", session)
		}
		answer(`{"protocolVersion":"2025-11-25","capabilities":` + s.can + `,"serverInfo":{"name":"wire","version":"1"}}`)
	case modern && s.refuses != nil:
		s.refuses(w, in.ID, in.Method)
	case !modern && s.session && r.Header.Get("Mcp-Session-Id") != session:
		http.Error(w, "session not found", http.StatusNotFound)
	case r.Method == http.MethodGet && s.session && !modern:
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case in.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case has:
		answer(result)
	default:
		s.lacks(w, in.ID, in.Method)
	}
}

// times returns how often a method was asked for.
func (s *wire) times(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[method]
}

// lacksAs404 is what protocol 2026-07-28 demands of servers that lack a method.
func lacksAs404(w http.ResponseWriter, id json.RawMessage, _ string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, id)
}

// lacksWithoutID is lacksAs404 of servers that don't repeat the id in errors.
func lacksWithoutID(w http.ResponseWriter, _ json.RawMessage, method string) {
	lacksAs404(w, json.RawMessage("null"), method)
}

func refusesAsText(w http.ResponseWriter, _ json.RawMessage, _ string) {
	http.Error(w, `Bad Request: protocol version "2026-07-28" is only supported on stateless HTTP servers (set StreamableHTTPOptions.Stateless = true)`, http.StatusBadRequest)
}

func refusesAsJSON(w http.ResponseWriter, id json.RawMessage, _ string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"protocol version \"2026-07-28\" is not supported by this server","data":{"supported":["2025-11-25"],"requested":"2026-07-28"}}}`, id)
}

const (
	oldVersions = `["2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`
	newVersions = `["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`
	greeting    = `{"resultType":"complete","content":[{"type":"text","text":"hi"}]}`
	greets      = `{"resultType":"complete","tools":[{"name":"greet","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"public"}`
)

func discovers(versions, can string) string {
	return `{"resultType":"complete","supportedVersions":` + versions + `,"capabilities":` + can + `,"ttlMs":0,"cacheScope":"public"}`
}

// goSDK is a server of the official Go SDK with default options: it has sessions, and so
// does not speak 2026-07-28, but answers server/discover.
func goSDK(refuses refusal) *wire {
	const can = `{"logging":{},"tools":{"listChanged":true}}`
	return &wire{
		discovered: discovers(oldVersions, can), can: can, session: true, events: true, refuses: refuses, lacks: lacksAs404,
		results: map[string]string{"tools/list": greets, "tools/call": greeting},
	}
}

// Servers of the Go SDK 1.7.0 and 1.8.0 with default options are spoken to with sessions,
// also if the stream on which they ask is open.
func TestGoSDKServers(t *testing.T) {
	for name, refuses := range map[string]refusal{"1.7.0": refusesAsText, "1.8.0": refusesAsJSON} {
		for _, hooks := range []ask.Hooks{{}, {Elicit: ask.Decline().Elicit}} {
			t.Run(fmt.Sprintf("%s, asking %t", name, hooks.Elicit != nil), func(t *testing.T) {
				t.Parallel()
				s := goSDK(refuses)
				srv := newTestOf(t, Config{Server: config.Server{Name: "go", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0")}, Ask: ask.Options{Hooks: hooks}}, config.Limits{})
				require.NoError(t, srv.Start(t.Context()))
				assert.Equal(t, "2025-11-25", srv.connection().client.ProtocolVersion())
				tools, _ := srv.listed()
				assert.Len(t, tools, 1)
				result, err := srv.call(t.Context(), "greet")
				require.NoError(t, err)
				assert.Equal(t, "hi", mcptest.Text(t, result))
				if hooks.Elicit != nil {
					mcptest.Soon(t, func() bool { return s.times(http.MethodGet) == 1 })
				}
				assert.Zero(t, s.times("tools/list 2026-07-28"))
				assert.Equal(t, 1, s.times("initialize"))
			})
		}
	}
}

// Only a server that logs is asked for a level. One that refuses it chooses the level itself,
// and one that does not answer is not connected.
func TestLevelOfALog(t *testing.T) {
	const asked = "logging/setLevel 2025-11-25"
	for can, want := range map[string]int{`{"tools":{}}`: 0, `{"tools":{},"logging":{}}`: 1} {
		s := goSDK(refusesAsText)
		s.can, s.discovered = can, discovers(oldVersions, can)
		cfg := config.Server{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0"), LogLevel: mcp.LoggingLevelInfo}
		started(t, cfg, config.Limits{})
		assert.Equal(t, want, s.times(asked), can)
		cfg.LogLevel = ""
		started(t, cfg, config.Limits{})
		assert.Equal(t, want, s.times(asked), can)
	}
	s := goSDK(refusesAsText)
	s.lacks = func(_ http.ResponseWriter, _ json.RawMessage, method string) {
		if method == "logging/setLevel" {
			panic(http.ErrAbortHandler)
		}
	}
	srv := newTest(t, config.Server{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0"), LogLevel: mcp.LoggingLevelInfo}, config.Limits{})
	assert.ErrorContains(t, srv.Start(t.Context()), "logging/setLevel: ")
}

// A listing that fails costs the connection only if the server answers with 400 or is gone:
// what worked before was refused as a request.
func TestListingThatIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter, id json.RawMessage)
		lost   bool
	}{
		"400": {func(w http.ResponseWriter, _ json.RawMessage) { http.Error(w, "no", http.StatusBadRequest) }, true},
		"an error": {func(w http.ResponseWriter, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no"}}`, id)
		}, false},
		"nothing": {func(http.ResponseWriter, json.RawMessage) { panic(http.ErrAbortHandler) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := goSDK(refusesAsText)
			s.lacks = func(w http.ResponseWriter, id json.RawMessage, method string) {
				if method == "tools/list" {
					test.answer(w, id)
					return
				}
				lacksAs404(w, id, method)
			}
			var refuse atomic.Bool
			broken := goSDK(refusesAsText)
			broken.lacks = s.lacks
			delete(broken.results, "tools/list")
			url := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if refuse.Load() {
					broken.ServeHTTP(w, r)
				} else {
					s.ServeHTTP(w, r)
				}
			}), "127.0.0.1:0")
			srv := started(t, config.Server{Name: "web", URL: url}, config.Limits{Reconnect: time.Hour})
			refuse.Store(true)
			c := srv.connection()
			ok, err := srv.listAgain(c)
			assert.Error(t, err)
			assert.Equal(t, !test.lost, ok)
			assert.Equal(t, test.lost, srv.connection() != c)
		})
	}
}

// A server that answers every method that it lacks with an empty result does not speak
// the protocol of server/discover.
func TestDiscoverIsAnsweredLikeAnything(t *testing.T) {
	for _, result := range []string{`{}`, `null`, `[]`, `"pong"`, `{"supportedVersions":"2026-07-28"}`, `{"supportedVersions":[]}`} {
		t.Run(result, func(t *testing.T) {
			t.Parallel()
			s := &wire{
				discovered: result, can: `{"tools":{}}`, results: map[string]string{"tools/list": greets},
				lacks: func(w http.ResponseWriter, id json.RawMessage, _ string) {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
				},
			}
			srv := started(t, config.Server{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0")}, config.Limits{})
			assert.Equal(t, "2025-11-25", srv.connection().client.ProtocolVersion())
			tools, _ := srv.listed()
			assert.Len(t, tools, 1)
		})
	}
}

// The same holds for a server in this process.
func TestDiscoverInProcess(t *testing.T) {
	cfg := inProcess("a", mcptest.Echo("echo", "Echoes"))
	cfg.InProcess = vague{cfg.InProcess}
	srv := started(t, cfg, config.Limits{})
	assert.Equal(t, "2025-11-25", srv.connection().client.ProtocolVersion())
	_, err := srv.call(t.Context(), "echo")
	assert.NoError(t, err)
}

// A vague answers server/discover with an empty result.
type vague struct{ config.InProcessServer }

func (v vague) HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
	var in struct {
		ID     mcp.RequestId `json:"id"`
		Method string        `json:"method"`
	}
	if json.Unmarshal(message, &in) == nil && in.Method == string(mcp.MethodServerDiscover) {
		return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: in.ID, Result: struct{}{}}
	}
	return v.InProcessServer.HandleMessage(ctx, message)
}

// A server that offers 2026-07-28 and then refuses it is connected with an older protocol,
// as long as it does so.
func TestServerRefusesWhatItOffers(t *testing.T) {
	for name, refuses := range map[string]refusal{"text": refusesAsText, "JSON": refusesAsJSON} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := goSDK(refuses)
			s.discovered = discovers(newVersions, s.can)
			var now atomic.Pointer[wire]
			now.Store(s)
			url := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().ServeHTTP(w, r) }), "127.0.0.1:0")
			srv := started(t, config.Server{Name: "web", URL: url}, config.Limits{})
			assert.Equal(t, "2025-11-25", srv.connection().client.ProtocolVersion())
			_, err := srv.call(t.Context(), "greet")
			require.NoError(t, err)

			mended := goSDK(nil)
			mended.discovered = s.discovered
			now.Store(mended)
			require.NoError(t, srv.Restart(t.Context()))
			assert.Equal(t, "2026-07-28", srv.connection().client.ProtocolVersion())
			_, err = srv.call(t.Context(), "greet")
			assert.NoError(t, err)
		})
	}
}

// both speaks protocol 2026-07-28 and those before.
func both() *wire {
	s := goSDK(nil)
	s.discovered, s.session = discovers(newVersions, s.can), false
	return s
}

// A server that has both is spoken to in the newest protocol, unless the host can answer what
// it asks, or says which one to speak.
func TestProtocolOfAServerThatHasBoth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wants  string
		asking bool
		speaks string // or the error
	}{
		{"", false, "2026-07-28"},
		{"", true, "2025-11-25"},
		{"2026-07-28", true, "2026-07-28"},
		{"2026-07-28", false, "2026-07-28"},
		{"2025-11-25", false, "2025-11-25"},
		{"2025-06-18", true, "it speaks protocol 2025-11-25, and not 2025-06-18"},
	} {
		t.Run(fmt.Sprintf("%s, asking %t", c.wants, c.asking), func(t *testing.T) {
			t.Parallel()
			var hooks ask.Hooks
			if c.asking {
				hooks.Elicit = ask.Decline().Elicit
			}
			s := both()
			srv := newTestOf(t, Config{Server: config.Server{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0"), Protocol: c.wants}, Ask: ask.Options{Hooks: hooks}}, config.Limits{})
			err := srv.Start(t.Context())
			if strings.HasPrefix(c.speaks, "it ") {
				assert.EqualError(t, err, c.speaks)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.speaks, srv.connection().client.ProtocolVersion())
			_, err = srv.call(t.Context(), "greet")
			assert.NoError(t, err)
			assert.Equal(t, c.wants == "2025-11-25", s.times("server/discover 2026-07-28") == 0)
		})
	}
}

// A server whose instances differ may refuse the version that it says it has. It is
// asked once more.
func TestVersionIsRefusedOnce(t *testing.T) {
	t.Parallel()
	for refusals, speaks := range map[int32]string{0: "2026-07-28", 1: "2026-07-28", 2: "2025-11-25"} {
		t.Run(fmt.Sprint(refusals), func(t *testing.T) {
			t.Parallel()
			s := both()
			var asked atomic.Int32
			url := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Method") == "server/discover" && asked.Add(1) <= refusals {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusBadRequest)
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"Unsupported","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}}}`, idOf(r))
					return
				}
				s.ServeHTTP(w, r)
			}), "127.0.0.1:0")
			srv := started(t, config.Server{Name: "web", URL: url}, config.Limits{})
			assert.Equal(t, speaks, srv.connection().client.ProtocolVersion())
			assert.Equal(t, min(refusals+1, 2), asked.Load())
		})
	}
}

// A server of older protocols is not asked for a newer one in vain.
func TestProtocolThatAServerLacks(t *testing.T) {
	t.Parallel()
	s := goSDK(refusesAsJSON)
	srv := newTest(t, config.Server{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0"), Protocol: "2026-07-28"}, config.Limits{})
	assert.EqualError(t, srv.Start(t.Context()), "it speaks protocol 2025-11-25, and not 2026-07-28")
	assert.Zero(t, s.times("tools/list 2025-11-25"))
}

// A server that wants a login says so in its answer to server/discover. What it
// then says of initialize, which it may not know, hides that no more.
func TestLoginForDiscover(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]http.HandlerFunc{
		"400": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such method", http.StatusBadRequest) },
		"404": func(w http.ResponseWriter, _ *http.Request) { lacksWithoutID(w, nil, "") },
		"405": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) },
		"JSON-RPC": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, idOf(r))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			url := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) == 1 {
					w.Header().Set("WWW-Authenticate", "Bearer")
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				then(w, r)
			}), "127.0.0.1:0")
			srv := newTest(t, config.Server{Name: "web", URL: url}, config.Limits{})
			assert.ErrorIs(t, srv.Start(t.Context()), ErrUnauthorized)
			assert.Equal(t, Unauthorized, srv.Status().State)
		})
	}
}

// A server that is too busy to initialize is left alone for as long as it asks.
func TestBusyAfterDiscover(t *testing.T) {
	t.Parallel()
	url := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "server/discover" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	}), "127.0.0.1:0")
	srv := newTest(t, config.Server{Name: "web", URL: url}, config.Limits{})
	assert.ErrorContains(t, srv.Start(t.Context()), "it asks to wait 1m0s")
	assert.Greater(t, time.Until(srv.Status().Retry), 50*time.Second)
}

func idOf(r *http.Request) json.RawMessage {
	var in struct{ ID json.RawMessage }
	_ = json.NewDecoder(r.Body).Decode(&in)
	return in.ID
}

// A server that lets everybody initialize, but not discover, is connected.
func TestLoginForDiscoverAlone(t *testing.T) {
	t.Parallel()
	s := goSDK(refusesAsJSON)
	url := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "server/discover" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.ServeHTTP(w, r)
	}), "127.0.0.1:0")
	srv := started(t, config.Server{Name: "web", URL: url}, config.Limits{})
	_, err := srv.call(t.Context(), "greet")
	assert.NoError(t, err)
}

// If neither protocol works, the error has both reasons.
func TestServerRefusesAllProtocols(t *testing.T) {
	s := goSDK(refusesAsJSON)
	s.discovered = discovers(newVersions, s.can)
	s.results = nil
	s.lacks = func(w http.ResponseWriter, _ json.RawMessage, _ string) {
		http.Error(w, "out of order", http.StatusBadRequest)
	}
	srv := newTest(t, config.Server{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0")}, config.Limits{})
	err := srv.Start(t.Context())
	require.ErrorContains(t, err, `unsupported protocol version: "2026-07-28"`)
	assert.ErrorContains(t, err, "out of order")
}

// A stateless server without subscriptions answers every call. It is not even asked for
// subscriptions unless it announces changes.
func TestServerWithoutSubscriptions(t *testing.T) {
	for can, listens := range map[string]int{`{"tools":{}}`: 0, `{"tools":{"listChanged":true}}`: 1} {
		t.Run(can, func(t *testing.T) {
			t.Parallel()
			s := &wire{
				discovered: discovers(`["2026-07-28"]`, can), lacks: lacksAs404,
				results: map[string]string{"tools/list": greets, "tools/call": greeting},
			}
			srv := started(t, config.Server{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0")}, config.Limits{Reconnect: time.Millisecond})
			first := srv.connection()
			mcptest.Soon(t, func() bool { return s.times("subscriptions/listen 2026-07-28") == listens })
			var calls sync.WaitGroup
			for range 4 {
				calls.Go(func() {
					for range 250 {
						_, err := srv.call(t.Context(), "greet")
						assert.NoError(t, err)
					}
				})
			}
			calls.Wait()
			assert.Same(t, first, srv.connection())
			assert.Equal(t, Ready, srv.Status().State)
			assert.Equal(t, 1000, s.times("tools/call 2026-07-28"))
			assert.Equal(t, 1, s.times("server/discover 2026-07-28"))
			assert.Equal(t, listens, s.times("subscriptions/listen 2026-07-28"))
		})
	}
}

// What a server announces is what it is asked for, and what it lacks takes nothing of the
// rest from us.
func TestServerWithoutTools(t *testing.T) {
	const (
		prompts   = `{"resultType":"complete","prompts":[{"name":"p"}],"ttlMs":0,"cacheScope":"private"}`
		resources = `{"resultType":"complete","resources":[{"name":"r","uri":"file:///r"}],"ttlMs":0,"cacheScope":"private"}`
	)
	for _, test := range []struct {
		name, can string
		kind      Kind
		results   map[string]string
		lacks     refusal
		modern    bool
		asked     int // for tools
	}{
		{"prompts", `{"prompts":{"listChanged":true}}`, Prompts, map[string]string{"prompts/list": prompts}, lacksAs404, true, 0},
		{"resources", `{"resources":{}}`, Resources, map[string]string{"resources/list": resources}, lacksAs404, true, 0},
		{"prompts, older", `{"prompts":{}}`, Prompts, map[string]string{"prompts/list": prompts}, lacksAs404, false, 1},
		{"nothing", `{}`, Prompts, nil, lacksAs404, true, 1},
		{"nothing, without an id", `{}`, Prompts, nil, lacksWithoutID, true, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := &wire{can: test.can, session: true, results: test.results, lacks: test.lacks}
			version := "2025-11-25"
			if test.modern {
				s.discovered, s.can, version = discovers(`["2026-07-28"]`, test.can), "", "2026-07-28"
			}
			srv := started(t, config.Server{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0")}, config.Limits{})
			got := srv.last()
			assert.Len(t, got.Elements[test.kind], len(test.results))
			assert.Empty(t, got.Elements[Tools])
			assert.Equal(t, [NumKinds]error{}, got.Failed)
			assert.Equal(t, test.asked, s.times("tools/list "+version))
			assert.Equal(t, version, srv.connection().client.ProtocolVersion())
		})
	}
}

// Status 404 is the end of a session unless it says that the server lacks the method.
func TestSessionIsLost(t *testing.T) {
	s := goSDK(refusesAsJSON)
	srv := started(t, config.Server{Name: "go", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0")}, config.Limits{Reconnect: time.Millisecond})
	first := srv.connection()
	_, err := first.client.ReadResource(t.Context(), mcp.ReadResourceRequest{}) // the server has none
	require.ErrorIs(t, err, mcp.ErrMethodNotFound)
	_, err = srv.call(t.Context(), "greet")
	require.NoError(t, err, "the session goes on")

	gone := goSDK(refusesAsJSON)
	gone.results = map[string]string{"tools/list": greets}
	gone.lacks = func(w http.ResponseWriter, _ json.RawMessage, _ string) {
		http.Error(w, "session not found", http.StatusNotFound)
	}
	srv = started(t, config.Server{Name: "go", URL: mcptest.ServeHTTP(t, gone, "127.0.0.1:0")}, config.Limits{Reconnect: time.Millisecond})
	first = srv.connection()
	_, err = srv.call(t.Context(), "greet")
	require.ErrorIs(t, err, ErrDown)
	mcptest.Soon(t, func() bool { c := srv.connection(); return c != nil && c != first })
}

func TestUnknownMethod(t *testing.T) {
	const refused = `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`
	for _, test := range []struct {
		name   string
		status int
		kind   string
		body   string
		want   bool
	}{
		{"as the protocol demands", 404, "application/json", refused, true},
		{"with a charset", 404, "Application/JSON; charset=utf-8", refused, true},
		{"without an id", 404, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32601}}`, true},
		{"another status", 400, "application/json", refused, false},
		{"a text", 404, "text/plain", refused, false},
		{"no type", 404, "", refused, false},
		{"a lost session", 404, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Session not found"}}`, false},
		{"other JSON", 404, "application/json", `{"error":{"code":-32601}}`, false},
		{"a result", 404, "application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`, false},
		{"no JSON", 404, "application/json", `<html>`, false},
		{"nothing", 404, "application/json", ``, false},
		{"too long", 404, "application/json", refused + strings.Repeat(" ", 64<<10), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := io.NopCloser(strings.NewReader(test.body))
			resp := &http.Response{StatusCode: test.status, Header: http.Header{"Content-Type": {test.kind}}, Body: body}
			assert.Equal(t, test.want, lacksMethod(resp))
			rest, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.Equal(t, test.body, string(rest), "it can still be read")
		})
	}
	broken := io.MultiReader(strings.NewReader(refused), iotest.ErrReader(io.ErrUnexpectedEOF))
	resp := &http.Response{StatusCode: 404, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(broken)}
	assert.False(t, lacksMethod(resp))
	_, err := io.ReadAll(resp.Body)
	assert.Error(t, err)

	endless := io.NopCloser(io.MultiReader(strings.NewReader(`{"jsonrpc":"`), &counted{}))
	resp.Body = endless
	assert.False(t, lacksMethod(resp), "without reading to its end")
}

// A counted gives bytes without end, and panics if more are read than may be.
type counted struct{ n int }

func (c *counted) Read(p []byte) (int, error) {
	if c.n += len(p); c.n > 4*maxRefusal {
		panic("read without a limit")
	}
	return copy(p, bytes.Repeat([]byte("a"), len(p))), nil
}

// A server that is slow to start has half of the time for a start to say what it speaks.
func TestDiscoverOfASlowServer(t *testing.T) {
	t.Parallel()
	for takes, speaks := range map[time.Duration]string{9 * time.Second: "2026-07-28", 11 * time.Second: "2025-11-25"} {
		synctest.Test(t, func(t *testing.T) {
			s := both()
			s.events = false
			slow := roundTripper(func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				if bytes.Contains(body, []byte(`"server/discover"`)) {
					select {
					case <-time.After(takes):
					case <-r.Context().Done():
						return nil, r.Context().Err()
					}
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				return w.Result(), nil
			})
			srv := newTestOf(t, Config{Server: config.Server{Name: "web", URL: "http://127.0.0.1:1/mcp", HTTPClient: &http.Client{Transport: slow}}}, config.Limits{})
			require.NoError(t, srv.Start(t.Context()))
			assert.Equal(t, speaks, srv.connection().client.ProtocolVersion())
		})
	}
}

// A server that leaves server/discover without an answer is waited for once: later
// connections begin with initialize, until that fails.
func TestDiscoverIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := both()
		s.events = false
		hangs := true
		web := roundTripper(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			if hangs && bytes.Contains(body, []byte(`"server/discover"`)) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w.Result(), nil
		})
		srv := newTestOf(t, Config{Server: config.Server{Name: "web", URL: "http://127.0.0.1:1/mcp", HTTPClient: &http.Client{Transport: web}}}, config.Limits{Reconnect: time.Hour})
		connect := func(takes time.Duration, speaks string) {
			t.Helper()
			if c := srv.connection(); c != nil {
				srv.lose(c, io.EOF)
			}
			begun := time.Now()
			require.NoError(t, srv.Start(t.Context()))
			assert.Equal(t, takes, time.Since(begun))
			assert.Equal(t, speaks, srv.connection().client.ProtocolVersion())
		}
		connect(10*time.Second, "2025-11-25")
		connect(0, "2025-11-25")
		connect(0, "2025-11-25")
		s.mu.Lock()
		hangs, s.can = false, "" // it was upgraded
		s.mu.Unlock()
		connect(0, "2026-07-28")

		s.mu.Lock()
		hangs, s.can = true, `{"tools":{}}`
		s.mu.Unlock()
		connect(10*time.Second, "2025-11-25")
		begun := time.Now()
		require.NoError(t, srv.Restart(t.Context()))
		assert.Equal(t, 10*time.Second, time.Since(begun), "nothing is remembered")
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server says how long its lists are fresh, within bounds.
func TestFreshLists(t *testing.T) {
	t.Parallel()
	for hint, want := range map[string]time.Duration{
		"": 5 * time.Minute, `"ttlMs":0`: 5 * time.Minute, `"ttlMs":-5`: 5 * time.Minute, `"ttlMs":"60000"`: 5 * time.Minute, `"ttlMs":1e99`: 5 * time.Minute,
		`"ttlMs":60000`: time.Minute, `"ttlMs":1`: 10 * time.Second, `"ttlMs":1800000`: 30 * time.Minute, `"ttlMs":9223372036854775807`: time.Hour,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := both()
			s.events = false
			s.discovered = discovers(newVersions, `{"tools":{}}`)
			s.results["tools/list"] = strings.Replace(greets, `"ttlMs":0`, cmp.Or(hint, `"x":0`), 1)
			srv := newTestOf(t, Config{Server: config.Server{Name: "web", URL: "http://127.0.0.1:1/mcp", HTTPClient: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				return w.Result(), nil
			})}}}, config.Limits{Refresh: 5 * time.Minute})
			require.NoError(t, srv.Start(t.Context()))
			time.Sleep(time.Second)
			for n := range 3 {
				time.Sleep(want - 2*time.Second)
				synctest.Wait()
				assert.Equal(t, 1+n, s.times("tools/list 2026-07-28"), hint)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				assert.Equal(t, 2+n, s.times("tools/list 2026-07-28"), hint)
			}
		})
	}
}
