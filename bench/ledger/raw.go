package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/provider"
)

// written returns the definitions in a format, as servers wrote them: without the library,
// but under the names that it gives.
func (w *world) written(f provider.Format) []json.RawMessage {
	all := w.definitions[f]
	if all == nil {
		for i, t := range w.tools {
			name, about, schema := raw(w.names[i]), raw(t.Description), raw(t.InputSchema)
			var text string
			switch f {
			case provider.OpenAIResponses:
				text = fmt.Sprintf(`{"type":"function","name":%s,"description":%s,"parameters":%s,"strict":false}`, name, about, schema)
			case provider.Gemini:
				text = fmt.Sprintf(`{"name":%s,"description":%s,"parametersJsonSchema":%s}`, name, about, schema)
			default:
				text = fmt.Sprintf(`{"name":%s,"description":%s,"input_schema":%s}`, name, about, schema)
			}
			all = append(all, json.RawMessage(text))
		}
		w.definitions[f] = all
	}
	return all
}

// deferred returns the definitions with the provider's mark.
func (w *world) deferred(f provider.Format) []json.RawMessage {
	all := make([]json.RawMessage, len(w.tools))
	for i, def := range w.written(f) {
		all[i] = json.RawMessage(strings.TrimSuffix(string(def), "}") + `,"defer_loading":true}`)
	}
	return all
}

// A direct host has no session: the model calls the servers' tools.
type direct struct {
	w      *world
	format provider.Format
	tools  []json.RawMessage
}

func openRaw(w *world, f provider.Format, _ string) (host, error) {
	return &direct{w, f, w.written(f)}, nil
}

func (d *direct) request(messages []json.RawMessage) (map[string]any, []json.RawMessage, error) {
	return bodyOf(d.format, d.tools, "", messages), nil, nil
}

func (d *direct) answer(_ context.Context, c call) ([]json.RawMessage, string, error) {
	messages, err := called(d.format, c, mcp.NewToolResultText(d.w.result))
	return messages, d.w.result, err
}

// The names of the providers' own searches.
const (
	anthropicSearch = "tool_search_tool_bm25_20251119" // its type, which stands for it
	openAISearch    = "tool_search"
)

// native hides all definitions and lets the provider search. We don't know what a provider's
// search finds, and take what ours does.
type native struct{ direct }

func openNative(w *world, f provider.Format, _ string) (host, error) {
	n := &native{direct{w: w, format: f}}
	tools := w.deferred(f)
	if f == provider.Anthropic {
		n.tools = append(tools, raw(object{"type": anthropicSearch, "name": "tool_search_tool_bm25"}))
		return n, nil
	}
	// OpenAI hides only what stands in a namespace.
	n.tools = []json.RawMessage{raw(object{"type": openAISearch})}
	for _, group := range byServer(w.tools) {
		server := group[0].Server
		n.tools = append(n.tools, raw(object{"type": "namespace", "name": server, "description": "Tools of " + server + ".", "tools": tools[:len(group)]}))
		tools = tools[len(group):]
	}
	return n, nil
}

func (n *native) answer(ctx context.Context, c call) ([]json.RawMessage, string, error) {
	if c.name != anthropicSearch && c.name != openAISearch {
		return n.direct.answer(ctx, c)
	}
	var args struct{ Query string }
	if err := json.Unmarshal(c.args, &args); err != nil {
		return nil, "", err
	}
	var references []object
	var definitions []json.RawMessage
	for _, hit := range n.w.nothing.Search(args.Query, searchResults) {
		references = append(references, object{"type": "tool_reference", "tool_name": hit.Tool.Name()})
		definitions = append(definitions, n.w.written(n.format)[n.w.byName[hit.Tool.Name()]])
	}
	if n.format == provider.OpenAIResponses {
		return []json.RawMessage{
			said(n.format, false, c.say),
			raw(object{"type": "tool_search_call", "arguments": c.args}),
			raw(object{"type": "tool_search_output", "tools": definitions}),
		}, "", nil
	}
	return []json.RawMessage{raw(object{"role": "assistant", "content": []object{
		{"type": "text", "text": c.say},
		{"type": "server_tool_use", "id": c.id, "name": "tool_search_tool_bm25", "input": c.args},
		{"type": "tool_search_tool_result", "tool_use_id": c.id, "content": object{"type": "tool_search_tool_search_result", "tool_references": references}},
	}})}, "", nil
}
