package provider

import (
	"encoding/json"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Form is the JSON in which a provider takes a tool.
type Form struct {
	MaxTools int  // limit of one list; 0 if none is known
	Defers   bool // it has a mark for tools that the model finds by a search

	dialect   Dialect // of the schemas
	starts    func(c byte) bool
	first     []text.Member // before the name
	schema    string        // the provider's name for the schema
	last      []text.Member // after the schema
	enveloped bool          // all but first is an object of its own
}

var function = text.Member{Name: "type", Value: json.RawMessage(`"function"`)}

// The forms of the providers. The limits come from their documentation and from
// the errors that their APIs return, as of November 2026:
//
//   - OpenAI: names of [A-Za-z0-9_-]{1,64}, 128 tools in chat completions.
//     Responses makes a schema strict, and so its optional parameters
//     required, unless told not to. Descriptions have had no limit since 2025.
//   - Anthropic: names of [A-Za-z0-9_-]{1,128}, 10,000 tools.
//   - Gemini: names of [A-Za-z_][A-Za-z0-9_.:-]{0,127}, 63 more for older models;
//     512 tools.
//
// [Dialect] has the limits of schemas.
var (
	OpenAIChat      = &Form{MaxTools: 128, dialect: OpenAI, starts: text.IsSafeByte, first: []text.Member{function}, schema: "parameters", enveloped: true}
	OpenAIResponses = &Form{
		Defers: true, dialect: OpenAI, starts: text.IsSafeByte,
		first: []text.Member{function}, schema: "parameters", last: []text.Member{{Name: "strict", Value: json.RawMessage("false")}},
	}
	AnthropicMessages = &Form{MaxTools: 10_000, Defers: true, dialect: Anthropic, starts: text.IsSafeByte, schema: "input_schema"}
	GeminiFunctions   = &Form{MaxTools: 512, dialect: Gemini, starts: startsFunction, schema: "parametersJsonSchema"}
)

// startsFunction reports whether c can begin the name of a Gemini function.
func startsFunction(c byte) bool { return text.IsSafeByte(c) && c != '-' && (c < '0' || c > '9') }

// Accepts reports whether the provider takes a tool with that name.
func (f *Form) Accepts(name string) bool { return text.IsSafeName(name) && f.starts(name[0]) }

// Tool returns a tool in the form, and what was lost of its schema, which must be a
// JSON object. If deferred is set, it has the mark.
func (f *Form) Tool(name, description string, schema json.RawMessage, deferred bool) (tool json.RawMessage, losses []string) {
	schema, losses = Convert(schema, f.dialect)
	members := append(toolMembers(name, description, f.schema, schema), f.last...)
	if f.enveloped {
		members = []text.Member{{Name: "function", Value: text.JoinMembers(members)}}
	}
	members = append(f.first[:len(f.first):len(f.first)], members...)
	if deferred {
		members = append(members, text.Member{Name: "defer_loading", Value: json.RawMessage("true")})
	}
	return text.JoinMembers(members), losses
}

// MCPTool returns a tool as an element of a tools/list result.
func MCPTool(name, description string, schema json.RawMessage) json.RawMessage {
	return text.JoinMembers(toolMembers(name, description, "inputSchema", schema))
}

// toolMembers returns the members that all forms have.
func toolMembers(name, description, schemaName string, schema json.RawMessage) []text.Member {
	list := []text.Member{{Name: "name", Value: text.Quote(name)}}
	if description != "" {
		list = append(list, text.Member{Name: "description", Value: text.Quote(description)})
	}
	return append(list, text.Member{Name: schemaName, Value: schema})
}

// Renamed returns raw, an element of a tools/list result, under another name, and
// with schema if it has none. It fails if raw is not a JSON object.
func Renamed(raw json.RawMessage, name string, schema json.RawMessage) (json.RawMessage, error) {
	list, err := text.Members(text.Compact(raw))
	if err != nil {
		return nil, err
	}
	named, typed := false, false
	for i, m := range list {
		switch m.Name {
		case "name":
			list[i].Value, named = text.Quote(name), true
		case "inputSchema":
			typed = true
			if text.IsNull(m.Value) {
				list[i].Value = schema
			}
		}
	}
	// encoding/json also accepts "Name"; MCP wants lower case.
	if !named {
		list = append([]text.Member{{Name: "name", Value: text.Quote(name)}}, list...)
	}
	if !typed {
		list = append(list, text.Member{Name: "inputSchema", Value: schema})
	}
	return text.JoinMembers(list), nil
}
