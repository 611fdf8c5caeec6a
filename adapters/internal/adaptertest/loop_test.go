package adaptertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
)

// A loop is the loop of the README over a provider's JSON, without an SDK.
type loop struct {
	wire
	url      string
	session  *mcphybrid.Session
	messages []json.RawMessage
}

// A wire is what a loop has to know of a provider.
type wire struct {
	format provider.Format
	model  string
	path   string
	more   object // members of each request

	// reply reads what the model said: the messages that are sent again, the text, and the calls.
	reply func(body []byte) (messages []json.RawMessage, text string, calls []called, err error)

	// results returns the messages that answer calls.
	results func(calls []called, results []provider.Result) []json.RawMessage
}

type called struct {
	id, name  string
	arguments string
}

func raw(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func (l *loop) Run(ctx context.Context, message string) (answer string, err error) {
	begun, place := l.messages, -1
	defer func() {
		if ctx.Err() != nil {
			l.messages = begun
			l.session.TakeBack(place)
		}
	}()
	if message != "" {
		l.messages = append(slices.Clip(l.messages), raw(object{"role": "user", "content": message}))
	}
	for {
		turn, err := l.session.Turn(l.format, l.model)
		if err != nil {
			return "", err
		}
		if place < 0 {
			place = turn.Before
		}
		l.messages = append(l.messages, turn.Append...)
		reply, err := l.send(ctx, turn)
		if err != nil {
			return "", err
		}
		said, text, calls, err := l.reply(reply)
		if err != nil {
			return "", err
		}
		l.messages = append(l.messages, said...)
		if len(calls) == 0 {
			return text, nil
		}
		results := make([]provider.Result, len(calls))
		for i, c := range calls {
			res, _ := l.session.Call(ctx, c.name, c.arguments) // res tells the model of an error
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			if results[i], err = provider.ExportResult(res, l.format); err != nil {
				return "", err
			}
		}
		l.messages = append(l.messages, l.results(calls, results)...)
	}
}

func (l *loop) send(ctx context.Context, turn mcphybrid.Turn) ([]byte, error) {
	body := turn.Body(System, l.messages)
	maps.Copy(body, l.more)
	body["model"] = l.model
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+l.path, bytes.NewReader(raw(body)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if turn.Betas != nil {
		req.Header.Set("anthropic-beta", strings.Join(turn.Betas, ","))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(string(data))
	}
	if err != nil {
		return nil, err
	}
	usage, err := provider.ParseUsage(l.format, data)
	if err != nil {
		return nil, err
	}
	l.session.CountUsage(usage)
	return data, nil
}

var wires = []wire{
	{
		format: provider.Anthropic, model: "claude-sonnet-5-5", path: "/v1/messages", more: object{"max_tokens": 1000},
		reply: repliedMessages, results: messagesResults,
	},
	{
		format: provider.Anthropic, model: "claude-haiku-4-5", path: "/v1/messages", more: object{"max_tokens": 1000},
		reply: repliedMessages, results: messagesResults,
	},
	{format: provider.OpenAIResponses, model: "gpt-5.6", path: "/v1/responses", reply: repliedItems, results: itemsResults},
	{format: provider.OpenAIResponses, model: "gpt-5", path: "/v1/responses", reply: repliedItems, results: itemsResults},
	{format: provider.OpenAIChat, model: "gpt-4.1", path: "/v1/chat/completions", reply: repliedChat, results: chatResults},
}

func repliedMessages(body []byte) (messages []json.RawMessage, text string, calls []called, err error) {
	var in struct{ Content []json.RawMessage }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, "", nil, err
	}
	for _, block := range in.Content {
		var b struct {
			Type, Text, ID, Name string
			Input                json.RawMessage
		}
		if err := json.Unmarshal(block, &b); err != nil {
			return nil, "", nil, err
		}
		text += b.Text
		if b.Type == "tool_use" {
			calls = append(calls, called{b.ID, b.Name, string(b.Input)})
		}
	}
	return []json.RawMessage{raw(object{"role": "assistant", "content": in.Content})}, text, calls, nil
}

func messagesResults(calls []called, results []provider.Result) []json.RawMessage {
	var blocks []any
	for i, c := range calls {
		blocks = append(blocks, object{"type": "tool_result", "tool_use_id": c.id, "is_error": results[i].IsError, "content": results[i].JSON})
	}
	return []json.RawMessage{raw(object{"role": "user", "content": blocks})}
}

func repliedItems(body []byte) (messages []json.RawMessage, text string, calls []called, err error) {
	var in struct{ Output []json.RawMessage }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, "", nil, err
	}
	for _, item := range in.Output {
		var it struct {
			Type, Name, Arguments string
			CallID                string `json:"call_id"`
			Content               []struct{ Text string }
		}
		if err := json.Unmarshal(item, &it); err != nil {
			return nil, "", nil, err
		}
		for _, part := range it.Content {
			text += part.Text
		}
		if it.Type == "function_call" {
			calls = append(calls, called{it.CallID, it.Name, it.Arguments})
		}
	}
	return in.Output, text, calls, nil
}

func itemsResults(calls []called, results []provider.Result) (items []json.RawMessage) {
	for i, c := range calls {
		items = append(items, raw(object{"type": "function_call_output", "call_id": c.id, "output": results[i].JSON}))
	}
	return items
}

func repliedChat(body []byte) (messages []json.RawMessage, text string, calls []called, err error) {
	var in struct {
		Choices []struct{ Message json.RawMessage }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, "", nil, err
	}
	var m struct {
		Content   string
		ToolCalls []struct {
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(in.Choices[0].Message, &m); err != nil {
		return nil, "", nil, err
	}
	for _, c := range m.ToolCalls {
		calls = append(calls, called{c.ID, c.Function.Name, c.Function.Arguments})
	}
	return []json.RawMessage{in.Choices[0].Message}, m.Content, calls, nil
}

func chatResults(calls []called, results []provider.Result) (messages []json.RawMessage) {
	var media []any
	for i, c := range calls {
		messages = append(messages, raw(object{"role": "tool", "tool_call_id": c.id, "content": results[i].JSON}))
		for _, part := range results[i].Media {
			media = append(media, part)
		}
	}
	if media != nil {
		messages = append(messages, raw(object{"role": "user", "content": media}))
	}
	return messages
}

// The README's loop, over each provider's JSON: no request is refused, and no cache is lost.
func TestLoop(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		t.Run(fmt.Sprint(w.format, " ", w.model), func(t *testing.T) {
			t.Parallel()
			r := Runtime{Sequential: true, Chosen: mcphybrid.ByBridge, Begin: func(_ *testing.T, url string, s *mcphybrid.Session, before Host) Host {
				l := &loop{wire: w, url: url, session: s}
				if before != nil {
					l.messages = before.(*loop).messages
				}
				return l
			}}
			if w.model == "claude-sonnet-5-5" || w.model == "gpt-5.6" {
				r.Chosen, r.Fixed = mcphybrid.ByAddition, true
			}
			Run(t, r)
		})
	}
}
