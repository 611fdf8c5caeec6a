package mcphybrid

import (
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/provider"
)

// A Format is the JSON form in which a model provider takes tools and results.
type Format string

const (
	FormatMCP             Format = "mcp"              // elements of a tools/list result, and CallToolResult
	FormatOpenAIChat      Format = "openai-chat"      // chat completions
	FormatOpenAIResponses Format = "openai-responses" // responses
	FormatAnthropic       Format = "anthropic"        // messages
	FormatGemini          Format = "gemini"           // function declarations of generateContent, v1beta
)

// An ExportedTool is one element of a provider's list of tools. It is shared
// and must not be changed.
type ExportedTool struct {
	// Name, Description and InputSchema are what JSON says, for runtimes with types
	// of their own. Deferred reports whether JSON has the provider's mark for tools that
	// the model finds by a search. A runtime that can't pass the mark on must not send
	// the tool.
	Name        string
	Description string
	InputSchema json.RawMessage
	Deferred    bool

	// JSON is compact and has what models read. Where the provider accepts what the
	// tool's server wrote, it is unchanged: members keep their order, numbers their
	// digits. [BridgeTool] has the rest, such as annotations.
	//
	// It also has, where the provider takes it:
	//   - [FormatOpenAIResponses]: strict, true if the schema is strict as it stands, and
	//     output_schema. No schema is made strict.
	//   - [FormatAnthropic]: input_examples, up to three of the examples at the root of the
	//     input schema, if that allows them. They move, so the schema has no examples then.
	//     In a session [ByProvider], they stay in the schema.
	//   - Both: allowed_callers, if the host asks for it: see [SessionOptions.AllowedCallers].
	JSON json.RawMessage

	// Losses says which parts of the description and the input schema we
	// changed or left out because the provider does not accept them. Each entry
	// gives the place, a JSON pointer into the input schema. For a part taken
	// out of a union or a reference it is the place where the part now stands.
	// Losses is nil if nothing was lost.
	//
	// It does not mention what is not about arguments, such as annotations and
	// output schemas, nor what says nothing about them: $schema and definitions that
	// nothing refers to.
	Losses []string
}

// Export returns [Session.Tools] in the form of a provider, in the same order.
// With [ByProvider], the list also has the deferred tools, marked as such.
//
// Like Tools, and to the byte, the list only grows at its end until
// [Session.Compact]. Export fails if the format is unknown, if the provider can't
// take a tool's name, or if the session is ByProvider and the format has no such
// mark. If the provider does not accept that many tools, Export returns the list
// and an error that says so.
func (s *Session) Export(f Format) ([]ExportedTool, error) {
	form, err := provider.Named(string(f))
	if err != nil {
		return nil, fmt.Errorf("mcphybrid: %w", err)
	}
	list, err := s.export(remaining(s.show()), form, false)
	if err != nil {
		return nil, fmt.Errorf("mcphybrid: %w", err)
	}
	if err := checkLength(form, list); err != nil {
		return list, fmt.Errorf("mcphybrid: %w", err)
	}
	return list, nil
}

// export returns the tools of items in a form, in the same order. If loads is set, the
// model loads tools by searches that the host answers.
func (s *Session) export(items []listItem, form *provider.Form, loads bool) ([]ExportedTool, error) {
	list := make([]ExportedTool, 0, len(items))
	for _, e := range items {
		var t Tool = e.tool
		switch {
		case loads && e.slot == asMeta && e.meta == metaSearch:
			list = append(list, ExportedTool(form.SearchTool(metaTool{s, e.meta})))
			continue
		case e.slot == asMeta:
			t = metaTool{s, e.meta}
		case !e.isTool(), loads && e.slot == asDeferred: // an answer to a search has loaded it
			continue
		}
		in := provider.Listed
		switch {
		case e.slot == asDeferred:
			in = provider.Deferred
		case s.Disclosure() == ByProvider:
			in = provider.Beside
		}
		exported, err := exportOnce(t, form, in)
		if err != nil {
			return nil, err
		}
		list = append(list, s.allowCallers(exported, t, form))
	}
	return list, nil
}

// checkLength returns an error if a list is longer than the provider accepts.
func checkLength(form *provider.Form, list []ExportedTool) error {
	deferred := 0
	for _, e := range list {
		if e.Deferred {
			deferred++
		}
	}
	return form.Check(len(list), deferred)
}

