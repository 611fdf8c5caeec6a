package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/result"
	"github.com/mcphybrid/mcphybrid/internal/schema"
)

// A ResultSelector takes parts of the texts of results by expressions: see package jq. Its
// methods may be called concurrently.
type ResultSelector interface {
	// Select returns what an expression selects in a text, or "" for nothing. The error is
	// for the model: it says in a line what is wrong with the expression or the text.
	Select(ctx context.Context, expression, text string) (selected string, err error)

	// Shape describes in a line what a text consists of, or returns "" for one from which
	// nothing can be selected.
	Shape(text string) string
}

// pages holds the cut results of a session.
type pages struct {
	last    int // number of the newest result
	kept    result.Kept
	offered bool // a result was cut since the last Compact
}

// maxSelectable is how many bytes are shown of a text that is too long and from which the model
// may select: what it looks for is seldom where the text is cut.
const maxSelectable = 4 << 10

// truncateServed is truncate for what a server sent, from which the model may select.
func (s *Session) truncateServed(ctx context.Context, r *mcp.CallToolResult) *mcp.CallToolResult {
	return s.shorten(r, func(whole string) string { return s.shapeOf(ctx, whole) })
}

// truncate returns r, cut to [Options.MaxResult] and [Options.MaxMedia] if it is longer.
// It then keeps the whole text, so that the model can read it page by page.
func (s *Session) truncate(r *mcp.CallToolResult) *mcp.CallToolResult {
	return s.shorten(r, func(string) string { return "" })
}

// shorten is truncate, but a text that has a shape is shown with it, and with at most
// maxSelectable of its bytes.
func (s *Session) shorten(r *mcp.CallToolResult, shapeOf func(whole string) string) *mcp.CallToolResult {
	number := 0
	notes := result.Notes{Cut: textLeftOut, LeftOut: textContentLeftOut, More: textMoreLeftOut}
	pages := mayUse(s.rights, PageToolName) && s.canRead()
	if pages {
		notes.Cut = func(from, to, total int) string {
			if number == 0 {
				s.mu.Lock()
				s.pages.last++
				number = s.pages.last
				s.mu.Unlock()
			}
			return textCut(pageID(number), from, to, total)
		}
	}
	bounds := result.Bounds{Text: s.tenant.opts.MaxResult, Media: s.tenant.opts.MaxMedia}
	cut, whole := result.Fit(r, bounds, notes)
	if whole == "" || !pages {
		return cut
	}
	shape := shapeOf(whole)
	if shape != "" && bounds.Text > maxSelectable {
		bounds.Text = maxSelectable
		if less, same := result.Fit(r, bounds, notes); same == whole { // else the cut would keep another text
			cut = less
		}
	}
	s.mu.Lock()
	first := !s.pages.offered
	if !s.closed {
		s.pages.kept = s.pages.kept.With(s.tenant.texts, pageID(number), whole)
		s.pages.offered = true
	}
	s.mu.Unlock()
	if first {
		s.syncRegistry() // registers the page tool
	}
	if shape != "" {
		cut.Content = append(cut.Content[:len(cut.Content):len(cut.Content)], mcp.NewTextContent(textShape(pageID(number), shape)))
	}
	return cut
}

// shapeOf describes a text from which the model may select, or returns "", also when ctx ends.
func (s *Session) shapeOf(ctx context.Context, text string) string {
	selector := s.tenant.opts.Select
	if selector == nil {
		return ""
	}
	shape, _ := hostcode.Detached(ctx, "Options.Select", func() (string, error) { return selector.Shape(text), nil })
	return shape
}

// canRead reports whether the model has, or can get, the tool that reads on in a result.
func (s *Session) canRead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.transcriptCopy().fixed(s.Disclosure()) || s.metas[metaPage] || s.metas[metaCall]
}

func pageID(number int) string { return fmt.Sprintf("r%d", number) }

