package billing

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// show reads a request and returns a line for each block: kind, tokens and name. A token is a
// byte.
func show(t *testing.T, r *Reader, format provider.Format, body string) string {
	q, err := r.ReadJSON(format, []byte(body))
	require.NoError(t, err)
	var lines []string
	for _, b := range q {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%c %d %s", "tsm"[b.Kind], b.Tokens, b.Name)))
	}
	return strings.Join(lines, "\n")
}

func bytesOf(text string) int { return len(text) }

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		format     provider.Format
		body, want string
	}{
		{"anthropic", provider.Anthropic, `{"messages":[{"role":"user","content":"12345"},
			{"role":"assistant","content":[{"type":"text","text":"123"},{"type":"tool_use","id":"1","name":"a","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"12"},{"type":"text","text":"34"}]}]}],
			"system":[{"type":"text","text":"12345678"}],"tools":[{"name":"a"},{"name":"b","cache_control":{"type":"ephemeral"}}]}`,
			"t 13 a\nt 13 b\ns 8\nm 9\nm 7\nm 35\nm 17"},
		{"a system prompt that is a text", provider.Anthropic, `{"system":"12345678"}`, "s 8"},
		{"an addition", provider.Anthropic, `{"messages":[{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"a"}}}]}]}`,
			"m 25 a"},
		{"a search by the provider", provider.Anthropic, `{"tools":[{"type":"tool_search_tool_bm25_20251119","name":"s"},{"name":"a","defer_loading":true},{"name":"b","defer_loading":true}],
			"messages":[{"role":"assistant","content":[{"type":"server_tool_use","id":"1","name":"s","input":{}},{"type":"tool_search_tool_result","tool_use_id":"1",
			"content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"b"}]}}]}]}`,
			"t 140 tool_search_tool_bm25_20251119\nm 35\nm 12\nm 13 b"},
		{"a search by us", provider.Anthropic, `{"tools":[{"name":"a","defer_loading":true}],
			"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"tool_reference","tool_name":"a"},{"type":"text","text":"1"},{"type":"tool_reference","tool_name":"x"}]}]}]}`,
			"m 13\nm 13 a"},
		{"what is not known", provider.Anthropic, `{"messages":[{"role":"user","content":[{"type":"new"}]}]}`, "m 18"},
		{"chat", provider.OpenAIChat, `{"tools":[{"type":"function","function":{"name":"a"}}],"messages":[{"role":"system","content":"12"},{"role":"user","content":"123"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"1234"}]}`,
			"t 44 a\ns 2\nm 7\nm 35\nm 16"},
		{"responses", provider.OpenAIResponses, `{"instructions":"12","tools":[{"type":"function","name":"a"}],"input":[{"role":"user","content":"123"},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"1"}]},
			{"type":"function_call","call_id":"1","name":"a","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":[{"type":"input_text","text":"1234"}]}]}`,
			"t 31 a\ns 2\nm 7\nm 5\nm 35\nm 16"},
		{"namespaces", provider.OpenAIResponses, `{"tools":[{"type":"tool_search"},{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"a","defer_loading":true}]}],
			"input":[{"type":"tool_search_call","arguments":{"query":"q"}},{"type":"tool_search_output","tools":[{"type":"function","name":"a","defer_loading":true}]}]}`,
			"t 140 tool_search\nt 31\nm 45\nm 43 a"},
		{"a search that the host answers", provider.OpenAIResponses, `{"tools":[{"type":"tool_search","execution":"client","description":"d"}]}`, "t 62 tool_search"},
		{"gemini", provider.Gemini, `{"systemInstruction":{"parts":[{"text":"12"}]},"tools":[{"functionDeclarations":[{"name":"a"},{"name":"b"}]}],
			"contents":[{"role":"user","parts":[{"text":"123"}]},{"role":"model","parts":[{"functionCall":{"name":"a","args":{}}}]},
			{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"r":1}}}]}]}`,
			"t 13 a\nt 13 b\ns 2\nm 7\nm 35\nm 19"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := NewReader(bytesOf)
			assert.Equal(t, tt.want, show(t, r, tt.format, tt.body))
			assert.Equal(t, tt.want, show(t, r, tt.format, tt.body), "what was read once")
		})
	}
}

