package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parseAll is parseDefinitions for raw elements of one server.
func parseAll(t *testing.T, cfg ServerConfig, raw []json.RawMessage, maxBytes int) ([]*definition, []error) {
	t.Helper()
	var elements []upstream.Element
	for _, r := range raw {
		elements = append(elements, upstream.Element{Raw: r})
	}
	src := &source{name: cfg.Name, cfg: cfg, claim: names.Alone(cfg.Name, cfg.Prefix)}
	defs, problems, _, err := src.parseDefinitions(t.Context(), elements, names.NewBook(100), new(rawDefinitions), maxBytes)
	require.NoError(t, err)
	return defs, problems
}

func TestParseDefinitions(t *testing.T) {
	t.Parallel()
	const tooLarge = 200
	elements := []json.RawMessage{
		json.RawMessage(`{"name":"zeta"}`),
		json.RawMessage(`{"name":5}`),
		json.RawMessage(`{"name":"a/b","description":"first"}`),
		json.RawMessage(`"no object"`),
		json.RawMessage(`{"name":"a/b","description":"second"}`),
		json.RawMessage(`{"name":"secret"}`),
		json.RawMessage(`{"name":"secret"}`),
		json.RawMessage(`{"name":"large","description":"` + strings.Repeat("x", tooLarge) + `"}`),
		json.RawMessage(`{"name":"zeta"}`),
		json.RawMessage(`{"name":"Zeta"}`),
		json.RawMessage(`{"name":"alpha","inputSchema":[]}`),
		json.RawMessage(`{"name":"alpha"}`),
	}
	defs, problems := parseAll(t, ServerConfig{Name: "my-server", Tools: Access{Deny: []string{"secret"}}}, elements, tooLarge)

	var got []string
	for _, d := range defs {
		assert.Equal(t, "my-server", d.Server)
		got = append(got, d.Own+" "+d.registered+" "+d.Description)
	}
	assert.Equal(t, []string{
		"zeta mcp_my_server__zeta ",
		"a/b " + names.Alone("my-server", "").Name("a/b") + " first",
		"Zeta mcp_my_server__Zeta ",
		"alpha mcp_my_server__alpha ",
	}, got)

	got = nil
	for _, problem := range problems {
		got = append(got, problem.Error())
	}
	assert.Equal(t, []string{
		`mcphybrid: server "my-server": tool 1: "name" is a JSON number, want a string`,
		`mcphybrid: server "my-server": tool 3: is a JSON string, want an object`,
		`mcphybrid: server "my-server": tool 4: another tool is named "a/b" too; the first is kept`,
		fmt.Sprintf(`mcphybrid: server "my-server": tool 7: the definition has %d bytes, more than the limit of 200`, len(elements[7])),
		`mcphybrid: server "my-server": tool 8: another tool is named "zeta" too; the first is kept`,
		`mcphybrid: server "my-server": tool 10: the inputSchema of "alpha" is not a JSON object`,
	}, got)

	defs, problems = parseAll(t, ServerConfig{Name: "s", Prefix: "ops"}, elements[:1], tooLarge)
	require.Len(t, defs, 1)
	assert.Empty(t, problems)
	assert.Equal(t, "mcp_ops__zeta", defs[0].registered)

	defs, problems = parseAll(t, ServerConfig{Name: "s", Tools: Access{Allow: []string{"other"}}}, elements[:1], tooLarge)
	assert.Empty(t, defs)
	assert.Empty(t, problems)

	defs, problems = parseAll(t, ServerConfig{Name: "s"}, nil, tooLarge)
	assert.Empty(t, defs)
	assert.Empty(t, problems)
}

func TestBridgeToolAccessors(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"name":"a b","title":"A","description":"d","inputSchema":{"type":"object"},"outputSchema":{"x":1},"annotations":{"idempotentHint":true}}`)
	defs, problems := parseAll(t, ServerConfig{Name: "s-1"}, []json.RawMessage{raw}, 1<<20)
	require.Empty(t, problems)
	tool := &BridgeTool{name: defs[0].registered, def: defs[0]}
	assert.Equal(t, names.Alone("s-1", "").Name("a b"), tool.Name())
	assert.Equal(t, "a b", tool.OriginalName())
	assert.Equal(t, "s-1", tool.Server())
	assert.Equal(t, "A", tool.Title())
	assert.Equal(t, "d", tool.Description())
	assert.Equal(t, `{"type":"object"}`, string(tool.InputSchema()))
	assert.Equal(t, `{"x":1}`, string(tool.OutputSchema()))
	assert.Equal(t, mcp.ToolAnnotation{IdempotentHint: mcp.ToBoolPtr(true)}, tool.Annotations())
	assert.Equal(t, string(raw), string(tool.Raw()))
}

func TestBridgeToolCallArguments(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"name":"run","inputSchema":{"properties":{"p":{"type":"string"},"q":{"type":["string","null"]}}}}`)
	d, err := parseDefinition("s", raw, 1<<20)
	require.NoError(t, err)
	var got string
	result := mcp.NewToolResultError("its own")
	d.call = func(_ context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
		got = string(args)
		return result, nil
	}
	tool := &BridgeTool{name: "mcp_s__run", def: d}
	for in, want := range map[string]string{
		"":                                  `{}`,
		`{}`:                                `{}`,
		`{"q":null,"p":null,"x":1.0}`:       `{"q":null,"x":1.0}`,
		`{"p":"none","n":9007199254740993}`: `{"p":"none","n":9007199254740993}`,
	} {
		res, err := tool.Call(t.Context(), json.RawMessage(in))
		require.NoError(t, err)
		assert.Same(t, result, res)
		assert.Equal(t, want, got)
	}

	broken := errors.New("broken")
	d.call = func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) { return nil, broken }
	_, err = tool.Call(t.Context(), nil)
	require.ErrorIs(t, err, broken)
	assert.EqualError(t, err, `mcphybrid: tool "run" of server "s": broken`)
}
