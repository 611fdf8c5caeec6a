package eino

import (
	"encoding/json"
	"testing"

	"github.com/cloudwego/eino/schema"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What Eino's type of schemas has no place for reaches the model all the same.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"plain":       `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":["string","null"]}},"required":["b"]}`,
		"empty":       `{"type":"object","properties":{}}`,
		"definitions": `{"type":"object","properties":{"x":{"$ref":"#/definitions/X"}},"definitions":{"X":{"type":"string"}}}`,
		"draft 4":     `{"type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`,
		"tuple":       `{"type":"object","properties":{"deep":{"type":"object","properties":{"t":{"type":"array","items":[{"type":"string"}]}},"required":["t"]}},"required":["deep"]}`,
		"digits":      `{"type":"object","properties":{"n":{"type":"integer","default":9007199254740993}}}`,
		"unknown":     `{"type":"object","properties":{"n":{"x-unit":"km","type":"number"}},"x-y":[1]}`,
		"types":       `{"type":["object"],"properties":{"n":{"x":1}}}`,
		"any":         `{"type":"object","properties":{"n":true,"m":{}},"additionalProperties":false}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info, err := infoOf(provider.Tool{Name: "t", InputSchema: json.RawMessage(raw)})
			require.NoError(t, err)
			s, err := info.ToJSONSchema()
			require.NoError(t, err)
			sent, err := json.Marshal(s)
			require.NoError(t, err)
			assert.True(t, equal([]byte(raw), sent), "%s became %s", raw, sent)
			assert.NotNil(t, s.Properties)
		})
	}
}

// A name is taken apart only if it was put together here.
func TestNames(t *testing.T) {
	t.Parallel()
	zero := 0
	listed := names{"known": true}
	pieces := []*schema.Message{
		{Role: schema.Assistant, ToolCalls: []schema.ToolCall{{Index: &zero, ID: "1", Function: schema.FunctionCall{Name: "a#b"}}}},
		{Role: schema.Assistant, ToolCalls: []schema.ToolCall{{Index: &zero, ID: "1", Function: schema.FunctionCall{Arguments: "{}"}}}},
	}
	answer := listed.answer()
	var got []*schema.Message
	for _, p := range pieces {
		m, err := answer(p)
		require.NoError(t, err)
		got = append(got, m)
	}
	m, err := schema.ConcatMessages(got)
	require.NoError(t, err)
	assert.Equal(t, unlisted, m.ToolCalls[0].Function.Name)
	result := schema.ToolMessage("r", m.ToolCalls[0].ID, schema.WithToolName(unlisted))
	other := schema.ToolMessage("r", "x#y", schema.WithToolName("known"))
	back := realNames([]*schema.Message{m, result, other})
	assert.Equal(t, "a#b", back[0].ToolCalls[0].Function.Name)
	assert.Equal(t, "1", back[0].ToolCalls[0].ID)
	assert.Equal(t, "1", back[1].ToolCallID)
	assert.Equal(t, "x#y", back[2].ToolCallID)

	for id, name := range map[string]string{"call#7": "mcp_s__x", "a#b%23": "c#d%23#", "": "mcp_s__x"} {
		for _, index := range []*int{nil, &zero} {
			c := schema.ToolCall{Index: index, ID: id, Function: schema.FunctionCall{Name: name}}
			m, err := listed.answer()(&schema.Message{ToolCalls: []schema.ToolCall{c}})
			require.NoError(t, err)
			assert.Equal(t, unlisted, m.ToolCalls[0].Function.Name)
			result := schema.ToolMessage("r", m.ToolCalls[0].ID, schema.WithToolName(unlisted))
			back := realNames([]*schema.Message{m, result})
			assert.Equal(t, c, back[0].ToolCalls[0])
			assert.Equal(t, id, back[1].ToolCallID)
			assert.Equal(t, name, back[1].ToolName)
		}
	}

	m, err = listed.answer()(&schema.Message{ToolCalls: []schema.ToolCall{{ID: "2", Function: schema.FunctionCall{Name: "known"}}}})
	require.NoError(t, err)
	assert.Equal(t, "2", m.ToolCalls[0].ID)
}
