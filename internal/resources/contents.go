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

// A session remembers the last maxLinks links of a server, of the last maxPlaces servers
// that linked.
const (
	maxLinks  = 100
	maxPlaces = 100
)

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

// Links are the resources to which results linked, by where these came from. So no
// server pushes out another's. They are never changed, and nil is none.
type Links struct {
	by []linked // by place; the one that linked last is the last
}

type linked struct {
	from Place
	uris []string // each once; the last one that was linked to is the last
}

// With returns l with links to uris.
func (l *Links) With(from Place, uris []string) *Links {
	var by []linked
	last := linked{from: from}
	if l != nil {
		by = slices.Clone(l.by)
	}
	if i := slices.IndexFunc(by, func(k linked) bool { return k.from == from }); i >= 0 {
		last.uris = slices.Clone(by[i].uris)
		by = slices.Delete(by, i, i+1)
	}
	for _, uri := range uris {
		last.uris = append(slices.DeleteFunc(last.uris, func(known string) bool { return known == uri }), uri)
	}
	last.uris = last.uris[max(0, len(last.uris)-maxLinks):]
	by = append(by, last)
	return &Links{by[max(0, len(by)-maxPlaces):]}
}

// To returns from where there are links to uri; the one that linked last is the last.
func (l *Links) To(uri string) (list []Place) {
	if l == nil {
		return nil
	}
	for _, k := range l.by {
		if slices.Contains(k.uris, uri) {
			list = append(list, k.from)
		}
	}
	return list
}
