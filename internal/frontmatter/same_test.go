package frontmatter

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// samples are front matter that can be read, each with the JSON that it means.
var samples = [][2]string{
	{"name: a\ndescription: Does it.\n", `{"name":"a","description":"Does it."}`},
	{"", `{}`},
	{"# nothing\n\n", `{}`},
	{"name: a # a comment\n# another\n\ndescription: b#c\n", `{"name":"a","description":"b#c"}`},
	{"name: 'it''s'\ndescription: \"a \\\"b\\\"\\n\\u00e9\\x41\\\\\"\n", `{"name":"it's","description":"a \"b\"\né\u0041\\"}`},
	{"\"name\": a\n'x y' : b\n", `{"name":"a","x y":"b"}`},
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

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		data, front, body string
		err               error
	}{
		{"---\nname: a\n---\nDo it.\n", "name: a\n", "Do it.\n", nil},
		{"\ufeff--- \t\r\nname: a\r\n---\r\nDo it.", "name: a\r\n", "Do it.", nil},
		{"---\n---", "", "", nil},
		{"---\nname: a\n----\n ---\n---\n---\n", "name: a\n----\n ---\n", "---\n", nil},
		{"", "", "", ErrNone},
		{"\n---\nname: a\n---\n", "", "", ErrNone},
		{"---", "", "", ErrOpen},
		{"---\n", "", "", ErrOpen},
		{"---\nname: a\n", "", "", ErrOpen},
	} {
		front, body, err := Split([]byte(test.data))
		assert.Equal(t, test.err, err, "%q", test.data)
		assert.Equal(t, test.front, string(front), "%q", test.data)
		assert.Equal(t, test.body, string(body), "%q", test.data)
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	for _, s := range samples {
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

// What readers disagree about, or few write, is refused with its line, and so is what is no
// YAML.
func TestFrontMatterThatIsNotCompared(t *testing.T) {
	t.Parallel()
	for _, front := range []string{
		"a: &b c\n", "a: !!str b\n", "<<: {a: b}\n", "a: {<<: b}\n", "? [a]\n: b\n", "a: b\na: c\n", "a: {b: 1, b: 2}\n", "a: &b [c]\nd: *b\n",
		"a: " + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1) + "\n",
	} {
		assert.ErrorContains(t, Same([]byte(front), json.RawMessage(`{}`)), "can't be compared: line ", "%.40q", front)
	}
	for _, front := range []string{
		"a: *b\n", "a: b: c\n", "a: 'b' c\n", "a:\n    b: c\n  d: e\n", "a:\n\tb: c\n", "a: \"b\n", `a: "\q"` + "\n", "a: [b\n", "a: b\x00c\n", "a: \xff\n", "a: @b\n",
	} {
		assert.ErrorContains(t, Same([]byte(front), json.RawMessage(`{}`)), "can't be read: ", "%.40q", front)
	}
	err := Same([]byte("a: b\n\nc: &d e\n"), json.RawMessage(`{}`))
	assert.ErrorContains(t, err, "line 4: ", "the first line of the file is ---")
	assert.ErrorContains(t, Same([]byte("a: b: c\n"), json.RawMessage(`{}`)), "line 2", "the first line of the file is ---")
	deep := "a: " + strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1) + "\n"
	assert.NoError(t, Same([]byte(deep), json.RawMessage(`{"a":`+strings.Repeat("[", maxDepth-1)+strings.Repeat("]", maxDepth-1)+`}`)))

	long := "a: " + strings.Repeat("b", MaxSize-4) + "\n"
	assert.NoError(t, Same([]byte(long), json.RawMessage(`{"a":"`+strings.Repeat("b", MaxSize-4)+`"}`)))
	assert.ErrorContains(t, Same([]byte(long+"\n"), json.RawMessage(`{}`)), "limit of 65536")
	assert.ErrorContains(t, Same([]byte("- a\n"), json.RawMessage(`{"a":1}`)), "differs from the list")
	assert.ErrorContains(t, Same(nil, json.RawMessage(`x`)), "the list has no front matter")
}

// Whatever front matter and list say, they are compared, and one that was written from a list
// is the same.
func FuzzSame(f *testing.F) {
	for _, s := range samples {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, front, listed string) {
		if err := Same([]byte(front), json.RawMessage(listed)); err != nil {
			require.NotEmpty(t, err.Error())
		}
		var all map[string]any
		d := json.NewDecoder(strings.NewReader(listed))
		if len(listed) > 1000 || d.Decode(&all) != nil {
			return
		}
		written, err := json.Marshal(all) // which is YAML
		if err != nil || strings.Count(string(written), "[")+strings.Count(string(written), "{") > maxDepth || strings.Contains(string(written), `\ud`) || strings.Contains(string(written), `"<<"`) {
			return
		}
		require.NoError(t, Same(written, written), "%s", written)
	})
}

// A number is the same in any spelling that means it.
func TestSameNumber(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, number string
		want         bool
	}{
		{"16", "16", true}, {"+16", "16", true}, {"0x10", "16", true}, {"010", "8", true}, {"010", "10", true}, {"17", "16", false},
		{"16", "16.0", true}, {"1000", "1e3", true}, {"1.5", "1.50", true}, {"1.5", "1.6", false}, {"16.0", "16", true},
		{"9007199254740993", "9007199254740992", false}, {"x", "1", false}, {"", "0", false},
		{strings.Repeat("0", maxDigits-1) + "1", "1", true}, {strings.Repeat("0", maxDigits) + "1", "1", false},
	} {
		assert.Equal(t, test.want, sameNumber(test.text, test.number), "%s %s", test.text, test.number)
	}
}
