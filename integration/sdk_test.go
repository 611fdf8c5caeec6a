package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a client of an SDK got: the first list of tools, what the search found,
// the list after it, if the client waited for that, and the deferred tool's answer.
type sdkGot struct {
	Instructions  string
	Tools, After  []string
	Found, Called string
	Items         int // of the inventory
}

// The SDKs, as clients of the gateway at a command, or at a URL.
var sdkClients = []struct {
	name, module string
	sessionless  bool // over HTTP, as the protocol is since 2026-07-28
	run          func(t *testing.T, stdio []string, url string) sdkGot
}{
	{"TypeScript SDK", `"@modelcontextprotocol/sdk": "([^"]+)"`, false, func(t *testing.T, stdio []string, url string) (got sdkGot) {
		args := []string{filepath.Join("servers", "sdkclient.mjs"), filepath.Join(runDir, "npm")}
		if url != "" {
			args = append(args, "http", url, gatewayToken)
		} else {
			args = append(append(args, "stdio"), stdio...)
		}
		require.NoError(t, json.Unmarshal(output(t, ".", "node", args...), &got))
		return got
	}},
	{"Go SDK", `github.com/modelcontextprotocol/go-sdk v(\S+)`, true, func(t *testing.T, stdio []string, url string) (got sdkGot) {
		var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: authorized{}}}
		if url == "" {
			transport = &mcp.CommandTransport{Command: exec.Command(stdio[0], stdio[1:]...)}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		changed := make(chan struct{}, 10)
		client := mcp.NewClient(&mcp.Implementation{Name: "go", Version: "1"}, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
		})
		session, err := client.Connect(ctx, transport, nil)
		require.NoError(t, err)
		defer func() { assert.NoError(t, session.Close()) }()
		list := func() (names []string) {
			for tool, err := range session.Tools(ctx, nil) {
				require.NoError(t, err)
				names = append(names, tool.Name)
			}
			return names
		}
		say := func(name string, args any) string {
			result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
			require.NoError(t, err)
			require.NotEmpty(t, result.Content)
			return result.Content[0].(*mcp.TextContent).Text
		}
		got.Instructions, got.Tools = session.InitializeResult().Instructions, list()
		inventory, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "mcp_office__" + inventoryTool})
		require.NoError(t, err)
		items, _ := inventory.StructuredContent.(map[string]any)["items"].([]any)
		got.Items = len(items)
		got.Found = say("mcp_tool_search", map[string]any{"query": "weigh a parcel"})
		name := regexp.MustCompile(`mcp_\w+__` + weighTool).FindString(got.Found)
		args := map[string]any{"parcel": "p1"}
		if slices.Contains(got.Tools, "mcp_tool_call") {
			got.Called = say("mcp_tool_call", map[string]any{"name": name, "arguments": args})
			return got
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatal("it was not told that the list changed")
		}
		got.After = list()
		got.Called = say(name, args)
		return got
	}},
}

// authorized sends the gateway's token with each request.
type authorized struct{}

func (authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+gatewayToken)
	return http.DefaultTransport.RoundTrip(r)
}

// The clients of SDKs search and call a deferred tool over stdio and HTTP, and are told
// when tools are added.
func TestSDKs(t *testing.T) {
	for _, sdk := range sdkClients {
		for _, kind := range []string{"stdio", "http"} {
			for _, follow := range [][]string{nil, {"-follow", "*"}} {
				t.Run(strings.TrimSpace(fmt.Sprintf("%s/%s %s", sdk.name, kind, strings.Join(follow, " "))), func(t *testing.T) {
					o := startOffice(t)
					config := writeConfig(t, server{name: "office", URL: o.url})
					var got sdkGot
					if kind == "stdio" {
						got = sdk.run(t, gatewayCommand(t, config, follow...), "")
					} else {
						got = sdk.run(t, nil, startGateway(t, config, follow...))
					}
					assert.Equal(t, []string{weighTool + ` {"parcel":"p1"}`}, o.called())
					assert.Equal(t, weighed, got.Called)
					assert.Equal(t, inventoryItems, got.Items, "longer than texts may be, but its tool has an output schema")
					assert.Contains(t, got.Instructions, "mcp_tool_search")
					assert.NotContains(t, got.Tools, "mcp_office__"+weighTool)
					switch {
					case sdk.sessionless && kind == "http":
						assert.Len(t, got.Tools, 44, "without mcp_tool_page")
						assert.Empty(t, got.After)
					case follow == nil:
						assert.Len(t, got.Tools, 45)
						assert.Empty(t, got.After)
					default:
						assert.Contains(t, got.After, "mcp_office__"+weighTool)
					}
				})
			}
		}
		pinned := regexp.MustCompile(sdk.module).FindStringSubmatch(read("go.mod") + read("servers/package.json"))
		require.Len(t, pinned, 2)
		assert.Contains(t, read("README.md"), fmt.Sprintf("\n| %s | %s | yes | yes |", sdk.name, pinned[1]))
	}
}
