package request

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/provider"
)

// maxBreakpoints is how many breakpoints a request to Anthropic may have. Breakpoints tell what to cache: all
// that ends at one. In the order in which they matter, ours stand at the last message, behind
// the system prompt, behind the tools, and where the request before ended: see breakAtBefore. Of
// these, each breakpoint of the host's takes the place of the last.
const maxBreakpoints = 4

// ephemeral is Anthropic's breakpoint for what is cached up to here.
var ephemeral = json.RawMessage(`{"type":"ephemeral"}`)

const cacheControl = "cache_control"

// lookback is how many blocks Anthropic goes back from a breakpoint, the one at the breakpoint included,
// to find what it has cached. Its documentation does not say whether the contents of a
// result are blocks, so we count them and the result.
const lookback = 20

// breakAtLastTool sets a breakpoint at the last tool that is not deferred. Anthropic refuses the breakpoint on others.
func breakAtLastTool(tools []provider.Tool, list []json.RawMessage) {
	for i, t := range slices.Backward(tools) {
		if !t.Deferred {
			list[i] = json.RawMessage(strings.TrimSuffix(string(t.JSON), "}") + `,"cache_control":` + string(ephemeral) + "}")
			return
		}
	}
}

// breakAtBefore sets a breakpoint where the request before ended, if that is too far back for Anthropic to
// find it from the end: behind many calls in one answer, or many tools that came at once.
// That request ended before the model's last answer. It changes the list of messages, and
// none of these.
func breakAtBefore(messages []json.RawMessage) {
	n, end := 0, len(messages)-1
	for ; end >= 0; end-- {
		var m struct {
			Role    string
			Content json.RawMessage
		}
		_ = json.Unmarshal(messages[end], &m)
		n += countBlocks(m.Content)
		if m.Role == "assistant" {
			break
		}
	}
	if end < 1 || n < lookback {
		return
	}
	if marked, ok := withBreakpoint(messages[end-1]); ok {
		messages[end-1] = marked
	}
}

// countBlocks returns how many blocks a content has. A text is one.
func countBlocks(content json.RawMessage) int {
	blocks := text.Elements(content)
	n := max(len(blocks), 1)
	for _, raw := range blocks {
		var in struct{ Content json.RawMessage }
		_ = json.Unmarshal(raw, &in)
		n += len(text.Elements(in.Content))
	}
	return n
}

// countBreakpoints returns how many breakpoints messages, or blocks, and their contents have.
func countBreakpoints(list []json.RawMessage) (n int) {
	for _, raw := range list {
		if !bytes.Contains(raw, []byte(cacheControl)) {
			continue
		}
		var in struct {
			Mark    json.RawMessage `json:"cache_control"`
			Content json.RawMessage
			Source  json.RawMessage // of a document; it may have a content
		}
		_ = json.Unmarshal(raw, &in)
		if !text.IsNull(in.Mark) {
			n++
		}
		n += countBreakpoints(text.Elements(in.Content))
		if in.Source != nil {
			n += countBreakpoints([]json.RawMessage{in.Source})
		}
	}
	return n
}

// withBreakpoint returns a message with a breakpoint at its last block that may have one. It returns
// false if there is none.
func withBreakpoint(message json.RawMessage) (json.RawMessage, bool) {
	members, err := text.Members(message)
	if err != nil {
		return nil, false
	}
	at := slices.IndexFunc(members, func(m text.Member) bool { return m.Name == "content" })
	if at < 0 {
		return nil, false
	}
	content := members[at].Value
	if _, ok := text.Unquote(content); ok { // short for a block
		content = text.JoinElements([]json.RawMessage{text.JoinMembers([]text.Member{{Name: "type", Value: text.Quote("text")}, {Name: "text", Value: content}})})
	}
	blocks := text.Elements(content)
	for i, block := range slices.Backward(blocks) {
		inner, err := text.Members(block)
		if err != nil || !takesBreakpoint(block) {
			continue
		}
		inner = slices.DeleteFunc(inner, func(m text.Member) bool { return m.Name == cacheControl }) // null
		blocks[i] = text.JoinMembers(append(inner, text.Member{Name: cacheControl, Value: ephemeral}))
		members[at].Value = text.JoinElements(blocks)
		return text.JoinMembers(members), true
	}
	return nil, false
}

// takesBreakpoint reports whether a block may have a breakpoint: Anthropic's blocks of these types have
// no such member, and an empty text may not have it.
func takesBreakpoint(block json.RawMessage) bool {
	var b struct{ Type, Text string }
	if json.Unmarshal(block, &b) != nil {
		return false
	}
	switch b.Type {
	case "thinking", "redacted_thinking", "fallback", "mcp_tool_listing":
		return false
	}
	return b.Type != "text" || b.Text != ""
}
