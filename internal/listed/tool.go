// Package listed reads a tool as its server lists it.
package listed

import (
	"cmp"
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

// A Tool is one tool as its server described it, checked but not changed. It is
// immutable. Don't trust its strings, except Server: they come from the server.
type Tool struct {
	document           // Server, Title, Description and InputSchema, a compact JSON object
	Own         string // the server's own name
	Annotations mcp.ToolAnnotation
	Raw         json.RawMessage  // the whole element of the tools/list result
	Needs       []string         // own names of tools of the same server
	BadNeeds    error            // why Needs could not be read, or nil
	Always      bool             // the server wants it inline
	Task        bool             // it must be called as a task
	Trusted     trust.Definition // what must not change unnoticed

	canonical atomic.Pointer[string] // see Canonical
}

type document = search.Document

// Document returns what to index for search, without the host's hints. It is shared
// and must not be changed.
func (t *Tool) Document() *search.Document { return &t.document }

// Input returns the input schema without what says nothing about arguments: see
// [schema.Prune].
func (t *Tool) Input() json.RawMessage { return schema.Prune(t.InputSchema) }

// Output returns the output schema as Input does, or nil if there is none. Few ask for
// it, so it is looked up in Raw.
func (t *Tool) Output() json.RawMessage {
	values, _ := text.Fields(t.Raw, "outputSchema")
	if text.IsNull(values[0]) || values[0][0] != '{' {
		return nil
	}
	return schema.Prune(text.Compact(values[0]))
}

// ReadOnly reports whether the tool only reads, according to its server's hints. Then the
// hint that it destroys something means nothing, says the protocol; mcp-go's is true
// unless a server says otherwise.
func (t *Tool) ReadOnly() bool { return is(t.Annotations.ReadOnlyHint) }

// Repeatable reports whether a second call of the tool does no harm, according to
// its server's hints.
func (t *Tool) Repeatable() bool { return is(t.Annotations.IdempotentHint) || t.ReadOnly() }

func is(hint *bool) bool { return hint != nil && *hint }

// ParseTool checks one element of a tools/list result. It fails only if the tool is
// unusable: the definition is too large or not JSON, has no name, has an input schema
// that is not an object, or has one of the members that we know twice: then what we
// judge would not be what others read. A tool without an input schema gets
// {"type":"object"}. The Tool shares the bytes of raw.
func ParseTool(server string, raw json.RawMessage, maxBytes int) (*Tool, error) {
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
	t := &Tool{Own: name, Raw: raw, Task: isTask(execution)}
	t.document = search.Document{Server: server, Name: name, Description: description, InputSchema: text.Compact(input)}
	t.Title, _ = text.String("title", title) // we ignore a hint of the wrong type
	if !text.IsNull(annotations) && json.Unmarshal(annotations, &t.Annotations) != nil {
		t.Annotations = mcp.ToolAnnotation{} // a half-read one would have false hints
	}
	t.Needs, t.BadNeeds = parseNeeds(meta)
	t.Always, t.document.Hints = parseHints(meta)
	t.Trusted = trust.Definition{Name: t.Own, Sum: sha256.Sum256(raw), Hash: t.hash}
	return t, nil
}

// Canonical returns [text.CanonicalHash] of Raw, and keeps it.
func (t *Tool) Canonical() string {
	if hash := t.canonical.Load(); hash != nil {
		return *hash
	}
	hash := text.CanonicalHash(t.Raw)
	t.canonical.Store(&hash)
	return hash
}

// isTask reports whether a tool must be called as a task.
func isTask(raw json.RawMessage) bool {
	var execution mcp.ToolExecution
	return !text.IsNull(raw) && json.Unmarshal(raw, &execution) == nil && execution.TaskSupport == mcp.TaskSupportRequired
}

// hash returns a hash of all in the definition that people and models see and that we
// act on.
func (t *Tool) hash() string {
	if !t.Always && t.Needs == nil && t.document.Hints == "" {
		return t.Canonical()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %t %q %q", t.Canonical(), t.Always, t.Needs, t.document.Hints))
	return hex.EncodeToString(sum[:])
}

// MaxNeeds is how many tools a server may name that one of its tools needs.
const MaxNeeds = 32

// maxHint is how many bytes of a server's hint we index.
const maxHint = 500

// parseHints returns what the _meta of a tool says of how to offer it. It ignores a hint of the wrong type.
func parseHints(meta json.RawMessage) (always bool, search string) {
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
	if len(in.Needs) > MaxNeeds {
		return nil, fmt.Errorf(`"mcphybrid/needs" has %d names, more than the limit of %d`, len(in.Needs), MaxNeeds)
	}
	return in.Needs, nil
}
