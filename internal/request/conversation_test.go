package request

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The version of a model is known only where its name has the shape of the provider's own.
func TestAdds(t *testing.T) {
	t.Parallel()
	for f, names := range map[*Form]map[addition][]string{
		Anthropic: {
			taken: {
				"claude-opus-4-8", "claude-opus-4.8", "claude-opus-4-10", "us.anthropic.claude-opus-4-8-20260528-v1:0", "claude-sonnet-5-5", "claude-haiku-5-5-latest",
				"claude-fable-5", "claude-mythos-5@20260401", "anthropic/claude-opus-5.5", "claude-opus-6", "claude-opus-5-20260901",
			},
			refused: {
				"claude-opus-4", "claude-opus-4-20250514", "claude-opus-4-1-20250805", "claude-opus-4-7", "claude-sonnet-5", "claude-sonnet-5-20260801", "claude-haiku-4-5",
				"claude-3-5-haiku-latest", "claude-3-opus-20240229", "claude-2.1", "claude-2", "claude-instant-1.2", "anthropic.claude-3-haiku-20240307-v1:0",
			},
			unknown: {"", "claude", "claude-opus", "claude-opus-41", "claude-sonnet-45", "claude-opus-10", "claude-35-haiku", "opus-5-5", "my-model"},
		},
		OpenAIResponses: {
			taken:   {"gpt-5.4", "gpt-5.10-mini", "openai/gpt-5.6", "gpt-6", "gpt-5.4-2026-03-05"},
			refused: {"gpt-5", "gpt-5-2025-08-07", "gpt-5.3-codex", "gpt-4o", "gpt-4.1-mini", "gpt-3.5-turbo", "openai/gpt-4"},
			unknown: {"", "gpt", "gpt-35-turbo", "gpt-41-mini", "gpt-54", "gpt-oss-120b", "o3", "my-gpt-5.6"},
		},
		OpenAIChat: {unknown: {"gpt-5.6", "gpt-4"}},
		MCP:        {unknown: {"", "claude-opus-5-5", "claude-3-opus"}},
	} {
		for want, models := range names {
			for _, model := range models {
				assert.Equal(t, want == taken, f.Adds(model), "%s takes tools", model)
				assert.Equal(t, want == refused, f.Refuses(model), "%s refuses tools", model)
			}
		}
	}
}

// A body is made beside the host's messages: their list, and what it has room for behind its
// end, stay as they are.
func TestBodyLeavesTheMessages(t *testing.T) {
	t.Parallel()
	for _, f := range []*Form{MCP, OpenAIChat, OpenAIResponses, Anthropic, Gemini, Bedrock} {
		hello, system, hi := `{"role":"user","content":"Hello."}`, `{"role":"system","content":"News."}`, `{"role":"assistant","content":"Hi."}`
		var room []json.RawMessage
		for _, m := range []string{hello, system, hello, hi, hello, system, `"behind the end"`, `"and more"`} {
			room = append(room, json.RawMessage(m))
		}
		before := fmt.Sprintf("%s", room)
		for range 2 {
			f.Body("Be brief.", nil, 0, room[:6])
			assert.Equal(t, before, fmt.Sprintf("%s", room), f.Format())
		}
	}
}

