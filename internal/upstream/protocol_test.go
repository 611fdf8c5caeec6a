package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/ask"
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
				srv := started(t, Config{Name: "go", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0"), Ask: ask.Options{Hooks: hooks}}, Limits{})
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
			srv := started(t, Config{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0")}, Limits{})
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
	srv := started(t, cfg, Limits{})
	assert.Equal(t, "2025-11-25", srv.connection().client.ProtocolVersion())
	_, err := srv.call(t.Context(), "echo")
	assert.NoError(t, err)
}

// A vague answers server/discover with an empty result.
type vague struct{ InProcess }

func (v vague) HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
	var in struct {
		ID     mcp.RequestId `json:"id"`
		Method string        `json:"method"`
	}
	if json.Unmarshal(message, &in) == nil && in.Method == string(mcp.MethodServerDiscover) {
		return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: in.ID, Result: struct{}{}}
	}
	return v.InProcess.HandleMessage(ctx, message)
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
			srv := started(t, Config{Name: "web", URL: url}, Limits{})
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

// If neither protocol works, the error has both reasons.
func TestServerRefusesAllProtocols(t *testing.T) {
	s := goSDK(refusesAsJSON)
	s.discovered = discovers(newVersions, s.can)
	s.results = nil
	s.lacks = func(w http.ResponseWriter, _ json.RawMessage, _ string) {
		http.Error(w, "out of order", http.StatusBadRequest)
	}
	srv := newTest(t, Config{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0")}, Limits{})
	err := srv.Start(t.Context())
	require.ErrorContains(t, err, `unsupported protocol version: "2026-07-28"`)
	assert.ErrorContains(t, err, "out of order")
}
