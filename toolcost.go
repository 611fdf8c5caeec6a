package mcphybrid

import (
	"context"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/names"
)

// tokens counts the tokens of a text. It calls the host's code: the caller holds no
// lock.
func (s *tenant) tokens(text string) int { return s.opts.Tokens.CountTokens(text) }

// toolTokens returns the tokens of the definition of t. It calls no code of the host.
func (s *tenant) toolTokens(t *BridgeTool) int {
	if n := t.tokens.Load(); n > 0 {
		return int(n)
	}
	n := s.costOf(t, definitionText(t), func(c *toolCost) int { return c.definition })
	t.tokens.Store(int64(n))
	return n
}

// lineTokens returns the tokens of the line of t in the sections. It calls no code of
// the host.
func (s *tenant) lineTokens(t *BridgeTool, form lineForm) int {
	return s.costOf(t, textLine(t, form, s.opts.Prompt.MaxDescription), func(c *toolCost) int { return c.lines[form] })
}

// hostTokens is the host's counter.
type hostTokens struct{ *hostcode.Counter }

func (c hostTokens) CountTokens(text string) int { return c.Count(text) }

// countTokens counts the tokens of definitions, each once. The caller holds no lock, and
// has not published the definitions.
func (s *tenant) countTokens(ctx context.Context, defs []*definition) error {
	if _, ok := s.opts.Tokens.(hostTokens); !ok {
		return nil
	}
	counted, err := hostcode.Detached(ctx, "Options.Tokens", func() ([]*toolCost, error) {
		list := make([]*toolCost, len(defs))
		for i, d := range defs {
			if list[i] = d.cost; list[i] == nil && ctx.Err() == nil {
				list[i] = s.toolCost(d)
			}
		}
		return list, nil
	})
	if err != nil {
		return err
	}
	for i, w := range counted {
		if defs[i].cost != w {
			defs[i].cost = w
		}
	}
	return nil
}

// toolCost counts the tokens of a definition.
func (s *tenant) toolCost(d *definition) *toolCost {
	t := &BridgeTool{name: d.registered, def: d}
	if t.name == "" { // AddTools names it later
		t.name = names.Alone(d.Server, "").Name(d.Own)
	}
	w := &toolCost{name: t.name, definition: s.tokens(definitionText(t)), lines: make([]int, lineForms)}
	for form := range w.lines {
		if s.opts.Prompt.MaxListingTokens < NoLimit {
			w.lines[form] = s.tokens(textLine(t, lineForm(form), s.opts.Prompt.MaxDescription))
		}
	}
	return w
}

// costOf returns what of counts of the definition of t. For a name that is not the
// one that was counted with, it estimates the difference, and for a definition that
// was not counted, all of text.
func (s *tenant) costOf(t *BridgeTool, text string, of func(*toolCost) int) int {
	var estimate quarterBytes
	w := t.def.cost
	if w == nil {
		return estimate.CountTokens(text)
	}
	n := of(w)
	if n > 0 && t.name != w.name {
		n += estimate.CountTokens(t.name) - estimate.CountTokens(w.name)
	}
	return n
}
