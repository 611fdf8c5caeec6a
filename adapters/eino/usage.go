package eino

import (
	"github.com/cloudwego/eino/schema"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
)

// A usage is what an answer took, as far as its pieces have said.
type usage schema.TokenUsage

// hear reads a piece of an answer. Figures grow from piece to piece, as in
// schema.ConcatMessages.
func (u *usage) hear(m *schema.Message) {
	if m == nil || m.ResponseMeta == nil || m.ResponseMeta.Usage == nil {
		return
	}
	is := m.ResponseMeta.Usage
	u.PromptTokens = max(u.PromptTokens, is.PromptTokens)
	u.PromptTokenDetails.CachedTokens = max(u.PromptTokenDetails.CachedTokens, is.PromptTokenDetails.CachedTokens)
	u.CompletionTokens = max(u.CompletionTokens, is.CompletionTokens)
	u.CompletionTokensDetails.ReasoningTokens = max(u.CompletionTokensDetails.ReasoningTokens, is.CompletionTokensDetails.ReasoningTokens)
	u.TotalTokens = max(u.TotalTokens, is.TotalTokens)
}

// count tells sess what the answer took, if it said so. Eino's prompt tokens have those that
// are cached. It does not tell what was written to the cache, nor who the provider is.
func (u *usage) count(sess *mcphybrid.Session) {
	if u.PromptTokens <= 0 {
		return
	}
	out, thought := u.CompletionTokens, u.CompletionTokensDetails.ReasoningTokens
	if u.TotalTokens >= u.PromptTokens+out+thought { // Gemini counts it apart, OpenAI within
		out += thought
	}
	sess.CountUsage(provider.Usage{Input: u.PromptTokens, Cached: u.PromptTokenDetails.CachedTokens, Output: out})
}
