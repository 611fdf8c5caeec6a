package mcphybrid

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/request"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// makeTools in servertools.go makes the tools of a server, one for each definition that
// Options.Access permits.

// A BridgeTool is one tool of an MCP server as a callable Go value. It is
// immutable and may be used concurrently. Compare tools by name, not by pointer:
// a [Registry] may get several copies of one tool.
//
// A server can say in a tool's _meta how clients should offer it:
//
//	{"name": "edit_file", …, "_meta": {
//		"anthropic/alwaysLoad": true,
//		"anthropic/searchHint": "patch change",
//		"mcphybrid/needs": ["read_file"]}}
//
// The first asks for the tool to be inline: up to five such tools of a server rank
// before all others except pins, and count towards the limits on inline tools. The
// second has further words by which a search finds it, except with [RankerClassic]. Published clients understand
// these two as well. The third names other tools of the server that this one needs, by
// their own names, at most 32: see [Options.Needs].
type BridgeTool struct {
	name             string // registered
	number           int    // of the prefix with which it begins; unused if no catalog has the tool
	def              *definition
	owner            *owner            // the system or a user
	selects          string            // of [ServerConfig.ResultSelect], or ""
	through          caller            // calls a copy that is in a registry, or a tool that a saved state has and no catalog; else nil
	instructionWords *instructionWords // by its server; nil without instructions
	tokens           atomic.Int64      // of the definition, once counted
	exports          request.ExportCache
	matched          atomic.Pointer[matched]
}

// Name returns the registered name, such as mcp_github__create_issue. It is safe for
// every provider, and unique among the tools of the system and among those of a user:
// in sessions of the user, a tool of the user hides that of the system with its name.
func (t *BridgeTool) Name() string { return t.name }

// OriginalName returns the tool's name on its server.
func (t *BridgeTool) OriginalName() string { return t.def.Own }

// Server returns the [ServerConfig] name of the tool's server.
func (t *BridgeTool) Server() string { return t.def.Server }

// Title returns the display name for people, or "" if the server sent none.
func (t *BridgeTool) Title() string { return t.def.Title }

// Description returns the description exactly as the server sent it. Don't trust
// its content, its length or its line breaks.
func (t *BridgeTool) Description() string { return t.def.Description }

// InputSchema returns the JSON Schema of the arguments as compact JSON. It lacks what
// says nothing about them: definitions that nothing refers to, and a $schema that makes
// no difference. [BridgeTool.Raw] has all. It is shared and must not be changed.
func (t *BridgeTool) InputSchema() json.RawMessage { return t.def.Input() }

// OutputSchema returns the JSON Schema of the structured content, as InputSchema does,
// or nil if the server sent none, or models get a part: see [ServerConfig.ResultSelect]. It is also
// nil if some validators refuse the schema, since that may cost a client the whole list of tools: it
// must be valid in drafts 7 and 2020-12, refer to no other document, and have patterns that Go
// and JavaScript read alike. [BridgeTool.Raw] has it. It is shared and must not be changed.
func (t *BridgeTool) OutputSchema() json.RawMessage {
	if t.selects != "" {
		return nil
	}
	return t.def.Output()
}

// AppURI returns the URI, ui://…, of the page that a host shows for results of the tool
// (MCP Apps), or "" if its server sent none. [Session.ReadResource] reads it.
func (t *BridgeTool) AppURI() string { return t.def.Apps.page }

// Annotations returns the server's hints about the tool's behaviour.
func (t *BridgeTool) Annotations() mcp.ToolAnnotation { return t.def.Annotations }

// Raw returns the tool's element of the tools/list result, byte for byte. It
// is shared and must not be changed.
func (t *BridgeTool) Raw() json.RawMessage { return t.def.Raw }

// Call runs the tool on its server, within the server's call timeout. It removes
// a null for an optional parameter that can't be null. It does not change or
// check anything else in args; empty args mean {}. An error means that the
// server gave no result. If the tool itself fails, Call returns a result with
// IsError and no error.
//
// For a tool from a [Registry], Call does what [Session.Call] does.
func (t *BridgeTool) Call(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	if t.through != nil {
		return t.through(ctx, t.name, args)
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	result, err := t.def.call(ctx, schema.DropNulls(args, t.def.InputSchema))
	if err != nil {
		return nil, upstream.About(err, "tool", t.def.Own, t.def.Server)
	}
	return result, nil
}

// is reports whether both are the same tool of the same server, in whatever version.
func (t *BridgeTool) is(other *BridgeTool) bool {
	return t.owner == other.owner && t.def.Server == other.def.Server && t.def.Own == other.def.Own
}

func (t *BridgeTool) copyFor(through caller) Tool {
	return &BridgeTool{name: t.name, def: t.def, owner: t.owner, selects: t.selects, through: through}
}

// A caller calls a tool by its registered name, as [Session.Call] does.
type caller func(ctx context.Context, name string, args any) (*mcp.CallToolResult, error)

// A matched is the part of a policy that matches a tool.
type matched struct {
	policy any      // a *policy
	rules  []uint16 // ascending
	pinned bool
}

// namesOf returns the names of tools in the same order.
func namesOf[T Tool](tools []T) []string {
	list := make([]string, len(tools))
	for i, t := range tools {
		list[i] = t.Name()
	}
	return list
}
