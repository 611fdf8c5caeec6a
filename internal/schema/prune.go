package schema

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Prune returns a schema, a compact JSON object, without what says nothing about the
// values that it allows: definitions at its root that nothing refers to, and a $schema
// without which it means the same. All else keeps its bytes. In doubt, as with an $id or
// an anchor, Prune keeps all definitions. It returns schema itself if there is nothing to
// leave out.
func Prune(schema json.RawMessage) json.RawMessage {
	if !bytes.Contains(schema, []byte(`"$`)) && !bytes.Contains(schema, []byte(`"definitions"`)) {
		return schema
	}
	members, err := text.Members(schema)
	if err != nil {
		return schema
	}
	used := usedBy(schema, len(members))
	var kept []text.Member
	changed := false
	for _, m := range members {
		if m.Name == "$schema" && saysNothing(m.Value, schema) {
			changed = true
			continue
		}
		if areDefinitions(m) && !used.all {
			all, _ := text.Members(m.Value)
			var list []text.Member
			for _, d := range all {
				if used.names[m.Name+"/"+d.Name] {
					list = append(list, d)
				}
			}
			if len(list) == 0 {
				changed = true
				continue
			}
			if len(list) < len(all) {
				changed = true
				m.Value = text.JoinMembers(list)
			}
		}
		kept = append(kept, m)
	}
	if !changed {
		return schema
	}
	return text.JoinMembers(kept)
}

// Named returns pruned, which [Prune] made of a schema, with the $schema of that schema: some
// readers go by it.
func Named(pruned, of json.RawMessage) json.RawMessage {
	values, twice := text.Fields(of, "$schema")
	has, _ := text.Fields(pruned, "$schema")
	if values[0] == nil || twice != "" || has[0] != nil {
		return pruned
	}
	members, err := text.Members(pruned)
	if err != nil {
		return pruned
	}
	return text.JoinMembers(append([]text.Member{{Name: "$schema", Value: text.Compact(values[0])}}, members...))
}

// HasDefinitions reports whether a keyword has definitions, to which others refer.
func HasDefinitions(keyword string) bool { return keyword == "$defs" || keyword == "definitions" }

func areDefinitions(m text.Member) bool { return HasDefinitions(m.Name) && m.Value[0] == '{' }

// A use is what a schema refers to of the definitions at its root. A definition is named
// as $defs/Name.
type use struct {
	names map[string]bool
	fresh []string // of names, not read yet
	all   bool     // something that we don't resolve may refer to any definition
}

// usedBy returns which definitions of a schema with so many members are referred to from
// outside of the definitions, or from one that is used. Below the root, the last of several
// members of the same name counts.
func usedBy(schema json.RawMessage, members int) *use {
	u := &use{names: make(map[string]bool)}
	var rest map[string]any
	_ = json.Unmarshal(schema, &rest) // its members could be read
	u.all = len(rest) < members       // some have the same name
	bodies := make(map[string]any)
	for keyword, v := range rest {
		if list, ok := v.(map[string]any); ok && HasDefinitions(keyword) {
			for name, body := range list {
				bodies[keyword+"/"+name] = body
			}
			delete(rest, keyword)
		}
	}
	if len(bodies) > 0 {
		u.value("", rest)
	}
	for len(u.fresh) > 0 && !u.all {
		next := u.fresh[0]
		u.fresh = u.fresh[1:]
		u.value("", bodies[next])
	}
	return u
}

// value reads the references in the value of a keyword. It takes data such as a default
// for schemas too: then a definition stays that could go.
func (u *use) value(keyword string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			u.value(name, value)
		}
	case []any:
		for _, value := range v {
			u.value("", value)
		}
	case string:
		switch keyword {
		case "$ref":
			u.refer(v)
		case "$dynamicRef", "$recursiveRef", "$id", "id":
			u.all = true
		}
	}
}

// refer notes the definition that a reference leads to or through.
func (u *use) refer(ref string) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		u.all = true // a definition may have that $id
		return
	}
	if pointer == "" {
		return // the root
	}
	pointer, err := url.PathUnescape(pointer)
	parts := strings.SplitN(pointer, "/", 4)
	switch {
	case err != nil, parts[0] != "", len(parts) == 2 && HasDefinitions(parts[1]):
		u.all = true
	case HasDefinitions(parts[1]):
		name := strings.ReplaceAll(strings.ReplaceAll(parts[2], "~1", "/"), "~0", "~")
		if at := parts[1] + "/" + name; !u.names[at] {
			u.names[at] = true
			u.fresh = append(u.fresh, at)
		}
	}
}

// saysNothing reports whether a schema means the same without its $schema, by draft
// 2020-12, which is MCP's default: it names a draft that differs in none of the keywords
// that the schema may have.
func saysNothing(named, schema json.RawMessage) bool {
	switch DraftName(named) {
	case "//json-schema.org/draft/2020-12/schema":
		return true
	case "//json-schema.org/draft-07/schema", "//json-schema.org/draft/2019-09/schema":
		for _, keyword := range drafted {
			if bytes.Contains(schema, []byte(keyword)) {
				return false
			}
		}
		return refsAlone(schema)
	}
	return false
}

// DraftName returns what the value of $schema names, without http or https and without a
// fragment that is empty.
func DraftName(named json.RawMessage) string {
	draft, _ := text.Unquote(named)
	return strings.TrimSuffix(draft[strings.Index(draft, ":")+1:], "#")
}

// refsAlone reports whether nothing stands beside any $ref of a compact schema. Drafts
// differ in what that means.
func refsAlone(schema []byte) bool {
	for {
		before, after, found := bytes.Cut(schema, []byte(`"$ref":`))
		if !found {
			return true
		}
		end := bytes.IndexByte(after[1:], '"') + 1 // of the string, if it is one
		if !bytes.HasSuffix(before, []byte("{")) || after[0] != '"' || bytes.IndexByte(after[:end], '\\') >= 0 || after[end+1] != '}' {
			return false
		}
		schema = after
	}
}

// drafted are the beginnings of keywords that mean something only since or only before
// draft 2020-12.
var drafted = []string{
	`\u`, // in a keyword that we would not find
	`"items":[`, `"additionalItems":`, `"dependencies":`, `"$recursive`, `"prefixItems":`, `"unevaluated`, `"dependent`, `"minContains":`, `"maxContains":`,
	`"$anchor":`, `"$dynamic`, `"$id":`,
}
