package eino_test

import (
	"context"
	"testing"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/eino"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/require"
)

// A reporter is a model that says these usages, in one piece each.
type reporter struct {
	model.ToolCallingChatModel
	usages []*schema.TokenUsage
}

func (r reporter) Generate(context.Context, []*schema.Message, ...model.Option) (*schema.Message, error) {
	return schema.ConcatMessages(r.pieces())
}

func (r reporter) Stream(context.Context, []*schema.Message, ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	return schema.StreamReaderFromArray(r.pieces()), nil
}

func (r reporter) pieces() (list []*schema.Message) {
	for _, u := range r.usages {
		list = append(list, &schema.Message{Role: schema.Assistant, Content: "x", ResponseMeta: &schema.ResponseMeta{Usage: u}})
	}
	return list
}

// What eino-ext's models say is counted once, also if it is in several pieces.
func TestUsage(t *testing.T) {
	t.Parallel()
	usage := func(in, cached, out, thought, total int) *schema.TokenUsage {
		return &schema.TokenUsage{
			PromptTokens: in, PromptTokenDetails: schema.PromptTokenDetails{CachedTokens: cached},
			CompletionTokens: out, CompletionTokensDetails: schema.CompletionTokensDetails{ReasoningTokens: thought}, TotalTokens: total,
		}
	}
	for name, test := range map[string]struct {
		usages []*schema.TokenUsage
		want   snapshot.Measured
	}{
		"openai":       {[]*schema.TokenUsage{nil, usage(5000, 4096, 90, 60, 5090)}, snapshot.Measured{Requests: 1, Input: 5000, Cached: 4096, Output: 90}},
		"gemini":       {[]*schema.TokenUsage{usage(5000, 4000, 10, 60, 5070), usage(5000, 4000, 30, 60, 5090)}, snapshot.Measured{Requests: 1, Input: 5000, Cached: 4000, Output: 90}},
		"claude":       {[]*schema.TokenUsage{usage(5000, 4000, 1, 0, 5001), nil, usage(0, 0, 90, 0, 90)}, snapshot.Measured{Requests: 1, Input: 5000, Cached: 4000, Output: 90}},
		"says nothing": {[]*schema.TokenUsage{nil, usage(0, 0, 0, 0, 0)}, snapshot.Measured{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mgr := mcphybrid.NewManager(nil)
			defer mgr.Close()
			for _, streams := range []bool{false, true} {
				s := mgr.NewSession(nil)
				chat := eino.Model(s, reporter{usages: test.usages})
				if streams {
					stream, err := chat.Stream(t.Context(), []*schema.Message{schema.UserMessage("Hi.")})
					require.NoError(t, err)
					answer, err := schema.ConcatMessageStream(stream)
					require.NoError(t, err)
					require.Len(t, answer.Content, len(test.usages))
				} else {
					_, err := chat.Generate(t.Context(), []*schema.Message{schema.UserMessage("Hi.")})
					require.NoError(t, err)
				}
				require.Equal(t, test.want, s.Stats().Measured, "stream %t", streams)
			}
		})
	}
}
