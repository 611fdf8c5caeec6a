package main

import (
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/provider"
)

// A call is one that the model makes. say is what it writes before.
type call struct {
	say, id, name string
	args          json.RawMessage
}

// raw writes v as JSON. All that is written here can be.
func raw(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

type object = map[string]any

// said returns the message of a user or of the model.
func said(f provider.Format, byUser bool, text string) json.RawMessage {
	switch {
	case f == provider.Gemini && byUser:
		return raw(object{"role": "user", "parts": []object{{"text": text}}})
	case f == provider.Gemini:
		return raw(object{"role": "model", "parts": []object{{"text": text}}})
	case byUser:
		return raw(object{"role": "user", "content": text})
	case f == provider.OpenAIResponses:
		return raw(object{"role": "assistant", "content": []object{{"type": "output_text", "text": text}}})
	}
	return raw(object{"role": "assistant", "content": text})
}

// called returns the messages of a call and its result.
func called(f provider.Format, c call, res *mcp.CallToolResult) (messages []json.RawMessage, err error) {
	exported, err := provider.ExportResult(res, f)
	if err != nil {
		return nil, err
	}
	switch f {
	case provider.OpenAIResponses:
		return []json.RawMessage{
			said(f, false, c.say),
			raw(object{"type": "function_call", "call_id": c.id, "name": c.name, "arguments": string(c.args)}),
			raw(object{"type": "function_call_output", "call_id": c.id, "output": exported.JSON}),
		}, nil
	case provider.Gemini:
		var response struct{ Response json.RawMessage }
		if err := json.Unmarshal(exported.JSON, &response); err != nil {
			return nil, err
		}
		return []json.RawMessage{
			raw(object{"role": "model", "parts": []object{{"text": c.say}, {"functionCall": object{"name": c.name, "args": c.args}}}}),
			raw(object{"role": "user", "parts": []object{{"functionResponse": object{"name": c.name, "response": response.Response}}}}),
		}, nil
	case provider.Anthropic:
		return []json.RawMessage{
			raw(object{"role": "assistant", "content": []object{{"type": "text", "text": c.say}, {"type": "tool_use", "id": c.id, "name": c.name, "input": c.args}}}),
			raw(object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": c.id, "content": exported.JSON}}}),
		}, nil
	}
	return nil, fmt.Errorf("no conversation is written for %s", f)
}

// bodyOf returns a request. tools are in the form f; sections is what the system prompt has
// behind the host's own.
func bodyOf(f provider.Format, tools []json.RawMessage, sections string, messages []json.RawMessage) map[string]any {
	switch f {
	case provider.OpenAIResponses:
		return object{"tools": tools, "instructions": hostPrompt + sections, "input": messages}
	case provider.Gemini:
		return object{
			"tools":             []json.RawMessage{declarations(tools)},
			"systemInstruction": object{"parts": texts("", sections)},
			"contents":          messages,
		}
	}
	return object{"tools": tools, "system": texts("text", sections), "messages": messages}
}

// texts returns the host's prompt and the sections, which may be "".
func texts(kind, sections string) (all []object) {
	for _, s := range []string{hostPrompt, sections} {
		if s == "" {
			continue
		}
		text := object{"text": s}
		if kind != "" {
			text["type"] = kind
		}
		all = append(all, text)
	}
	return all
}

// declarations returns an element of Gemini's list of tools.
func declarations(functions []json.RawMessage) json.RawMessage {
	list := []byte(`{"functionDeclarations":[`)
	for i, f := range functions {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, f...)
	}
	return append(list, `]}`...)
}
