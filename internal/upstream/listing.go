package upstream

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A listing collects the raw elements of tools/list results, page by page,
// before mcp-go decodes them. The types of mcp-go lose most keywords of a schema,
// and one element that they can't hold fails the whole list.
type listing struct {
	limits   Limits
	elements []Element
	pages    int
	bytes    int // of all elements
}

// An Element is one tool of a tools/list result.
type Element struct {
	Raw     json.RawMessage // as the server sent it; nil if it is too large
	Problem error           // why it can't be used, or nil
	decoded string          // its name if mcp-go can decode it, else ""
}

type listingKey struct{}

// maxCursor is the greatest length of a page's cursor, in bytes. mcp-go keeps
// all cursors of a listing.
const maxCursor = 4 << 10

// take collects the tools of one result. It returns the result without the tools
// that mcp-go can't decode.
func (l *listing) take(result json.RawMessage) (json.RawMessage, error) {
	var page map[string]json.RawMessage
	if err := json.Unmarshal(result, &page); err != nil {
		return nil, fmt.Errorf("tools/list result: %w", text.JSONError(result, err))
	}
	var tools []json.RawMessage
	if err := json.Unmarshal(page["tools"], &tools); err != nil {
		return nil, errors.New(`tools/list result: "tools" is not a list`)
	}
	if len(l.elements)+len(tools) > l.limits.MaxTools {
		return nil, fmt.Errorf("it lists more tools than the limit of %d", l.limits.MaxTools)
	}
	if l.pages++; l.pages > l.limits.MaxPages { // pages may be empty
		return nil, fmt.Errorf("it lists its tools on more pages than the limit of %d", l.limits.MaxPages)
	}
	if len(page["nextCursor"]) > maxCursor {
		return nil, fmt.Errorf("the cursor of a page has more bytes than the limit of %d", maxCursor)
	}
	decodable := []json.RawMessage{}
	for _, raw := range tools {
		if len(raw) > l.limits.MaxDefinition {
			l.elements = append(l.elements, Element{Problem: definitionTooLarge(len(raw), l.limits.MaxDefinition)})
			continue
		}
		if l.bytes += len(raw); l.bytes > l.limits.MaxListing {
			return nil, fmt.Errorf("its tools have more bytes than the limit of %d", l.limits.MaxListing)
		}
		e := Element{Raw: raw}
		var t mcp.Tool
		if json.Unmarshal(raw, &t) == nil {
			decodable = append(decodable, raw)
			e.decoded = t.Name
		}
		l.elements = append(l.elements, e)
	}
	page["tools"], _ = json.Marshal(decodable) // raw values always marshal
	return json.Marshal(page)
}

func definitionTooLarge(size, limit int) error {
	return fmt.Errorf("the definition has %d bytes, more than the limit of %d", size, limit)
}
