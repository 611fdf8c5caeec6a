package resources

import (
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// Result returns what was read as the result of a tool: texts as texts, images as
// images, and all else as a resource.
func Result(r *mcp.ReadResourceResult) *mcp.CallToolResult {
	result := &mcp.CallToolResult{Content: []mcp.Content{}}
	for _, c := range r.Contents {
		var content mcp.Content = mcp.NewEmbeddedResource(c)
		switch c := c.(type) {
		case mcp.TextResourceContents:
			content = mcp.NewTextContent(c.Text)
		case mcp.BlobResourceContents:
			if kind, _, _ := strings.Cut(c.MIMEType, "/"); strings.EqualFold(kind, "image") {
				content = mcp.NewImageContent(c.Blob, c.MIMEType)
			}
		}
		result.Content = append(result.Content, content)
	}
	return result
}

// maxLinks is how many links a session remembers.
const maxLinks = 100

// Linked returns the URIs to which contents link, the last ones, or nil.
func Linked(contents []mcp.Content) (uris []string) {
	for _, c := range slices.Backward(contents) {
		r, ok := c.(mcp.ResourceLink)
		if p, pointed := c.(*mcp.ResourceLink); pointed && p != nil {
			r, ok = *p, true
		}
		if ok && r.URI != "" && checkURI(r.URI) == nil && len(uris) < maxLinks {
			uris = append(uris, r.URI)
		}
	}
	slices.Reverse(uris)
	return uris
}

// Links are the resources to which results from somewhere linked, the last ones. They
// are never changed, and nil is none.
type Links struct {
	list []link // oldest first
}

type link struct {
	from Place
	uri  string
}

// With returns l with links to uris.
func (l *Links) With(from Place, uris []string) *Links {
	var list []link
	if l != nil {
		list = slices.Clone(l.list)
	}
	for _, uri := range uris {
		if k := (link{from, uri}); !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	return &Links{list[max(0, len(list)-maxLinks):]}
}

// To returns from where there are links to uri, oldest first.
func (l *Links) To(uri string) (list []Place) {
	if l == nil {
		return nil
	}
	for _, k := range l.list {
		if k.uri == uri {
			list = append(list, k.from)
		}
	}
	return list
}
