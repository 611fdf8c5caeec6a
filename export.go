package mcphybrid

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/provider"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Format is the shape in which a model provider takes tools.
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
	// JSON is compact, and as the tool's server wrote it where the provider
	// takes that: members in their order, numbers with their digits.
	JSON json.RawMessage

	// Losses say what of the description and the input schema the provider
	// does not take, so that it was changed or left out. A place is a JSON
	// pointer into the input schema; what was taken out of a union or a
	// reference is named by where it went. Nil if there is none. Not told is
	// what no provider has a place for, such as annotations and output
	// schemas, and what says nothing of arguments: $schema, since providers
	// take draft 2020-12 only, and definitions that nothing refers to.
	Losses []string
}

// Export returns what [Session.Tools] would, in the shape of a provider. With
// [ByProvider], tools that are not inline carry the provider's mark for those
// that its model is to find by a search.
//
// Like the list of tools, and to the byte, it only grows at its end until
// [Session.Compact]. It is an error if the format is not known or, with
// ByProvider, has no such mark. If the provider does not take so many tools,
// the list comes with an error that says so.
func (s *Session) Export(f Format) ([]ExportedTool, error) {
	shown := s.show()
	list := make([]ExportedTool, 0, len(shown))
	for _, e := range shown {
		var t Tool = e.tool
		switch {
		case e.kind == shownMeta:
			t = &s.meta[e.meta]
		case !e.isTool():
			continue
		}
		exported, err := exportOnce(t, f, e.kind == shownDeferred)
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

// exportOnce is exportTool, which does its work once for each form of a
// BridgeTool.
func exportOnce(t Tool, f Format, deferLoading bool) (ExportedTool, error) {
	b, ok := t.(*BridgeTool)
	if !ok {
		return exportTool(t, f, deferLoading)
	}
	key := exportKey{f, deferLoading}
	if e, ok := b.exports.Load(key); ok {
		return e.(ExportedTool), nil
	}
	e, err := exportTool(t, f, deferLoading)
	if err == nil {
		b.exports.Store(key, e)
	}
	return e, err
}

// A shape is what there is to know of a format but for [FormatMCP].
type shape struct {
	dialect  provider.Dialect // of its schemas
	maxTools int              // in one list; 0 if no limit is known
	defers   bool             // has defer_loading

	// envelope returns the tool's JSON. description is a JSON string, or nil.
	envelope func(name, description, schema json.RawMessage) []text.Member
}

// The limits are the providers' own, from their documentation and the errors
// that they answer with, as of November 2026:
//
//   - OpenAI: names of [A-Za-z0-9_-]{1,64}, 128 tools in chat completions.
//     Responses makes a schema strict, and so its optional parameters
//     required, unless told not to. Descriptions have had no limit since 2025.
//   - Anthropic: names of [A-Za-z0-9_-]{1,128}, 10,000 tools.
//   - Gemini: names of [A-Za-z_][A-Za-z0-9_.:-]{0,127}, 63 more for older models;
//     512 tools.
//
// [provider.Dialect] has those of schemas.
var shapes = map[Format]shape{
	FormatOpenAIChat: {
		dialect:  provider.OpenAI,
		maxTools: 128,
		envelope: func(name, description, schema json.RawMessage) []text.Member {
			function := toolMembers(name, description, "parameters", schema)
			return []text.Member{{Name: "type", Value: json.RawMessage(`"function"`)}, {Name: "function", Value: text.JoinMembers(function)}}
		},
	},
	FormatOpenAIResponses: {
		dialect: provider.OpenAI,
		defers:  true,
		envelope: func(name, description, schema json.RawMessage) []text.Member {
			list := []text.Member{{Name: "type", Value: json.RawMessage(`"function"`)}}
			list = append(list, toolMembers(name, description, "parameters", schema)...)
			return append(list, text.Member{Name: "strict", Value: json.RawMessage("false")})
		},
	},
	FormatAnthropic: {
		dialect:  provider.Anthropic,
		maxTools: 10_000,
		defers:   true,
		envelope: func(name, description, schema json.RawMessage) []text.Member {
			return toolMembers(name, description, "input_schema", schema)
		},
	},
	FormatGemini: {
		dialect:  provider.Gemini,
		maxTools: 512,
		envelope: func(name, description, schema json.RawMessage) []text.Member {
			return toolMembers(name, description, "parametersJsonSchema", schema)
		},
	},
}

// toolMembers returns what all providers have, under their name for the schema.
func toolMembers(name, description json.RawMessage, schemaName string, schema json.RawMessage) []text.Member {
	list := []text.Member{{Name: "name", Value: name}}
	if description != nil {
		list = append(list, text.Member{Name: "description", Value: description})
	}
	return append(list, text.Member{Name: schemaName, Value: schema})
}

// exportTool returns t in a format, with the provider's mark of a tool that
// its model is to find by a search if deferLoading is set. The result depends
// on nothing but the arguments.
//
// It is an error if the format is not known or has no such mark, if t has a
// name that the provider does not take, which no [BridgeTool] has, or if its
// input schema is not a JSON object.
func exportTool(t Tool, f Format, deferLoading bool) (ExportedTool, error) {
	p, ok := shapes[f]
	switch {
	case !ok && f != FormatMCP:
		return ExportedTool{}, fmt.Errorf("mcphybrid: there is no format %q", f)
	case deferLoading && !p.defers:
		return ExportedTool{}, fmt.Errorf("mcphybrid: the format %s can't defer tools", f)
	}
	schema := text.Compact(t.InputSchema())
	if !json.Valid(schema) || schema[0] != '{' {
		return ExportedTool{}, fmt.Errorf("mcphybrid: tool %q: the input schema is not a JSON object", t.Name())
	}
	if f == FormatMCP {
		data, err := exportMCP(t, schema)
		return ExportedTool{JSON: data}, err
	}
	if !text.IsSafeName(t.Name()) || f == FormatGemini && !isNameStart(t.Name()[0]) {
		return ExportedTool{}, fmt.Errorf("mcphybrid: tool %q has a name that %s does not take", text.Line(t.Name(), text.MaxName), f)
	}
	var description json.RawMessage
	if t.Description() != "" {
		description = text.Quote(t.Description())
	}
	schema, losses := provider.Convert(schema, p.dialect)
	list := p.envelope(text.Quote(t.Name()), description, schema)
	if deferLoading {
		list = append(list, text.Member{Name: "defer_loading", Value: json.RawMessage("true")})
	}
	return ExportedTool{JSON: text.JoinMembers(list), Losses: losses}, nil
}

// exportMCP returns t as an element of a tools/list result. Of a BridgeTool it
// is what the server sent but for the name, and for an input schema if the
// server gave none.
func exportMCP(t Tool, schema json.RawMessage) (json.RawMessage, error) {
	name := text.Quote(t.Name())
	b, ok := t.(*BridgeTool)
	if !ok {
		var description json.RawMessage
		if t.Description() != "" {
			description = text.Quote(t.Description())
		}
		return text.JoinMembers(toolMembers(name, description, "inputSchema", schema)), nil
	}
	list, err := text.Members(text.Compact(b.def.raw))
	if err != nil {
		return nil, fmt.Errorf("mcphybrid: tool %q %w", t.Name(), err) // never: it was read before
	}
	named, typed := false, false
	for i, m := range list {
		switch m.Name {
		case "name":
			list[i].Value, named = name, true
		case "inputSchema":
			typed = true
			if text.IsNull(m.Value) {
				list[i].Value = schema
			}
		}
	}
	// JSON of encoding/json has a name in any case, MCP has it in lower case.
	if !named {
		list = append([]text.Member{{Name: "name", Value: name}}, list...)
	}
	if !typed {
		list = append(list, text.Member{Name: "inputSchema", Value: schema})
	}
	return text.JoinMembers(list), nil
}

// exportListNote says that a list of n tools is longer than the provider
// takes, or returns "".
func exportListNote(f Format, n int) string {
	if limit := shapes[f].maxTools; limit > 0 && n > limit {
		return fmt.Sprintf("%s takes at most %d tools, this list has %d", f, limit, n)
	}
	return ""
}

// ToolReferences returns content blocks for the tool_result that answers a
// search of an Anthropic model: one for each of names, in their order. They
// load the tools of these names that the request defers; the API refuses a
// name that the request's tools have not, and a request that defers them all.
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

// isNameStart reports whether c can begin the name of a Gemini function.
func isNameStart(c byte) bool { return text.IsSafeByte(c) && c != '-' && (c < '0' || c > '9') }