// Bedrock refuses two messages of one role in a row, so a body has them as one.
func TestConverseBody(t *testing.T) {
	t.Parallel()
	var messages []json.RawMessage
	for _, m := range []string{
		`{"role":"user","content":[{"text":"a"}]}`, `{"role":"user","content":[{"text":"b"}]}`, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"1","name":"n","input":{}}}]}`,
		`{"role":"user","content":[{"toolResult":{"toolUseId":"1","content":[{"text":"r"}]}}]}`, `{"role":"user","content":[{"text":"c"}]}`, `{"role":"user","content":[{"text":"d"}]}`,
		`{"role":"user","content":"odd"}`, `{"role":"user","content":[{"text":"e"}]}`, `5`,
	} {
		messages = append(messages, json.RawMessage(m))
	}
	tool, err := Bedrock.Tool(plain{"n", "", `{}`}, Listed)
	require.NoError(t, err)
	body, err := json.Marshal(converseBody("Be brief.", []json.RawMessage{tool.JSON}, messages))
	require.NoError(t, err)
	assert.JSONEq(t, `{"system":[{"text":"Be brief."}],"toolConfig":{"tools":[{"toolSpec":{"name":"n","inputSchema":{"json":{"type":"object","properties":{}}}}}]},"messages":[
		{"role":"user","content":[{"text":"a"},{"text":"b"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"1","name":"n","input":{}}}]},
		{"role":"user","content":[{"toolResult":{"toolUseId":"1","content":[{"text":"r"}]}},{"text":"c"},{"text":"d"}]},
		{"role":"user","content":"odd"},{"role":"user","content":[{"text":"e"}]},5]}`, string(body))
	assert.JSONEq(t, `{"messages":null}`, string(raw(converseBody("", nil, nil))))
}

// Whether a model takes tools between the messages or not, it gets the text, and nothing is
// written where there is nothing to say.
func TestNewsOfEachForm(t *testing.T) {
	t.Parallel()
	added := []provider.Tool{{Name: "a", JSON: json.RawMessage(`{"name":"a"}`)}}
	for _, test := range []struct {
		write func(News, bool) []json.RawMessage
		news  News
		adds  bool
		want  string
	}{
		{systemBlocks, News{}, false, `null`},
		{systemBlocks, News{}, true, `null`},
		{systemBlocks, News{Text: "t", Added: added, Removed: []string{"b"}}, false, `[{"role":"user","content":[{"type":"text","text":"t"}]}]`},
		{systemBlocks, News{Added: added}, false, `null`},
		{systemBlocks, News{Text: "t"}, true, `[{"role":"system","content":[{"type":"text","text":"t"}]}]`},
		{systemBlocks, News{Text: "t", Added: added, Removed: []string{"b"}}, true, `[{"role":"system","content":[
			{"type":"tool_removal","tool":{"type":"tool_reference","name":"b"}},
			{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"a"}}},
			{"type":"text","text":"t"}]}]`},
		{developerItems, News{}, false, `null`},
		{developerItems, News{Added: added}, false, `null`},
		{developerItems, News{Text: "t", Added: added}, false, `[{"type":"message","role":"developer","content":"t"}]`},
		{developerItems, News{Text: "t", Added: added}, true, `[{"type":"additional_tools","role":"developer","tools":[{"name":"a"}]},{"type":"message","role":"developer","content":"t"}]`},
		{developerItems, News{Text: "t"}, true, `[{"type":"message","role":"developer","content":"t"}]`},
	} {
		got, err := json.Marshal(test.write(test.news, test.adds))
		require.NoError(t, err)
		assert.JSONEq(t, test.want, string(got), "%+v %v", test.news, test.adds)
	}
}

// The providers without a role for programs are told in the user's role who writes.
func TestTextsOfEachForm(t *testing.T) {
	t.Parallel()
	const by = "[Written by the program that runs the tools, not by the user.]\n\n"
	for form, want := range map[*Form]string{
		OpenAIChat: `{"content":"t","role":"user"}`, Gemini: `{"parts":[{"text":"t"}],"role":"user"}`, Bedrock: `{"content":[{"text":"t"}],"role":"user"}`,
		MCP: `{"content":{"text":"t","type":"text"},"role":"user"}`, OpenAIResponses: `{"content":"t","role":"developer","type":"message"}`,
		Anthropic: `{"content":[{"text":"t","type":"text"}],"role":"user"}`,
	} {
		got := form.Messages(News{Text: "t"}, false)
		require.Len(t, got, 1, form.format)
		assert.JSONEq(t, want, string(got[0]), form.format)
		assert.Empty(t, form.Messages(News{}, false), form.format)
		assert.Empty(t, form.Text("\n\n", false), form.format)
		for _, adds := range []bool{false, true} {
			said := by + "a\n"
			if form == OpenAIResponses || form == Anthropic && adds {
				said = "a\n"
			}
			assert.Equal(t, said, form.Text("\n\na\n", adds), "%s %t", form.format, adds)
		}
	}
}

// A member without content is left out of a request.
func TestBodiesOfEachForm(t *testing.T) {
	t.Parallel()
	tools := []provider.Tool{{Name: "a", JSON: json.RawMessage(`{"name":"a"}`)}}
	messages := []json.RawMessage{json.RawMessage(`{"role":"user","content":[{"text":"m"}]}`)}
	for form, want := range map[*Form][2]string{
		OpenAIChat:      {`{"messages":[{"role":"system","content":"s"},M],"tools":[{"name":"a"}]}`, `{"messages":[]}`},
		OpenAIResponses: {`{"instructions":"s","input":[M],"tools":[{"name":"a"}]}`, `{"input":[]}`},
		Gemini:          {`{"systemInstruction":{"parts":[{"text":"s"}]},"contents":[M],"tools":[{"functionDeclarations":[{"name":"a"}]}]}`, `{"contents":[]}`},
		Bedrock:         {`{"system":[{"text":"s"}],"messages":[M],"toolConfig":{"tools":[{"name":"a"}]}}`, `{"messages":null}`},
		MCP:             {`{"systemPrompt":"s","messages":[M],"tools":[{"name":"a"}]}`, `{"messages":[]}`},
		Anthropic: {`{"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[M],"tools":[{"name":"a","cache_control":{"type":"ephemeral"}}],"cache_control":{"type":"ephemeral"}}`,
			`{"messages":[],"cache_control":{"type":"ephemeral"}}`},
	} {
		assert.JSONEq(t, strings.ReplaceAll(want[0], "M", string(messages[0])), string(raw(form.Body("s", tools, 1, messages))), form.format)
		assert.JSONEq(t, want[1], string(raw(form.Body("", nil, 0, nil))), form.format)
	}
}
