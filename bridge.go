package mcphybrid

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/trust"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/mcphybrid/mcphybrid/search"
)

// A BridgeTool is one tool of an MCP server as a callable Go value. It is
// immutable and may be used concurrently. Compare tools by name, not by pointer:
// a [Registry] may get several copies of one tool.
type BridgeTool struct {
	name    string // registered
	def     *definition
	owner   *owner       // the system or a user
	through caller       // calls a copy that is in a registry; else nil
	tokens  atomic.Int64 // of the definition, once counted
	exports sync.Map     // ExportedTool by exportKey, once made
	matched atomic.Pointer[matched]
}

// A definition is one tool as its server described it, checked but not changed.
// Don't trust its strings, except server: they come from the server.
type definition struct {
	server      string
	name        string // the server's own
	registered  string // the registered name
	wanted      string // the registered name without other servers, if it differs
	title       string
	description string
	input       json.RawMessage // a JSON object, compact
	output      json.RawMessage // nil if there is none
	annotations mcp.ToolAnnotation
	raw         json.RawMessage   // the whole element of the tools/list result
	noNull      []string          // the optional parameters that can't be null
	arguments   *schema.Validator // of input
	needs       []string          // own names of tools of the same server, from raw; see NeedsKey
	badNeeds    error             // why needs could not be read, or nil
	always      bool              // the server wants it inline; see AlwaysLoadKey
	task        bool              // it must be called as a task
	document    search.Document   // indexed for search
	sum         [sha256.Size]byte // of raw
	canonical   func() string     // returns CanonicalHash of raw, computed once
	trusted     trust.Definition  // what must not change unnoticed
	weights     *weights          // set before the definition is published; nil if the host counts nothing

	call func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error)
}

// weights are the tokens of a definition under a name, most likely its own. The
// host's counter counts them before anyone decides by them, since no lock may be held
// meanwhile.
type weights struct {
	name       string
	definition int
	lines      []int // in the sections, by lineForm
}

// Name returns the registered name, such as mcp_github__create_issue. It is
// unique in the Manager and safe for every provider.
func (t *BridgeTool) Name() string { return t.name }

// OriginalName returns the tool's name on its server.
func (t *BridgeTool) OriginalName() string { return t.def.name }

// Server returns the [ServerConfig] name of the tool's server.
func (t *BridgeTool) Server() string { return t.def.server }

// Title returns the display name for people, or "" if the server sent none.
func (t *BridgeTool) Title() string { return t.def.title }

// Description returns the description exactly as the server sent it. Don't trust
// its content, its length or its line breaks.
func (t *BridgeTool) Description() string { return t.def.description }

// InputSchema returns the JSON Schema of the arguments as compact JSON, with
// every keyword that the server sent. It is shared and must not be changed.
func (t *BridgeTool) InputSchema() json.RawMessage { return t.def.input }

// OutputSchema returns the JSON Schema of the structured content, or nil if the
// server sent none. It is shared and must not be changed.
func (t *BridgeTool) OutputSchema() json.RawMessage { return t.def.output }

// Annotations returns the server's hints about the tool's behaviour.
func (t *BridgeTool) Annotations() mcp.ToolAnnotation { return t.def.annotations }

// Raw returns the tool's element of the tools/list result, byte for byte. It
// is shared and must not be changed.
func (t *BridgeTool) Raw() json.RawMessage { return t.def.raw }

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
	result, err := t.def.call(ctx, schema.DropNulls(args, t.def.noNull))
	if err != nil {
		return nil, fmt.Errorf("mcphybrid: tool %q of server %q: %w", t.def.name, t.def.server, err)
	}
	return result, nil
}

// repeatable reports whether a second call of the tool does no harm, according to
// its server's hints.
func (d *definition) repeatable() bool {
	is := func(hint *bool) bool { return hint != nil && *hint }
	return is(d.annotations.IdempotentHint) || is(d.annotations.ReadOnlyHint)
}

// is reports whether both are the same tool of the same server, in whatever version.
func (t *BridgeTool) is(other *BridgeTool) bool {
	return t.owner == other.owner && t.def.server == other.def.server && t.def.name == other.def.name
}

func (t *BridgeTool) copyFor(through caller) Tool {
	return &BridgeTool{name: t.name, def: t.def, owner: t.owner, through: through}
}

// A caller calls a tool by its registered name, as [Session.Call] does.
type caller func(ctx context.Context, name string, args any) (*mcp.CallToolResult, error)

// An owner is who tools belong to: the system or one user. Owners are compared by
// address.
type owner struct {
	user string // "" for the system
}

