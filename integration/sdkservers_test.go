package integration

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sdkCalls is how often a tool of each server is called.
const sdkCalls = 1000

// soon is how long a change may take to be seen.
const soon = 30 * time.Second

// A learning is how a Manager learns that a list of a server has changed.
type learning int

const (
	polling learning = iota // it lists again
	told                    // the server says so; with protocol 2026-07-28, to who subscribes
)

// The SDKs whose servers are tried. mcp-go's of v1.1.0 read nothing more over standard input
// and output once they serve a subscription. They announce changes there without one, too.
var sdkServers = []struct {
	name     string
	make     func(t *testing.T, version string) []string // a command that takes a transport and what to offer
	learning map[string]learning                         // by transport
	refuses  bool                                        // the stateless server can refuse to let subscribe
}{
	{"go-sdk v1.6.1", oldGoSDK, map[string]learning{"stdio": told, "http": told, "stateless": polling}, false},
	{"go-sdk v1.7.0", oldGoSDK, map[string]learning{"stdio": told, "http": told, "stateless": told}, true},
	{"go-sdk v1.8.0", goSDK, map[string]learning{"stdio": told, "http": told, "stateless": told}, true},
	{"mcp-go v1.1.0", oldMCPGo, map[string]learning{"stdio": told}, false},
	{"mcp-go v1.2.1", mcpGo, map[string]learning{"stdio": told, "http": told, "stateless": told}, false},
	{"TypeScript SDK 1.32.2", typeScriptV1, map[string]learning{"stdio": told, "http": told, "stateless": polling}, false},
	{"TypeScript SDK 2.4.0", typeScriptV2, map[string]learning{"stdio": told, "http": told}, false},
}

func oldGoSDK(t *testing.T, version string) []string {
	return built(t, "gosdk", "github.com/modelcontextprotocol/go-sdk", version, "-modfile", "servers/gosdk/"+version+".mod")
}

func goSDK(t *testing.T, version string) []string {
	return built(t, "gosdk", "github.com/modelcontextprotocol/go-sdk", version)
}

func oldMCPGo(t *testing.T, version string) []string {
	return built(t, "mcpgo", "github.com/mark3labs/mcp-go", version, "-modfile", "servers/mcpgo/"+version+".mod")
}

func mcpGo(t *testing.T, version string) []string {
	return built(t, "mcpgo", "github.com/mark3labs/mcp-go", version)
}

// built builds the program servers/name with that version of a module.
func built(t *testing.T, name, module, version string, flags ...string) []string {
	program := filepath.Join(t.TempDir(), name)
	require.NoError(t, command(".", nil, "go", append(append([]string{"build", "-o", program}, flags...), "./servers/"+name)...))
	info, err := buildinfo.ReadFile(program)
	require.NoError(t, err)
	i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == module })
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, version, info.Deps[i].Version)
	return []string{program}
}

func typeScriptV1(t *testing.T, version string) []string {
	return typeScript(t, filepath.Join(runDir, "npm"), "sdk", version, "v1")
}

func typeScriptV2(t *testing.T, version string) []string {
	folder, err := installMore("typescript")
	require.NoError(t, err)
	return typeScript(t, folder, "server", version, "v2")
}

// typeScript runs servers/typescript/server.mjs with that version of a package in folder.
func typeScript(t *testing.T, folder, name, version, generation string) []string {
	require.Equal(t, version, field(t, json.RawMessage(read(filepath.Join(folder, "node_modules/@modelcontextprotocol", name, "package.json"))), "version"))
	return []string{"node", "servers/typescript/server.mjs", folder, generation}
}

// Servers of all SDKs get in: over each transport, with only tools, prompts or resources,
// and whether or not they announce changes or know how to subscribe to these.
func TestSpecH4ServersOfAllSDKs(t *testing.T) {
	servers, calls := 0, 0
	for _, sdk := range sdkServers {
		t.Run(sdk.name, func(t *testing.T) {
			program := sdk.make(t, sdk.name[strings.LastIndexByte(sdk.name, ' ')+1:])
			for transport, learns := range sdk.learning {
				try := func(offers string, learns learning) {
					t.Run(transport+"/"+offers, func(t *testing.T) {
						args := append(slices.Clone(program), transport, offers)
						s := server{name: "greeter", Command: args[0], Args: args[1:]}
						if transport != "stdio" {
							s = server{name: "greeter", URL: startPrinting(t, exec.Command(args[0], args[1:]...))}
						}
						if offers == "refusing" {
							refusesToSubscribe(t, s.URL)
						}
						calls += useOfSDK(t, startOfSDK(t, s, learns), offers)
						servers++
					})
				}
				try("tools", learns)
				try("prompts", learns)
				try("resources", learns)
				try("quiet", polling)
				if sdk.refuses && transport == "stateless" {
					try("refusing", polling)
				}
			}
		})
	}
	for transport, learns := range map[string]learning{"stdio": told, "http": told} {
		t.Run("server-everything/"+transport, func(t *testing.T) {
			s := everything()
			if transport == "http" {
				s = everythingHTTP(t)
			}
			s.name = "everything"
			mgr := startOfSDK(t, s, learns)
			for range sdkCalls {
				require.Equal(t, "Echo: hi", call(t, mgr, "mcp_everything__echo", map[string]any{"message": "hi"}))
			}
			session := mgr.NewSession(nil)
			before := len(session.Resources())
			call(t, mgr, "mcp_everything__gzip-file-as-resource", map[string]any{"name": "added", "data": "data:text/plain,hi"})
			assert.EventuallyWithT(t, func(c *assert.CollectT) { assert.Len(c, session.Resources(), before+1) }, soon, 10*time.Millisecond)
			servers, calls = servers+1, calls+sdkCalls
		})
	}
	t.Logf("%d servers, %d calls", servers, calls)
}

