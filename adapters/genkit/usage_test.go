package genkit_test

import (
	"context"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/mcphybrid/mcphybrid"
	mcpgenkit "github.com/mcphybrid/mcphybrid/adapters/genkit"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/require"
)

// The plugins mean different things by the same names.
func TestUsage(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	t.Cleanup(func() { mgr.Close() })
	for name, test := range map[string]struct {
		usage *ai.GenerationUsage
		want  snapshot.Measured
	}{
		"openai":       {&ai.GenerationUsage{InputTokens: 5000, CachedContentTokens: 4096, OutputTokens: 90, ThoughtsTokens: 60, TotalTokens: 5090}, snapshot.Measured{Requests: 1, Input: 5000, Cached: 4096, Output: 90}},
		"google":       {&ai.GenerationUsage{InputTokens: 5000, CachedContentTokens: 4000, OutputTokens: 30, ThoughtsTokens: 60, TotalTokens: 5090}, snapshot.Measured{Requests: 1, Input: 5000, Cached: 4000, Output: 90}},
		"anthropic":    {&ai.GenerationUsage{InputTokens: 1000, CachedContentTokens: 400, OutputTokens: 90}, snapshot.Measured{Requests: 1, Input: 1400, Cached: 400, Output: 90}},
		"ollama":       {&ai.GenerationUsage{}, snapshot.Measured{}},
		"says nothing": {nil, snapshot.Measured{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := genkit.Init(t.Context())
			genkit.DefineModelAction(g, "test/model", nil, func(_ context.Context, req *ai.ModelRequest, _ struct{}, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
				return &ai.ModelResponse{Request: req, Message: ai.NewModelTextMessage("Hi."), Usage: test.usage}, nil
			})
			s := mgr.NewSession(nil)
			_, err := genkit.Generate(t.Context(), g, ai.WithModelName("test/model"), ai.WithPrompt("go"), ai.WithUse(mcpgenkit.Use(s, nil)))
			require.NoError(t, err)
			require.Equal(t, test.want, s.Stats().Measured)
		})
	}
}
