package gateway

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
)

// wrapped begins URIs that name their server: mcphybrid://SERVER/URI. Like the names of
// tools and prompts, they mean the same whatever other servers list, and after a restart.
const wrapped = "mcphybrid://"

// uri returns what a client calls a URI, or a template of URIs, of a server. A single
// server's are as they are.
func (s scope) uri(from, uri string) string {
	if s.server != "" || s.only != "" && !strings.HasPrefix(uri, wrapped) {
		return uri
	}
	return wrapped + url.PathEscape(from) + "/" + uri
}

// named returns what a client means by a URI. The server is "" if the URI names none:
// then only one server may have it.
func (s scope) named(uri string) (from, own string) {
	if s.server != "" {
		return s.server, uri
	}
	if rest, ok := strings.CutPrefix(uri, wrapped); ok {
		if escaped, own, ok := strings.Cut(rest, "/"); ok {
			if from, err := url.PathUnescape(escaped); err == nil {
				return from, own
			}
		}
	}
	return "", uri
}

// ownURI returns the arguments of a call. If it reads a resource, by the tool for that or
// by one that calls it, they have the server and its own URI in place of the client's.
func (s scope) ownURI(name string, args json.RawMessage) json.RawMessage {
	var in struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		URI       string          `json:"uri"`
	}
	if json.Unmarshal(args, &in) != nil {
		return args
	}
	var changed any
	switch {
	case name == mcphybrid.ResourceReadToolName:
		from, own := s.named(in.URI)
		if from == "" {
			return args
		}
		changed = map[string]string{"server": from, "uri": own}
	case (name == mcphybrid.CallToolName || name == mcphybrid.ReadOnlyCallToolName) && in.Name == mcphybrid.ResourceReadToolName:
		inner := s.ownURI(in.Name, in.Arguments)
		if bytes.Equal(inner, in.Arguments) {
			return args
		}
		changed = map[string]any{"name": in.Name, "arguments": inner}
	default:
		return args
	}
	if own, err := json.Marshal(changed); err == nil {
		return own
	}
	return args
}

// Clients open or show these themselves, so that results have them as they are.
var clientSchemes = []string{"https://", "http://", "ui://"}

// relink returns contents of a server in which each URI that clients read names that
// server.
func (s scope) relink(from string, contents []mcp.Content) []mcp.Content {
	rename := func(uri string) string {
		if slices.ContainsFunc(clientSchemes, func(scheme string) bool { return strings.HasPrefix(uri, scheme) }) {
			return uri
		}
		return s.uri(from, uri)
	}
	list := make([]mcp.Content, len(contents))
	for i, c := range contents {
		switch has := c.(type) {
		case mcp.ResourceLink:
			has.URI = rename(has.URI)
			c = has
		case mcp.EmbeddedResource:
			has.Resource = renamed(has.Resource, rename)
			c = has
		}
		list[i] = c
	}
	return list
}

// renamed returns contents with another URI.
func renamed(c mcp.ResourceContents, rename func(string) string) mcp.ResourceContents {
	switch has := c.(type) {
	case mcp.TextResourceContents:
		has.URI = rename(has.URI)
		return has
	case mcp.BlobResourceContents:
		has.URI = rename(has.URI)
		return has
	}
	return c
}
