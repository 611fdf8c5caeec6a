package mcphybrid

import (
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/result"
)

// A result on its way to the model. internal/result has the bounds of one and the cut, resultpages.go
// how the model reads on, and resultselect.go how it selects.

// serve returns a result of t as the model gets it: the part that the host selects, or all of
// it, cut if it is too long. A client that was listed the tool with an output schema counts on the
// structured content, and may refuse a result without it; so does the page that shows the tool's results. The
// texts are for the model.
func (s *Session) serve(ctx context.Context, t *BridgeTool, r *mcp.CallToolResult, kind callKind) *mcp.CallToolResult {
	expression, selector := t.selects, s.tenant.opts.Select
	if expression == "" || selector == nil || r.IsError {
		bounds := s.bounds()
		hasAny := r.StructuredContent != nil || r.RawStructuredContent != nil // the schema is looked up in the definition
		bounds.Promised = hasAny && s.asked.client && kind == callByModel && (t.AppURI() != "" || t.OutputSchema() != nil)
		return s.truncateWithin(bounds, r, func(whole string) string { return s.shapeOf(ctx, whole) })
	}
	source, whole := result.Texts(r)
	selected, err := hostcode.Detached(ctx, "Options.Select", func() (string, error) { return selector.Select(ctx, expression, source) })
	if err != nil || selected == "" {
		return withText(s.truncateServed(ctx, r), textSelectionFailed(err))
	}
	part, next := result.Page(selected, 0, s.tenant.opts.MaxResult)
	shown := result.Limit(result.WithText(r, part), s.bounds(), withoutPages)
	if next < len(selected) {
		shown = withText(shown, textSelectedFirst(next, len(selected)))
	}
	if !s.mayPage() {
		return shown
	}
	id := s.nextPage()
	s.keepPage(id, whole)
	return withText(shown, textSelected(id, len(whole)))
}

// truncate returns r, cut to [Options.MaxResult] and [Options.MaxMedia] if it is longer.
// It then keeps the whole text, so that the model can read it page by page, if it may.
func (s *Session) truncate(r *mcp.CallToolResult) *mcp.CallToolResult {
	return s.truncateWithin(s.bounds(), r, func(string) string { return "" })
}

// truncateServed is truncate for what a server sent, from which the model may select.
func (s *Session) truncateServed(ctx context.Context, r *mcp.CallToolResult) *mcp.CallToolResult {
	return s.truncateWithin(s.bounds(), r, func(whole string) string { return s.shapeOf(ctx, whole) })
}

// truncateWithin is truncate within bounds. A text that has a shape is shown with it, and with at
// most maxSelectable of its bytes.
func (s *Session) truncateWithin(bounds result.Bounds, r *mcp.CallToolResult, shapeOf func(whole string) string) *mcp.CallToolResult {
	id := ""
	notes := withoutPages
	pages := s.mayPage()
	if pages {
		notes.Cut = func(from, to, total int) string {
			if id == "" {
				id = s.nextPage()
			}
			return textCut(id, from, to, total)
		}
	}
	limited := result.Limit(r, bounds, notes)
	cut, whole := result.Cut(limited, bounds.Text, notes.Cut)
	if whole == "" || !pages {
		return cut
	}
	shape := shapeOf(whole)
	if shape != "" {
		cut, _ = result.Cut(limited, min(bounds.Text, maxSelectable), notes.Cut)
	}
	s.keepPage(id, whole)
	if shape != "" {
		return withText(cut, textShape(id, shape))
	}
	return cut
}

// maxSelectable is how many bytes are shown of a text that is too long and from which the model
// may select: what it looks for is seldom where the text is cut.
const maxSelectable = 4 << 10

func (s *Session) bounds() result.Bounds {
	return result.Bounds{Text: s.tenant.opts.MaxResult, Media: s.tenant.opts.MaxMedia}
}

// withoutPages are the notes where the model can't read on.
var withoutPages = result.Notes{Cut: textLeftOut, LeftOut: textContentLeftOut, More: textMoreLeftOut}

// withText returns r with a text behind its contents.
func withText(r *mcp.CallToolResult, text string) *mcp.CallToolResult {
	with := *r
	with.Content = append(r.Content[:len(r.Content):len(r.Content)], mcp.NewTextContent(text))
	return &with
}

// textCut stands in a result in place of the bytes from "from" up to "to".
func textCut(id string, from, to, total int) string {
	return fmt.Sprintf("\n[… %d of %d bytes are left out here. To read them, call %s with {\"id\": %q, \"offset\": %d} …]\n", to-from, total, PageToolName, id, from)
}

// textLeftOut is textCut where the rest can't be read.
func textLeftOut(from, to, total int) string {
	return fmt.Sprintf("\n[… %d of %d bytes are left out here …]\n", to-from, total)
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
