package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// A wire is the server's side of a provider's protocol.
type wire struct {
	read  func(body []byte) (sent, error)
	write func(step) []string // server-sent events
}

// wires has the protocols by method and path.
var wires = map[string]wire{
	"POST /chat/completions": {readOpenAI, writeOpenAI},
	"POST /v1/messages":      {readAnthropic, writeAnthropic},
}

// pieceLength is the number of characters in one piece. It is small, so that
// words, numbers and names are cut.
const pieceLength = 7

func pieces(text string) []string {
	var list []string
	for runes := []rune(text); len(runes) > 0; {
		n := min(pieceLength, len(runes))
		list, runes = append(list, string(runes[:n])), runes[n:]
	}
	return list
}

type object = map[string]any

func event(name string, data any) string {
	text, _ := json.Marshal(data) // maps of plain values always marshal
	if name == "" {
		return fmt.Sprintf("data: %s\n\n", text)
	}
	return fmt.Sprintf("event: %s\ndata: %s\n\n", name, text)
}

func readOpenAI(body []byte) (sent, error) {
	var in struct {
		Model    string
		Stream   bool
		Tools    []json.RawMessage
		Messages []struct {
			Role       string
			Content    *string
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return sent{}, err
	}
	if in.Model == "" || !in.Stream || len(in.Messages) == 0 || in.Messages[0].Role != "system" || in.Messages[0].Content == nil {
		return sent{}, errors.New("want a model, a stream and a system prompt first")
	}
	got := sent{system: *in.Messages[0].Content, tools: in.Tools}
	asked := map[string]bool{} // ids that must be answered next
	for _, m := range in.Messages[1:] {
		var text string
		if m.Content != nil {
			text = *m.Content
		}
		if m.Role != "tool" && len(asked) > 0 {
			return sent{}, fmt.Errorf("calls without a result: %v", asked)
		}
		switch m.Role {
		case "user":
			got.turns = append(got.turns, turn{user: text})
		case "assistant":
			t := turn{model: text}
			for _, c := range m.ToolCalls {
				if c.Type != "function" {
					return sent{}, fmt.Errorf("call %q is of type %q", c.ID, c.Type)
				}
				t.calls = append(t.calls, call{c.ID, c.Function.Name, c.Function.Arguments})
				asked[c.ID] = true
			}
			got.turns = append(got.turns, t)
		case "tool":
			if !asked[m.ToolCallID] {
				return sent{}, fmt.Errorf("a result for %q, which is not asked for", m.ToolCallID)
			}
			delete(asked, m.ToolCallID)
			n := len(got.turns)
			if got.turns[n-1].results == nil {
				got.turns = append(got.turns, turn{})
				n++
			}
			text, isError := strings.CutPrefix(text, "Error: ")
			got.turns[n-1].results = append(got.turns[n-1].results, told{m.ToolCallID, text, isError})
		default:
			return sent{}, fmt.Errorf("the role %q", m.Role)
		}
	}
	if len(asked) > 0 {
		return sent{}, fmt.Errorf("calls without a result: %v", asked)
	}
	return got, nil
}

func writeOpenAI(st step) []string {
	var events []string
	chunk := func(delta any, finish any) {
		events = append(events, event("", object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "script",
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}},
		}))
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	for _, p := range pieces(st.say) {
		chunk(object{"content": p}, nil)
	}
	finish := "stop"
	for i, c := range st.calls {
		finish = "tool_calls"
		chunk(object{"tool_calls": []any{object{"index": i, "id": c.id, "type": "function", "function": object{"name": c.name, "arguments": ""}}}}, nil)
		for _, p := range pieces(c.arguments) {
			chunk(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": p}}}}, nil)
		}
	}
	chunk(object{}, finish)
	return append(events, event("", object{
		"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "script", "choices": []any{},
		"usage": object{"prompt_tokens": st.tokens, "completion_tokens": 0, "total_tokens": st.tokens},
	}), "data: [DONE]\n\n")
}

func readAnthropic(body []byte) (sent, error) {
	var in struct {
		Model     string
		Stream    bool
		MaxTokens int `json:"max_tokens"`
		System    []struct{ Text string }
		Tools     []json.RawMessage
		Messages  []struct {
			Role    string
			Content []struct {
				Type, Text, ID, Name string
				Input                json.RawMessage
				ToolUseID            string `json:"tool_use_id"`
				IsError              bool   `json:"is_error"`
				Content              []struct{ Type, Text string }
			}
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return sent{}, err
	}
	if in.Model == "" || !in.Stream || in.MaxTokens <= 0 || len(in.System) != 1 {
		return sent{}, errors.New("want a model, a stream, max_tokens and a system prompt")
	}
	got := sent{system: in.System[0].Text, tools: in.Tools}
	var asked []string // ids that must be answered next
	for i, m := range in.Messages {
		var t turn
		var results []string
		for _, b := range m.Content {
			switch m.Role + " " + b.Type {
			case "user text":
				t.user += b.Text
			case "assistant text":
				t.model += b.Text
			case "assistant tool_use":
				var args bytes.Buffer
				if err := json.Compact(&args, b.Input); err != nil {
					return sent{}, err
				}
				t.calls = append(t.calls, call{b.ID, b.Name, args.String()})
			case "user tool_result":
				if len(b.Content) != 1 || b.Content[0].Type != "text" || b.Content[0].Text == "" {
					return sent{}, fmt.Errorf("the result for %q is not one text", b.ToolUseID)
				}
				t.results = append(t.results, told{b.ToolUseID, b.Content[0].Text, b.IsError})
				results = append(results, b.ToolUseID)
			default:
				return sent{}, fmt.Errorf("%q in the message of %q", b.Type, m.Role)
			}
		}
		if len(m.Content) == 0 || (m.Role == "user") != (i%2 == 0) {
			return sent{}, fmt.Errorf("message %d is empty or not the other side's", i+1)
		}
		if fmt.Sprint(results) != fmt.Sprint(asked) {
			return sent{}, fmt.Errorf("message %d has results for %v, want %v", i+1, results, asked)
		}
		asked = nil
		for _, c := range t.calls {
			asked = append(asked, c.id)
		}
		got.turns = append(got.turns, t)
	}
	return got, nil
}

func writeAnthropic(st step) []string {
	var events []string
	send := func(data object) { events = append(events, event(data["type"].(string), data)) }
	index := 0
	block := func(start object, deltas []object) {
		send(object{"type": "content_block_start", "index": index, "content_block": start})
		for _, d := range deltas {
			send(object{"type": "content_block_delta", "index": index, "delta": d})
		}
		send(object{"type": "content_block_stop", "index": index})
		index++
	}
	send(object{"type": "message_start", "message": object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "script", "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": st.tokens, "output_tokens": 0},
	}})
	send(object{"type": "ping"})
	if st.say != "" {
		var deltas []object
		for _, p := range pieces(st.say) {
			deltas = append(deltas, object{"type": "text_delta", "text": p})
		}
		block(object{"type": "text", "text": ""}, deltas)
	}
	stop := "end_turn"
	for _, c := range st.calls {
		stop = "tool_use"
		deltas := []object{{"type": "input_json_delta", "partial_json": ""}}
		for _, p := range pieces(c.arguments) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": p})
		}
		block(object{"type": "tool_use", "id": c.id, "name": c.name, "input": object{}}, deltas)
	}
	send(object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 0}})
	send(object{"type": "message_stop"})
	return events
}
