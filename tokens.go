package mcphybrid

import "github.com/mcphybrid/mcphybrid/internal/hostcode"

// A TokenCounter counts the tokens of a text as a model does. The Manager calls it
// concurrently. The texts of a tool are counted once, when it comes.
// A count below 0 is taken as 0, and one above 1<<30 as 1<<30.
// If the counter panics, the count is estimated and the first panic is logged.
type TokenCounter interface {
	// CountTokens returns the number of tokens in text.
	CountTokens(text string) int
}

// quarterBytes estimates tokens as a quarter of the bytes, rounded up. For 866
// published tools the total is 7 % above the count of OpenAI's o200k, and each
// tool is within 36 % of it.
type quarterBytes struct{}

func (quarterBytes) CountTokens(text string) int { return (len(text) + 3) / 4 }

// definitionText returns t as it stands in a tool list.
func definitionText(t Tool) string {
	return `{"name":"` + t.Name() + `","description":"` + t.Description() + `","inputSchema":` + string(t.InputSchema()) + `},`
}

// EstimateTokens returns how many tokens the definitions of tools cost in a
// request, counted by c. If c is nil, it counts a quarter of their bytes.
func EstimateTokens[T Tool](tools []T, c TokenCounter) int {
	total := 0
	for _, t := range tools {
		total += tokensOf(t, c)
	}
	return total
}

// Prune returns the longest prefix of tools that costs at most budget tokens, as
// [EstimateTokens] counts them. So it drops the last tools first, and a larger
// budget only adds tools. [InlineOptions.MaxTokens] does the same for inline
// tools, but never drops a pin.
func Prune[T Tool](tools []T, budget int, c TokenCounter) []T {
	for i, t := range tools {
		if budget -= tokensOf(t, c); budget < 0 {
			return tools[:i:i]
		}
	}
	return tools
}

func tokensOf(t Tool, c TokenCounter) int {
	if c == nil {
		c = quarterBytes{}
	}
	return hostcode.WithinCount(c.CountTokens(definitionText(t)))
}

// A toolCost is the tokens of a definition under the name that the tool will most likely have. The
// host's counter counts them before anyone decides by them, since no lock may be held meanwhile.
type toolCost struct {
	name       string
	definition int
	lines      []int // in the sections, by lineForm
}
