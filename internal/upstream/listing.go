package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A listing collects the raw elements of tools/list results, page by page. mcp-go
// gets none of them: its types lose most keywords of a schema, one element that
// they can't hold fails the whole list, and its client keeps every tool that it
// ever saw.
type listing struct {
	limits   Limits
	elements []Element
	taskless bool                // the protocol has no tasks as we can execute them
	mirrors  bool                // the protocol sends some arguments as headers too
	mirrored map[string]mcp.Tool // the tools with such arguments; only their names and input schemas
	pages    int
	bytes    int // of all elements
}

// An Element is one tool of a tools/list result.
type Element struct {
	Raw     json.RawMessage // as the server sent it; nil if it is too large
	Problem error           // why it can't be used, or nil
}

type listingKey struct{}

// maxCursor is the greatest length of a page's cursor, in bytes. mcp-go keeps
// all cursors of a listing.
const maxCursor = 4 << 10

// take collects the tools of one result. It returns the result without them.
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
	for _, raw := range tools {
		if len(raw) > l.limits.MaxDefinition {
			l.elements = append(l.elements, Element{Problem: definitionTooLarge(len(raw), l.limits.MaxDefinition)})
			continue
		}
		if l.bytes += len(raw); l.bytes > l.limits.MaxListing {
			return nil, fmt.Errorf("its tools have more bytes than the limit of %d", l.limits.MaxListing)
		}
		problem := l.mirror(raw)
		if l.taskless && needsTask(raw) {
			problem = errNeedsTask
		}
		l.elements = append(l.elements, Element{Raw: raw, Problem: problem})
	}
	page["tools"] = json.RawMessage("[]")
	return json.Marshal(page)
}

var errNeedsTask = fmt.Errorf("it is executed as a task only, for which there is no way in protocol %s", mcp.ProtocolVersion20260728)

// needsTask reports whether a tool is executed as a task only.
func needsTask(raw json.RawMessage) bool {
	var in struct {
		Execution mcp.ToolExecution `json:"execution"`
	}
	return bytes.Contains(raw, []byte("taskSupport")) && json.Unmarshal(raw, &in) == nil && in.Execution.TaskSupport == mcp.TaskSupportRequired
}

// mirror notes a tool with arguments that must be sent as headers too. Clients must
// not use a tool that asks for headers in a wrong way.
func (l *listing) mirror(raw json.RawMessage) error {
	var in struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"inputSchema"`
	}
	if !l.mirrors || json.Unmarshal(raw, &in) != nil {
		return nil
	}
	tool := mcp.Tool{Name: in.Name, RawInputSchema: in.Schema}
	if mcp.ValidateParamHeaderAnnotations(&tool) != nil {
		return fmt.Errorf("the x-mcp-header annotations of %q are invalid", text.Line(in.Name, text.MaxName))
	}
	if _, ok := l.mirrored[in.Name]; !ok && len(mcp.ExtractParamHeaderBindings(&tool)) > 0 {
		if l.mirrored == nil {
			l.mirrored = make(map[string]mcp.Tool)
		}
		l.mirrored[in.Name] = tool
	}
	return nil
}

func definitionTooLarge(size, limit int) error {
	return fmt.Errorf("the definition has %d bytes, more than the limit of %d", size, limit)
}
