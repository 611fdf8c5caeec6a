package mcphybrid

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/trust"
	"github.com/mcphybrid/mcphybrid/search"
)

// A definition is one tool as its server described it, checked but not changed, under
// its registered name. It does not change once it is published. Don't trust its strings,
// except Server and the names: they come from the server.
type definition struct {
	toolDocument        // Server, Name (the server's own, as Own), Title, Description, Hints, and InputSchema, a compact JSON object
	Own          string // the server's own name
	Annotations  mcp.ToolAnnotation
	Raw          json.RawMessage  // the whole element of the tools/list result
	raw          *rawDefinition   // holds Raw, which others may share; nil if none do
	Needs        []string         // own names of tools of the same server
	BadNeeds     error            // why Needs could not be read, or nil
	Always       bool             // the server wants it inline
	Task         bool             // it must be called as a task
	output       atomic.Uint32    // what Output knows of the output schema
	Apps         appMeta          // who may call it
	Trusted      trust.Definition // what must not change unnoticed

	canonical atomic.Pointer[string] // see Canonical
	scanned   atomic.Pointer[marked] // see marks

	registered string    // the registered name
	wanted     string    // the registered name without other servers, if it differs
	cost       *toolCost // set before the definition is published; nil if the host counts nothing

	call func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) // set by bindCalls in receive.go, or by addtools.go
}

// A toolDocument is what a search finds a tool by, without the host's hints and the server's instructions.
type toolDocument = search.Document

// Document returns the searchable text of the tool, without the host's hints. It is shared
// and must not be changed.
func (d *definition) Document() *search.Document { return &d.toolDocument }

// Input returns the input schema without what says nothing about arguments: see
// [schema.Prune].
func (d *definition) Input() json.RawMessage { return schema.Prune(d.InputSchema) }

// What is known of an output schema.
const (
	outputUnread = iota
	outputPortable
	outputUnfit // there is none, or not each client can be expected to read it
)

// Output returns the output schema as Input does, or nil if there is none, or it is not
// portable: see [schema.IsPortable]. Few ask for it, so it is looked up in Raw.
func (d *definition) Output() json.RawMessage {
	if d.output.Load() == outputUnfit {
		return nil
	}
	values, _ := text.Fields(d.Raw, "outputSchema")
	if text.IsNull(values[0]) || values[0][0] != '{' {
		d.output.Store(outputUnfit)
		return nil
	}
	pruned := schema.Prune(text.Compact(values[0]))
	if d.output.Load() == outputUnread {
		if !schema.IsPortable(pruned) {
			d.output.Store(outputUnfit)
			return nil
		}
		d.output.Store(outputPortable)
	}
	return pruned
}

// ReadOnly reports whether the tool only reads, according to its server's hints. Then the
// hint that it destroys something means nothing, says the protocol; mcp-go's is true
// unless a server says otherwise.
func (d *definition) ReadOnly() bool { return isTrue(d.Annotations.ReadOnlyHint) }

// Repeatable reports whether a second call of the tool does no harm, according to
// its server's hints.
func (d *definition) Repeatable() bool { return isTrue(d.Annotations.IdempotentHint) || d.ReadOnly() }

func isTrue(hint *bool) bool { return hint != nil && *hint }

