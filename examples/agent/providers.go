package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	mcpanthropic "github.com/mcphybrid/mcphybrid/adapters/anthropic"
	mcpopenai "github.com/mcphybrid/mcphybrid/adapters/openai"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
)

// An api is a provider's API, which endpoints serve.
type api struct {
	variables string // what the names of its environment variables begin with
	url       string // its own endpoint
	begin     func(*agent, endpoint) conversation
}

// An endpoint serves a provider's API. An empty model means the default.
type endpoint struct{ key, url, model string }

var providers = map[string]api{
	"openai":    {"OPENAI", "https://api.openai.com/v1/", beginOpenAI},
	"anthropic": {"ANTHROPIC", "https://api.anthropic.com/", beginAnthropic},
}

// beginOpenAI begins a conversation over chat completions, which most other endpoints serve
// too.
func beginOpenAI(a *agent, e endpoint) conversation {
	client := openai.NewClient(openaioption.WithAPIKey(cmp.Or(e.key, "none")), openaioption.WithBaseURL(e.url))
	chat := mcpopenai.NewChat(&client, a.sess, openai.ChatCompletionNewParams{
		Model:         cmp.Or(e.model, openai.ChatModelGPT5_4Mini),
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	chat.Instructions, chat.MaxRequests, chat.Call = system, maxRequests, a.call
	chat.OnChunk = func(chunk openai.ChatCompletionChunk) {
		for _, c := range chunk.Choices {
			a.say(c.Delta.Content + c.Delta.Refusal)
		}
	}
	return func(ctx context.Context, message string) (int64, error) {
		answer, err := chat.Run(ctx, openai.UserMessage(message))
		var refused *openai.Error
		switch {
		case errors.As(err, &refused): // its own text does not say why
			return 0, fmt.Errorf("%w: %s", err, refused.Message)
		case err != nil:
			return 0, err
		}
		return answer.Usage.TotalTokens, complete(answer.Choices[0].FinishReason)
	}
}

// beginAnthropic begins a conversation over Anthropic's Messages API.
func beginAnthropic(a *agent, e endpoint) conversation {
	client := anthropic.NewClient(anthropicoption.WithAPIKey(cmp.Or(e.key, "none")), anthropicoption.WithBaseURL(e.url))
	params := anthropic.BetaToolRunnerParams{MaxIterations: maxRequests, BetaMessageNewParams: anthropic.BetaMessageNewParams{
		Model:     cmp.Or(e.model, anthropic.ModelClaudeSonnet5_5),
		MaxTokens: 16_000, // of an answer; the API requires a limit
		System:    []anthropic.BetaTextBlockParam{{Text: system}},
	}}
	return func(ctx context.Context, message string) (int64, error) {
		params.Messages = append(params.Messages, anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(message)))
		runner := mcpanthropic.NewToolRunnerStreaming(&client, a.sess, params)
		runner.Call = a.call
		for event, err := range runner.All(ctx) {
			if err != nil {
				return 0, err
			}
			a.say(event.Delta.Text)
		}
		params.Messages = runner.Messages()
		last := runner.LastMessage()
		u := last.Usage
		return u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens + u.OutputTokens, complete(string(last.StopReason))
	}
}

// complete returns an error unless an answer ended for a good reason.
func complete(reason string) error {
	switch reason {
	case "stop", "tool_calls", "end_turn", "stop_sequence": // some endpoints have "tool_calls" without calls
		return nil
	}
	return fmt.Errorf("the answer is not complete: it ended with %q", reason)
}
