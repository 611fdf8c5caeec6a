package mcphybrid

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/trust"
	"github.com/mcphybrid/mcphybrid/scan"
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
	Apps         appMeta          // who may call it
	Trusted      trust.Definition // what must not change unnoticed

	canonical atomic.Pointer[string] // see Canonical
	scanned   atomic.Pointer[marked] // see marks

	registered string    // the registered name
	wanted     string    // the registered name without other servers, if it differs
	cost       *toolCost // set before the definition is published; nil if the host counts nothing

	call func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error)
}

// A toolDocument is what a search finds a tool by, without the host's hints.
type toolDocument = search.Document

// Document returns the searchable text of the tool, without the host's hints. It is shared
// and must not be changed.
func (d *definition) Document() *search.Document { return &d.toolDocument }

// Input returns the input schema without what says nothing about arguments: see
// [schema.Prune].
func (d *definition) Input() json.RawMessage { return schema.Prune(d.InputSchema) }

// Output returns the output schema as Input does, or nil if there is none. Few ask for
// it, so it is looked up in Raw.
func (d *definition) Output() json.RawMessage {
	values, _ := text.Fields(d.Raw, "outputSchema")
	if text.IsNull(values[0]) || values[0][0] != '{' {
		return nil
	}
	return schema.Prune(text.Compact(values[0]))
}

// ReadOnly reports whether the tool only reads, according to its server's hints. Then the
// hint that it destroys something means nothing, says the protocol; mcp-go's is true
// unless a server says otherwise.
func (d *definition) ReadOnly() bool { return isTrue(d.Annotations.ReadOnlyHint) }

// Repeatable reports whether a second call of the tool does no harm, according to
// its server's hints.
func (d *definition) Repeatable() bool { return isTrue(d.Annotations.IdempotentHint) || d.ReadOnly() }

func isTrue(hint *bool) bool { return hint != nil && *hint }

// A marked definition is one with its marks, and the answers on which these depend.
type marked struct {
	list    []scan.Mark
	asked   []string // words, each once, at most maxAskedWords
	foreign []bool   // the answers
}

// maxAskedWords is how many words of a definition may look like names of tools for its marks to
// be kept: what a server writes there must not multiply what we keep of it.
const maxAskedWords = 64

// marks returns [scan.Definition], which it keeps: it scans again only if foreign has
// another answer than before. The caller owns the slice.
func (d *definition) marks(foreign func(word string) bool) []scan.Mark {
	if kept := d.scanned.Load(); kept != nil {
		same := true
		for i, word := range kept.asked {
			same = same && foreign(word) == kept.foreign[i]
		}
		if same {
			return slices.Clone(kept.list)
		}
	}
	now := new(marked)
	now.list = scan.Definition(d.Raw, func(word string) bool {
		is := foreign(word)
		if len(now.asked) <= maxAskedWords && !slices.Contains(now.asked, word) {
			now.asked, now.foreign = append(now.asked, strings.Clone(word)), append(now.foreign, is)
		}
		return is
	})
	if len(now.asked) <= maxAskedWords {
		d.scanned.Store(now)
	}
	return slices.Clone(now.list)
}

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

// An appMeta is what a tool's _meta says of apps: pages of its server that a host shows to
// the user (MCP Apps, the extension io.modelcontextprotocol/ui, of 2026-01-26).
type appMeta struct {
	model, app bool   // who may call the tool
	page       string // the URI of the page that shows its results, or ""
}

var forBoth = appMeta{model: true, app: true} // by default

// maxPage is how many characters the URI of a page may have.
const maxPage = 1000

// parseAppMeta reads "ui" in the _meta of a tool. It fails if who may call the tool can't be
// told: if what says so is there twice, or is not a list of names in an object.
func parseAppMeta(meta json.RawMessage) (appMeta, error) {
	of := forBoth
	values, twice := text.Fields(meta, "ui", "ui/resourceUri") // the second was its place before
	ui, page := values[0], values[1]
	if !text.IsNull(ui) && ui[0] != '{' {
		return of, errors.New("its _meta.ui is not an object")
	}
	values, twiceWithin := text.Fields(ui, "visibility", "resourceUri")
	if twice = cmp.Or(twice, twiceWithin); twice != "" {
		return of, fmt.Errorf("its _meta has the member %q more than once", twice)
	}
	if !text.IsNull(values[1]) {
		page = values[1]
	}
	if uri, _ := text.String("resourceUri", page); strings.HasPrefix(uri, "ui://") && uri == text.Line(uri, maxPage) {
		of.page = uri // we ignore what is none
	}
	if visibility := values[0]; !text.IsNull(visibility) {
		var names []string
		if err := json.Unmarshal(visibility, &names); err != nil {
			return of, fmt.Errorf(`its _meta.ui.visibility is not a list of "model" and "app": %w`, text.JSONError(visibility, err))
		}
		of.model, of.app = slices.Contains(names, "model"), slices.Contains(names, "app")
	}
	return of, nil
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
