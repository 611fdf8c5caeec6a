package mcphybrid

import (
	"context"

	"github.com/mcphybrid/mcphybrid/internal/foreign"
	"github.com/mcphybrid/mcphybrid/internal/names"
)

// A TokenCounter counts the tokens of a text as a model does. The Manager calls it
// concurrently. A tool is counted once, when its server lists it.
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
	return c.CountTokens(definitionText(t))
}

// hostTokens is the host's counter.
type hostTokens struct{ *foreign.Counter }

func (c hostTokens) CountTokens(text string) int { return c.Count(text) }

// weigh counts the tokens of definitions, each once. The caller holds no lock, and
// has not published the definitions.
func (s *scope) weigh(ctx context.Context, defs []*definition) error {
	if _, ok := s.opts.Tokens.(hostTokens); !ok {
		return nil
	}
	counted, err := foreign.Detached(ctx, "Options.Tokens", func() ([]*weights, error) {
		list := make([]*weights, len(defs))
		for i, d := range defs {
			if list[i] = d.weights; list[i] == nil && ctx.Err() == nil {
				list[i] = s.weights(d)
			}
		}
		return list, nil
	})
	if err != nil {
		return err
	}
	for i, w := range counted {
		if defs[i].weights != w {
			defs[i].weights = w
		}
	}
	return nil
}

// weights counts the tokens of a definition.
func (s *scope) weights(d *definition) *weights {
	t := &BridgeTool{name: d.registered, def: d}
	if t.name == "" { // AddTools names it later
		t.name = names.Alone(d.server, "").Name(d.name)
	}
	w := &weights{name: t.name, definition: s.tokens(definitionText(t)), lines: make([]int, lineForms)}
	for form := range w.lines {
		if s.opts.Prompt.MaxListingTokens < NoLimit {
			w.lines[form] = s.tokens(textLine(t, lineForm(form), s.opts.Prompt.MaxDescription))
		}
	}
	return w
}

// weightOf returns what of counts of the definition of t. For a name that is not the
// one that was counted with, it estimates the difference, and for a definition that
// was not counted, all of text.
func (s *scope) weightOf(t *BridgeTool, text string, of func(*weights) int) int {
	var estimate quarterBytes
	w := t.def.weights
	if w == nil {
		return estimate.CountTokens(text)
	}
	n := of(w)
	if n > 0 && t.name != w.name {
		n += estimate.CountTokens(t.name) - estimate.CountTokens(w.name)
	}
	return n
}
