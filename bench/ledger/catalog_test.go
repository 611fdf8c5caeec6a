package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func names(tools []tool) string {
	var all []string
	for _, t := range tools {
		all = append(all, t.Server+"/"+t.Name)
	}
	return strings.Join(all, " ")
}

// written writes a file into dir and returns its path.
func written(t *testing.T, dir, name, text string) string {
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// The servers of the project's configuration come first, then the others, then corpora, then
// what is invented.
func TestSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const schema = `"inputSchema":{"type":"object"}`
	written(t, dir, "catalog/a.json", `{"server":"zoo","tools":[{"name":"a",`+schema+`}]}`)
	written(t, dir, "catalog/b.json", `{"server":"memory","tools":[{"name":"b",`+schema+`},{"name":"b",`+schema+`},{"name":"odd","inputSchema":{}}]}`)
	written(t, dir, "catalog/filesystem.json", `{"tools":[{"name":"c",`+schema+`}]}`)
	written(t, dir, "corpora/x/tools.jsonl", `{"name":"d","input_schema":{"type":"object"}}`+"\n"+`{"server":"zoo","name":"e","input_schema":{"type":"object"}}`+"\n")
	made := written(t, dir, "invented.jsonl", `{"server":"shop","name":"buy","description":"Buys.","input_schema":{"type":"object"}}`+"\n")

	s, err := readSource(filepath.Join(dir, "catalog"), filepath.Join(dir, "corpora"), made)
	require.NoError(t, err)
	assert.Equal(t, "filesystem/c memory/b zoo/a x/d zoo/e", names(s.real))
	assert.NotContains(t, s.String(), dir, "no path of the host")

	tools, note := s.first(3)
	assert.Equal(t, "filesystem/c memory/b zoo/a", names(tools))
	assert.Equal(t, "3 from the lists, 0 invented", note)
	tools, note = s.first(8)
	assert.Equal(t, "filesystem/c memory/b zoo/a zoo/e x/d shop/buy", names(tools[:6]))
	assert.Equal(t, "5 from the lists, 3 invented", note)
	assert.Regexp(t, `^shop-(\w+)/buy_(\w+) shop-(\w+)/buy_(\w+)$`, names(tools[6:]))
	assert.NotEqual(t, tools[6].Name, tools[7].Name)

	assert.Equal(t, "x/d zoo/a zoo/e memory/b", names(reversed([]tool{tools[1], tools[2], tools[4], tools[3]})))
}

func TestSourceErrors(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for _, tt := range [][3]string{{empty, "", "../" + invented}, {"", empty, "../" + invented}, {"", "", filepath.Join(empty, "none")}} {
		_, err := readSource(tt[0], tt[1], tt[2])
		assert.Error(t, err, tt)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object"}`: `{}`,
		`{"type":"object","properties":{"b":{"type":"boolean"},"a":{"type":"integer","minimum":7}}}`:                                                   `{"a":7}`,
		`{"type":"object","required":["a"],"properties":{"b":{},"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"enum":["y","z"]}}}`:                           `{"a":"y"}`,
		`{"type":"object","required":["a"],"properties":{"a":{"type":"array","minItems":2,"items":{"type":["null","string"]}}}}`:                       `{"a":[null,null]}`,
		`{"type":"object","required":["a"],"properties":{"a":{"anyOf":[{"const":3},{"type":"string"}]}}}`:                                              `{"a":3}`,
		`{"type":"object","required":["a"],"properties":{"a":{"type":"object","required":["u"],"properties":{"u":{"type":"string","format":"uri"}}}}}`: `{"a":{"u":"https://example.com/page"}}`,
	} {
		got, err := arguments(json.RawMessage(schema))
		require.NoError(t, err)
		assert.JSONEq(t, want, string(got), schema)
	}
}
