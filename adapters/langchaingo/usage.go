package langchaingo

import (
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
)

// count tells sess what an answer took, if its GenerationInfo says so under one of the names
// that the models of LangChainGo use.
func count(sess *mcphybrid.Session, info map[string]any) {
	tokens := func(names ...string) int {
		for _, name := range names {
			switch n := info[name].(type) {
			case int:
				return n
			case int32: // Google
				return int(n)
			}
		}
		return 0
	}
	u := provider.Usage{
		Input:   tokens("PromptTokens", "input_tokens"), // with what is cached
		Cached:  tokens("PromptCachedTokens", "CacheReadInputTokens"),
		Written: tokens("CacheCreationInputTokens"),
		Output:  tokens("CompletionTokens", "output_tokens", "OutputTokens"),
	}
	if rest := tokens("InputTokens"); rest > 0 { // Anthropic, without what is cached
		u.Input = rest + u.Cached + u.Written
	}
	if u.Input > 0 {
		sess.CountUsage(u)
	}
}
