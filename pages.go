package mcphybrid

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/result"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// pages holds the cut results of a session.
type pages struct {
	last    int // number of the newest result
	kept    result.Kept
	offered bool // a result was cut since the last Compact
}

// fit returns r, cut to [Options.MaxResult] and [Options.MaxMedia] if it is longer.
// It then keeps the whole text, so that the model can read it page by page.
func (s *Session) fit(r *mcp.CallToolResult) *mcp.CallToolResult {
	number := 0
	notes := result.Notes{Cut: textLeftOut, LeftOut: textContentLeftOut}
	pages := s.rights.mayUse(PageToolName)
	if pages {
		notes.Cut = func(from, to, total int) string {
			s.mu.Lock()
			s.pages.last++
			number = s.pages.last
			s.mu.Unlock()
			return textCut(pageID(number), from, to, total)
		}
	}
	cut, whole := result.Fit(r, result.Bounds{Text: s.scope.opts.MaxResult, Media: s.scope.opts.MaxMedia}, notes)
	if whole == "" || !pages {
		return cut
	}
	s.mu.Lock()
	first := !s.pages.offered
	if !s.closed {
		s.pages.kept = s.pages.kept.With(pageID(number), whole)
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
	text, ok := kept.Text(in.ID)
	if !ok {
		return mcp.NewToolResultError(textNoPage(in.ID))
	}
	from := int(max(0, min(in.Offset, float64(len(text)))))
	part, next := result.Page(text, from, s.scope.opts.MaxResult)
	return mcp.NewToolResultText(part + textPage(in.ID, next, len(text)))
}
