package mcphybrid

import (
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
)

// newDisk returns a server that reads every file, and lists one of them.
func newDisk() *mcpserver.MCPServer {
	s := mcpserver.NewMCPServer("disk", "1", mcpserver.WithResourceCapabilities(false, true))
	s.AddResources(textResource("file:///pub/held%20back", "held back", ""), textResource("file:///pub/plain", "plain", ""))
	s.AddResourceTemplates(mcpserver.ServerResourceTemplate{Template: mcp.NewResourceTemplate("file:///{+path}", "file"), Handler: readText})
	return s
}

// What a server may take for a forbidden URI is forbidden, in whatever order it reads
// queries, percent signs and dot segments.
func TestAccessIsNotEvadedBySpelling(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "disk", InProcess: newDisk()}}})
	deny := m.NewSession(&SessionOptions{Access: Access{Deny: []string{"disk/file:///etc/*", "disk/file:///pub/secret"}}})
	allow := m.NewSession(&SessionOptions{Access: Access{Allow: []string{"disk/file:///pub/*", "disk/file:///{+path}"}}})
	for _, uri := range []string{
		"file:///%65tc/passwd?x=/../../../pub/x", "file:///%65tc/passwd#/../../../pub/x", "file:///%65tc/%zz/../passwd", "file:///%65tc/passwd?%",
		"file:///pub/%zz/%2e%2e/%2e%2e/etc/passwd", "file:///pub/%2e%2e/etc/passwd?/../../pub/x", "file:///pub/x?/../../etc/passwd", "file:///%65tc//../passwd", "file:///%65tc/x%2fy/../passwd",
	} {
		_, err := deny.ReadResource(t.Context(), "disk", uri)
		assert.ErrorIs(t, err, ErrNotPermitted, uri)
		_, err = allow.ReadResource(t.Context(), "disk", uri)
		assert.ErrorIs(t, err, ErrNotPermitted, uri)
	}
	for _, uri := range []string{"file:///pub/%73ecret", "file:///pub/x%2fy/../secret", "file:///pub/%73/x%2f%2fy/%2e%2e/../secret"} {
		_, err := deny.ReadResource(t.Context(), "disk", uri)
		assert.ErrorIs(t, err, ErrNotPermitted, uri)
	}
	for _, uri := range []string{"file:///pub/a%20b", "file:///pub/x?y=/a/../b", "file:///pub/x/#y"} {
		readBy(t, deny, "disk", uri)
		readBy(t, allow, "disk", uri)
	}
}

// What a list says of a resource holds for all spellings of its URI.
func TestListedResourceIsNotEvadedBySpelling(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	m, _ := newTestManager(t, &Options{Trust: TrustQuarantine, Servers: []ServerConfig{{Name: "disk", InProcess: disk}}})
	s := m.NewSession(&SessionOptions{Access: Access{Deny: []string{"held back"}}})
	for _, uri := range []string{"file:///pub/held%20back", "file:///pub/%68eld%20back", "file:///pub/./held%20back", "file:///pub//held%20back"} {
		_, err := s.ReadResource(t.Context(), "disk", uri)
		assert.Error(t, err, uri)
	}
	readBy(t, s, "disk", "file:///pub/%70lain")
	readBy(t, s, "disk", "file:///pub/other")
	disk.AddResources(textResource("file:///pub/plain", "plain", "Now evil"))
	soon(t, func() bool { return len(changedTools(m)) == 1 })
	for _, uri := range []string{"file:///pub/plain", "file:///pub/%70lain", "file:///pub/./plain"} {
		_, err := s.ReadResource(t.Context(), "disk", uri)
		assert.ErrorIs(t, err, ErrQuarantined, uri)
	}
}
