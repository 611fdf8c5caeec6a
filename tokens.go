package mcphybrid

// A TokenCounter counts the tokens of a text as a model does. It is called
// concurrently, also with locks held: it must not call a Manager or a session.
type TokenCounter interface {
	CountTokens(text string) int
}

// quarterBytes estimates tokens as a quarter of the bytes, rounded up: over 866
// published tools that is 7 % more than the tokens of OpenAI's o200k in sum,
// and within 36 % for each.
type quarterBytes struct{}

func (quarterBytes) CountTokens(text string) int { return (len(text) + 3) / 4 }

// definitionText returns t as it stands in a list of tools.
func definitionText(t Tool) string {
	return `{"name":"` + t.Name() + `","description":"` + t.Description() + `","inputSchema":` + string(t.InputSchema()) + `},`
}

// EstimateTokens returns how many tokens the definitions of tools have in a
// request, by c; if c is nil, about a quarter of their bytes.
func EstimateTokens[T Tool](tools []T, c TokenCounter) int {
	total := 0
	for _, t := range tools {
		total += tokensOf(t, c)
	}
	return total
}

// Prune returns the longest beginning of tools that has no more than budget
// tokens, as [EstimateTokens] counts them: with a larger budget, the same tools
// and perhaps more. So what is last is lost first. [Options.MaxInlineTokens]
// does the same for what is inline, and loses no pin.
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
	return c.CountTokens(definitionText(t))
}
