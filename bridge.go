package mcphybrid

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/mcphybrid/mcphybrid/search"
)

// A BridgeTool is one tool of an MCP server as a callable Go value. It is
// immutable and may be used concurrently. Two of them are the same tool if
// their names are equal; a [Registry] may be given several copies of one.
type BridgeTool struct {
	name    string // registered
	def     *definition
	owner   *owner       // whose it is
	through caller       // of a copy in a registry: how it is called; else nil
	tokens  atomic.Int64 // of the definition, once counted
	exports sync.Map     // of ExportedTool, by exportKey, once made
	matched atomic.Pointer[matched]
}

// A definition is one tool as its server described it, checked but not
// changed. All strings but server are the server's, so not to be trusted.
type definition struct {
	server      string
	name        string // the server's own
	registered  string // the name it has unless another tool took it before
	title       string
	description string
	input       json.RawMessage // a JSON object, compact
	output      json.RawMessage // nil if there is none
	annotations mcp.ToolAnnotation
	raw         json.RawMessage   // the whole element of the tools/list result
	noNull      []string          // the optional parameters that can't be null
	arguments   *schema.Validator // of input
	needs       []string          // own names of tools of the same server, by raw; see NeedsKey
	badNeeds    error             // why they can't be told, or nil
	always      bool              // the server wants it inline; see AlwaysLoadKey
	document    search.Document   // what it is found by
	sum         [sha256.Size]byte // of raw
	canonical   func() string     // CanonicalHash of raw, computed once

	call func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error)
}

// Name returns the registered name: unique in the Manager, safe for every
// provider.
func (t *BridgeTool) Name() string { return t.name }

// OriginalName returns the name that the tool has at its server.
func (t *BridgeTool) OriginalName() string { return t.def.name }

// Server returns the name of the tool's server in its [ServerConfig].
func (t *BridgeTool) Server() string { return t.def.server }

// Title returns the name for people, or "" if the server gave none.
func (t *BridgeTool) Title() string { return t.def.title }

// Description returns the server's description as it sent it. Its lines,
// length and content are not to be trusted.
func (t *BridgeTool) Description() string { return t.def.description }

// InputSchema returns the JSON Schema of the arguments with every keyword
// that the server sent, in compact form. It is shared and must not be changed.
func (t *BridgeTool) InputSchema() json.RawMessage { return t.def.input }

// OutputSchema returns the JSON Schema of the structured content, or nil if
// the server gave none. It is shared and must not be changed.
func (t *BridgeTool) OutputSchema() json.RawMessage { return t.def.output }

// Annotations returns the server's hints about the tool's behaviour.
func (t *BridgeTool) Annotations() mcp.ToolAnnotation { return t.def.annotations }

// Raw returns the tool's element of the tools/list result, byte for byte. It
// is shared and must not be changed.
func (t *BridgeTool) Raw() json.RawMessage { return t.def.raw }

// Call runs the tool at its server, within the server's call timeout. A null
// for an optional parameter that can't be null is left out; nothing else in
// args is changed or checked. An error means that the server gave no result; a
// result with IsError is the tool's own and comes without an error.
//
// What a [Registry] holds is called as by [Session.Call].
func (t *BridgeTool) Call(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	if t.through != nil {
		return t.through(ctx, t.name, args)
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	result, err := t.def.call(ctx, schema.DropNulls(args, t.def.noNull))
	if err != nil {
		return nil, fmt.Errorf("mcphybrid: tool %q of server %q: %w", t.def.name, t.def.server, err)
	}
	return result, nil
}

// repeatable reports whether the tool may be called twice instead of once, by
// what its server says.
func (d *definition) repeatable() bool {
	is := func(hint *bool) bool { return hint != nil && *hint }
	return is(d.annotations.IdempotentHint) || is(d.annotations.ReadOnlyHint)
}

func (t *BridgeTool) copyFor(through caller) Tool {
	return &BridgeTool{name: t.name, def: t.def, owner: t.owner, through: through}
}

// A caller calls a tool by its registered name, as [Session.Call] does.
type caller func(ctx context.Context, name string, args any) (*mcp.CallToolResult, error)

// An owner says whose tools they are: the system's or one user's. It is told
// from others by its address.
type owner struct {
	user string // "" for the system
}

// A matched is what of a policy matches a tool.
type matched struct {
	policy any      // a *policy
	rules  []uint16 // ascending
	pinned bool
}

// parseDefinition checks one element of a tools/list result. Only what makes
// a tool unusable is an error: no name, or an input schema that is not an
// object. A tool without an input schema takes no arguments.
func parseDefinition(server string, raw json.RawMessage, maxBytes int) (*definition, error) {
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("the definition has %d bytes, more than the limit of %d", len(raw), maxBytes)
	}
	var in struct {
		Name        string          `json:"name"`
		Title       json.RawMessage `json:"title"`
		Description string          `json:"description"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema"`
		Annotations json.RawMessage `json:"annotations"`
		Meta        json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, text.JSONError(raw, err)
	}
	if in.Name == "" {
		return nil, errors.New("the name is missing")
	}
	if text.IsNull(in.Input) {
		in.Input = json.RawMessage(`{"type":"object"}`)
	}
	if in.Input[0] != '{' {
		return nil, fmt.Errorf("the inputSchema of %q is not a JSON object", text.Line(in.Name, text.MaxName))
	}
	d := &definition{
		server:      server,
		name:        in.Name,
		description: in.Description,
		input:       text.Compact(in.Input),
		raw:         raw,
		noNull:      schema.NoNull(in.Input),
		arguments:   schema.NewValidator(in.Input),
		sum:         sha256.Sum256(raw),
		canonical:   sync.OnceValue(func() string { return text.CanonicalHash(raw) }),
	}
	if !text.IsNull(in.Output) && in.Output[0] == '{' {
		d.output = text.Compact(in.Output)
	}
	// A hint of the wrong type is no hint.
	_ = json.Unmarshal(in.Title, &d.title)
	if json.Unmarshal(in.Annotations, &d.annotations) != nil {
		d.annotations = mcp.ToolAnnotation{} // not a half-read one, whose hints would say false
	}
	d.needs, d.badNeeds = parseNeeds(in.Meta)
	d.document = search.Document{Server: d.server, Name: d.name, Title: d.title, Description: d.description, InputSchema: d.input}
	d.always, d.document.Hints = parseServerHints(in.Meta)
	return d, nil
}

