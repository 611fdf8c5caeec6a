package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// readMessages reads a request of Anthropic's messages.
func readMessages(body []byte) (Request, error) {
	var in struct {
		Model     string
		Stream    bool
		MaxTokens int `json:"max_tokens"`
		System    json.RawMessage
		Tools     []json.RawMessage
		Messages  []json.RawMessage
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	if in.Model == "" || in.MaxTokens <= 0 {
		return Request{}, errors.New("want a model and max_tokens")
	}
	system, _, err := contents(in.System)
	got := Request{Stream: in.Stream, System: system, Tools: in.Tools, Listed: len(in.Tools), Messages: in.Messages}
	var k talk
	user := true
	for i, raw := range in.Messages {
		if err != nil {
			break
		}
		if roleOf(raw) == "system" {
			var added []json.RawMessage
			added, err = additions(raw)
			got.Tools = append(got.Tools, added...)
			continue
		}
		if (roleOf(raw) == "user") != user {
			err = fmt.Errorf("message %d is not the other side's", i+1)
		}
		user = !user
		err = errors.Join(err, k.message(raw))
	}
	if err != nil {
		return Request{}, err
	}
	got.Turns, err = k.end()
	return got, err
}

// additions returns the tools that a message adds.
func additions(message json.RawMessage) (tools []json.RawMessage, err error) {
	var m struct {
		Content []struct {
			Type string
			Tool struct {
				Type       string
				Definition json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return nil, err
	}
	for _, b := range m.Content {
		if b.Type != "tool_addition" || b.Tool.Type != "tool_definition" {
			return nil, fmt.Errorf("%q with %q in a message of the system", b.Type, b.Tool.Type)
		}
		tools = append(tools, b.Tool.Definition)
	}
	return tools, nil
}

func roleOf(message json.RawMessage) string {
	var m struct{ Role string }
	_ = json.Unmarshal(message, &m)
	return m.Role
}

// message adds a message of Anthropic's.
func (k *talk) message(raw json.RawMessage) error {
	var m struct {
		Role    string
		Content json.RawMessage
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	var blocks []struct {
		part
		ID, Name  string
		Input     json.RawMessage
		ToolUseID string `json:"tool_use_id"`
		IsError   bool   `json:"is_error"`
		Content   json.RawMessage
	}
	if json.Unmarshal(m.Content, &blocks) != nil { // a string
		text, _, err := contents(m.Content)
		if err != nil || m.Role == "user" {
			return errors.Join(err, k.user(text, nil))
		}
		k.model(text)
		return nil
	}
	if len(blocks) == 0 {
		return fmt.Errorf("a message of %q is empty", m.Role)
	}
	var user strings.Builder
	for _, b := range blocks {
		if b.Type == "text" && b.Text == "" {
			return fmt.Errorf("a text of %q is empty", m.Role)
		}
		switch m.Role + " " + b.Type {
		case "user text":
			user.WriteString(b.Text)
		case "assistant text":
			k.model(b.Text)
		case "assistant tool_use":
			k.model("", Call{b.ID, b.Name, string(b.Input)})
		case "user tool_result":
			text, images, err := contents(b.Content)
			if err == nil {
				err = k.result(b.ToolUseID, text, images, b.IsError, true)
			}
			if err != nil {
				return err
			}
		default:
			return fmt.Errorf("%q in the message of %q", b.Type, m.Role)
		}
	}
	if user.Len() > 0 {
		return k.user(user.String(), nil)
	}
	return nil
}

func messagesStop(st Step) string {
	if len(st.Calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func writeMessages(st Step) any {
	content := []any{}
	if st.Say != "" {
		content = append(content, object{"type": "text", "text": st.Say})
	}
	for _, c := range st.Calls {
		content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)})
	}
	return object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "script", "content": content,
		"stop_reason": messagesStop(st), "stop_sequence": nil, "usage": object{"input_tokens": st.Tokens, "output_tokens": 0},
	}
}

func streamMessages(_ Request, st Step) []string {
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
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": st.Tokens, "output_tokens": 0},
	}})
	send(object{"type": "ping"})
	if st.Say != "" {
		var deltas []object
		for _, p := range pieces(st.Say) {
			deltas = append(deltas, object{"type": "text_delta", "text": p})
		}
		block(object{"type": "text", "text": ""}, deltas)
	}
	for _, c := range st.Calls {
		deltas := []object{{"type": "input_json_delta", "partial_json": ""}}
		for _, p := range pieces(c.Arguments) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": p})
		}
		block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, deltas)
	}
	send(object{"type": "message_delta", "delta": object{"stop_reason": messagesStop(st), "stop_sequence": nil}, "usage": object{"output_tokens": 0}})
	send(object{"type": "message_stop"})
	return events
}
