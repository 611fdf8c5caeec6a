package frontmatter

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// samples are front matter that can be read, each with the JSON that it means.
var samples = [][2]string{
	{"name: a\ndescription: Does it.\n", `{"name":"a","description":"Does it."}`},
	{"", `{}`},
	{"# nothing\n\n", `{}`},
	{"name: a # a comment\n# another\n\ndescription: b#c\n", `{"name":"a","description":"b#c"}`},
	{"name: 'it''s'\ndescription: \"a \\\"b\\\"\\n\\u00e9\\x41\\/\\\\\"\n", `{"name":"it's","description":"a \"b\"\né\u0041/\\"}`},
	{"\"name\": a\n'x y' : b\n", `{"name":"a","x y":"b"}`},
	{"description: one\n  two\n\n  three: no\n", ""},
	{"description: one\n  two\n\n  # three\n", `{"description":"one two"}`},
	{"description: one\n  two\n\n\n  - three # four\n", `{"description":"one two\n\n- three"}`},
	{"description:\n  one\n  two\nname: a\n", `{"description":"one two","name":"a"}`},
	{"description: \"one \n  two\\\n   three\n\n  four \\\n\n  five\"\nname: a\n", `{"description":"one twothree\nfour \nfive","name":"a"}`},
	{"description: 'one \n  two\n\n  # three'\n", `{"description":"one two\n# three"}`},
	{"description: >\n  one\n  two\n\n  three\n   four\n  five\nname: a\n", `{"description":"one two\nthree\n four\nfive\n","name":"a"}`},
	{"description: >-\n\n\n  one\n\n\n  two\n\n\nname: a\n", `{"description":"\n\none\n\ntwo","name":"a"}`},
	{"description: |+ # kept\n  one\n    two\n\n\nname: a\n", `{"description":"one\n  two\n\n\n","name":"a"}`},
	{"description: |2-\n    one\n  two\nname: a\n", `{"description":"  one\ntwo","name":"a"}`},
	{"description: |\nname: a\n", `{"description":"","name":"a"}`},
	{"description: >+\n\nname: a\n", `{"description":"\n","name":"a"}`},
	{"description: |\n   \n  one\n", ""},
	{"tools: [a, 'b, c', \"d\"]\nmore: []\nlast: [a,\n  b, # c\n  d,]\n", `{"tools":["a","b, c","d"],"more":[],"last":["a","b","d"]}`},
	{"tools:\n- a\n- b: 1\n  c: 2\n-\n  d\n- - e\n  - f\n-\nname: a\n", `{"tools":["a",{"b":1,"c":2},"d",["e","f"],null],"name":"a"}`},
	{"tools:\n  - |\n    a\n  - b\n", `{"tools":["a\n","b"]}`},
	{`metadata: {"a":1,"b":{"c":[true,null]}, d: e f, http: http://x/y}` + "\n", `{"metadata":{"a":1,"b":{"c":[true,null]},"d":"e f","http":"http://x/y"}}`},
	{"metadata:\n  version: \"1.0\"\n  a:\n    b: c\n  d:\nlicense: MIT\n", `{"metadata":{"version":"1.0","a":{"b":"c"},"d":null},"license":"MIT"}`},
	{"url: http://x:80/y\ntime: 10:30\ndash: a - b\nminus: -1\nq: a?b\nw: -a\n", `{"url":"http://x:80/y","time":"10:30","dash":"a - b","minus":-1,"q":"a?b","w":"-a"}`},
	{"a: 1\nb: 0x10\nc: 1.50\nd: 1e3\ne: true\nf: ~\ng: 010\n", `{"a":1,"b":16,"c":1.5,"d":1000,"e":true,"f":null,"g":8}`},
	{"  name: a\n  b:\n  - c\n", `{"name":"a","b":["c"]}`},
	{"name: a\r\ndescription: |\r\n  b\r\n  c\r\n", `{"name":"a","description":"b\nc\n"}`},
	{"name: Ünïcode — 日本\n", `{"name":"Ünïcode — 日本"}`},
}

func TestSame(t *testing.T) {
	t.Parallel()
	for _, s := range samples {
		if s[1] == "" {
			assert.ErrorContains(t, Same([]byte(s[0]), json.RawMessage(`{}`)), "can't be compared: line ", s[0])
			continue
		}
		assert.NoError(t, Same([]byte(s[0]), json.RawMessage(s[1])), s[0])
	}
}

// Whoever renders front matter as JSON knows some version of YAML: each meaning counts.
func TestSameMeanings(t *testing.T) {
	t.Parallel()
	for _, same := range [][2]string{
		{"yes", "true"}, {"Off", "false"}, {"yes", `"yes"`}, {"010", "10"}, {"010", "8"}, {"1.0", `"1.0"`}, {"1.0", "1"}, {"+1", "1"}, {"1_000", "1000"},
		{"2026-01-02", `"2026-01-02"`}, {"2026-01-02", `"2026-01-02T00:00:00.000Z"`}, {"2026-01-02 03:04:05", `"2026-01-02T03:04:05Z"`},
		{"null", `"null"`}, {"", `""`}, {"123456789012345678901234567890", "123456789012345678901234567890"},
	} {
		assert.NoError(t, Same([]byte("a: "+same[0]+"\n"), json.RawMessage(`{"a":`+same[1]+`}`)), same)
	}
	for _, other := range [][2]string{
		{`"yes"`, "true"}, {"'1'", "1"}, {"1", "2"}, {"1.0", `"1"`}, {"10", "8"}, {"null", "false"}, {"", "false"}, {`""`, "null"}, {"a", "null"},
		{"2026-01-02", `"2026-01-03"`}, {"[a]", `"a"`}, {"[a]", `["a","b"]`}, {"[a, b]", `["b","a"]`}, {"{a: b}", `{"a":"c"}`}, {"{a: b}", `{}`}, {"{}", `{"a":"b"}`},
		{"{}", `[]`}, {"[]", `{}`}, {"a", `["a"]`}, {"9007199254740993", "9007199254740992"}, {"123456789012345678901234567890", "123456789012345678901234567891"},
		{"1e999999999", "1"}, {"1", "1e999999999"},
	} {
		assert.ErrorContains(t, Same([]byte("a: "+other[0]+"\n"), json.RawMessage(`{"a":`+other[1]+`}`)), "differs from the list", other)
	}
	err := Same([]byte("a: {b: [c, {d: e}]}\n"), json.RawMessage(`{"a":{"b":["c",{"d":"f"}]}}`))
	assert.EqualError(t, err, `its front matter differs from the list: "a.b[1].d"`)
}

