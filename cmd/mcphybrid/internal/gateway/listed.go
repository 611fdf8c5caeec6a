package gateway

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
)

// alwaysLoad is the member of a tool's _meta by which clients load the tool in any case.
const alwaysLoad = "anthropic/alwaysLoad"

// listed returns a tool as the client gets it: everything in the server's
// definition that the protocol knows, under the registered name. Some clients
// refuse the whole list if one schema does not say that it describes an object,
// so such a schema is changed to say it. If wary, it leaves out what could
// change unseen: icons, and _meta except whether to load the tool always and what it
// says of apps. If modern, the client knows protocol 2026-07-28, where results may be other
// than objects.
func listed(t mcphybrid.Tool, wary, modern bool) mcp.Tool {
	tool := mcp.Tool{Name: t.Name(), Description: t.Description(), RawInputSchema: objectSchema(t.InputSchema())}
	if hinted, ok := t.(interface{ Annotations() mcp.ToolAnnotation }); ok {
		tool.Annotations = hinted.Annotations()
	}
	b, ok := t.(*mcphybrid.BridgeTool)
	if !ok { // a meta tool: a client that hides tools must not hide those that find them
		tool.Meta = mcp.NewMetaFromMap(map[string]any{alwaysLoad: true})
		return tool
	}
	tool.Title = b.Title()
	if output := b.OutputSchema(); output != nil && (modern || isObjectSchema(output)) {
		tool.RawOutputSchema = output
	}
	var more struct {
		Input json.RawMessage `json:"inputSchema"`
		Meta  json.RawMessage `json:"_meta"`
		Icons json.RawMessage `json:"icons"`
	}
	var meta map[string]any
	_ = json.Unmarshal(b.Raw(), &more) // each of them may be unreadable, and is then dropped
	if json.Unmarshal(more.Meta, &meta) != nil {
		meta = nil
	}
	tool.RawInputSchema = withDraft(tool.RawInputSchema, more.Input)
	if wary {
		known := make(map[string]any)
		if meta[alwaysLoad] == true {
			known[alwaysLoad] = true
		}
		ui := make(map[string]any)
		if uri := b.AppURI(); uri != "" {
			ui["resourceUri"] = uri
		}
		if who := visibility(meta); who != nil {
			ui["visibility"] = who
		}
		if len(ui) > 0 {
			known["ui"] = ui
		}
		if len(known) > 0 {
			tool.Meta = mcp.NewMetaFromMap(known)
		}
		return tool
	}
	if meta != nil {
		tool.Meta = mcp.NewMetaFromMap(meta)
	}
	if json.Unmarshal(more.Icons, &tool.Icons) != nil {
		tool.Icons = nil
	}
	return tool
}

// visibility returns who may call a tool by its _meta: "model" and "app", or nil if it does not
// say.
func visibility(meta map[string]any) (who []string) {
	ui, _ := meta["ui"].(map[string]any)
	names, said := ui["visibility"].([]any)
	for _, name := range []string{"model", "app"} {
		if slices.Contains(names, any(name)) {
			who = append(who, name)
		}
	}
	if said && who == nil {
		return []string{}
	}
	return who
}

func isObjectSchema(schema json.RawMessage) bool {
	var s struct{ Type any }
	return json.Unmarshal(schema, &s) == nil && s.Type == "object"
}

// objectSchema returns a schema that says "type": "object", because arguments
// are an object. The rest of the schema is checked as its server wrote it.
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

// draft matches the names of the published drafts of JSON Schema. Another could say anything.
var draft = regexp.MustCompile(`^https?://json-schema\.org/(draft/2020-12|draft/2019-09|draft-07|draft-06|draft-04)/schema#?$`)

// withDraft returns a schema with the draft that its server names: models have no use for
// it, but validators do.
func withDraft(schema, written json.RawMessage) json.RawMessage {
	var names struct {
		Draft string `json:"$schema"`
	}
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(schema), []byte("{"))
	if json.Unmarshal(written, &names) != nil || !draft.MatchString(names.Draft) || !ok || bytes.Contains(schema, []byte(`"$schema"`)) {
		return schema
	}
	begin := `{"$schema":"` + names.Draft + `"`
	if !bytes.HasPrefix(bytes.TrimSpace(rest), []byte("}")) {
		begin += ","
	}
	return append([]byte(begin), rest...)
}
