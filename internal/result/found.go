package result

import "github.com/mark3labs/mcp-go/mcp"

// A found has the names of the deferred tools that a search found, in the _meta of its
// answer. No server can send one: it is a type of ours.
type found []string

const foundKey = "mcphybrid/found"

// SetFound notes in r, the answer to a search, the names of the deferred tools that it
// found.
func SetFound(r *mcp.CallToolResult, names []string) {
	r.Meta = &mcp.Meta{AdditionalFields: map[string]any{foundKey: found(names)}}
}

// Found returns what SetFound noted in r, or nil.
func Found(r *mcp.CallToolResult) []string {
	if r.Meta == nil {
		return nil
	}
	names, _ := r.Meta.AdditionalFields[foundKey].(found)
	return names
}
