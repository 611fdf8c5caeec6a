package mcphybrid

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
