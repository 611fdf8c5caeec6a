package gateway

//lint:file-ignore SA1019 what the protocol had before 2026-07-28 is served, too

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/trust"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSearchDescribeCall(t *testing.T) {
	everywhere(t, func(t *testing.T, open connector, opts []client.ClientOption) {
		c, _ := connect(t, open, "test", opts...)
		names := toolNames(t, c)
		require.GreaterOrEqual(t, len(names), 43)
		assert.Equal(t, "mcp_kitchen__a_arguments", names[0])
		assert.Subset(t, names, []string{mcphybrid.SearchToolName, mcphybrid.DescribeToolName, mcphybrid.CallToolName})
		assert.NotContains(t, names, "mcp_kitchen__dish_57")

		found := say(t, c, mcphybrid.SearchToolName, map[string]any{"query": "dish number 57"})
		assert.Contains(t, found, "mcp_kitchen__dish_57")
		var described struct {
			Tools []struct{ Name, Description string }
		}
		require.NoError(t, json.Unmarshal([]byte(say(t, c, mcphybrid.DescribeToolName, map[string]any{"names": []string{"mcp_kitchen__dish_57"}})), &described))
		require.Len(t, described.Tools, 1)
		assert.Equal(t, "Cooks dish number 57", described.Tools[0].Description)
		assert.Equal(t, "cooked soup", say(t, c, mcphybrid.CallToolName,
			map[string]any{"name": "mcp_kitchen__dish_57", "arguments": map[string]any{"text": "soup"}}))

		assert.Equal(t, "cooked pie", say(t, c, "mcp_kitchen__dish_58", map[string]any{"text": "pie"}), "not listed, and called all the same")
		assert.JSONEq(t, `{"n":9007199254740993}`, say(t, c, "mcp_kitchen__a_arguments", json.RawMessage(`{"n":9007199254740993}`)))
		assert.Equal(t, names, toolNames(t, c), "nothing is activated")

		for _, wrong := range []struct {
			name, args, want string
		}{
			{"mcp_kitchen__dich_57", `{}`, "mcp_kitchen__dish_57"},
			{"mcp_kitchen__dish_57", `{"text": 5}`, "/text"},
		} {
			result, err := call(t.Context(), c, wrong.name, json.RawMessage(wrong.args))
			require.NoError(t, err)
			assert.True(t, result.IsError)
			assert.Contains(t, textOf(result), wrong.want)
		}
	})
}

// What could change unseen reaches no client where changes are held back: icons, and most of
// _meta.
func TestUntrustedPartsOfTools(t *testing.T) {
	for _, file := range []string{"", filepath.Join(t.TempDir(), "known.json")} {
		tool := mcptest.Echo("one", "The first")
		tool.Tool.Icons = []mcp.Icon{{Src: "https://evil.example/i.png"}}
		tool.Tool.Meta = mcp.NewMetaFromMap(map[string]any{alwaysLoad: true, "other": "evil"})
		bare := mcptest.Echo("two", "The second")
		bare.Tool.Meta = mcp.NewMetaFromMap(map[string]any{"ui": "ui://evil"})
		page := mcptest.Echo("page", "Shows a page")
		page.Tool.Meta = mcp.NewMetaFromMap(map[string]any{"ui": map[string]any{"resourceUri": "ui://s/page", "other": "evil"}})
		wrong := mcptest.Echo("three", "The third")
		wrong.Tool.Meta = mcp.NewMetaFromMap(map[string]any{alwaysLoad: "evil", "anthropic/searchHint": "evil"})
		trust, err := (&trust.Flags{File: file}).Options(servers.Sources{})
		require.NoError(t, err)
		_, url, end := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "s", InProcess: mcptest.Server("s", tool, bare, page, wrong)}}, trust: trust}, web.Options{})
		c, _ := connect(t, overHTTP(url), "test", generations["legacy"]...)
		list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
		require.NoError(t, err)
		data, err := json.Marshal(list)
		require.NoError(t, err)
		assert.Equal(t, file == "", strings.Contains(string(data), "evil"), "%s", data)
		i := slices.IndexFunc(list.Tools, func(t mcp.Tool) bool { return t.Name == "mcp_s__one" })
		require.GreaterOrEqual(t, i, 0)
		assert.Equal(t, true, list.Tools[i].Meta.AdditionalFields[alwaysLoad], "it is compared")
		i = slices.IndexFunc(list.Tools, func(t mcp.Tool) bool { return t.Name == "mcp_s__page" })
		require.GreaterOrEqual(t, i, 0)
		assert.Equal(t, "ui://s/page", list.Tools[i].Meta.AdditionalFields["ui"].(map[string]any)["resourceUri"], "it is compared")
		require.NoError(t, c.Close())
		end()
	}
}

