// Package request writes what a request to a model has of tools: their list, and the messages
// that say later which tools there are, as each provider takes them.
package request

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/dialect"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/provider"
)

// A Form is how a request in a format is written: its list of tools, and what it says of
// tools between the messages.
type Form struct {
	format   provider.Format
	maxTools int  // limit of one list; 0 if none is known
	searches bool // the host answers the searches of its models: see SearchTool
	defers   bool // it has a mark for tools that the model finds by a search
	callers  bool // it can say who may call a tool

	dialect  *dialect.Dialect  // of the schemas; nil takes all
	starts   func(c byte) bool // of names; nil takes all
	typed    bool              // it begins with the type "function"
	schema   string            // the provider's name for the schema
	strict   []text.Member     // after a schema that is strict as it stands
	loose    []text.Member     // after another one
	examples string            // the provider's name for examples of arguments; "" if it has none
	output   string            // the provider's name for the schema of structured content
	envelope string            // the name of an object that has all but the type, or ""
	inner    string            // the one member of the object that has the schema, or "" if it is the schema
	talk     conversation      // how it takes what is new between messages
}

// The forms of the providers. The limits come from their documentation and from
// the errors that their APIs return, as of November 2026:
//
//   - OpenAI: names of [A-Za-z0-9_-]{1,64}, 128 tools in chat completions.
//     Responses makes a schema strict, and so its optional parameters
//     required, unless told not to. Descriptions have had no limit since 2025. Chat
//     completions are never strict: other endpoints speak them too, and some refuse a
//     list in which only some tools are. Some of these defer tools, as OpenAI does not:
//     vLLM (pull request 40190), Baseten, OpenRouter and Orq by their documentation.
//   - Anthropic: names of [A-Za-z0-9_-]{1,128}, 10,000 tools. No tool is strict: a
//     request may have 20 that are, and their schemas are compiled into one
//     grammar, which the API refuses if it is too large. Only the host knows all of a
//     request.
//   - Gemini: names of [A-Za-z_][A-Za-z0-9_.:-]{0,127}, 63 more for older models;
//     512 tools.
//   - Bedrock: names of [a-zA-Z0-9_-]{1,64}. Its prompt caching wants marks (cachePoint),
//     which are the host's.
//
// Package dialect has the limits of schemas.
var (
	OpenAIChat = &Form{
		format: provider.OpenAIChat, maxTools: 128, defers: true, dialect: &dialect.OpenAI, starts: text.IsSafeByte, typed: true, schema: "parameters", envelope: "function",
		talk: conversation{write: userText, body: chatBody},
	}
	OpenAIResponses = &Form{
		format: provider.OpenAIResponses, defers: true, searches: true, callers: true, dialect: &dialect.OpenAI, starts: text.IsSafeByte,
		typed: true, schema: "parameters", strict: strictly("true"), loose: strictly("false"), output: "output_schema",
		talk: conversation{adds: gptAdds, write: developerItems, body: responsesBody},
	}
	Anthropic = &Form{
		format: provider.Anthropic, maxTools: 10_000, defers: true, callers: true, dialect: &dialect.Anthropic, starts: text.IsSafeByte, schema: "input_schema", examples: "input_examples",
		talk: conversation{adds: claudeAdds, removes: true, beta: "inline-tools-2026-09-15", write: systemBlocks, body: messagesBody},
	}
	Gemini = &Form{
		format: provider.Gemini, maxTools: 512, dialect: &dialect.Gemini, starts: startsFunction, schema: "parametersJsonSchema",
		talk: conversation{write: userPart, body: contentsBody},
	}

	Bedrock = &Form{
		format: provider.Bedrock, dialect: &dialect.Bedrock, starts: text.IsSafeByte, schema: "inputSchema", inner: "json", envelope: "toolSpec",
		talk: conversation{write: userBlocks, body: converseBody},
	}

	// MCP has what models read of an element of a tools/list result.
	MCP = &Form{format: provider.MCP, schema: "inputSchema", talk: conversation{write: userContent, body: samplingBody}}
)

func strictly(value string) []text.Member {
	return []text.Member{{Name: "strict", Value: json.RawMessage(value)}}
}

// startsFunction reports whether c, a safe byte, can begin the name of a Gemini function.
func startsFunction(c byte) bool { return c != '-' && (c < '0' || c > '9') }