// What readers disagree about, or few write, is refused with its line.
func TestFrontMatterThatIsNotCompared(t *testing.T) {
	t.Parallel()
	for front, want := range map[string]error{
		"a: &b c\n": errSpecial, "a: *b\n": errSpecial, "a: !!str b\n": errSpecial, "<<: {a: b}\n": errSpecial, "a: {<<: b}\n": errSpecial, "? a\n": errSpecial, "%YAML 1.2\n": errSpecial,
		"a: @b\n": errSpecial, "a: `b`\n": errSpecial, "a: - b\n": errSpecial, "--- a: b\n": errSpecial, "...\n": errSpecial,
		"a: b\na: c\n": errTwice, "a: {b: 1, b: 2}\n": errTwice, "a: b: c\n": errRest, "a: b\n  c: d\n": errRest, "a: 'b' c\n": errRest, "a: [b] c\n": errRest, "a: \"b\"#c\n": errRest,
		"a:\n    b: c\n  d: e\n": errIndent, "a: b\n c: d\n": errRest, "  a: b\nc: d\n": errIndent, "a:\n  - b\n c\n": errIndent, "- a\n": errSpecial, "a\n": errName, "[a]\n": errSpecial,
		"a:\n\tb: c\n": errTab, "a:\n  -\tb: c\n": errTab, "a: \"b\n": errQuote, "a: 'b\nc'\n": errQuote, `a: "\q"` + "\n": errQuote, `a: "\ud83d\ude00"` + "\n": errQuote, `a: "\u12`: errQuote,
		"a: [b\n": errFlow, "a: [b\nc]\n": errFlow, "a: {b}\n": errFlow, "a: [,]\n": errFlow, "a: [b: c]\n": errFlow, "a: {b:c}\n": errFlow, "a: |x\n": errSpecial,
		"a: b\x00c\n": errChar, "a: b\rc\n": errChar, "a: b\u0085c\n": errChar, "a: b\u2028c\n": errChar, "a: \xff\n": errChar, "a: \ufeffb\n": errChar,
		"a: " + strings.Repeat("[", 5000) + "\n": errDepth, "a:\n- " + strings.Repeat("- ", 5000) + "b\n": errDepth,
	} {
		_, err := read([]byte(front))
		assert.ErrorIs(t, err, want, "%.40q", front)
		assert.ErrorContains(t, Same([]byte(front), json.RawMessage(`{}`)), "its front matter can't be compared: line ", "%.40q", front)
	}
	_, err := read([]byte("a: b\n\nc: &d e\n"))
	assert.ErrorContains(t, err, "line 4: ", "the first line of the file is ---")
}

// agrees fails if YAML's own reader has another value.
func agrees(t *testing.T, front string, value any, node *yaml.Node) {
	t.Helper()
	for node.Kind == yaml.DocumentNode || node.Kind == yaml.AliasNode {
		node = node.Content[0]
	}
	switch value := value.(type) {
	case scalar:
		require.Equal(t, yaml.ScalarNode, node.Kind, "%q", front)
		require.Equal(t, node.Value, value.text, "%q", front)
		require.Equal(t, node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0, value.plain, "%q", front)
	case []any:
		require.Equal(t, yaml.SequenceNode, node.Kind, "%q", front)
		require.Len(t, node.Content, len(value), "%q", front)
		for i, e := range value {
			agrees(t, front, e, node.Content[i])
		}
	case mapping:
		require.Equal(t, yaml.MappingNode, node.Kind, "%q", front)
		require.Len(t, node.Content, 2*len(value), "%q", front)
		for i := 0; i < len(node.Content); i += 2 {
			e, ok := value[node.Content[i].Value]
			require.True(t, ok, "%q", front)
			agrees(t, front, e, node.Content[i+1])
		}
	default:
		require.Fail(t, fmt.Sprintf("%T", value), "%q", front)
	}
}

// What is read of front matter is what a whole reader of YAML reads, if that reads it at all.
func FuzzFrontMatter(f *testing.F) {
	for _, s := range samples {
		f.Add(s[0])
	}
	f.Fuzz(func(t *testing.T, front string) {
		all, err := read([]byte(front))
		if err != nil {
			require.ErrorContains(t, err, "line ")
			return
		}
		var node yaml.Node
		if yaml.Unmarshal([]byte(strings.TrimSuffix(front, "\n")+"\n"), &node) != nil || node.Kind == 0 {
			return
		}
		agrees(t, front, all, &node)
	})
}
