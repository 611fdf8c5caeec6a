package provider

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/result"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A part is a content of a result as any provider could take it: a text or a medium.
type part struct {
	at     string // the place of the content
	text   string
	medium *medium // or nil
}

// A medium is an image, a sound or a file.
type medium struct {
	kind string // "image", "audio" or "file"
	mime string // what the data is; if nothing tells, what the server says that it is
	data string // in base64; "" if it is not
	size int    // in bytes
	name string // of a file
}

// partsOf returns the contents of a result in their order. A text may be empty.
func partsOf(r *mcp.CallToolResult) []part {
	var parts []part
	for i, c := range r.Content {
		if c, _ := result.Direct(c); c != nil {
			p := partOf(c)
			p.at = fmt.Sprintf("content %d", i)
			parts = append(parts, p)
		}
	}
	return parts
}

func partOf(c mcp.Content) part {
	switch c := c.(type) {
	case mcp.TextContent:
		return part{text: c.Text}
	case mcp.ImageContent:
		return mediumOf("image", c.MIMEType, c.Data, "")
	case mcp.AudioContent:
		return mediumOf("audio", c.MIMEType, c.Data, "")
	case mcp.ResourceLink:
		return part{text: link(c)}
	case mcp.EmbeddedResource:
		switch res := c.Resource.(type) {
		case mcp.TextResourceContents:
			return part{text: result.ResourceText(res.URI, res.Text)}
		case mcp.BlobResourceContents:
			kind, _, _ := strings.Cut(plainType(res.MIMEType), "/")
			if kind != "image" && kind != "audio" {
				kind = "file"
			}
			return mediumOf(kind, res.MIMEType, res.Blob, res.URI)
		}
	}
	raw, err := json.Marshal(c)
	if err != nil { // a host made it
		return part{medium: &medium{kind: "content"}}
	}
	return part{text: string(text.Compact(raw))}
}

// link returns a link to a resource as MCP has it, without what is not for the model.
func link(c mcp.ResourceLink) string {
	members := []text.Member{{Name: "type", Value: text.Quote("resource_link")}, {Name: "uri", Value: text.Quote(c.URI)}}
	for _, m := range []struct{ name, value string }{{"name", c.Name}, {"title", c.Title}, {"description", c.Description}, {"mimeType", c.MIMEType}} {
		if m.value != "" {
			members = append(members, text.Member{Name: m.name, Value: text.Quote(m.value)})
		}
	}
	if c.Size != nil {
		members = append(members, text.Member{Name: "size", Value: json.RawMessage(fmt.Sprint(*c.Size))})
	}
	return string(text.JoinMembers(members))
}

// mediumOf returns data, which should be in base64, as a medium, or as a text if it is a
// text. Providers refuse a whole request because of data that is not of the type that
// it is said to be, or that is not in base64. So a type counts only if the data agrees.
func mediumOf(kind, declared, data, uri string) part {
	m := &medium{kind: kind, mime: plainType(declared), size: len(data)}
	decoded, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		decoded, err = base64.RawStdEncoding.DecodeString(data)
	}
	if err != nil || len(decoded) == 0 {
		return part{medium: m}
	}
	m.size = len(decoded)
	seen := plainType(http.DetectContentType(decoded))
	isText := strings.HasPrefix(seen, "text/") && utf8.Valid(decoded)
	if isText && (kind == "file" || m.mime == "image/svg+xml") {
		return part{text: result.ResourceText(uri, string(decoded))}
	}
	switch {
	case recognized(seen):
		m.mime = seen
	case recognized(m.mime):
		m.mime = "application/octet-stream" // it is not what it is said to be
	}
	m.data, m.name = data, path.Base(uri)
	if base64.StdEncoding.EncodedLen(len(decoded)) != len(data) { // with line breaks or without padding
		m.data = base64.StdEncoding.EncodeToString(decoded)
	}
	return part{medium: m}
}

// recognized reports whether data shows to be of a type.
func recognized(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf", "audio/wav":
		return true
	}
	return false
}

// plainType returns a MIME type in lower case, without parameters, under its usual name.
func plainType(mime string) string {
	mime, _, _ = strings.Cut(strings.ToLower(mime), ";")
	mime = strings.TrimSpace(mime)
	return cmp.Or(map[string]string{
		"image/jpg": "image/jpeg", "audio/wave": "audio/wav", "audio/x-wav": "audio/wav", "audio/vnd.wave": "audio/wav", "audio/mp3": "audio/mpeg",
	}[mime], mime)
}

// said returns the texts of parts and the structured content of r, unless the texts say
// it already.
func said(parts []part, r *mcp.CallToolResult) []part {
	raw, err := result.Structured(r)
	if err != nil {
		return append(parts, part{at: "structured content", medium: &medium{kind: "content"}})
	}
	if text.IsNull(raw) || !json.Valid(raw) {
		return parts
	}
	var texts []string
	for _, p := range parts {
		if p.medium == nil {
			texts = append(texts, p.text)
		}
	}
	if result.Says(texts, raw) {
		return parts
	}
	return append(parts, part{at: "structured content", text: string(text.Compact(raw))})
}