// Over standard input and output, a server of the Go SDK forgets all that its client is subscribed
// to when one subscription ends. Its lists are followed still.
func TestGoSDKForgetsSubscriptions(t *testing.T) {
	for _, version := range []string{"v1.7.0", "v1.8.0"} {
		t.Run(version, func(t *testing.T) {
			program := goSDK
			if version != "v1.8.0" {
				program = oldGoSDK
			}
			mgr := startOfSDK(t, server{name: "greeter", Command: program(t, version)[0], Args: []string{"stdio", "updates"}}, told)
			s := mgr.NewSession(nil)
			for range 3 { // each waits for the end of the one before
				stop, err := s.SubscribeResource(t.Context(), "greeter", "greeting://hello", func(string) {})
				require.NoError(t, err)
				stop()
			}
			stop, err := s.SubscribeResource(t.Context(), "greeter", "greeting://hello", func(string) {})
			require.NoError(t, err)
			defer stop()
			names := func() (names []string) {
				for _, tool := range mgr.InlineTools() {
					names = append(names, tool.OriginalName())
				}
				return names
			}
			require.NotContains(t, names(), "added")
			require.Equal(t, "Hi Ann", call(t, mgr, "mcp_greeter__add", map[string]any{"name": "Ann"}))
			assert.EventuallyWithT(t, func(c *assert.CollectT) { assert.Contains(c, names(), "added") }, soon, 10*time.Millisecond)
		})
	}
}

// startOfSDK returns a Manager of a server that is ready. Unless it is polling, it lists
// again only when it is told.
func startOfSDK(t *testing.T, s server, learns learning) *mcphybrid.Manager {
	opts := mcphybrid.Options{Limits: config.Limits{Reconnect: -1, Refresh: -1}}
	if learns == polling {
		opts.Limits.Refresh = 100 * time.Millisecond
	}
	mgr := loadManagerThat(t, writeConfig(t, s), opts)
	require.NoError(t, mgr.Start(t.Context()))
	require.Equal(t, mcphybrid.StateReady, mgr.Servers()[0].State)
	require.Empty(t, mgr.Problems())
	if s.URL != "" {
		at, err := url.Parse(s.URL)
		require.NoError(t, err)
		assert.Equal(t, []string{at.Host}, listeners(), "all on loopback")
	} else {
		assert.Empty(t, listeners())
	}
	return mgr
}

// useOfSDK uses what a server of servers/ offers, and follows a change of that. It returns
// the number of calls.
func useOfSDK(t *testing.T, mgr *mcphybrid.Manager, offers string) (calls int) {
	s := mgr.NewSession(nil)
	var listed func() []string
	var use func(name string) error
	switch offers {
	case "prompts":
		listed = func() (names []string) {
			for _, p := range s.Prompts() {
				names = append(names, p.Name)
			}
			return names
		}
		use = func(name string) error {
			got, err := s.GetPrompt(t.Context(), "greeter", name, nil)
			if err == nil && len(got.Messages) != 1 {
				err = fmt.Errorf("%d messages", len(got.Messages))
			}
			return err
		}
	case "resources":
		listed = func() (names []string) {
			for _, r := range s.Resources() {
				names = append(names, r.Name)
			}
			return names
		}
		use = func(name string) error {
			got, err := s.ReadResource(t.Context(), "greeter", "greeting://"+name)
			if err == nil && len(got.Contents) != 1 {
				err = fmt.Errorf("%d contents", len(got.Contents))
			}
			return err
		}
	default:
		listed = func() (names []string) {
			for _, tool := range mgr.InlineTools() {
				names = append(names, tool.OriginalName())
			}
			return names
		}
		use = func(name string) error {
			got, err := s.Call(t.Context(), "mcp_greeter__"+name, map[string]any{"name": "Ann"})
			if err == nil && (got.IsError || text(got) != "Hi Ann") {
				err = fmt.Errorf("%s", text(got))
			}
			return err
		}
		for calls < sdkCalls {
			require.NoError(t, use("greet"), "call %d", calls)
			calls++
		}
	}
	if calls == 0 { // it has no tools
		_, err := s.Call(t.Context(), "mcp_greeter__greet", nil)
		require.Error(t, err)
		assert.Zero(t, mgr.Servers()[0].Tools)
	}
	assert.NotContains(t, listed(), "added")
	require.NoError(t, use("add"))
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Contains(c, listed(), "added") }, soon, 10*time.Millisecond)
	assert.NoError(t, use("added"))
	assert.Equal(t, mcphybrid.StateReady, mgr.Servers()[0].State)
	assert.NoError(t, mgr.Servers()[0].Err)
	return calls
}

// refusesToSubscribe checks that a server does not know subscriptions/listen, as protocol
// 2026-07-28 says it.
func refusesToSubscribe(t *testing.T, url string) {
	const message = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"` + mcp.ProtocolVersion20260728 + `","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, url, strings.NewReader(message))
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": mcp.ProtocolVersion20260728, mcp.HeaderMethod: "subscriptions/listen",
	} {
		r.Header.Set(name, value)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	var answer struct{ Error struct{ Code int } }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	assert.Equal(t, http.StatusNotFound, resp.StatusCode)
	assert.Equal(t, mcp.METHOD_NOT_FOUND, answer.Error.Code)
}
