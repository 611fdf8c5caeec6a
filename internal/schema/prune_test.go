package schema

import (
	"encoding/json"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
)

func TestPrune(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, schema, want string }{
		{"nothing to leave out", `{"type":"object","properties":{"a":{"default":1.0}}}`, ``},
		{"all is used, with its white space", `{ "$defs": {"A": {}} , "x":  {"$ref": "#/$defs/A"} }`, ``},
		{"nothing refers to it", `{"type":"object","$defs":{"A":{"type":"string"}},"required":[]}`, `{"type":"object","required":[]}`},
		{"only one is used", `{"definitions":{"A":{},"B":{"x":1.0}},"properties":{"b":{"$ref":"#/definitions/B"}}}`, `{"definitions":{"B":{"x":1.0}},"properties":{"b":{"$ref":"#/definitions/B"}}}`},
		{"one uses the other", `{"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"},"C":{"$ref":"#/$defs/A"}},"items":{"$ref":"#/$defs/A"}}`, `{"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"}},"items":{"$ref":"#/$defs/A"}}`},
		{"a circle that nothing uses", `{"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"}}}`, `{}`},
		{"the same name in both", `{"$defs":{"A":{}},"definitions":{"A":{}},"x":{"$ref":"#/$defs/A"}}`, `{"$defs":{"A":{}},"x":{"$ref":"#/$defs/A"}}`},
		{"through a definition", `{"$defs":{"A":{"properties":{"b":{}}},"B":{}},"x":[{"$ref":"#/$defs/A/properties/b"}]}`, `{"$defs":{"A":{"properties":{"b":{}}}},"x":[{"$ref":"#/$defs/A/properties/b"}]}`},
		{"escaped", `{"$defs":{"a/b ~c":{},"d":{}},"x":{"$\u0072ef":"#/$defs/a~1b%20~0c"}}`, `{"$defs":{"a/b ~c":{}},"x":{"$\u0072ef":"#/$defs/a~1b%20~0c"}}`},
		{"at the root", `{"$ref":"#/$defs/A","$defs":{"A":{},"B":{}}}`, `{"$ref":"#/$defs/A","$defs":{"A":{}}}`},
		{"to the root", `{"$defs":{"A":{}},"x":{"$ref":"#"}}`, `{"x":{"$ref":"#"}}`},
		{"an empty one", `{"$defs":{},"x":1}`, `{"x":1}`},
		{"a property of that name", `{"properties":{"$defs":{"type":"object"},"$ref":{"type":"string"},"id":{}},"$defs":{"A":{}}}`, `{"properties":{"$defs":{"type":"object"},"$ref":{"type":"string"},"id":{}}}`},

		{"two members of the same name", `{"$defs":{"A":{}},"$defs":{"A":{},"B":{}},"x":{"$ref":"#/$defs/B"}}`, ``},
		{"by an $id", `{"$defs":{"A":{"$id":"/a"}},"x":{"$ref":"/a"}}`, ``},
		{"by a whole $id", `{"definitions":{"A":{"$id":"https://example.com/a"}},"x":{"$ref":"https://example.com/a#/x"}}`, ``},
		{"to an anchor", `{"$defs":{"A":{"$anchor":"a"}},"x":{"$ref":"#a"}}`, ``},
		{"to all", `{"$defs":{"A":{}},"x":{"$ref":"#/$defs"}}`, ``},
		{"another base", `{"$id":"https://example.com/","$defs":{"A":{}},"x":{"$ref":"https://example.com/#/$defs/A"}}`, ``},
		{"by scope", `{"$defs":{"A":{"$dynamicAnchor":"a"}},"x":{"$dynamicRef":"#a"}}`, ``},
		{"a bad escape", `{"$defs":{"A":{}},"x":{"$ref":"#/%"}}`, ``},
		{"not an object of definitions", `{"$defs":[1],"definitions":null}`, ``},

		{"the default draft", `{"$schema":"https://json-schema.org/draft/2020-12/schema","items":[1]}`, `{"items":[1]}`},
		{"an older draft that reads alike", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"A":{}}}`, `{"type":"object"}`},
		{"an older draft with tuples", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}`, ``},
		{"an older draft with an escaped keyword", `{"$schema":"http://json-schema.org/draft-07/schema#","item\u0073":[{"type":"string"}]}`, ``},
		{"an older draft with a reference", `{"$schema":"http://json-schema.org/draft-07/schema#","x":{"$ref":"#"},"$defs":{}}`, `{"x":{"$ref":"#"}}`},
		{"an older draft with more beside a reference", `{"$schema":"http://json-schema.org/draft-07/schema#","x":{"$ref":"#","type":"string"}}`, ``},
		{"an older draft with a reference that is none", `{"$schema":"http://json-schema.org/draft-07/schema#","x":{"$ref":1}}`, ``},
		{"an older draft with an escaped reference", `{"$schema":"http://json-schema.org/draft-07/schema#","x":{"$ref":"#\u002f\""}}`, ``},
		{"a draft that knows no prefixItems", `{"$schema":"https://json-schema.org/draft/2019-09/schema","prefixItems":[]}`, ``},
		{"another schema", `{"$schema":"http://json-schema.org/draft-04/schema#"}`, ``},
		{"no name", `{"$schema":7}`, ``},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.want == "" {
				test.want = test.schema
			}
			assert.Equal(t, test.want, string(Prune(json.RawMessage(test.schema))))
		})
	}
}

// A reader that goes by $schema gets it as it was, and nothing else that was left out.
func TestNamed(t *testing.T) {
	t.Parallel()
	for of, want := range map[string]string{
		`{"type":"object", "$schema" : "https://json-schema.org/draft/2020-12/schema","$defs":{"A":{}}}`: `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","x":1}`:                                    `{"$schema":"http://json-schema.org/draft-04/schema#","x":1}`,
		`{"type":"object"}`:             `{"type":"object"}`,
		`{"$schema":"a","$schema":"b"}`: `{"$schema":"a","$schema":"b"}`,
	} {
		assert.Equal(t, want, string(Named(Prune(text.Compact(json.RawMessage(of))), json.RawMessage(of))), of)
	}
}
