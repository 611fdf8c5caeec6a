package billing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/provider"
)

// Tokens that a request has beside its texts. No provider documents them: these are
// assumptions, and were not compared with what a provider counts.
const (
	aroundText = 4   // a message and its role
	aroundCall = 12  // a call or a result, with its id
	searchTool = 140 // the definition of a provider's own search
)

// formats has the members of requests that models read, in the order in which they do.
var formats = map[provider.Format][]list{
	provider.Anthropic:       {{"tools", tool}, {"system", system}, {"messages", anthropicMessage}},
	provider.OpenAIChat:      {{"tools", tool}, {"messages", chatMessage}},
	provider.OpenAIResponses: {{"tools", tool}, {"instructions", system}, {"input", responsesItem}},
	provider.Gemini:          {{"tools", geminiTools}, {"systemInstruction", geminiSystem}, {"contents", geminiContent}},
}

// A list is a member of a request and what makes parts of one of its elements.
type list struct {
	member string
	parts  func(raw json.RawMessage) ([]part, error)
}

// tool reads a definition. The provider's marks are not for the model.
func tool(raw json.RawMessage) ([]part, error) {
	var in struct {
		Type, Name  string
		Description json.RawMessage
		Deferred    bool `json:"defer_loading"`
		Function    struct{ Name string }
		Tools       []json.RawMessage // of a namespace
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	switch {
	case strings.HasPrefix(in.Type, "tool_search") && in.Description == nil: // the provider's own
		return []part{{kind: Tool, frame: searchTool, name: in.Type}}, nil
	case in.Type == "namespace":
		parts := []part{{kind: Tool, text: fmt.Sprintf(`{"name":%q,"description":%s},`, in.Name, in.Description)}}
		for _, raw := range in.Tools {
			more, err := tool(raw)
			if err != nil {
				return nil, err
			}
			parts = append(parts, more...)
		}
		return parts, nil
	}
	members, err := text.Members(raw)
	if err != nil {
		return nil, err
	}
	members = slices.DeleteFunc(members, func(m text.Member) bool { return m.Name == "defer_loading" || m.Name == "cache_control" })
	return []part{{kind: Tool, text: string(text.JoinMembers(members)) + ",", name: cmp.Or(in.Name+in.Function.Name, in.Type), hidden: in.Deferred}}, nil
}

func system(raw json.RawMessage) ([]part, error) {
	return contents(System, raw)
}

// A content is a block of a message, of any provider. Only the members of its kind are set.
type content struct {
	Type string
	Text string

	// Calls.
	Name      string
	Input     json.RawMessage
	Args      json.RawMessage
	Arguments json.RawMessage
	Function  *content // of chat completions

	// Results.
	Content      json.RawMessage
	Output       json.RawMessage
	Response     json.RawMessage
	References   []json.RawMessage `json:"tool_references"`
	Reference    string            `json:"tool_name"`
	FunctionCall *content          `json:"functionCall"`
	FunctionResp *content          `json:"functionResponse"`

	// Tools that come in the conversation.
	Tool  struct{ Definition json.RawMessage }
	Tools []json.RawMessage
}

// contents reads a text or a list of contents.
func contents(kind Kind, raw json.RawMessage) (parts []part, err error) {
	if s, ok := text.Unquote(raw); ok {
		return []part{textPart(kind, s)}, nil
	}
	all, err := elements(raw)
	for _, raw := range all {
		var c content
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, err
		}
		more, err := c.parts(kind, raw)
		if err != nil {
			return nil, err
		}
		parts = append(parts, more...)
	}
	return parts, err
}

func textPart(kind Kind, s string) part {
	if kind == System {
		return part{kind: System, text: s}
	}
	return part{kind: kind, text: s, frame: aroundText}
}

