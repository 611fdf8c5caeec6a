package provider

import (
	"encoding/json"
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Form is the JSON in which a provider takes tools and results.
type Form struct {
	name     string
	maxTools int  // limit of one list; 0 if none is known
	defers   bool // it has a mark for tools that the model finds by a search

	dialect   *Dialect          // of the schemas; nil takes all
	starts    func(c byte) bool // of names; nil takes all
	typed     bool              // it begins with the type "function"
	schema    string            // the provider's name for the schema
	last      []text.Member     // after the schema
	enveloped bool              // all but the type is an object of its own
	answer    answer            // how it takes results
	figures   *figures          // what a response took; nil if it never tells
}

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
	OpenAIChat = &Form{
		name: "openai-chat", maxTools: 128, dialect: &OpenAI, starts: text.IsSafeByte, typed: true, schema: "parameters", enveloped: true,
		answer: answer{media: chatMedium, write: aside}, figures: &chatFigures,
	}
	OpenAIResponses = &Form{
		name: "openai-responses", defers: true, dialect: &OpenAI, starts: text.IsSafeByte,
		typed: true, schema: "parameters", last: []text.Member{{Name: "strict", Value: json.RawMessage("false")}},
		answer: answer{media: inputMedium, write: inputs}, figures: &responsesFigures,
	}
	AnthropicMessages = &Form{
		name: "anthropic", maxTools: 10_000, defers: true, dialect: &Anthropic, starts: text.IsSafeByte, schema: "input_schema",
		answer: answer{media: block, marks: true, refers: true, write: blocks}, figures: &messagesFigures,
	}
	GeminiFunctions = &Form{
		name: "gemini", maxTools: 512, dialect: &Gemini, starts: startsFunction, schema: "parametersJsonSchema",
		answer: answer{media: inlineData, marks: true, write: functionResponse}, figures: &geminiFigures,
	}

	// MCP has what models read of an element of a tools/list result.
	MCP = &Form{name: "mcp", schema: "inputSchema", answer: answer{marks: true}}
)

// startsFunction reports whether c can begin the name of a Gemini function.
func startsFunction(c byte) bool { return text.IsSafeByte(c) && c != '-' && (c < '0' || c > '9') }

// Named returns the form of that name.
func Named(name string) (*Form, error) {
	for _, f := range []*Form{MCP, OpenAIChat, OpenAIResponses, AnthropicMessages, GeminiFunctions} {
		if f.name == name {
			return f, nil
		}
	}
	return nil, fmt.Errorf("there is no format %q", name)
}

// Check returns an error if a list of n tools is longer than the provider accepts.
func (f *Form) Check(n int) error {
	if f.maxTools > 0 && n > f.maxTools {
		return fmt.Errorf("%s accepts at most %d tools, this list has %d", f.name, f.maxTools, n)
	}
	return nil
}

// accepts reports whether the provider takes a tool with that name.
func (f *Form) accepts(name string) bool {
	return f.starts == nil || text.IsSafeName(name) && f.starts(name[0])
}

// A Tool is a tool as a provider takes it. The root describes the fields.
type Tool struct {
	Name        string
	Description string
	InputSchema json.RawMessage
	Deferred    bool
	JSON        json.RawMessage
	Losses      []string
}

// A Described is a tool that can be written in a form.
type Described interface {
	Name() string
	Description() string
	InputSchema() json.RawMessage
}

// Tool returns a tool in the form. If deferred is set, the tool has the provider's mark
// for tools that the model finds by a search. It fails if the provider has no such mark or
// does not accept the name, or if the schema is not a JSON object.
func (f *Form) Tool(d Described, deferred bool) (Tool, error) {
	name, description, input := d.Name(), d.Description(), text.Compact(d.InputSchema())
	switch {
	case deferred && !f.defers:
		return Tool{}, fmt.Errorf("the format %s can't defer tools", f.name)
	case !json.Valid(input) || input[0] != '{':
		return Tool{}, fmt.Errorf("tool %q: the input schema is not a JSON object", name)
	case !f.accepts(name):
		return Tool{}, fmt.Errorf("tool %q has a name that %s does not accept", text.Line(name, text.MaxName), f.name)
	}
	t := Tool{Name: name, Description: description, Deferred: deferred}
	input = schema.Prune(input)
	if f.dialect != nil {
		input, t.Losses = Convert(input, *f.dialect)
		input = schema.Prune(input) // what led to a definition may have gone
	}
	t.InputSchema = input
	members := []text.Member{{Name: "name", Value: text.Quote(name)}}
	if description != "" {
		members = append(members, text.Member{Name: "description", Value: text.Quote(description)})
	}
	members = append(append(members, text.Member{Name: f.schema, Value: input}), f.last...)
	if f.enveloped {
		members = []text.Member{{Name: "function", Value: text.JoinMembers(members)}}
	}
	if f.typed {
		members = append([]text.Member{{Name: "type", Value: text.Quote("function")}}, members...)
	}
	if deferred {
		members = append(members, text.Member{Name: "defer_loading", Value: json.RawMessage("true")})
	}
	t.JSON = text.JoinMembers(members)
	return t, nil
}
