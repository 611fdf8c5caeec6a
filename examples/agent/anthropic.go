package main

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// maxAnswer is the limit on the tokens of an answer. The API requires one.
const maxAnswer = 16_000

// claude is a conversation over Anthropic's Messages API.
type claude struct {
	client   anthropic.Client
	model    string
	messages []anthropic.MessageParam
}

func newAnthropic(e endpoint) model {
	opts := []option.RequestOption{option.WithAPIKey(cmp.Or(e.key, "none"))}
	if e.baseURL != "" {
		opts = append(opts, option.WithBaseURL(e.baseURL))
	}
	return &claude{client: anthropic.NewClient(opts...), model: cmp.Or(e.model, anthropic.ModelClaudeSonnet5_5)}
}

func (m *claude) answer(ctx context.Context, req request, print func(string)) (reply, error) {
	var blocks []anthropic.ContentBlockParamUnion
	for _, r := range req.results {
		block := anthropic.ToolResultBlockParam{ToolUseID: r.id, IsError: anthropic.Bool(r.IsError)}
		if err := json.Unmarshal(r.JSON, &block.Content); err != nil {
			return reply{}, err
		}
		blocks = append(blocks, anthropic.ContentBlockParamUnion{OfToolResult: &block})
	}
	if req.message != "" {
		blocks = append(blocks, anthropic.NewTextBlock(req.message))
	}
	m.messages = append(m.messages, anthropic.NewUserMessage(blocks...))
	params := anthropic.MessageNewParams{
		Model:        m.model,
		MaxTokens:    maxAnswer,
		System:       []anthropic.TextBlockParam{{Text: req.system}},
		Messages:     m.messages,
		CacheControl: anthropic.NewCacheControlEphemeralParam(), // the part that this request and the next have in common
	}
	for _, t := range req.tools { // unchanged: members keep their order, numbers their digits
		params.Tools = append(params.Tools, param.Override[anthropic.ToolUnionParam](t.JSON))
	}

	stream := m.client.Messages.NewStreaming(ctx, params)
	defer stream.Close()
	var message anthropic.Message
	var r reply
	complete := false
	for stream.Next() {
		event := stream.Current()
		switch event.Type {
		case "content_block_delta":
			r.text += event.Delta.Text
			print(event.Delta.Text)
		case "content_block_stop":
			// Before Accumulate, because it turns arguments that are not JSON
			// into {}.
			if i := event.Index; 0 <= i && i < int64(len(message.Content)) && message.Content[i].Type == "tool_use" {
				c := message.Content[i]
				r.calls = append(r.calls, call{c.ID, c.Name, string(c.Input)})
			}
		case "message_stop":
			complete = true
		}
		if err := message.Accumulate(event); err != nil {
			return reply{}, err
		}
	}
	if err := stream.Err(); err != nil {
		return reply{}, err
	}
	if !complete {
		return reply{}, errBrokeOff
	}
	switch message.StopReason {
	case anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence, anthropic.StopReasonToolUse:
	default:
		return reply{}, stopped(string(message.StopReason))
	}

	if len(message.Content) > 0 { // the API refuses an empty message
		m.messages = append(m.messages, message.ToParam())
	}
	u := message.Usage
	r.tokens = int(u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens + u.OutputTokens)
	return r, nil
}
