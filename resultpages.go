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

// textPage follows a part of a result; next is the offset of the next part.
func textPage(id string, next, total int) string {
	if next >= total {
		return fmt.Sprintf("\n[the end of result %s, %d bytes]", id, total)
	}
	return fmt.Sprintf("\n[… to read on, call %s with {\"id\": %q, \"offset\": %d}; %d bytes are left …]", PageToolName, id, next, total-next)
}
