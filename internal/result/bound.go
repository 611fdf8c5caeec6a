package result

import (
	"encoding/json"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// Bounds limit a result, each in bytes.
type Bounds struct {
	Text  int // of texts, of structured content, and of links and the like
	Media int // of images, sounds and files together, in base64

	// Promised says that a client counts on the structured content: then it stays, if it is
	// within Media.
	Promised bool
}

// holds reports whether structured content stays.
func (b Bounds) holds(structured json.RawMessage) bool {
	return len(structured) <= max(b.Text, 0) || b.Promised && len(structured) <= b.Media
}

// contents is how many contents may stand alone: one for each 64 bytes of text,
// about what JSON takes around one, and some for the shortest results.
func (b Bounds) contents() int { return max(b.Text/64, 16) }

// Notes are the texts that stand in place of what is left out.
type Notes struct {
	Cut     func(from, to, total int) string         // see [Cut]
	LeftOut func(kind, mime string, size int) string // a whole content; mime may be ""
	More    func(contents int) string                // so many contents without text
}

// Limit returns r, or a copy, that is within the bounds but for the length of its texts.
//
// A content that has no text and does not fit becomes a note. Contents before it
// that fit stay. Structured content that does not fit moves to the texts, unless they say it
// already: then the shorter form stays.
// Pointers to contents become contents, and a nil content is dropped.
//
// Of too many contents, the texts of the last ones become one text, and one note
// stands in place of what else they have.
func Limit(r *mcp.CallToolResult, b Bounds, n Notes) *mcp.CallToolResult {
	if r == nil {
		return nil
	}
	return withoutStructured(withoutLarge(withoutMany(sayOnce(r, b), b, n), b, n), b)
}

// withoutMany makes the contents beyond the limit one text and one note.
func withoutMany(r *mcp.CallToolResult, b Bounds, n Notes) *mcp.CallToolResult {
	most := b.contents()
	if len(r.Content) <= most {
		return r
	}
	result := *r
	result.Content = r.Content[:most:most]
	var texts []string
	others := 0
	for _, c := range r.Content[most:] {
		plain, _ := Direct(c)
		if text, with := textOf(plain); text != "" {
			texts = append(texts, text)
		} else if plain != nil && with == nil {
			others++
		}
	}
	if len(texts) > 0 {
		result.Content = append(result.Content, mcp.NewTextContent(strings.Join(texts, "\n")))
	}
	if others > 0 {
		result.Content = append(result.Content, mcp.NewTextContent(n.More(others)))
	}
	return &result
}

// withoutLarge replaces contents without text that do not fit.
func withoutLarge(r *mcp.CallToolResult, b Bounds, n Notes) *mcp.CallToolResult {
	contents := make([]mcp.Content, 0, len(r.Content))
	changed := false
	others := b.Text
	for _, c := range r.Content {
		plain, pointed := Direct(c)
		changed = changed || pointed
		if plain == nil {
			continue
		}
		kind, mime, size := measure(plain)
		left := &others
		if kind == "image" || kind == "audio" || kind == "file" {
			left = &b.Media
		}
		if size <= *left {
			*left -= size
		} else if text, with := textOf(plain); with != nil { // a resource with a long address
			plain, changed = mcp.NewTextContent(text), true
		} else {
			plain, changed = mcp.NewTextContent(n.LeftOut(kind, mime, size)), true
		}
		contents = append(contents, plain)
	}
	if !changed {
		return r
	}
	result := *r
	result.Content = contents
	return &result
}

// withoutStructured moves structured content that does not fit to the texts.
func withoutStructured(r *mcp.CallToolResult, b Bounds) *mcp.CallToolResult {
	raw, _ := Structured(r) // what can't be encoded can't be sent either
	if b.holds(raw) {
		return r
	}
	result := *r
	result.StructuredContent, result.RawStructuredContent = nil, nil
	result.Content = append(r.Content[:len(r.Content):len(r.Content)], mcp.NewTextContent(string(raw)))
	return &result
}

// Direct returns what c points to, or c if it is no pointer, and nil for a nil
// pointer. pointed reports whether the result differs from c.
func Direct(c mcp.Content) (plain mcp.Content, pointed bool) {
	switch p := c.(type) {
	case nil:
		return nil, true
	case *mcp.TextContent:
		return at(p), true
	case *mcp.ImageContent:
		return at(p), true
	case *mcp.AudioContent:
		return at(p), true
	case *mcp.ResourceLink:
		return at(p), true
	case *mcp.EmbeddedResource:
		if p == nil {
			return nil, true
		}
		plain, _ = Direct(*p)
		return plain, true
	case mcp.EmbeddedResource:
		switch res := p.Resource.(type) {
		case nil:
			return nil, true
		case *mcp.TextResourceContents:
			if res == nil {
				return nil, true
			}
			p.Resource = *res
			return p, true
		case *mcp.BlobResourceContents:
			if res == nil {
				return nil, true
			}
			p.Resource = *res
			return p, true
		}
	}
	return c, false
}

// at returns *p, or nil.
func at[T mcp.Content](p *T) mcp.Content {
	if p == nil {
		return nil
	}
	return *p
}

// measure returns what c is, its MIME type and how many bytes it has beside a text,
// which is cut.
func measure(c mcp.Content) (kind, mime string, size int) {
	switch c := c.(type) {
	case mcp.TextContent:
		return "text", "", 0
	case mcp.ImageContent:
		return "image", c.MIMEType, len(c.Data) + len(c.MIMEType)
	case mcp.AudioContent:
		return "audio", c.MIMEType, len(c.Data) + len(c.MIMEType)
	case mcp.ResourceLink:
		return "link", c.MIMEType, len(c.URI) + len(c.Name) + len(c.Title) + len(c.Description) + len(c.MIMEType)
	case mcp.EmbeddedResource:
		switch res := c.Resource.(type) {
		case mcp.TextResourceContents:
			return "text", res.MIMEType, len(res.URI) + len(res.MIMEType)
		case mcp.BlobResourceContents:
			return "file", res.MIMEType, len(res.Blob) + len(res.URI) + len(res.MIMEType)
		}
	}
	raw, _ := json.Marshal(c)
	return "content", "", len(raw)
}
