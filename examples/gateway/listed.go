package main

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
)

// listed returns a tool as the client gets it: all that its server says of it
// that the protocol knows, under its registered name. Some clients refuse the
// whole list for one schema that does not say it is an object's: such a one is
// made to.
func listed(t mcphybrid.Tool) mcp.Tool {
	tool := mcp.Tool{Name: t.Name(), Description: t.Description(), RawInputSchema: objectSchema(t.InputSchema())}
	b, ok := t.(*mcphybrid.BridgeTool)
	if !ok {
		return tool
	}
	tool.Title, tool.Annotations = b.Title(), b.Annotations()
	if output := b.OutputSchema(); output != nil && isObjectSchema(output) {
		tool.RawOutputSchema = output
	}
	var more struct {
		Meta json.RawMessage `json:"_meta"`
		// Icons that can't be read are none.
		Icons json.RawMessage `json:"icons"`
	}
	if json.Unmarshal(b.Raw(), &more) == nil {
		var meta map[string]any
		if json.Unmarshal(more.Meta, &meta) == nil && meta != nil {
			tool.Meta = mcp.NewMetaFromMap(meta)
		}
		if json.Unmarshal(more.Icons, &tool.Icons) != nil {
			tool.Icons = nil
		}
	}
	return tool
}

func isObjectSchema(schema json.RawMessage) bool {
	var s struct{ Type any }
	return json.Unmarshal(schema, &s) == nil && s.Type == "object"
}

// objectSchema returns a schema that says "type": "object", as arguments are.
// What else it says is checked as its server wrote it.
func objectSchema(schema json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if isObjectSchema(schema) || json.Unmarshal(schema, &members) != nil || members == nil {
		return schema
	}
	members["type"] = json.RawMessage(`"object"`)
	changed, err := json.Marshal(members)
	if err != nil {
		return schema
	}
	return changed
}