// parseDefinitions checks the elements of a tools/list result. It returns the
// usable tools that the configuration takes, in their order, and an error for
// each of the others that is malformed or repeats a name.
func parseDefinitions(ctx context.Context, cfg ServerConfig, elements []upstream.Element, maxBytes int) (defs []*definition, problems []error, err error) {
	seen := make(map[string]bool)
	for i, e := range elements {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		var d *definition
		err := e.Problem
		if err == nil {
			d, err = parseDefinition(cfg.Name, e.Raw, maxBytes)
		}
		if err == nil && seen[d.name] {
			err = fmt.Errorf("another tool is named %q too; the first is kept", text.Line(d.name, text.MaxName))
		}
		switch {
		case err != nil:
			problems = append(problems, text.Bounded(fmt.Errorf("mcphybrid: server %q: tool %d: %w", cfg.Name, i, err)))
		case cfg.Tools.permits(d.name):
			seen[d.name] = true
			d.registered = registeredName(cfg.Name, cfg.Prefix, d.name)
			defs = append(defs, d)
		}
	}
	return defs, problems, nil
}

// The members of a tool's _meta by which servers say how it should be offered,
// as published clients understand them:
//
//	{"name": "open_ticket", …, "_meta": {"anthropic/alwaysLoad": true, "anthropic/searchHint": "bug incident"}}
const (
	// AlwaysLoadKey says that the tool should be inline. Five such tools of a
	// server come before other tools, pins aside, within the limits on these.
	AlwaysLoadKey = "anthropic/alwaysLoad"

	// SearchHintKey has further words to find the tool by.
	SearchHintKey = "anthropic/searchHint"
)

// maxSearchHint is how many bytes of a server's hint are indexed.
const maxSearchHint = 500

// parseServerHints returns what is said in a tool's _meta. A hint of the wrong
// type is no hint.
func parseServerHints(meta json.RawMessage) (always bool, search string) {
	if text.IsNull(meta) {
		return false, ""
	}
	var in struct {
		Always json.RawMessage `json:"anthropic/alwaysLoad"`
		Search json.RawMessage `json:"anthropic/searchHint"`
	}
	if json.Unmarshal(meta, &in) != nil {
		return false, ""
	}
	_ = json.Unmarshal(in.Always, &always)
	_ = json.Unmarshal(in.Search, &search)
	return always, strings.ToValidUTF8(search[:min(len(search), maxSearchHint)], "")
}

// NeedsKey is the member of a tool's _meta by which its server says which of
// its tools this one needs, by their own names:
//
//	{"name": "edit_file", …, "_meta": {"mcphybrid/needs": ["read_file"]}}
const NeedsKey = "mcphybrid/needs"

// maxNeeds is how many tools one brings along, and how many its server may
// name: a server must not have half a catalog activated by one of its tools.
const maxNeeds = 32

// parseNeeds returns the names under [NeedsKey] in a tool's _meta.
func parseNeeds(meta json.RawMessage) ([]string, error) {
	if text.IsNull(meta) {
		return nil, nil
	}
	var in struct {
		Needs []string `json:"mcphybrid/needs"`
	}
	if err := json.Unmarshal(meta, &in); err != nil {
		return nil, text.JSONError(meta, err)
	}
	if len(in.Needs) > maxNeeds {
		return nil, fmt.Errorf("%q has %d names, more than the limit of %d", NeedsKey, len(in.Needs), maxNeeds)
	}
	return in.Needs, nil
}