// parseDefinition checks one element of a tools/list result. It fails only if the tool is
// unusable: the definition is too large or not JSON, has no name, has an input schema
// that is not an object, a description that is no string or a _meta.ui that can't be
// read, or has one of the members that we know twice: then what we judge would not be
// what others read. A tool without an input schema gets
// {"type":"object"}. The definition shares the bytes of raw.
func parseDefinition(server string, raw json.RawMessage, maxBytes int) (*definition, error) {
	values, twice, err := text.ReadElement(raw, maxBytes, "name", "title", "description", "inputSchema", "annotations", "_meta", "execution", "outputSchema")
	if err != nil {
		return nil, err
	}
	title, input, annotations, meta, execution := values[1], values[3], values[4], values[5], values[6]
	name, err := text.String("name", values[0])
	if err != nil {
		return nil, err
	}
	description, err := text.String("description", values[2])
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, errors.New("the name is missing")
	}
	_, twiceWithin := text.Fields(annotations, "title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
	if twice = cmp.Or(twice, twiceWithin); twice != "" {
		return nil, fmt.Errorf("%q has the member %q more than once", text.Line(name, text.MaxName), twice)
	}
	if text.IsNull(input) {
		input = json.RawMessage(`{"type":"object"}`)
	}
	if input[0] != '{' {
		return nil, fmt.Errorf("the inputSchema of %q is not a JSON object", text.Line(name, text.MaxName))
	}
	d := &definition{Own: name, Raw: raw, Task: isTask(execution)}
	d.toolDocument = search.Document{Server: server, Name: name, Description: description, InputSchema: text.Compact(input)}
	d.Title, _ = text.String("title", title) // we ignore a hint of the wrong type
	if !text.IsNull(annotations) && json.Unmarshal(annotations, &d.Annotations) != nil {
		d.Annotations = mcp.ToolAnnotation{} // a half-read one would have false hints
	}
	if d.Apps, err = parseAppMeta(meta); err != nil {
		return nil, fmt.Errorf("%q: %w", text.Line(name, text.MaxName), err)
	}
	d.toolDocument.ReadOnly = d.ReadOnly()
	d.Needs, d.BadNeeds = parseNeeds(meta)
	d.Always, d.toolDocument.Hints = parseOfferHints(meta)
	d.Trusted = trust.Definition{Name: d.Own, Sum: sha256.Sum256(raw), Hash: d.trustHash}
	return d, nil
}

// Canonical returns [text.CanonicalHash] of Raw, and keeps it.
func (d *definition) Canonical() string {
	if hash := d.canonical.Load(); hash != nil {
		return *hash
	}
	hash := text.CanonicalHash(d.Raw)
	d.canonical.Store(&hash)
	return hash
}

// isTask reports whether a tool must be called as a task.
func isTask(raw json.RawMessage) bool {
	var execution mcp.ToolExecution
	return !text.IsNull(raw) && json.Unmarshal(raw, &execution) == nil && execution.TaskSupport == mcp.TaskSupportRequired
}

// trustHash returns a hash of what people and models see of the definition, and of what
// in it says who may see it and which tools come along. That a tool runs as a task
// (execution) is not part of it.
func (d *definition) trustHash() string {
	said := d.Canonical()
	if d.Always || d.Needs != nil || d.toolDocument.Hints != "" {
		said = fmt.Sprintf("%s %t %q %q", said, d.Always, d.Needs, d.toolDocument.Hints)
	}
	if d.Apps != forBoth {
		said = fmt.Sprintf("%s model %t app %t %q", said, d.Apps.model, d.Apps.app, d.Apps.page)
	}
	if said == d.Canonical() {
		return said
	}
	sum := sha256.Sum256([]byte(said))
	return hex.EncodeToString(sum[:])
}

// maxNeeds is how many tools a server may name that one of its tools needs, and how many
// are activated with it. One tool of a server must not activate half the catalog.
const maxNeeds = 32

// maxHint is how many bytes of a server's hint we index.
const maxHint = 500

// parseOfferHints returns what the _meta of a tool says of how to offer it. It ignores a hint of the wrong type.
func parseOfferHints(meta json.RawMessage) (always bool, search string) {
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
	return always, strings.ToValidUTF8(search[:min(len(search), maxHint)], "")
}

// parseNeeds returns the tools that a tool needs according to its _meta.
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
		return nil, fmt.Errorf(`"mcphybrid/needs" has %d names, more than the limit of %d`, len(in.Needs), maxNeeds)
	}
	return in.Needs, nil
}

// RegisteredName implements enrich.Tool.
func (d *definition) RegisteredName() string { return d.registered }
