package result

import (
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// maxFailure is how many characters of an error people are told.
const maxFailure = 500

// Failure returns the beginning of what a tool answered, as one line, if that is an
// error, and else "".
func Failure(r *mcp.CallToolResult) string {
	if r == nil || !r.IsError {
		return ""
	}
	for _, c := range r.Content {
		plain, _ := Direct(c)
		said, _ := textOf(plain)
		if line := text.Line(said[:min(len(said), 8*maxFailure)], maxFailure); line != "" {
			return line
		}
	}
	return "an error without a text"
}
