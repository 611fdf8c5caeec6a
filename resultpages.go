package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/result"
	"github.com/mcphybrid/mcphybrid/internal/schema"
)

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

// withText returns r with a text behind its contents.
func withText(r *mcp.CallToolResult, text string) *mcp.CallToolResult {
	with := *r
	with.Content = append(r.Content[:len(r.Content):len(r.Content)], mcp.NewTextContent(text))
	return &with
}

// withoutPages are the notes where the model can't read on.
var withoutPages = result.Notes{Cut: textLeftOut, LeftOut: textContentLeftOut, More: textMoreLeftOut}

func (s *Session) bounds() result.Bounds {
	return result.Bounds{Text: s.tenant.opts.MaxResult, Media: s.tenant.opts.MaxMedia}
}

// mayPage reports whether the model can read the whole of a result.
func (s *Session) mayPage() bool { return mayUse(s.rights, PageToolName) && s.canRead() }

// nextPage returns the ID of a further result.
func (s *Session) nextPage() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages.last++
	return pageID(s.pages.last)
}

// keepPage keeps the whole text of a result and offers the tool that reads it.
func (s *Session) keepPage(id, whole string) {
	s.mu.Lock()
	first := !s.pages.offered
	if !s.closed {
		s.pages.kept = s.pages.kept.With(s.tenant.texts, id, whole)
		s.pages.offered = true
	}
	s.mu.Unlock()
	if first {
		s.syncRegistry() // registers the page tool
	}
}

// shorten is truncate, but a text that has a shape is shown with it, and with at most
// maxSelectable of its bytes.
func (s *Session) shorten(r *mcp.CallToolResult, shapeOf func(whole string) string) *mcp.CallToolResult {
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
	bounds := s.bounds()
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
