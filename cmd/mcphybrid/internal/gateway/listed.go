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
	more := readable(b.Raw())
	var meta map[string]any
	if more.meta != nil {
		meta = more.meta.AdditionalFields
	}
	tool.RawInputSchema = withDraft(tool.RawInputSchema, more.input)
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
	tool.Meta, tool.Icons = more.meta, more.icons
	return tool
}

// A rest is what an element of a server's list has that the library does not read.
type rest struct {
	input json.RawMessage // as the server wrote it
	meta  *mcp.Meta
	icons []mcp.Icon
	size  *int64
}

// readable returns the rest of an element, without what can't be read or what clients refuse.
func readable(element json.RawMessage) (r rest) {
	var of struct {
		Input json.RawMessage `json:"inputSchema"`
		Meta  json.RawMessage `json:"_meta"`
		Icons json.RawMessage `json:"icons"`
		Size  json.RawMessage `json:"size"`
	}
	_ = json.Unmarshal(element, &of)
	r.input = of.Input
	var meta map[string]any
	if json.Unmarshal(of.Meta, &meta) == nil && meta != nil {
		r.meta = mcp.NewMetaFromMap(meta)
	}
	if json.Unmarshal(of.Icons, &r.icons) != nil {
		r.icons = nil
	}
	for i, icon := range r.icons {
		if icon.Theme != mcp.IconThemeLight && icon.Theme != mcp.IconThemeDark {
			r.icons[i].Theme = ""
		}
	}
	if json.Unmarshal(of.Size, &r.size) != nil {
		r.size = nil
	}
	return r
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

// isForApps reports whether a tool that apps may call is for them only. The tool itself says so:
// two looks, at the model's tools and at those of apps, could see two of its server's lists.
func isForApps(t *mcphybrid.BridgeTool) bool {
	var has struct {
		Meta map[string]any `json:"_meta"`
	}
	if json.Unmarshal(t.Raw(), &has) != nil {
		return false
	}
	who := visibility(has.Meta)
	return who != nil && !slices.Contains(who, "model")
}

func isObjectSchema(schema json.RawMessage) bool {
	var s struct{ Type any }
	return json.Unmarshal(schema, &s) == nil && s.Type == "object"
}

// objectSchema returns an input schema as the protocol wants it, since a client may refuse the whole list
// for one that differs: it says "type": "object", its properties are schemas in braces, and its
// required ones are names. The rest of the schema is as its server wrote it, and arguments are
// checked by that.
func objectSchema(schema json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil || members == nil {
		return schema
	}
	differs := !isObjectSchema(schema)
	members["type"] = json.RawMessage(`"object"`)
	if required, ok := members["required"]; ok && !areNames(required) {
		differs = true
		delete(members, "required")
	}
	if all, ok := members["properties"]; ok {
		var properties map[string]json.RawMessage
		if json.Unmarshal(all, &properties) != nil || properties == nil {
			differs = true
			delete(members, "properties")
		}
		braced := false
		for name, p := range properties {
			if p[0] != '{' {
				braced = true
				properties[name] = json.RawMessage(`{}`)
				if string(p) == "false" {
					properties[name] = json.RawMessage(`{"not":{}}`)
				}
			}
		}
		if braced {
			differs = true
			members["properties"], _ = json.Marshal(properties) // what was decoded can be encoded
		}
	}
	if !differs {
		return schema
	}
	changed, _ := json.Marshal(members)
	return changed
}

// areNames reports whether JSON is an array of strings.
func areNames(raw json.RawMessage) bool {
	var names []any
	if json.Unmarshal(raw, &names) != nil || names == nil {
		return false
	}
	return !slices.ContainsFunc(names, func(v any) bool { _, ok := v.(string); return !ok })
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
