package mcphybrid

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/provider"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Format is the JSON form in which a model provider takes tools.
type Format string

const (
	FormatMCP             Format = "mcp"              // elements of a tools/list result
	FormatOpenAIChat      Format = "openai-chat"      // chat completions
	FormatOpenAIResponses Format = "openai-responses" // responses, not strict
	FormatAnthropic       Format = "anthropic"        // messages
	FormatGemini          Format = "gemini"           // function declarations of generateContent, v1beta
)

// An ExportedTool is one element of a provider's list of tools. It is shared
// and must not be changed.
type ExportedTool struct {
	// JSON is compact. Where the provider accepts what the tool's server wrote,
	// it is unchanged: members keep their order, numbers their digits.
	JSON json.RawMessage

	// Losses says which parts of the description and the input schema we
	// changed or left out because the provider does not accept them. Each entry
	// gives the place, a JSON pointer into the input schema. For a part taken
	// out of a union or a reference it is the place where the part now stands.
	// Losses is nil if nothing was lost.
	//
	// It does not mention parts for which no provider has a place, such as
	// annotations and output schemas, nor those that say nothing about
	// arguments: $schema and definitions that nothing refers to.
	Losses []string
}

// Export returns [Session.Tools] in the form of a provider, in the same order.
// With [ByProvider], deferred tools carry the provider's mark for tools that the
// model finds by a search.
//
// Like Tools, and to the byte, the list only grows at its end until
// [Session.Compact]. Export fails if the format is unknown, if the provider can't
// take a tool's name, or if the session is ByProvider and the format has no such
// mark. If the provider does not accept that many tools, Export returns the list
// and an error that says so.
func (s *Session) Export(f Format) ([]ExportedTool, error) {
	shown := s.show()
	list := make([]ExportedTool, 0, len(shown))
	for _, e := range shown {
		var t Tool = e.tool
		switch {
		case e.place == asMeta:
			t = metaTool{s, e.meta}
		case !e.isTool():
			continue
		}
		exported, err := exportOnce(t, f, e.place == asDeferred)
		if err != nil {
			return nil, err
		}
		list = append(list, exported)
	}
	if note := exportListNote(f, len(list)); note != "" {
		return list, errors.New("mcphybrid: " + note)
	}
	return list, nil
}

// An exportKey names one form of a tool.
type exportKey struct {
	format   Format
	deferred bool
}

// An exported is a form of a tool that was made, after others.
type exported struct {
	exportKey
	tool   ExportedTool
	before *exported
}

// exportOnce is exportTool with a cache: it keeps each form of a BridgeTool.
func exportOnce(t Tool, f Format, deferLoading bool) (ExportedTool, error) {
	b, ok := t.(*BridgeTool)
	if !ok {
		return exportTool(t, f, deferLoading)
	}
	key := exportKey{f, deferLoading}
	made := b.exports.Load()
	for e := made; e != nil; e = e.before {
		if e.exportKey == key {
			return e.tool, nil
		}
	}
	e, err := exportTool(t, f, deferLoading)
	if err == nil {
		b.exports.CompareAndSwap(made, &exported{key, e, made}) // if it fails, the next one keeps it
	}
	return e, err
}

var forms = map[Format]*provider.Form{
	FormatOpenAIChat: provider.OpenAIChat, FormatOpenAIResponses: provider.OpenAIResponses,
	FormatAnthropic: provider.AnthropicMessages, FormatGemini: provider.GeminiFunctions,
}

// exportTool returns t in a format. If deferLoading is set, it adds the
// provider's mark for tools that the model finds by a search. The result depends
// only on the arguments.
//
// It fails if the format is unknown or has no such mark, if the provider does not
// accept the name of t, or if the input schema of t is not a JSON object.
func exportTool(t Tool, f Format, deferLoading bool) (e ExportedTool, err error) {
	form := forms[f]
	switch {
	case form == nil && f != FormatMCP:
		return e, fmt.Errorf("mcphybrid: there is no format %q", f)
	case deferLoading && (form == nil || !form.Defers):
		return e, fmt.Errorf("mcphybrid: the format %s can't defer tools", f)
	}
	schema := text.Compact(t.InputSchema())
	if !json.Valid(schema) || schema[0] != '{' {
		return e, fmt.Errorf("mcphybrid: tool %q: the input schema is not a JSON object", t.Name())
	}
	b, ok := t.(*BridgeTool)
	switch {
	case form == nil && ok: // as its server sent it
		e.JSON, err = provider.Renamed(b.def.Raw, b.name, schema)
	case form == nil:
		e.JSON = provider.MCPTool(t.Name(), t.Description(), schema)
	case !form.Accepts(t.Name()):
		return e, fmt.Errorf("mcphybrid: tool %q has a name that %s does not accept", text.Line(t.Name(), text.MaxName), f)
	default:
		e.JSON, e.Losses = form.Tool(t.Name(), t.Description(), schema, deferLoading)
	}
	return e, err
}

// exportListNote returns a note if a list of n tools is longer than the provider
// accepts, or "".
func exportListNote(f Format, n int) string {
	if form := forms[f]; form != nil && form.MaxTools > 0 && n > form.MaxTools {
		return fmt.Sprintf("%s accepts at most %d tools, this list has %d", f, form.MaxTools, n)
	}
	return ""
}

// ToolReferences returns content blocks for the tool_result that answers a search
// of an Anthropic model: one for each of names, in order. The API then loads those
// deferred tools of the request. It rejects a name that is not among the request's
// tools, and a request that defers all of its tools.
func ToolReferences(names []string) []json.RawMessage {
	blocks := make([]json.RawMessage, len(names))
	for i, name := range names {
		blocks[i] = text.JoinMembers([]text.Member{
			{Name: "type", Value: json.RawMessage(`"tool_reference"`)},
			{Name: "tool_name", Value: text.Quote(name)},
		})
	}
	return blocks
}
