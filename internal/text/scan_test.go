package text

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFields(t *testing.T) {
	t.Parallel()
	tests := []struct {
		object string
		want   [2]string // the values of a and b; "" if not there
		twice  string
	}{
		{` { "b" : [ 1, {"a":2} ] , "a":null} `, [2]string{"null", `[ 1, {"a":2} ]`}, ""},
		{`{"x":{"a":1},"a":"}\"","B":-1e5}`, [2]string{`"}\""`, "-1e5"}, ""},
		{`{"\u0061":true,"c":1}`, [2]string{"true", ""}, ""},
		{`{"b":1,"a":2,"B":3,"A":4,"a":5}`, [2]string{"5", "3"}, "a"},
		{`{"x":1,"x":2,"ab":3}`, [2]string{}, ""},
		{`{}`, [2]string{}, ""},
		{`["a",1]`, [2]string{}, ""},
		{`"a"`, [2]string{}, ""},
		{``, [2]string{}, ""},
	}
	for _, test := range tests {
		values, twice := Fields([]byte(test.object), "a", "b")
		assert.Equal(t, test.twice, twice, test.object)
		for i, want := range test.want {
			assert.Equal(t, want, string(values[i]), test.object)
			assert.Equal(t, want == "", values[i] == nil, test.object)
		}
	}
}

// testdata/scanned.golden has what a scanner sees in texts, most of which are no JSON.
func TestScannedGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What a scanner sees: as a list of values, as the members of an object, and as texts.\n\n")
	for _, in := range []string{
		``, ` `, `1`, `"a"`, `[1,"b",{"c":[2]},null]`, `[ -1.5e3 , true]x`, `{"a":1,"b":[2,{"c":3}],"d":"e\"f"}`, `{"\u0061":"\ud800","b\\":"\\"}`, `[`, `[1`, `[1,`, `["a`, `["a\"`, `["a\\"`, `[[1,[2`, `{"a"`, `{"a":`, `{"a":}`, `{"a":{"b":[`, `]`, `[]]`, `[}`, `[1}2]`, `{]`, "[\x01,\x00]", "[\x00", `[1 2:3]`, `"\x"`, "\"\xff\"", `[tru"e"]`, `[""]`, `{"":""}`, `:,[`, `[1]2`,
	} {
		fmt.Fprintf(&b, "%q", in)
		const most = 9
		s := Scan([]byte(in))
		n := 0
		for open := s.Open('['); open && s.More() && n < most; n++ {
			fmt.Fprintf(&b, " %q", s.Value())
		}
		fmt.Fprintf(&b, " %d at %d |", n, s.pos)
		s, n = Scan([]byte(in)), 0
		for open := s.Open('{'); open && s.More() && n < most; n++ {
			name, ok := s.Text()
			fmt.Fprintf(&b, " %q %v=%q", name, ok, s.Value())
		}
		fmt.Fprintf(&b, " %d at %d |", n, s.pos)
		s, n = Scan([]byte(in)), 0
		for s.Next() != 0 && n < most {
			text, ok := s.Text()
			fmt.Fprintf(&b, " %q %v", text, ok)
			n++
		}
		fmt.Fprintf(&b, " at %d\n", s.pos)
	}
	golden.Compare(t, "scanned.golden", b.String())
}

func TestReadElement(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"name":"abc"}`: "the definition has 14 bytes, more than the limit of 13",
		`{"name":5`:      "line 1, column 9: unexpected end of JSON input",
		`{"name":5} x`:   "line 1, column 12: invalid character 'x' after top-level value",
		`["name"]`:       "is a JSON array, want an object",
		" 5":             "is a JSON number, want an object",
		"":               "line 1, column 1: unexpected end of JSON input",
	} {
		_, _, err := ReadElement(json.RawMessage(raw), 13, "name")
		assert.EqualError(t, err, want, raw)
	}
	values, twice, err := ReadElement(json.RawMessage(" null"), 13, "name")
	require.NoError(t, err)
	assert.Equal(t, []json.RawMessage{nil}, values)
	assert.Empty(t, twice)
}

func TestString(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"": "", "null": "", `""`: "", `"a\u00e9\/"`: "aé/", "\"\xff\"": "\ufffd", `"é"`: "é"} {
		got, err := String("title", json.RawMessage(value))
		require.NoError(t, err)
		assert.Equal(t, want, got, value)
	}
	for value, want := range map[string]string{"1": "number", "true": "bool", "[]": "array", `{"a":1}`: "object"} {
		got, err := String("title", json.RawMessage(value))
		assert.EqualError(t, err, `"title" is a JSON `+want+`, want a string`)
		assert.Empty(t, got)
	}
}

// What is compact is not copied.
func TestCompact(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"a b":[1,"\" x"]}`: `{"a b":[1,"\" x"]}`, "{ \"a b\" :\n[1,\t\"\\\" x\"] }\r\n": `{"a b":[1,"\" x"]}`, "\"\xff\"": "\"\ufffd\"",
	} {
		got := Compact(json.RawMessage(raw))
		assert.Equal(t, want, string(got))
	}
	for _, raw := range []json.RawMessage{json.RawMessage(`{"a":1}`), json.RawMessage(`{ "a"`)} { // or is none
		assert.Same(t, &raw[0], &Compact(raw)[0])
		assert.Len(t, Compact(raw), len(raw))
	}
}