// An origin is where tools come from: a server, or a group without a connection.
type origin struct {
	of     *owner
	server string
}

func (t *BridgeTool) origin() origin { return origin{t.owner, t.def.server} }

// A matched is the part of a policy that matches a tool.
type matched struct {
	policy any      // a *policy
	rules  []uint16 // ascending
	pinned bool
}

// parseDefinition checks one element of a tools/list result. It fails only if the
// tool is unusable: the definition is too large or not JSON, has no name, has an
// input schema that is not an object, or has one of the members that we know twice:
// then what we judge would not be what others read. A tool without an input schema gets
// {"type":"object"}.
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
		Execution   json.RawMessage `json:"execution"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, text.JSONError(raw, err)
	}
	if in.Name == "" {
		return nil, errors.New("the name is missing")
	}
	member := text.Repeated(raw, "name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta")
	if member = cmp.Or(member, text.Repeated(in.Annotations, "title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")); member != "" {
		return nil, fmt.Errorf("%q has the member %q more than once", text.Line(in.Name, text.MaxName), member)
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
	// We ignore a hint of the wrong type.
	_ = json.Unmarshal(in.Title, &d.title)
	if json.Unmarshal(in.Annotations, &d.annotations) != nil {
		d.annotations = mcp.ToolAnnotation{} // a half-read one would have false hints
	}
	var execution mcp.ToolExecution
	d.task = json.Unmarshal(in.Execution, &execution) == nil && execution.TaskSupport == mcp.TaskSupportRequired
	d.needs, d.badNeeds = parseNeeds(in.Meta)
	d.document = search.Document{Server: d.server, Name: d.name, Title: d.title, Description: d.description, InputSchema: d.input}
	d.always, d.document.Hints = parseServerHints(in.Meta)
	d.trusted = trust.Definition{Name: d.name, Sum: d.sum, Hash: sync.OnceValue(d.trustHash)}
	return d, nil
}

// parseDefinitions checks the elements of a tools/list result and names the tools.
// It returns the usable tools that the configuration permits, in their order.
// problems has an error for each element that is malformed or repeats a name. ignored
// has what patterns see of the tools that the configuration does not permit. err is
// that of ctx.
func (src *listing) parseDefinitions(ctx context.Context, elements []upstream.Element, book *names.Book, maxBytes int) (defs []*definition, problems []error, ignored []rules.Tool, err error) {
	seen := make(map[string]bool)
	for i, e := range elements {
		if err := ctx.Err(); err != nil {
			return nil, nil, nil, err
		}
		var d *definition
		err := e.Problem
		if err == nil {
			d, err = parseDefinition(src.name, e.Raw, maxBytes)
		}
		if err == nil && seen[d.name] {
			err = fmt.Errorf("another tool is named %q too; the first is kept", text.Line(d.name, text.MaxName))
		}
		if err == nil {
			err = src.nameTool(book, d)
		}
		if err == nil && !src.tools.permitsOwn(d.names()) {
			ignored = append(ignored, d.names())
			continue
		}
		if err != nil {
			problems = append(problems, text.Bounded(fmt.Errorf("mcphybrid: server %q: tool %d: %w", src.name, i, err)))
			continue
		}
		seen[d.name] = true
		defs = append(defs, d)
	}
	return defs, problems, ignored, nil
}

// A server can set these members of a tool's _meta to say how clients should
// offer the tool. Published clients understand them too:
//
//	{"name": "open_ticket", …, "_meta": {"anthropic/alwaysLoad": true, "anthropic/searchHint": "bug incident"}}
const (
	// AlwaysLoadKey, if true, asks for the tool to be inline. Up to five such
	// tools of a server rank before all other tools except pins. They count
	// towards the limits on inline tools.
	AlwaysLoadKey = "anthropic/alwaysLoad"

	// SearchHintKey holds further words by which search finds the tool.
	SearchHintKey = "anthropic/searchHint"
)

// maxSearchHint is how many bytes of a server's hint we index.
const maxSearchHint = 500

// parseServerHints returns the hints in a tool's _meta. It ignores a hint of the
// wrong type.
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

// NeedsKey is a member of a tool's _meta. With it a server lists which of its
// other tools this one needs, by their own names, at most 32:
//
//	{"name": "edit_file", …, "_meta": {"mcphybrid/needs": ["read_file"]}}
const NeedsKey = "mcphybrid/needs"

// maxNeeds is how many needed tools are activated with a tool, and how many its
// server may name. One tool of a server must not activate half the catalog.
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
