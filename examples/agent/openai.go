package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
)

// openAI is a conversation over chat completions, which most other endpoints
// serve too.
type openAI struct {
	client   openai.Client
	model    string
	messages []openai.ChatCompletionMessageParamUnion // without the system prompt
}

func newOpenAI(e endpoint) model {
	opts := []option.RequestOption{option.WithAPIKey(cmp.Or(e.key, "none"))}
	if e.baseURL != "" {
		opts = append(opts, option.WithBaseURL(e.baseURL))
	}
	return &openAI{client: openai.NewClient(opts...), model: cmp.Or(e.model, openai.ChatModelGPT5_4Mini)}
}

func (m *openAI) answer(ctx context.Context, req request, print func(string)) (reply, error) {
	var media []openai.ChatCompletionContentPartUnionParam
	for _, r := range req.results {
		m.messages = append(m.messages, openai.ToolMessage(r.Text, r.id))
		for _, part := range r.Media { // a tool message can't hold images
			media = append(media, param.Override[openai.ChatCompletionContentPartUnionParam](part))
		}
	}
	if media != nil {
		m.messages = append(m.messages, openai.UserMessage(media))
	}
	if req.message != "" {
		m.messages = append(m.messages, openai.UserMessage(req.message))
	}
	params := openai.ChatCompletionNewParams{
		Model:         m.model,
		Messages:      append([]openai.ChatCompletionMessageParamUnion{openai.SystemMessage(req.system)}, m.messages...),
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	for _, t := range req.tools { // unchanged: members keep their order, numbers their digits
		params.Tools = append(params.Tools, param.Override[openai.ChatCompletionToolUnionParam](t.JSON))
	}

	stream := m.client.Chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		chunk := stream.Current()
		chunk.ID = "" // some endpoints give each chunk another ID, and the accumulator refuses that
		if !acc.AddChunk(chunk) {
			return reply{}, errBrokeOff
		}
		if len(chunk.Choices) > 0 {
			print(chunk.Choices[0].Delta.Content + chunk.Choices[0].Delta.Refusal)
		}
	}
	if err := stream.Err(); err != nil {
		var refused *openai.Error // because its own text does not say why
		if errors.As(err, &refused) {
			err = fmt.Errorf("%w: %s", err, refused.Message)
		}
		return reply{}, err
	}
	if len(acc.Choices) == 0 {
		return reply{}, errBrokeOff
	}
	switch reason := acc.Choices[0].FinishReason; reason {
	case "stop", "tool_calls": // some endpoints say "stop" with calls too
	default:
		return reply{}, stopped(reason)
	}

	message := acc.Choices[0].Message
	r := reply{text: message.Content, tokens: int(acc.Usage.TotalTokens)}
	for i, c := range message.ToolCalls {
		message.ToolCalls[i].Type = "function" // some endpoints leave it out
		r.calls = append(r.calls, call{c.ID, c.Function.Name, c.Function.Arguments})
	}
	if r.text != "" || message.Refusal != "" || len(r.calls) > 0 { // the API refuses an empty message
		m.messages = append(m.messages, message.ToParam())
	}
	return r, nil
}
