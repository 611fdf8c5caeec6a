package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// textOf returns the text of a tool's result for the model: its texts, one per
// line, and a note for each other content. A result with only structured
// content becomes JSON.
func textOf(r *mcp.CallToolResult) string {
	var parts []string
	for _, content := range r.Content {
		switch c := content.(type) {
		case mcp.TextContent:
			parts = append(parts, c.Text)
		case mcp.ImageContent:
			parts = append(parts, fmt.Sprintf("[an image, %s, which can't be shown here]", c.MIMEType))
		case mcp.AudioContent:
			parts = append(parts, fmt.Sprintf("[audio, %s, which can't be played here]", c.MIMEType))
		case mcp.ResourceLink:
			parts = append(parts, fmt.Sprintf("[a resource: %s]", c.URI))
		case mcp.EmbeddedResource:
			if res, ok := c.Resource.(mcp.TextResourceContents); ok {
				parts = append(parts, res.Text)
			} else {
				parts = append(parts, "[a resource that is no text]")
			}
		default:
			parts = append(parts, "[content of an unknown kind]")
		}
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		if data, err := json.Marshal(r.StructuredContent); err == nil {
			return string(data)
		}
	}
	return strings.Join(parts, "\n")
}