// parts reads one content, of which raw is the JSON. What it does not know counts as it is
// written.
func (c *content) parts(kind Kind, raw json.RawMessage) ([]part, error) {
	switch {
	case c.FunctionCall != nil:
		return call(c.FunctionCall.Name, c.FunctionCall.Args), nil
	case c.FunctionResp != nil:
		return result(c.FunctionResp.Response)
	}
	switch c.Type {
	case "", "text", "input_text", "output_text":
		return []part{textPart(kind, c.Text)}, nil
	case "tool_use", "server_tool_use":
		return call(c.Name, c.Input), nil
	case "function_call", "tool_search_call":
		return call(c.Name, c.Arguments), nil
	case "tool_result":
		return result(c.Content)
	case "function_call_output":
		return result(c.Output)
	case "tool_search_tool_result":
		var found content
		if err := json.Unmarshal(c.Content, &found); err != nil {
			return nil, err
		}
		return result([]byte(text.JSON(found.References)))
	case "tool_addition":
		return defined(kind, []json.RawMessage{c.Tool.Definition})
	case "tool_search_output", "additional_tools":
		return defined(kind, c.Tools)
	}
	return []part{{kind: kind, text: string(raw), frame: aroundText}}, nil
}

// call reads arguments that are JSON, or a string with JSON.
func call(name string, args json.RawMessage) []part {
	written := string(args)
	if s, ok := text.Unquote(args); ok {
		written = s
	}
	return []part{{kind: Message, text: fmt.Sprintf(`{"name":%q,"input":%s}`, name, written), frame: aroundCall}}
}

// result reads what a call returned: a text, contents, or any JSON. All texts are one part;
// each tool that a search found is another.
func result(raw json.RawMessage) ([]part, error) {
	if s, ok := text.Unquote(raw); ok {
		return []part{{kind: Message, text: s, frame: aroundCall}}, nil
	}
	if len(raw) == 0 || raw[0] != '[' {
		return []part{{kind: Message, text: string(raw), frame: aroundCall}}, nil
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	var texts []string
	var found []part
	for _, raw := range all {
		var c content
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, err
		}
		switch c.Type {
		case "text", "input_text", "output_text":
			texts = append(texts, c.Text)
		case "tool_reference":
			found = append(found, part{name: c.Reference, found: true})
		default:
			texts = append(texts, string(raw))
		}
	}
	return append([]part{{kind: Message, text: strings.Join(texts, "\n"), frame: aroundCall}}, found...), nil
}

// defined reads definitions that stand in the conversation.
func defined(kind Kind, definitions []json.RawMessage) (parts []part, err error) {
	for _, raw := range definitions {
		more, err := tool(raw)
		if err != nil {
			return nil, err
		}
		for i := range more {
			more[i].kind, more[i].hidden = kind, false
			more[i].frame += aroundCall
		}
		parts = append(parts, more...)
	}
	return parts, nil
}

func anthropicMessage(raw json.RawMessage) ([]part, error) {
	var in struct{ Content json.RawMessage }
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	return contents(Message, in.Content)
}

// chatMessage reads a message of chat completions, of which the system prompt is the first.
func chatMessage(raw json.RawMessage) ([]part, error) {
	var in struct {
		Role    string
		Content json.RawMessage
		Calls   []content `json:"tool_calls"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	switch in.Role {
	case "system", "developer":
		return contents(System, in.Content)
	case "tool":
		return result(in.Content)
	}
	var parts []part
	if len(in.Content) > 0 && string(in.Content) != "null" {
		var err error
		if parts, err = contents(Message, in.Content); err != nil {
			return nil, err
		}
	}
	for _, c := range in.Calls {
		if c.Function != nil {
			parts = append(parts, call(c.Function.Name, c.Function.Arguments)...)
		}
	}
	return parts, nil
}

func responsesItem(raw json.RawMessage) ([]part, error) {
	if s, ok := text.Unquote(raw); ok {
		return []part{textPart(Message, s)}, nil
	}
	var in content
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	if in.Content != nil && (in.Type == "" || in.Type == "message") {
		return contents(Message, in.Content)
	}
	return in.parts(Message, raw)
}

func geminiTools(raw json.RawMessage) (parts []part, err error) {
	var in struct {
		Functions []json.RawMessage `json:"functionDeclarations"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	for _, raw := range in.Functions {
		more, err := tool(raw)
		if err != nil {
			return nil, err
		}
		parts = append(parts, more...)
	}
	return parts, nil
}

func geminiSystem(raw json.RawMessage) ([]part, error) { return geminiParts(System, raw) }

func geminiContent(raw json.RawMessage) ([]part, error) { return geminiParts(Message, raw) }

func geminiParts(kind Kind, raw json.RawMessage) ([]part, error) {
	var in struct{ Parts json.RawMessage }
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	return contents(kind, in.Parts)
}
