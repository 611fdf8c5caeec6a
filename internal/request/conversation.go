package request

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/provider"
)

// News is what a model has to know since the request before.
type News struct {
	Text    string // "" if there is none
	Added   []provider.Tool
	Removed []string // names of tools that are no longer offered
}

// A conversation says how a provider takes what is new between the messages. As of
// November 2026, by the providers' SDKs and documentation:
//
//   - Anthropic: a message of the role system, behind one of the user, with texts and
//     with blocks that add and remove tools (anthropic-sdk-go v1.84.0,
//     BetaRequestToolAdditionBlockParam; beta inline-tools-2026-09-15). Models before
//     Opus 4.8 refuse the role; Sonnet 5 takes texts in it and no tools.
//   - OpenAI's responses: items additional_tools and messages of the developer
//     (openai-go v3.96.0, ResponseInputItemAdditionalToolsParam), since GPT-5.4.
//   - All others take texts only. Some endpoints of chat completions refuse a system
//     message that is not the first one, and Gemini has no such role, so it is the
//     user's.
type conversation struct {
	adds    func(model string) addition // nil: no model takes tools in the conversation
	removes bool                        // and removals of them
	beta    string                      // what the request must announce then
	write   func(n News, adds bool) []json.RawMessage
	body    func(system string, tools []json.RawMessage, messages []json.RawMessage) map[string]any
}

// An addition is whether a model takes tools inside a conversation. unknown is for a name
// that does not tell its version, such as "".
type addition int

const (
	unknown addition = iota
	refused
	taken
)

// since returns what holds for a version if the first that takes tools is another.
func since(first, v int) addition {
	if v < first {
		return refused
	}
	return taken
}

// Adds reports whether a model of the provider takes tools inside a conversation. It is
// false for a model that is not known, such as "".
func (f *Form) Adds(model string) bool { return f.talk.adds != nil && f.talk.adds(model) == taken }

// Refuses reports whether a model of the provider refuses tools inside a conversation. It
// is false for a model that is not known.
func (f *Form) Refuses(model string) bool {
	return f.talk.adds != nil && f.talk.adds(model) == refused
}

// CanAdd reports whether a model of the provider does.
func (f *Form) CanAdd() bool { return f.talk.adds != nil }

// CanDefer reports whether the provider has a mark for tools that the model finds by a search.
func (f *Form) CanDefer() bool { return f.defers }

// Removes reports whether the provider can take back a tool inside a conversation that
// adds tools.
func (f *Form) Removes() bool { return f.talk.removes }

// Betas returns what a request with tools in the conversation must announce, or nil.
func (f *Form) Betas() []string {
	if f.talk.beta == "" {
		return nil
	}
	return []string{f.talk.beta}
}

// Text returns the text of sections as a message has it: behind a line on who wrote it,
// where the message has the user's role.
func (f *Form) Text(sections string, adds bool) string {
	sections = strings.TrimLeft(sections, "\n")
	if sections == "" || f == OpenAIResponses || f == Anthropic && adds {
		return sections
	}
	return fromProgram + sections
}

// Messages returns the messages that tell the model what is new, in the words of
// [Form.Text]. If adds is not set, they are for a model that takes no tools there, and n
// has only a text for it.
func (f *Form) Messages(n News, adds bool) []json.RawMessage { return f.talk.write(n, adds) }

// Body returns the members of a request that have the system prompt, the tools and the
// messages. Where the provider wants to be told what to cache, there are marks: see maxBreakpoints.
func (f *Form) Body(system string, tools []provider.Tool, first int, messages []json.RawMessage) map[string]any {
	list := make([]json.RawMessage, len(tools))
	for i, t := range tools {
		list[i] = t.JSON
	}
	if messages == nil {
		messages = []json.RawMessage{}
	}
	if f != Anthropic {
		return f.talk.body(system, list, messages)
	}
	messages = inOrder(messages)
	left := maxBreakpoints - countBreakpoints(messages)
	if left >= 4 {
		breakAtBefore(messages)
	}
	if left >= 3 {
		breakAtLastTool(tools[:first], list)
	}
	body := f.talk.body(system, list, messages)
	if system != "" && left >= 2 {
		body["system"].([]any)[0].(members)[cacheControl] = ephemeral
	}
	if left >= 1 {
		body[cacheControl] = ephemeral
	}
	return body
}

type members = map[string]any

func raw(v any) json.RawMessage { return text.RawJSON(v) }

// claudeVersion finds the family and the version in the name of a model, which may stand
// between those of a platform and of a day. Two digits are no major version: some gateways
// call Opus 4.1 opus-41.
var claudeVersion = regexp.MustCompile(`claude-(opus|sonnet|haiku|fable|mythos)-(\d)(?:[-.](\d{1,2}))?(?:\D|$)`)

// claudeBefore4 finds models whose names have the version before the family, or no family.
var claudeBefore4 = regexp.MustCompile(`claude-(?:[123](?:[-.]|$)|instant)`)

// claudeAdds is for models of Anthropic's: Opus takes tools since 4.8, Sonnet and Haiku since
// 5.5, Fable and Mythos since 5.
func claudeAdds(model string) addition {
	m := claudeVersion.FindStringSubmatch(model)
	switch {
	case m != nil:
		first := map[string]int{"opus": 408, "sonnet": 505, "haiku": 505, "fable": 500, "mythos": 500}
		return since(first[m[1]], version(m[2], m[3]))
	case claudeBefore4.MatchString(model):
		return refused
	}
	return unknown
}

// gptVersion finds the version in the name of a model of OpenAI's. Two digits are no major
// version: Azure calls GPT-3.5 gpt-35.
var gptVersion = regexp.MustCompile(`(?:^|/)gpt-(\d)(?:\.(\d{1,2}))?(?:\D|$)`)

