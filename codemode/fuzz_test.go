package codemode

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever a script is, it ends within its limits, in words.
func FuzzScript(f *testing.F) {
	for _, h := range hostile {
		if len(h.script) < 2000 {
			f.Add(h.script)
		}
	}
	f.Add("const {a, ...r} = {...x}; for (const [b, ...c] of [[1]]) b; a[b[c] = 1] = `${a}`; class A extends Array { #p = 1; static { this.x = 2 } get [a]() {} }")
	f.Add("label: do { try { switch (1) { default: continue label } } finally { break label } } while (0); async () => await (async function* () {})")
	f.Add("(a, b = a + 1, {c, ...d}) => { return a?.[b] ?? new.target }\n```\nx ||= y **= 2")
	limits := Options{Steps: 20_000, Memory: 8 << 20, Calls: 5, Time: 5 * time.Second}
	mgr := shop(f, nil, &limits)
	s := mgr.NewSession(&mcphybrid.SessionOptions{Access: mcphybrid.Access{Deny: []string{"*__secret"}}})
	f.Fuzz(func(t *testing.T, script string) {
		if !json.Valid([]byte(mustJSON(script))) {
			t.Skip("no text")
		}
		begun := time.Now()
		res, err := s.Call(t.Context(), scriptTool, map[string]any{"script": script})
		require.NoError(t, err)
		require.Less(t, time.Since(begun), 60*time.Second)
		require.NotContains(t, textOf(res), "the secret")
		require.NotContains(t, textOf(res), "the interpreter failed: runtime error", script)
		for _, hook := range hookNames {
			if name := strings.TrimPrefix(hook.String(), "\x00"); !strings.Contains(script, name) {
				require.NotContains(t, textOf(res), "\x00"+name, script)
			}
		}
		require.NotEmpty(t, textOf(res))
	})
}

func mustJSON(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

// Whatever a schema is, its signature is one that is not too long, and no text of the server's leaves its line.
func FuzzSignature(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":["string","null"],"description":"b\n*/ c"},"b-c":{"enum":["x",1]},"d":{"$ref":"#/$defs/e"}},"required":["a"],"$defs":{"e":{"type":"array","items":{"$ref":"#/$defs/e"}}}}`)
	f.Add(`{"type":"object","properties":{"a":{"anyOf":[{"type":"object","additionalProperties":{"type":"number"}},{"const":null}]}}}`)
	f.Add(`{"type":"object","properties":{"` + strings.Repeat("x", 5000) + `":{"allOf":[{"$ref":"#"}]}}}`)
	f.Fuzz(func(t *testing.T, schema string) {
		w := &typer{left: maxSignature, comments: true, root: json.RawMessage(schema)}
		got := w.typeOf(json.RawMessage(schema), 0)
		assert.LessOrEqual(t, len(got), 4*maxSignature)
		for _, line := range strings.Split(got, "\n") {
			assert.NotContains(t, line, "\r")
		}
	})
}

func TestSignature(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, schema, want string }{
		{"nothing", `{"type":"object"}`, `{}`},
		{"kinds", `{"type":"object","properties":{"s":{"type":"string"},"i":{"type":"integer"},"b":{"type":"boolean"},"l":{"type":"array","items":{"type":["string","null"]}},"any":{}},"required":["s"]}`,
			`{s: string, i?: number, b?: boolean, l?: (string | null)[], any?: any}`},
		{"literals", `{"type":"object","properties":{"e":{"enum":["a","b",null]},"c":{"const":3}}}`, `{e?: "a" | "b" | null, c?: 3}`},
		{"references", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"object","properties":{"y":{"$ref":"#/$defs/z"}}},"z":{"type":"number"}}}`, `{a?: {y?: number}}`},
		{"a reference to itself", `{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{a?: {a?: {a?: {a?: any}}}}`},
		{"a map", `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}},"o":{"type":"object"}}}`, `{m?: {[key: string]: string}, o?: object}`},
		{"odd names", `{"type":"object","properties":{"a-b":{"type":"string"},"c\nd":{}}}`, `{"a-b"?: string, "c d"?: any}`},
		{"alternatives", `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"string"},{"type":"array","items":{"type":"number"}}]}}}`, `{a?: string | number[]}`},
		{"comments", `{"type":"object","properties":{"a":{"type":"string","description":"first\nsecond"},"b":{"type":"string"}}}`, "{\n  a?: string, // first second\n  b?: string,\n}"},
	}
	for _, test := range tests {
		w := &typer{left: maxSignature, comments: true, root: json.RawMessage(test.schema)}
		assert.Equal(t, test.want, w.typeOf(json.RawMessage(test.schema), 0), test.name)
	}
	tool := texted("x", "", nil, mcp.WithString("a"))
	mgr := mcphybrid.NewManager(nil)
	t.Cleanup(func() { mgr.Close() })
	require.NoError(t, mgr.AddTools("plain", tool))
	assert.Equal(t, "tools.mcp_plain__x({a?: string}): string", signature(mgr.InlineTools()[0]))
}
