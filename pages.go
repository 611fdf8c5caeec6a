package mcphybrid

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/result"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// pages holds the cut results of a session.
type pages struct {
	last    int // number of the newest result
	kept    []keptResult
	offered bool // a result was cut since the last Compact
}

type keptResult struct {
	id   string
	text string
}

// The limits on the cut results that a session keeps. It keeps the newest ones
// within both limits, and always the very newest.
const (
	maxKeptResults = 8
	maxKeptBytes   = 16 << 20
)

// keep adds a text and drops the oldest ones beyond the limits.
func (p *pages) keep(id, text string) {
	// Clip makes append copy the slice: readers hold no lock.
	p.kept = append(slices.Clip(p.kept), keptResult{id, text})
	size := 0
	for i, r := range slices.Backward(p.kept) {
		if size += len(r.text); i < len(p.kept)-1 && (len(p.kept)-i > maxKeptResults || size > maxKeptBytes) {
			p.kept = slices.Clone(p.kept[i+1:])
			return
		}
	}
}

// fit returns r, cut to [Options.MaxResult] if it is longer. It then keeps the
// whole text, so that the model can read it page by page.
func (s *Session) fit(r *mcp.CallToolResult) *mcp.CallToolResult {
	if !s.rights.mayUse(PageToolName) {
		cut, _ := result.Cut(r, s.scope.opts.MaxResult, textLeftOut)
		return cut
	}
	number := 0
	cut, whole := result.Cut(r, s.scope.opts.MaxResult, func(from, to, total int) string {
		s.mu.Lock()
		s.pages.last++
		number = s.pages.last
		s.mu.Unlock()
		return textCut(pageID(number), from, to, total)
	})
	if whole == "" {
		return cut
	}
	s.mu.Lock()
	first := !s.pages.offered
	if !s.closed {
		s.pages.keep(pageID(number), whole)
		s.pages.offered = true
	}
	s.mu.Unlock()
	if first && s.registrar != nil {
		s.registrar.Sync() // registers the page tool
	}
	return cut
}

func pageID(number int) string { return fmt.Sprintf("r%d", number) }

// answerPage answers with a part of a cut result.
func (s *Session) answerPage(args json.RawMessage) *mcp.CallToolResult {
	var in struct {
		ID     string  `json:"id"`
		Offset float64 `json:"offset"`
	}
	err := json.Unmarshal(args, &in)
	switch {
	case err != nil:
		err = text.JSONError(args, err)
	case in.ID == "":
		err = errors.New(`"id" is missing or empty`)
	}
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaPage, err))
	}
	s.mu.Lock()
	kept := s.pages.kept
	s.mu.Unlock()
	i := slices.IndexFunc(kept, func(r keptResult) bool { return r.id == in.ID })
	if i < 0 {
		return mcp.NewToolResultError(textNoPage(in.ID))
	}
	text := kept[i].text
	from := int(max(0, min(in.Offset, float64(len(text)))))
	part, next := result.Page(text, from, s.scope.opts.MaxResult)
	return mcp.NewToolResultText(part + textPage(in.ID, next, len(text)))
}