// exportOnce returns t in a form. It keeps each form of a BridgeTool.
func exportOnce(t Tool, form *provider.Form, in provider.Listing) (ExportedTool, error) {
	made := new(provider.Made)
	if b, ok := t.(*BridgeTool); ok {
		made = &b.exports
	}
	e, err := made.Tool(t, form, in)
	return ExportedTool(e), err
}

// allowCallers returns e, which t became, with who may call it. Tools of ours are called by
// the model alone.
func (s *Session) allowCallers(e ExportedTool, t Tool, form *provider.Form) ExportedTool {
	if _, ok := t.(*BridgeTool); !ok || len(s.asked.callers) == 0 {
		return e
	}
	return ExportedTool(form.WithCallers(provider.Tool(e), s.asked.callers))
}

// ToolReferences returns the content of a result that answers a search for tools: one
// block for each of names, in order. The API then loads those deferred tools of the
// request. Anthropic rejects a name that is not among the request's tools, and a request
// that defers all of its tools. [ExportResult] returns them for the search tool.
//
// It is nil unless the format is [FormatAnthropic] or [FormatOpenAIChat].
func ToolReferences(f Format, names []string) []json.RawMessage {
	form, err := provider.Named(string(f))
	if err != nil {
		return nil
	}
	return form.References(names)
}

// An ExportedResult is the result of a call as a provider takes it. The host adds the id
// of the call.
type ExportedResult struct {
	// JSON is, by format:
	//   - [FormatOpenAIChat]: the content of a tool message: a string, or a list for a
	//     search of a session [ByProvider]
	//   - [FormatOpenAIResponses]: the output of a function_call_output, a list
	//   - [FormatAnthropic]: the content of a tool_result, a list
	//   - [FormatGemini]: a functionResponse without name and id. Models before Gemini 3
	//     refuse its parts, which hold images and PDFs.
	//   - [FormatMCP]: a CallToolResult
	JSON json.RawMessage

	// Text is the result as one text, never "". Each image, sound or file has a line in
	// it. The text of an error begins with "Error: ", and so does JSON where the provider
	// has no mark for errors, as OpenAI.
	Text string

	// Media is, with [FormatOpenAIChat], what a tool message can't hold: parts for a user
	// message behind the tool messages of the turn. Each image, sound or file follows a
	// text part that names it. A host leaves out what its model does not take, such as
	// sounds. Media is nil in other formats.
	Media []json.RawMessage

	// IsError reports whether the tool failed. Anthropic has is_error for it.
	IsError bool

	// Losses says what of the result is neither in JSON nor in Media, such as a sound
	// for Anthropic. Each entry begins with the place, such as "content 2", counted from 0. In the
	// place of each, the model reads that it was left out. Losses is nil if nothing was
	// lost. It does not mention what no model reads, such as annotations and _meta.
	Losses []string
}

// ExportResult returns the result of a call in the form of a provider. The order stays.
// A resource becomes its text behind its URI, or a file; a link becomes its JSON.
// Structured content becomes a text, unless the texts say the same. An image counts as
// what its bytes are, whatever its server says, since providers refuse a request for
// a wrong type.
//
// If r answers a search of a session [ByProvider], it loads the tools that were found, for
// Anthropic and chat completions.
//
// ExportResult fails if r is nil or can't be written as JSON, or if the format is unknown.
func ExportResult(r *mcp.CallToolResult, f Format) (ExportedResult, error) {
	form, err := provider.Named(string(f))
	if err != nil {
		return ExportedResult{}, fmt.Errorf("mcphybrid: %w", err)
	}
	var found foundDeferred
	if r != nil && r.Meta != nil {
		found, _ = r.Meta.AdditionalFields[foundKey].(foundDeferred)
	}
	e, err := form.Result(r, found)
	if err != nil {
		return ExportedResult{}, fmt.Errorf("mcphybrid: %w", err)
	}
	return ExportedResult(e), nil
}

// A foundDeferred has the names of deferred tools that a search found, in the _meta of
// its answer. No server can send one: it is a type of ours.
type foundDeferred []string

const foundKey = "mcphybrid/found"
