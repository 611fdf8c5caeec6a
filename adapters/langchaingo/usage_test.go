package langchaingo_test

import (
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/langchaingo"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/llms"
)

// The models have names of their own, and mean different things by the same ones.
func TestUsage(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	defer mgr.Close()
	for name, test := range map[string]struct {
		info map[string]any
		want snapshot.Measured
	}{
		"openai": {map[string]any{"PromptTokens": 5000, "PromptCachedTokens": 4096, "CompletionTokens": 90, "ReasoningTokens": 60}, snapshot.Measured{Requests: 1, Input: 5000, Cached: 4096, Output: 90}},
		"google": {map[string]any{
			"input_tokens": int32(5000), "output_tokens": int32(90), "PromptTokens": int32(5000), "CompletionTokens": int32(90),
			"CachedTokens": int32(4000), "CacheReadInputTokens": int32(4000), "NonCachedInputTokens": int32(1000), "ThinkingTokens": 0,
		}, snapshot.Measured{Requests: 1, Input: 5000, Cached: 4000, Output: 90}},
		"anthropic": {map[string]any{"InputTokens": 100, "CacheReadInputTokens": 4000, "CacheCreationInputTokens": 900, "OutputTokens": 90}, snapshot.Measured{Requests: 1, Input: 5000, Cached: 4000, Written: 900, Output: 90}},
		"bedrock":   {map[string]any{"input_tokens": 5000, "output_tokens": 90}, snapshot.Measured{Requests: 1, Input: 5000, Output: 90}},
		"ollama":    {map[string]any{"PromptTokens": 5000, "CompletionTokens": 90, "CachedTokens": 4000, "CacheHit": true}, snapshot.Measured{Requests: 1, Input: 5000, Output: 90}}, // that is a guess of the client
		"mistral":   {map[string]any{"usage": struct{ PromptTokens int }{5000}}, snapshot.Measured{}},
		"none":      {nil, snapshot.Measured{}},
	} {
		s := mgr.NewSession(nil)
		_, err := langchaingo.Answer(t.Context(), s, &llms.ContentChoice{Content: "Hi.", GenerationInfo: test.info}, langchaingo.NoImages)
		require.NoError(t, err)
		require.Equal(t, test.want, s.Stats().Measured, name)
	}
}
