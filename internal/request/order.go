package request

import (
	"bytes"
	"encoding/json"
)

// Joins reports whether the provider refuses two messages of [Form.Messages] in a row, so
// that [Join] must make one of them.
func (f *Form) Joins(adds bool) bool { return f == Anthropic && adds }

// Join returns messages of Anthropic's system as one message that has the blocks of all. It
// returns them as they are if one has other members than a role and a content.
func Join(messages []json.RawMessage) []json.RawMessage {
	if len(messages) < 2 {
		return messages
	}
	var all []json.RawMessage
	for _, m := range messages {
		var of map[string]json.RawMessage
		if json.Unmarshal(m, &of) != nil || len(of) != 2 || of["role"] == nil {
			return messages
		}
		content := bytes.TrimSpace(of["content"])
		if len(content) > 0 && content[0] == '"' {
			all = append(all, raw(members{"type": "text", "text": of["content"]}))
			continue
		}
		var blocks []json.RawMessage
		if json.Unmarshal(content, &blocks) != nil {
			return messages
		}
		all = append(all, blocks...)
	}
	return []json.RawMessage{raw(members{"role": "system", "content": all})}
}

// inOrder returns the messages of a conversation in an order that Anthropic takes: a message
// of the system stands behind those of the user, as the last one or before an answer. It
// stands elsewhere if the request that ended with it failed, and the user wrote again.
func inOrder(messages []json.RawMessage) []json.RawMessage {
	ordered := make([]json.RawMessage, 0, len(messages))
	var system []json.RawMessage // since the last answer
	for _, m := range messages {
		if system == nil && !bytes.Contains(m, []byte(`"system"`)) { // reading all of them takes time
			ordered = append(ordered, m)
			continue
		}
		switch roleOf(m) {
		case "system":
			system = append(system, m)
			continue
		case "assistant":
			ordered, system = append(ordered, Join(system)...), nil
		}
		ordered = append(ordered, m)
	}
	return append(ordered, Join(system)...)
}

func roleOf(message json.RawMessage) string {
	var of struct{ Role string }
	if err := json.Unmarshal(message, &of); err != nil {
		return ""
	}
	return of.Role
}
