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
			t = &s.meta[e.meta]
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

// exportOnce is exportTool with a cache: it converts each form of a BridgeTool
// only once.
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

// A shape describes a format other than [FormatMCP].
type shape struct {
	dialect  provider.Dialect // the dialect of its schemas
	maxTools int              // limit of one list; 0 if none is known
	defers   bool             // it has defer_loading

	// envelope returns the tool's JSON. description is a JSON string, or nil.
	envelope func(name, description, schema json.RawMessage) []text.Member
}

// The limits come from the providers' documentation and from the errors that
// their APIs return, as of November 2026:
//
//   - OpenAI: names of [A-Za-z0-9_-]{1,64}, 128 tools in chat completions.
//     Responses makes a schema strict, and so its optional parameters
//     required, unless told not to. Descriptions have had no limit since 2025.
//   - Anthropic: names of [A-Za-z0-9_-]{1,128}, 10,000 tools.
//   - Gemini: names of [A-Za-z_][A-Za-z0-9_.:-]{0,127}, 63 more for older models;
//     512 tools.
//
// [provider.Dialect] has the limits of schemas.
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

// toolMembers returns the members that all providers have. schemaName is the
// provider's name for the schema.
func toolMembers(name, description json.RawMessage, schemaName string, schema json.RawMessage) []text.Member {
	list := []text.Member{{Name: "name", Value: name}}
	if description != nil {
		list = append(list, text.Member{Name: "description", Value: description})
	}
	return append(list, text.Member{Name: schemaName, Value: schema})
}

// exportTool returns t in a format. If deferLoading is set, it adds the
// provider's mark for tools that the model finds by a search. The result depends
// only on the arguments.
//
// It fails if the format is unknown or has no such mark, if the provider does not
// accept the name of t, or if the input schema of t is not a JSON object.
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
		return ExportedTool{}, fmt.Errorf("mcphybrid: tool %q has a name that %s does not accept", text.Line(t.Name(), text.MaxName), f)
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

// exportMCP returns t as an element of a tools/list result. A BridgeTool is
// exported as its server sent it, with the registered name, and with an input
// schema if the server sent none.
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
		return nil, fmt.Errorf("mcphybrid: tool %q %w", t.Name(), err) // never reached: raw was parsed before
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
	// encoding/json also accepts "Name"; MCP wants lower case.
	if !named {
		list = append([]text.Member{{Name: "name", Value: name}}, list...)
	}
	if !typed {
		list = append(list, text.Member{Name: "inputSchema", Value: schema})
	}
	return text.JoinMembers(list), nil
}

// exportListNote returns a note if a list of n tools is longer than the provider
// accepts, or "".
func exportListNote(f Format, n int) string {
	if limit := shapes[f].maxTools; limit > 0 && n > limit {
		return fmt.Sprintf("%s accepts at most %d tools, this list has %d", f, limit, n)
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

// isNameStart reports whether c can begin the name of a Gemini function.
func isNameStart(c byte) bool { return text.IsSafeByte(c) && c != '-' && (c < '0' || c > '9') }
