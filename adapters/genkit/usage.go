package genkit

import (
	"github.com/firebase/genkit/go/ai"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
)

// count tells sess what a response took, if it says so. Genkit does not tell what was written
// to the cache, nor who the provider is.
func count(sess *mcphybrid.Session, u *ai.GenerationUsage) {
	if u == nil || u.InputTokens <= 0 { // Genkit itself adds a usage with characters
		return
	}
	in, out := u.InputTokens, u.OutputTokens
	if u.TotalTokens == 0 || u.CachedContentTokens > in { // Anthropic's plugin, whose input leaves out what is cached
		in += u.CachedContentTokens
	} else if u.TotalTokens >= in+out+u.ThoughtsTokens { // Gemini counts thoughts apart, OpenAI within the output
		out += u.ThoughtsTokens
	}
	sess.CountUsage(provider.Usage{Input: in, Cached: u.CachedContentTokens, Output: out})
}