// gptAdds is for models of OpenAI's, which take tools since GPT-5.4.
func gptAdds(model string) addition {
	if m := gptVersion.FindStringSubmatch(model); m != nil {
		return since(504, version(m[1], m[2]))
	}
	return unknown
}

// version returns 100 times the major number and the minor one.
func version(major, minor string) int {
	a, _ := strconv.Atoi(major)
	b, _ := strconv.Atoi(minor)
	return 100*a + b
}

// systemBlocks writes Anthropic's form.
func systemBlocks(n News, adds bool) []json.RawMessage {
	if !adds {
		if n.Text == "" {
			return nil
		}
		return []json.RawMessage{raw(members{"role": "user", "content": []any{members{"type": "text", "text": n.Text}}})}
	}
	var blocks []any
	for _, name := range n.Removed {
		blocks = append(blocks, members{"type": "tool_removal", "tool": members{"type": "tool_reference", "name": name}})
	}
	for _, t := range n.Added {
		blocks = append(blocks, json.RawMessage(`{"type":"tool_addition","tool":{"type":"tool_definition","definition":`+string(t.JSON)+`}}`))
	}
	if n.Text != "" {
		blocks = append(blocks, members{"type": "text", "text": n.Text})
	}
	if blocks == nil {
		return nil
	}
	return []json.RawMessage{raw(members{"role": "system", "content": blocks})}
}

// developerItems writes the form of OpenAI's responses.
func developerItems(n News, adds bool) (items []json.RawMessage) {
	if adds && len(n.Added) > 0 {
		list := make([]json.RawMessage, len(n.Added))
		for i, t := range n.Added {
			list[i] = t.JSON
		}
		items = append(items, raw(members{"type": "additional_tools", "role": "developer", "tools": list}))
	}
	if n.Text != "" {
		items = append(items, raw(members{"type": "message", "role": "developer", "content": n.Text}))
	}
	return items
}

// userText writes a text as a message of the user.
func userText(n News, _ bool) []json.RawMessage {
	if n.Text == "" {
		return nil
	}
	return []json.RawMessage{raw(members{"role": "user", "content": n.Text})}
}

func userPart(n News, _ bool) []json.RawMessage {
	if n.Text == "" {
		return nil
	}
	return []json.RawMessage{raw(members{"role": "user", "parts": []any{members{"text": n.Text}}})}
}

func userBlocks(n News, _ bool) []json.RawMessage {
	if n.Text == "" {
		return nil
	}
	return []json.RawMessage{raw(members{"role": "user", "content": []any{members{"text": n.Text}}})}
}

func userContent(n News, _ bool) []json.RawMessage {
	if n.Text == "" {
		return nil
	}
	return []json.RawMessage{raw(members{"role": "user", "content": members{"type": "text", "text": n.Text}})}
}

// The requests. A member without content is left out: some providers refuse it.

func messagesBody(system string, tools, messages []json.RawMessage) map[string]any {
	body := members{"messages": messages}
	if system != "" {
		body["system"] = []any{members{"type": "text", "text": system}}
	}
	return withTools(body, tools)
}

func chatBody(system string, tools, messages []json.RawMessage) map[string]any {
	if system != "" {
		messages = slices.Insert(slices.Clone(messages), 0, raw(members{"role": "system", "content": system}))
	}
	return withTools(members{"messages": messages}, tools)
}

func responsesBody(system string, tools, messages []json.RawMessage) map[string]any {
	body := members{"input": messages}
	if system != "" {
		body["instructions"] = system
	}
	return withTools(body, tools)
}

func contentsBody(system string, tools, messages []json.RawMessage) map[string]any {
	body := members{"contents": messages}
	if system != "" {
		body["systemInstruction"] = members{"parts": []any{members{"text": system}}}
	}
	if len(tools) > 0 {
		body["tools"] = []any{members{"functionDeclarations": tools}}
	}
	return body
}

// converseBody joins messages of one role that follow each other, which Bedrock refuses.
func converseBody(system string, tools, messages []json.RawMessage) map[string]any {
	body := members{"messages": joinRoles(messages)}
	if system != "" {
		body["system"] = []any{members{"text": system}}
	}
	if len(tools) > 0 {
		body["toolConfig"] = members{"tools": tools}
	}
	return body
}

// joinRoles returns messages in which the contents of those that follow one of their role
// are its own. It leaves alone what is not an object with a role and a list of contents.
func joinRoles(messages []json.RawMessage) (joined []json.RawMessage) {
	var role string
	var contents []json.RawMessage
	for _, m := range messages {
		var in struct {
			Role    string
			Content []json.RawMessage
		}
		if json.Unmarshal(m, &in) != nil || in.Role == "" || len(in.Content) == 0 {
			in.Role, in.Content = "", nil
		}
		if last := len(joined) - 1; in.Role != "" && in.Role == role {
			contents = slices.Concat(contents, in.Content)
			joined[last] = raw(members{"role": role, "content": contents})
			continue
		}
		joined, role, contents = append(joined, m), in.Role, in.Content
	}
	return joined
}

// samplingBody has the members of MCP's sampling/createMessage.
func samplingBody(system string, tools, messages []json.RawMessage) map[string]any {
	body := members{"messages": messages}
	if system != "" {
		body["systemPrompt"] = system
	}
	return withTools(body, tools)
}

func withTools(body map[string]any, tools []json.RawMessage) map[string]any {
	if len(tools) > 0 {
		body["tools"] = tools
	}
	return body
}

// fromProgram stands before news in a message of the user, where the provider has no other
// role for them.
const fromProgram = "[Written by the program that runs the tools, not by the user.]\n\n"