// answerPage answers with a part of a cut result.
func (s *Session) answerPage(ctx context.Context, args json.RawMessage) *mcp.CallToolResult {
	var in struct {
		ID     string  `json:"id"`
		Offset float64 `json:"offset"`
		Select string  `json:"select"`
	}
	err := schema.Members(args, &in, "id", func() bool { return in.ID == "" })
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaPage, err))
	}
	s.mu.Lock()
	kept := s.pages.kept
	s.mu.Unlock()
	text, ok := kept.Text(in.ID, s.tenant.parts.Text)
	if !ok {
		return mcp.NewToolResultError(textNoPage(in.ID))
	}
	if in.Select != "" && s.tenant.opts.Select != nil {
		return s.selectFrom(ctx, in.ID, in.Select, text)
	}
	from := int(max(0, min(in.Offset, float64(len(text)))))
	part, next := result.Page(text, from, s.tenant.opts.MaxResult)
	return mcp.NewToolResultText(part + textPage(in.ID, next, len(text)))
}

// selectFrom answers with what an expression selects in the text of a result.
func (s *Session) selectFrom(ctx context.Context, id, expression, text string) *mcp.CallToolResult {
	selector := s.tenant.opts.Select
	selected, err := hostcode.Detached(ctx, "Options.Select", func() (string, error) { return selector.Select(ctx, expression, text) })
	if err != nil {
		return mcp.NewToolResultError(textNotSelected(id, err, s.shapeOf(ctx, text)))
	}
	if selected == "" {
		return mcp.NewToolResultText(textNothingSelected(id, s.shapeOf(ctx, text)))
	}
	part, next := result.Page(selected, 0, s.tenant.opts.MaxResult)
	if next < len(selected) {
		part += textSelectLess(next, len(selected))
	}
	return mcp.NewToolResultText(part)
}

// textShape follows a result that was cut and from which parts can be selected.
func textShape(id, shape string) string {
	return fmt.Sprintf("[Result %s is JSON: %s. To get a part of it, call %s with {\"id\": %q, \"select\": \"a jq expression\"}]", id, shape, PageToolName, id)
}

// textNothingSelected answers an expression that selects nothing.
func textNothingSelected(id, shape string) string {
	return fmt.Sprintf("The expression selects nothing in result %s, which is %s.", id, shape)
}

// textSelectLess follows the first bytes of what was selected.
func textSelectLess(shown, total int) string {
	return fmt.Sprintf("\n[… the first %d of %d selected bytes; select less to see the others …]", shown, total)
}

// textCut stands in a result in place of the bytes from "from" up to "to".
func textCut(id string, from, to, total int) string {
	return fmt.Sprintf("\n[… %d of %d bytes are left out here. To read them, call %s with {\"id\": %q, \"offset\": %d} …]\n", to-from, total, PageToolName, id, from)
}

// textContentLeftOut stands in a result in place of a content that has no text and
// is too large.
func textContentLeftOut(kind, mime string, size int) string {
	return "[… left out here, because it is too large: " + result.Describe(kind, mime, size) + " …]"
}

// textMoreLeftOut stands in place of the contents of a result beyond as many as it
// may have.
func textMoreLeftOut(contents int) string {
	return fmt.Sprintf("[… %d more images, links and the like are left out here …]", contents)
}

// textLeftOut is textCut where the rest can't be read.
func textLeftOut(from, to, total int) string {
	return fmt.Sprintf("\n[… %d of %d bytes are left out here …]\n", to-from, total)
}

// textPage follows a part of a result; next is the offset of the next part.
func textPage(id string, next, total int) string {
	if next >= total {
		return fmt.Sprintf("\n[the end of result %s, %d bytes]", id, total)
	}
	return fmt.Sprintf("\n[… to read on, call %s with {\"id\": %q, \"offset\": %d}; %d bytes are left …]", PageToolName, id, next, total-next)
}