// Equal parts have equal ids wherever they stand, and others have others.
func TestIDs(t *testing.T) {
	t.Parallel()
	r := NewReader(bytesOf)
	messages := []json.RawMessage{
		json.RawMessage(`{"role":"user","content":"same"}`),
		json.RawMessage(`{"role":"user","content":"other"}`),
		json.RawMessage(`{"role":"user","content":[{"type":"text","text":"same"}]}`),
	}
	q, err := r.Read(provider.Anthropic, map[string]any{"system": "same", "messages": messages})
	require.NoError(t, err)
	require.Len(t, q, 4)
	assert.Equal(t, q[1].ID, q[3].ID)
	assert.NotEqual(t, q[1].ID, q[2].ID)
	assert.NotEqual(t, q[0].ID, q[1].ID, "the system prompt is not a message")

	again, err := r.Read(provider.Anthropic, map[string]any{"system": "same", "messages": messages[:1]})
	require.NoError(t, err)
	assert.Equal(t, q[:2], again)
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	r := NewReader(bytesOf)
	for _, tt := range []struct {
		format provider.Format
		body   string
	}{
		{"", `{}`},
		{provider.Anthropic, `[]`},
		{provider.Anthropic, `{"tools":[1]}`},
		{provider.Anthropic, `{"messages":[{"content":[1]}]}`},
		{provider.Gemini, `{"contents":[{"parts":[1]}]}`},
		{provider.OpenAIResponses, `{"input":[1]}`},
		{provider.OpenAIChat, `{"messages":[1]}`},
	} {
		_, err := r.ReadJSON(tt.format, []byte(tt.body))
		assert.Error(t, err, tt.body)
	}
}

// What a member can't hold is told by the member and its place, at each depth.
func TestMalformedByItsPlace(t *testing.T) {
	t.Parallel()
	r := NewReader(bytesOf)
	for _, tt := range []struct {
		format     provider.Format
		body, want string
	}{
		{provider.Anthropic, `{"tools":[{"name":"a"},1]}`, "tools/1: "},
		{provider.Anthropic, `{"tools":[{"type":"namespace","tools":[1]}]}`, "tools/0: "},
		{provider.Anthropic, `{"messages":[{"content":[{"type":"tool_result","content":[1]}]}]}`, "messages/0: "},
		{provider.Anthropic, `{"messages":[{"content":[{"type":"tool_search_tool_result","content":1}]}]}`, "messages/0: "},
		{provider.Anthropic, `{"messages":[{"content":[{"type":"tool_addition","tool":{"definition":1}}]}]}`, "messages/0: "},
		{provider.Anthropic, `{"messages":[1]}`, "messages/0: "},
		{provider.Anthropic, `{"messages":[{"content":5}]}`, "messages/0: "},
		{provider.OpenAIChat, `{"messages":[{"role":"user","content":[1]}]}`, "messages/0: "},
		{provider.OpenAIResponses, `{"input":[{"type":"tool_search_output","tools":[1]}]}`, "input/0: "},
		{provider.OpenAIResponses, `{"input":[{"type":"message","content":[1]}]}`, "input/0: "},
		{provider.Gemini, `{"tools":[{"functionDeclarations":[1]}]}`, "tools/0: "},
		{provider.Gemini, `{"tools":[1]}`, "tools/0: "},
		{provider.Gemini, `{"systemInstruction":1}`, "systemInstruction/0: "},
	} {
		_, err := r.ReadJSON(tt.format, []byte(tt.body))
		assert.ErrorContains(t, err, tt.want, tt.body)
	}
	_, err := r.Read(provider.Anthropic, map[string]any{"tools": func() {}})
	assert.ErrorContains(t, err, "tools: ")
	_, err = r.Read(provider.Anthropic, map[string]any{"messages": []any{json.RawMessage(`{`)}})
	assert.ErrorContains(t, err, "messages: ")
}

// Other contents of results, and items that are texts.
func TestOtherContents(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		format     provider.Format
		body, want string
	}{
		{provider.OpenAIResponses, `{"input":"12345"}`, "m 9"},
		{provider.OpenAIResponses, `{"input":["12345"]}`, "m 9"},
		{provider.Anthropic, `{"messages":[{"content":[{"type":"tool_result","content":[{"type":"image"},{"type":"text","text":"1"}]}]}]}`, "m 30"},
		{provider.Anthropic, `{"messages":[{"content":[{"type":"tool_result"}]}]}`, "m 12"},
		{provider.OpenAIChat, `{"messages":[{"role":"developer","content":"12"},{"role":"assistant","content":"123","tool_calls":[{"type":"custom"}]}]}`, "s 2\nm 7"},
		{provider.OpenAIResponses, `{"input":[{"type":"other","content":"1"}]}`, "m 34"},
	} {
		assert.Equal(t, tt.want, show(t, NewReader(bytesOf), tt.format, tt.body), tt.body)
	}
}
