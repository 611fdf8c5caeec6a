package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// anyText is a regular expression that the test does not match.
type anyText string

func (anyText) MatchString(string) bool { return true }
func (s anyText) String() string        { return string(s) }

func compile(raw []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nil)
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) {
		if isBroken(s, reading()) {
			return nil, fmt.Errorf("%q is no expression", s)
		}
		return anyText(s), nil
	})
	if err := c.AddResource("schema://x", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema://x")
}

// schemaError returns why a validator refuses a schema of a size that it takes.
func schemaError(raw []byte) error {
	if len(raw) > 20_000 {
		return nil
	}
	_, err := compile(raw)
	return err
}

// In each draft, what is converted allows the same values if no loss is told, and
// validators take it.
func TestConvertKeepsTheDraft(t *testing.T) {
	t.Parallel()
	compared := 0
	for seed := range mcptest.Long[uint64](20_000, 1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		pick := func(list ...string) string { return list[r.IntN(len(list))] }
		var sub func(depth int) string
		sub = func(depth int) string {
			if depth == 0 {
				return pick(`{"type":"string"}`, `{"type":"number"}`, `{}`, `{"$ref":"#/definitions/A"}`, `{"$ref":"#/definitions/A","maxLength":1}`, `{"$ref":"#/$defs/B","type":"string"}`, `{"$ref":"#/properties/a"}`)
			}
			var members []string
			used := map[string]bool{}
			for range 1 + r.IntN(3) {
				name := pick("type", "const", "contains", "propertyNames", "if", "dependentRequired", "dependencies", "items", "additionalItems", "prefixItems", "minimum", "exclusiveMinimum", "$dynamicRef", "$dynamicAnchor", "$anchor", "$id", "$ref", "properties", "required", "pattern", "minContains", "anyOf", "not")
				if used[name] {
					continue
				}
				used[name] = true
				value := map[string]string{
					"type": `["object","array"]`, "const": pick(`"a"`, `1`), "dependentRequired": `{"a":["b"]}`, "dependencies": `{"a":["b"]}`, "minimum": "1",
					"exclusiveMinimum": pick("true", "1"), "$dynamicRef": pick(`"#x"`, `"#/definitions/A"`, `"#"`), "$dynamicAnchor": pick(`"x"`, `"a b"`), "$anchor": pick(`"x"`, `"y"`),
					"$id": pick(`"z"`, `"%%%"`, `"http://x/y"`, `"#x"`), "$ref": pick(`"#/definitions/A"`, `"#x"`, `"z"`, `"#/$defs/B"`), "required": `["a"]`, "pattern": pick(`"("`, `"[z-a]"`, `"^a"`), "minContains": "2",
				}[name]
				switch name {
				case "contains", "propertyNames", "if", "additionalItems", "not":
					value = sub(depth - 1)
				case "items":
					value = pick(sub(depth-1), "["+sub(depth-1)+"]")
				case "prefixItems", "anyOf":
					value = "[" + sub(depth-1) + "," + sub(depth-1) + "]"
				case "properties":
					value = `{"a":` + sub(depth-1) + `,"b":` + sub(depth-1) + `}`
				}
				if name == "if" {
					members = append(members, `"then":`+sub(depth-1))
				}
				members = append(members, fmt.Sprintf("%q:%s", name, value))
			}
			return "{" + strings.Join(members, ",") + "}"
		}
		declared := pick("http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#", "https://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema")
		raw := fmt.Sprintf(`{"$schema":%q,"type":"object","properties":{"a":%s,"b":%s},"definitions":{"A":%s},"$defs":{"B":%s}}`, declared, sub(2), sub(2), sub(1), sub(1))
		if endless(t, raw) {
			continue
		}
		before, invalid := compile([]byte(raw))
		for _, of := range slices.Sorted(maps.Keys(dialects)) {
			converted, losses := Convert(schema.Prune(json.RawMessage(raw)), dialects[of])
			after, err := compile(converted)
			require.NoError(t, err, "seed %d\n%s\n%s", seed, raw, converted)
			if invalid != nil || losses != nil {
				continue
			}
			for range 10 {
				var value func(depth int) any
				value = func(depth int) any {
					switch n := r.IntN(6); {
					case n == 0:
						return json.Number(pick("0", "1", "2"))
					case n == 1 || depth == 0:
						return pick("a", "ab", "")
					case n < 4:
						return []any{value(depth - 1), value(depth - 1)}[:r.IntN(3)]
					}
					object := map[string]any{}
					for range r.IntN(3) {
						object[pick("a", "b")] = value(depth - 1)
					}
					return object
				}
				args := map[string]any{"a": value(2), "b": value(2)}
				compared++
				require.Equal(t, before.Validate(args) == nil, after.Validate(args) == nil, "seed %d %v\n%s\n%s", seed, args, raw, converted)
			}
		}
	}
	t.Log("compared", compared)
	require.Greater(t, compared, 1000)
}

// endless reports whether a schema leads to itself at the same place of a value, which no
// validator can follow: what it makes of that depends on where it began.
func endless(t *testing.T, raw string) bool {
	var root any
	require.NoError(t, json.Unmarshal([]byte(raw), &root))
	anchors := make(map[string]any)
	var each func(v any, use func(map[string]any))
	each = func(v any, use func(map[string]any)) {
		switch v := v.(type) {
		case map[string]any:
			use(v)
			for _, part := range v {
				each(part, use)
			}
		case []any:
			for _, part := range v {
				each(part, use)
			}
		}
	}
	each(root, func(m map[string]any) {
		for _, name := range []string{"$anchor", "$dynamicAnchor", "$id"} {
			if anchor, ok := m[name].(string); ok {
				anchors["#"+strings.TrimPrefix(anchor, "#")] = m
			}
		}
	})
	find := func(reference string) any {
		if at, ok := anchors["#"+strings.TrimPrefix(reference, "#")]; ok {
			return at
		}
		at := root
		for _, name := range strings.Split(strings.TrimPrefix(reference, "#"), "/")[1:] {
			m, _ := at.(map[string]any)
			at = m[name]
		}
		return at
	}
	const open, done = 1, 2
	state := make(map[uintptr]int)
	var loops func(v any) bool
	loops = func(v any) bool {
		if list, ok := v.([]any); ok {
			return slices.ContainsFunc(list, loops)
		}
		m, ok := v.(map[string]any)
		if !ok {
			return false
		}
		p := reflect.ValueOf(m).Pointer()
		if state[p] > 0 {
			return state[p] == open
		}
		state[p] = open
		for _, name := range []string{"not", "if", "then", "anyOf"} {
			if loops(m[name]) {
				return true
			}
		}
		for _, name := range []string{"$ref", "$dynamicRef"} {
			if reference, ok := m[name].(string); ok && loops(find(reference)) {
				return true
			}
		}
		state[p] = done
		return false
	}
	found := false
	each(root, func(m map[string]any) { found = found || loops(m) })
	return found
}
