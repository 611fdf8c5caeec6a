package request

import (
	"encoding/json"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/provider"
)

// OpenAI's responses have a search of their own, tool_search. With the execution "client"
// the host answers it, and the tools that it finds need not be in the request's list: they
// come with the answer. By openai-go v3.96.0:
//
//   - ToolSearchTool is what the list has, with a description and parameters.
//   - ResponseToolSearchCall is the model's search. Its arguments are an object.
//   - ResponseToolSearchOutputItemParam is the answer. Its tools are functions or
//     ToolSearchOutputNamespaceTool, which groups some under a name and a description.
//   - A function_call has the name of its namespace in a member beside the function's own
//     name. It must go back with that.
//
// OpenAI's guide on tool search recommends namespaces, since models are trained on them,
// with fewer than ten functions each in the list. That is about lists, where a search loads
// a namespace as a whole. Codex answers as we do: with the tools that were found alone.

// Searches reports whether the host answers the searches of the provider's models.
func (f *Form) Searches() bool { return f.searches }

// SearchTool returns the element of the list that lets the model search by a tool.
func (f *Form) SearchTool(d Described) provider.Tool {
	t := provider.Tool{Name: "tool_search", Description: d.Description(), InputSchema: text.Compact(d.InputSchema())}
	t.JSON = text.JoinMembers([]text.Member{
		{Name: "type", Value: text.Quote(t.Name)},
		{Name: "execution", Value: text.Quote("client")},
		{Name: "description", Value: text.Quote(t.Description)},
		{Name: "parameters", Value: t.InputSchema},
	})
	return t
}

// A Namespace has some tools under a name.
type Namespace struct {
	Name, Description string
	Tools             []json.RawMessage
}

// Found returns the answer to a search with that id, which is JSON or nil.
func Found(callID json.RawMessage, list []Namespace) json.RawMessage {
	tools := make([]any, len(list))
	for i, n := range list {
		tools[i] = members{"type": "namespace", "name": n.Name, "description": n.Description, "tools": n.Tools}
	}
	item := members{"type": "tool_search_output", "execution": "client", "status": "completed", "tools": tools}
	if len(callID) > 0 {
		item["call_id"] = callID
	}
	return raw(item)
}