func TestContentPassesWhole(t *testing.T) {
	everywhere(t, func(t *testing.T, open connector, opts []client.ClientOption) {
		c, _ := connect(t, open, "test", opts...)
		for _, name := range []string{"mcp_kitchen__a_show", mcphybrid.CallToolName} {
			args := map[string]any{}
			if name == mcphybrid.CallToolName {
				args["name"] = "mcp_kitchen__a_show"
			}
			got, err := call(t.Context(), c, name, args)
			require.NoError(t, err)
			want := everyContent()
			assert.Equal(t, want.Content, got.Content)
			assert.JSONEq(t, string(want.RawStructuredContent), string(got.RawStructuredContent))
			assert.Equal(t, string(want.RawStructuredContent), string(got.RawStructuredContent), "to the digit")
			assert.Equal(t, "b", got.Meta.AdditionalFields["example.com/a"])
			assert.False(t, got.IsError)
		}
	})
}

// A client is answered without a slow server and told when that is there. Its
// call of a tool of that server waits.
func TestLateServer(t *testing.T) {
	cfg, err := mcphybrid.LoadConfig(writeConfig(t, "kitchen"))
	require.NoError(t, err)
	late, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg.Servers[0].Env["TEST_WAIT"] = late.Addr().String()
	_, url, _ := startHTTP(t, gatewayOptions{servers: cfg.Servers, wait: time.Millisecond}, web.Options{})
	c, told := connect(t, overHTTP(url, transport.WithContinuousListening()), "test", generations["legacy"]...)
	assert.NotContains(t, toolNames(t, c), "mcp_kitchen__a_arguments")
	answer := make(chan string, 1)
	go func() {
		result, err := call(t.Context(), c, "mcp_kitchen__a_arguments", nil)
		if assert.NoError(t, err) {
			answer <- textOf(result)
		}
	}()
	require.NoError(t, late.Close())
	assert.Equal(t, "{}", <-answer)
	wait(t, told, mcp.MethodNotificationToolsListChanged)
	assert.Contains(t, toolNames(t, c), "mcp_kitchen__a_arguments")
}

// A client is told of a tool all that its server said, but what says nothing.
func TestListedSchemasArePruned(t *testing.T) {
	m := mcphybrid.NewManager(nil)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	tool := mcp.NewToolWithRawSchema("a", "A.", json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"x":{"$ref":"#/$defs/X"}},"$defs":{"X":{},"Y":{}}}`))
	tool.Title, tool.Annotations.ReadOnlyHint, tool.Icons = "The A", mcp.ToBoolPtr(true), []mcp.Icon{{Src: "data:,"}}
	require.NoError(t, m.AddTools("s", server.ServerTool{Tool: tool}))
	got := listed(m.InlineTools()[0], false, false)
	assert.JSONEq(t, `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"x":{"$ref":"#/$defs/X"}},"$defs":{"X":{}}}`, string(got.RawInputSchema))
	assert.Equal(t, tool.Title, got.Title)
	assert.Equal(t, tool.Icons, got.Icons)
	assert.True(t, *got.Annotations.ReadOnlyHint)
}

// No client gets a tool that is for apps only: its model would have it.
func TestSpecH5GatewayHasNoAppTools(t *testing.T) {
	for generation, options := range generations {
		hidden := mcptest.Echo("zanzibar", "Zanzibar polls")
		hidden.Tool.Meta = mcp.NewMetaFromMap(map[string]any{"ui": map[string]any{"visibility": []string{"app"}}})
		server := mcptest.Server("s", append(mcptest.Chores("s", 50), hidden)...)
		_, url, end := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "s", InProcess: server}}}, web.Options{})
		c, _ := connect(t, overHTTP(url), "test", options...)
		list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
		require.NoError(t, err)
		answers := []any{list}
		for name, args := range map[string]map[string]any{
			"mcp_s__zanzibar": {}, "zanzibar": {}, mcphybrid.CallToolName: {"name": "mcp_s__zanzibar", "arguments": map[string]any{}},
			mcphybrid.SearchToolName: {"query": "polls"}, mcphybrid.DescribeToolName: {"names": []string{"mcp_s__zanzibar"}},
		} {
			var r mcp.CallToolRequest
			r.Params.Name, r.Params.Arguments = name, args
			result, err := c.CallTool(t.Context(), r)
			if err == nil && name != mcphybrid.SearchToolName && name != mcphybrid.DescribeToolName {
				assert.True(t, result.IsError, "%s: %s", generation, name)
			}
			answers = append(answers, result)
		}
		data, err := json.Marshal(answers)
		require.NoError(t, err)
		assert.NotContains(t, string(data), "Zanzibar polls", generation)
		require.NoError(t, c.Close())
		end()
	}
}

// Flags that can't count are refused before anything is opened.
func TestFlagsThatAreRefused(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"mcpServers":{}}`), 0o600))
	for want, args := range map[string][]string{
		`unexpected argument "x": name the file by -config`: {"x"},
		"-debug needs -http":               {"-debug"},
		"-max-message must be positive":    {"-max-message", "-1"},
		`-log-level "loud": no such level`: {"-log-level", "loud"},
		"not defined":                      {"-none"},
	} {
		var said bytes.Buffer
		err := run(t.Context(), append([]string{"-config", config, "-cache", "off"}, args...), strings.NewReader(""), nil, &said)
		assert.ErrorContains(t, err, want)
	}
}
