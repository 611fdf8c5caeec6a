package mcpopenai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
)

// A Chat is a conversation over chat completions, with the tools of a session. It may not
// be used concurrently.
type Chat struct {
	// Instructions begin the system prompt. The session's sections follow. They should not
	// change within a conversation.
	Instructions string

	// Params are those of each request: the model and whatever else the host sets. Messages
	// is the conversation without the system prompt, to be stored with [mcphybrid.Session.Save].
	// It has what the session tells of later servers too, as messages of the user.
	// The session's tools stand behind Tools. Every call goes to the session, so the host's
	// own tools go into the Manager, with [mcphybrid.Manager.AddTools].
	Params openai.ChatCompletionNewParams

	// OnChunk, if not nil, gets the pieces of each answer as they arrive. Then answers are
	// streamed.
	OnChunk func(openai.ChatCompletionChunk)

	// Call makes each call of the model. It is [mcphybrid.Session.Call] unless the host puts
	// another one there, which may show or change calls and pass them on. It runs in several
	// goroutines at once.
	Call CallFunc

	// MaxRequests is how many requests a Run makes at most. If zero, defaults to
	// [DefaultMaxRequests]; if negative, there is no limit.
	MaxRequests int

	client *openai.Client
	tools  toolset
}

// NewChat returns a conversation with the tools of s, which must not be ByProvider: OpenAI's
// chat completions defer no tools, and openai-go's messages can't hold the references of
// endpoints that do.
func NewChat(client *openai.Client, s *mcphybrid.Session, params openai.ChatCompletionNewParams) *Chat {
	return &Chat{Params: params, Call: s.Call, client: client, tools: toolset{s, provider.OpenAIChat}}
}

// Run adds messages to the conversation and makes the model's calls until it answers
// without any. It returns that answer.
//
// If ctx ends, the conversation is as it was before Run. After another error it has what
// was said so far: Run without messages goes on.
func (c *Chat) Run(ctx context.Context, messages ...openai.ChatCompletionMessageParamUnion) (answer *openai.ChatCompletion, err error) {
	var at run
	begun := c.Params.Messages
	c.Params.Messages = append(begun[:len(begun):len(begun)], messages...)
	defer func() {
		if err != nil && ctx.Err() != nil {
			c.Params.Messages = begun
			at.takeBack(c.tools)
		}
	}()
	c.tools.session.NextTurn()
	for n := 0; ; n++ {
		if err := within(n, c.MaxRequests); err != nil {
			return nil, err
		}
		if answer, err = c.ask(ctx, &at); err != nil {
			return nil, err
		}
		message := answer.Choices[0].Message
		switch answer.Choices[0].FinishReason {
		case "length", "content_filter": // the calls may not be whole
			message.ToolCalls = nil
		}
		if message.Content != "" || message.Refusal != "" || len(message.ToolCalls) > 0 { // the API refuses an empty one
			c.Params.Messages = append(c.Params.Messages, message.ToParam())
		}
		if len(message.ToolCalls) == 0 {
			return answer, nil
		}
		calls := make([]call, len(message.ToolCalls))
		for i, t := range message.ToolCalls {
			calls[i] = call{t.ID, cmp.Or(t.Function.Name, t.Custom.Name), cmp.Or(t.Function.Arguments, t.Custom.Input)}
		}
		results, err := c.tools.results(ctx, calls, c.Call)
		if err != nil {
			return nil, err
		}
		var media []openai.ChatCompletionContentPartUnionParam
		for i, r := range results {
			c.Params.Messages = append(c.Params.Messages, openai.ToolMessage(r.Text, calls[i].id))
			for _, raw := range r.Media { // a tool message can't hold images
				var part openai.ChatCompletionContentPartUnionParam
				if err := json.Unmarshal(raw, &part); err != nil {
					return nil, err
				}
				media = append(media, part)
			}
		}
		if media != nil {
			c.Params.Messages = append(c.Params.Messages, openai.UserMessage(media))
		}
	}
}

// ask sends the conversation, with what is new in it.
func (c *Chat) ask(ctx context.Context, at *run) (*openai.ChatCompletion, error) {
	if c.tools.session.Disclosure() == mcphybrid.ByProvider {
		return nil, errors.New("mcpopenai: a session by provider has no messages for openai-go's chat completions: use NewResponses, or another disclosure")
	}
	turn, err := at.next(c.tools, c.Params.Model)
	if err != nil {
		return nil, err
	}
	for _, raw := range turn.Append {
		var message openai.ChatCompletionMessageParamUnion // and not Override: it must be the same when it was stored
		if err := json.Unmarshal(raw, &message); err != nil {
			return nil, err
		}
		c.Params.Messages = append(c.Params.Messages, message)
	}
	params := c.Params
	params.Tools = slices.Clip(params.Tools) // the host's
	for _, e := range turn.Tools {
		params.Tools = append(params.Tools, param.Override[openai.ChatCompletionToolUnionParam](e.JSON))
	}
	if system := c.Instructions + turn.System; system != "" {
		params.Messages = append([]openai.ChatCompletionMessageParamUnion{openai.SystemMessage(system)}, params.Messages...)
	}
	answer := &openai.ChatCompletion{}
	if c.OnChunk == nil {
		answer, err = c.client.Chat.Completions.New(ctx, params)
	} else {
		err = c.stream(ctx, params, answer)
	}
	if err != nil {
		return nil, err
	}
	c.tools.count(answer.Usage.RawJSON())
	if len(answer.Choices) == 0 {
		return nil, errors.New("mcpopenai: the model's answer has no choices")
	}
	calls := answer.Choices[0].Message.ToolCalls
	for i := range calls {
		calls[i].Type = cmp.Or(calls[i].Type, "function") // some endpoints leave it out
	}
	return answer, nil
}

func (c *Chat) stream(ctx context.Context, params openai.ChatCompletionNewParams, answer *openai.ChatCompletion) error {
	stream := c.client.Chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	var all openai.ChatCompletionAccumulator
	var usage openai.CompletionUsage // the last one: some endpoints give each chunk one, which the accumulator adds up
	for stream.Next() {
		chunk := stream.Current()
		c.OnChunk(chunk)
		if chunk.JSON.Usage.Valid() {
			usage = chunk.Usage
		}
		chunk.ID = "" // some endpoints give each chunk another one, which the accumulator refuses
		if !all.AddChunk(chunk) {
			return errors.New("mcpopenai: the pieces of the model's answer do not fit together")
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	*answer = all.ChatCompletion
	answer.Usage = usage
	ended := func(c openai.ChatCompletionChoice) bool { return c.FinishReason != "" }
	if len(answer.Choices) > 0 && !slices.ContainsFunc(answer.Choices, ended) {
		return errors.New("mcpopenai: the model's answer broke off")
	}
	return nil
}
