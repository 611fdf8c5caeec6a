package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
)

// readResponses reads a request of OpenAI's responses that has the whole conversation.
func readResponses(body []byte) (Request, error) {
	var in struct {
		Model        string
		Stream       bool
		Instructions string
		Tools        []json.RawMessage
		Input        []json.RawMessage
		Previous     string `json:"previous_response_id"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	if in.Model == "" || in.Previous != "" {
		return Request{}, errors.New("want a model and the whole conversation")
	}
	got := Request{Stream: in.Stream, System: in.Instructions, Tools: in.Tools, Messages: in.Input}
	var k talk
	for i, raw := range in.Input {
		var m struct {
			Type, Role, Name, Arguments string
			CallID                      string `json:"call_id"`
			Content, Output             json.RawMessage
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return Request{}, err
		}
		text, images, err := contents(m.Content)
		switch m.Type + " " + m.Role {
		case " user", "message user":
			err = errors.Join(err, k.user(text, images))
		case " assistant", "message assistant":
			k.model(text)
		case "function_call ":
			k.model("", Call{m.CallID, m.Name, m.Arguments})
		case "function_call_output ":
			if text, images, err = contents(m.Output); err == nil {
				err = k.result(m.CallID, text, images, false, false)
			}
		default:
			err = fmt.Errorf("item %d has the type %q and the role %q", i+1, m.Type, m.Role)
		}
		if err != nil {
			return Request{}, err
		}
	}
	var err error
	got.Turns, err = k.end()
	return got, err
}

func writeResponses(st Step) any { return response(st, "completed", outputs(st)) }

func response(st Step, status string, output []any) object {
	return object{
		"id": "resp_1", "object": "response", "created_at": 1, "model": "script", "status": status, "output": output,
		"usage": object{
			"input_tokens": st.Tokens, "output_tokens": 0, "total_tokens": st.Tokens,
			"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0},
		},
	}
}

// outputs returns the items of an answer.
func outputs(st Step) []any {
	list := []any{}
	if st.Say != "" {
		list = append(list, object{
			"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
			"content": []any{object{"type": "output_text", "text": st.Say, "annotations": []any{}}},
		})
	}
	for _, c := range st.Calls {
		list = append(list, object{
			"type": "function_call", "id": "fc_" + c.ID, "call_id": c.ID, "name": c.Name, "arguments": c.Arguments, "status": "completed",
		})
	}
	return list
}

func streamResponses(_ Request, st Step) []string {
	var events []string
	send := func(kind string, data object) {
		data["type"], data["sequence_number"] = kind, len(events)
		events = append(events, event(kind, data))
	}
	send("response.created", object{"response": response(st, "in_progress", []any{})})
	for i, item := range outputs(st) {
		item := item.(object)
		begun := object{"type": item["type"], "id": item["id"], "status": "in_progress"}
		switch item["type"] {
		case "message":
			begun["role"], begun["content"] = "assistant", []any{}
		default:
			begun["call_id"], begun["name"], begun["arguments"] = item["call_id"], item["name"], ""
		}
		send("response.output_item.added", object{"output_index": i, "item": begun})
		at := func(more object) object {
			more["item_id"], more["output_index"] = item["id"], i
			return more
		}
		if item["type"] == "message" {
			send("response.content_part.added", at(object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []any{}}}))
			for _, p := range pieces(st.Say) {
				send("response.output_text.delta", at(object{"content_index": 0, "delta": p, "logprobs": []any{}}))
			}
			send("response.output_text.done", at(object{"content_index": 0, "text": st.Say, "logprobs": []any{}}))
			send("response.content_part.done", at(object{"content_index": 0, "part": item["content"].([]any)[0]}))
		} else {
			for _, p := range pieces(item["arguments"].(string)) {
				send("response.function_call_arguments.delta", at(object{"delta": p}))
			}
			send("response.function_call_arguments.done", at(object{"name": item["name"], "arguments": item["arguments"]}))
		}
		send("response.output_item.done", object{"output_index": i, "item": item})
	}
	send("response.completed", object{"response": response(st, "completed", outputs(st))})
	return events
}
