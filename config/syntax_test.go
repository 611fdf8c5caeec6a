package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTOML(t *testing.T) {
	t.Parallel()
	data, err := tomlToJSON([]byte("z = 1 # c\n[t.\"a.b\"]\nb = [1.5, 'x']\nwhen = 2026-11-22\n[[l]]\nx = true\n[[l]]\n"))
	require.NoError(t, err)
	assert.Equal(t, `{"l":[{"x":true},{}],"t":{"a.b":{"b":[1.5,"x"],"when":"2026-11-22"}},"z":1}`, string(data))
	for document, want := range map[string]string{
		"a = 1\nb = \n":    "line 2, column ",
		"a = 1\na = 2\n":   "line 2, column ",
		"[t]\n\n[t]\n":     "line 3, column ",
		"a = hunter2\n":    "line 1, column ",
		"a = nan":          "NaN",
		"a = \"\xff\"\n":   "line 1, column ",
		"\x00":             "line 1, column ",
		"a = 'x\ny'":       "line 1, column ",
		"a.b = 1\na = 2\n": "line 2, column ",
	} {
		data, err := tomlToJSON([]byte(document))
		assert.ErrorContains(t, err, want, document)
		assert.Nil(t, data)
	}
	data, err = tomlToJSON(nil)
	require.NoError(t, err)
	assert.Equal(t, "{}", string(data))
	_, err = tomlToJSON([]byte("a = " + strings.Repeat("[", 1_000_000)))
	assert.Error(t, err, "nested too deep")
}

func FuzzTOML(f *testing.F) {
	f.Add([]byte("a = 1\n[b.c]\nd = [{e = 'f'}]\ng = 07:32:00"))
	f.Fuzz(func(t *testing.T, document []byte) {
		data, err := tomlToJSON(document)
		if err == nil {
			require.Equal(t, byte('{'), data[0])
		}
	})
}

// A file such as {"mcpServers": {,}} is a slip, and not a file without servers: a program that
// reads it again would remove them all.
func TestLoneComma(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"mcpServers": {,}}`:                                              "line 1, column 17: a comma without a value before it",
		"{\n\t\"mcpServers\": { // a, b\n\t,}}":                            "line 3, column 2: a comma without a value before it",
		`{"mcpServers": { /* a, { */ , }}`:                                 "line 1, column 29: a comma without a value before it",
		`{"mcpServers": {"a": {"args": [ , ]}}}`:                           "line 1, column 33: a comma without a value before it",
		`{"mcpServers": {"a": {"command": "x",},},}`:                       "",
		`{"a": "{,}", "b": ["\",{", "[,",], /*{,*/ "c": {}, // {,` + "\n}": "",
		`{}`: "",
	} {
		_, err := toJSON([]byte(data), &source{})
		if want == "" {
			assert.NoError(t, err, data)
			continue
		}
		assert.EqualError(t, err, want, data)
	}
}
