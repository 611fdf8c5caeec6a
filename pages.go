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

// pages are the long results of a session that the model got only parts of.
type pages struct {
	last    int // number of the newest
	kept    []keptResult
	offered bool // a result was cut since the last Compact
}

type keptResult struct {
	id   string
	text string
}

// What a session keeps of results that were cut: the newest, up to so many and
// so many bytes together; and the newest of all in any case.
const (
	maxKeptResults = 8
	maxKeptBytes   = 16 << 20
)

// keep adds a text and drops what is too old.
func (p *pages) keep(id, text string) {
	// In a slice of its own: readers hold no lock.
	p.kept = append(slices.Clip(p.kept), keptResult{id, text})
	size := 0
	for i, r := range slices.Backward(p.kept) {
		if size += len(r.text); i < len(p.kept)-1 && (len(p.kept)-i > maxKeptResults || size > maxKeptBytes) {
			p.kept = slices.Clone(p.kept[i+1:])
			return
		}
	}
}

// fit returns r, cut to [Options.MaxResult] if it is longer. The whole of it
// is then kept to be read page by page.
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
		s.registrar.Sync() // the tool that reads on
	}
	return cut
}

func pageID(number int) string { return fmt.Sprintf("r%d", number) }

// answerPage answers with a part of a result that was cut.
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