// FormOf returns the form of a format.
func FormOf(format provider.Format) (*Form, error) {
	for _, f := range []*Form{MCP, OpenAIChat, OpenAIResponses, Anthropic, Gemini, Bedrock} {
		if f.format == format {
			return f, nil
		}
	}
	return nil, fmt.Errorf("there is no format %q", string(format))
}

// Format returns the format of the form.
func (f *Form) Format() provider.Format { return f.format }

// Check returns an error if a list of tools is longer than the provider accepts.
func (f *Form) Check(tools, deferred int) error {
	if f == OpenAIChat && deferred > 0 { // an endpoint that takes the mark is not OpenAI's
		return nil
	}
	if f.maxTools > 0 && tools > f.maxTools {
		return fmt.Errorf("%s accepts at most %d tools, this list has %d", f.format, f.maxTools, tools)
	}
	return nil
}

// accepts reports whether the provider takes a tool with that name.
func (f *Form) accepts(name string) bool {
	return f.starts == nil || text.IsSafeName(name) && f.starts(name[0])
}

// A Described is a tool that can be written in a form.
type Described interface {
	Name() string
	Description() string
	InputSchema() json.RawMessage
}

// Answers is implemented by tools that may say what they answer with.
type Answers interface {
	OutputSchema() json.RawMessage // of the structured content, or nil
}

// A Listing says in which list a tool stands.
type Listing int

const (
	Listed   Listing = iota // in a list that the model sees
	Beside                  // the same, and the list has deferred tools too
	Deferred                // it has the provider's mark for tools that the model finds by a search
)

// Tool returns a tool in the form. It fails if the tool is deferred and the provider has no
// mark for that, if the provider does not accept the name, or if the schema is not a JSON
// object.
func (f *Form) Tool(d Described, in Listing) (provider.Tool, error) {
	name, description, input := d.Name(), d.Description(), text.Compact(d.InputSchema())
	deferred := in == Deferred
	switch {
	case deferred && !f.defers:
		return provider.Tool{}, fmt.Errorf("the format %s can't defer tools", f.format)
	case !json.Valid(input) || input[0] != '{':
		return provider.Tool{}, fmt.Errorf("tool %q: the input schema is not a JSON object", name)
	case !f.accepts(name):
		return provider.Tool{}, fmt.Errorf("tool %q has a name that %s does not accept", text.Line(name, text.MaxName), f.format)
	}
	t := provider.Tool{Name: name, Description: description, Deferred: deferred}
	input = schema.Prune(input)
	if listed, ok := d.(interface{ Raw() json.RawMessage }); ok && f == MCP { // a program reads it, which may validate
		values, _ := text.Fields(listed.Raw(), "inputSchema")
		input = schema.Named(input, values[0])
	}
	if f.dialect != nil {
		input, t.Losses = dialect.Convert(input, *f.dialect)
		input = schema.Prune(input) // what led to a definition may have gone
	}
	var further []text.Member
	if f.examples != "" && in == Listed {
		rest, examples, loss := takeExamples(input)
		if examples != nil {
			input = rest
			further = append(further, text.Member{Name: f.examples, Value: examples})
		}
		if loss != "" {
			t.Losses = append(t.Losses, loss)
		}
	}
	if f.strict != nil && dialect.IsStrict(input) {
		further = append(further, f.strict...)
	} else {
		further = append(further, f.loose...)
	}
	if a, ok := d.(Answers); ok && f.output != "" {
		if output := f.outputOf(a.OutputSchema()); output != nil {
			further = append(further, text.Member{Name: f.output, Value: output})
		}
	}
	t.InputSchema = input
	members := []text.Member{{Name: "name", Value: text.Quote(name)}}
	if description != "" {
		members = append(members, text.Member{Name: "description", Value: text.Quote(description)})
	}
	if f.inner != "" {
		input = text.JoinMembers([]text.Member{{Name: f.inner, Value: input}})
	}
	members = append(append(members, text.Member{Name: f.schema, Value: input}), further...)
	if f.envelope != "" {
		members = []text.Member{{Name: f.envelope, Value: text.JoinMembers(members)}}
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

// WithCallers returns a tool that these may call, as the provider names them. If the
// provider has no such names, it returns t.
func (f *Form) WithCallers(t provider.Tool, callers []string) provider.Tool {
	if f.callers {
		member := text.JoinMembers([]text.Member{{Name: "allowed_callers", Value: raw(callers)}})
		t.JSON = json.RawMessage(strings.TrimSuffix(string(t.JSON), "}") + "," + string(member[1:]))
	}
	return t
}
