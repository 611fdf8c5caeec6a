package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func rawList(list ...string) (all []json.RawMessage) {
	for _, s := range list {
		all = append(all, json.RawMessage(s))
	}
	return all
}

// The members are those that stand there, each as it is written.
func TestMembers(t *testing.T) {
	t.Parallel()
	got, err := Members([]byte(" {\"a\" : 1,\r\n\t\"\\u0062\":[2, 3] , \"a\":{\"x\":null}} \n"))
	require.NoError(t, err)
	assert.Equal(t, []Member{
		{"a", []byte(`"a"`), json.RawMessage("1")},
		{"b", []byte(`"\u0062"`), json.RawMessage("[2, 3]")},
		{"a", []byte(`"a"`), json.RawMessage(`{"x":null}`)},
	}, got)
	got, err = Members([]byte(`{}`))
	assert.NoError(t, err)
	assert.Empty(t, got)
	for raw, want := range map[string]string{
		"": "EOF", "[1]": "is not a JSON object", `"a"`: "is not a JSON object", "null": "is not a JSON object", "x": "invalid character",
		`{1:2}`: "invalid character", `{"a":}`: "invalid character", `{"a":1`: "EOF", `{"a":1]`: "invalid character",
		`{} {}`: "is followed by something", `{}x`: "is followed by something",
	} {
		_, err := Members([]byte(raw))
		assert.ErrorContains(t, err, want, raw)
	}
}

// A name is there twice if one object has it twice, at whatever level.
func TestTwice(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"a":1,"a":2}`: "a", `{"a":1,"b":"a","a":2}`: "a", `{"x":[1,{"c":[],"c":{}}]}`: "c", `[{"a":1},{"b":{"d":1,"d":1}}]`: "d", `{"a":{"b":1},"c":"x","a":1}`: "a", `{"a":1,"\u0061":2}`: "a",
		`{"a":"a"}`: "", `{"a":["b","b",{"b":"b"}],"b":"a"}`: "", `{"a":{"b":1},"b":2}`: "", `[{"a":1},{"a":1}]`: "", `{"a":1,"A":2}`: "", `"a"`: "", `["a","a"]`: "", "": "",
		`{"a":1,`: "", `{"a":1,x,"a":2}`: "", `{"a":1,"a"`: "a",
	} {
		assert.Equal(t, want, Twice([]byte(data)), data)
		if json.Valid([]byte(data)) {
			assert.Equal(t, want == "", Distinct([]byte(data)), data)
		}
	}
}

// What is not looked at is not certain.
func TestDistinct(t *testing.T) {
	t.Parallel()
	members := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"%d":0`, i))
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for data, want := range map[string]bool{
		members(16): true, members(17): false, nested(maxDistinctLevels): true, nested(maxDistinctLevels + 2): false,
		"{\"\xff\":1}": false, `{"a":"\u0061"}`: true, `{1:2}`: false, `{"a":1,2}`: false,
	} {
		assert.Equal(t, want, Distinct([]byte(data)), data)
	}
}

func TestJoinMembers(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "{}", string(JoinMembers(nil)))
	assert.Equal(t, `{"a<":1,"\u0062":[],"c":null}`, string(JoinMembers([]Member{
		{Name: "a<", Value: json.RawMessage("1")},
		{Name: "b", Written: []byte(`"\u0062"`), Value: json.RawMessage("[]")},
		{Name: "c", Value: json.RawMessage("null")},
	})))
}

// What is no list has no elements, and no elements are no list.
func TestElements(t *testing.T) {
	t.Parallel()
	assert.Equal(t, rawList("1", `{"a": 2}`, "[]"), Elements(json.RawMessage(`[1, {"a": 2},[]]`)))
	for _, raw := range []string{"", "null", `{"a":1}`, `"[1]"`, "[1", " [1]"} {
		assert.Nil(t, Elements(json.RawMessage(raw)), raw)
	}
	assert.NotNil(t, Elements(json.RawMessage("[]")))
	assert.Nil(t, JoinElements(nil))
	assert.Nil(t, JoinElements(rawList()))
	assert.Equal(t, "[1]", string(JoinElements(rawList("1"))))
	assert.Equal(t, `[1,"a",[]]`, string(JoinElements(rawList("1", `"a"`, "[]"))))
}

func TestStrings(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"b", "a"}, Strings(json.RawMessage(`["b","a","\u0062"]`)), "each once, in their order")
	assert.Equal(t, []string{}, Strings(json.RawMessage("[]")))
	for _, raw := range []string{"null", `"a"`, `{"a":1}`, "1", `["a",1]`, `[null]`} {
		assert.Nil(t, Strings(json.RawMessage(raw)), raw)
	}
	assert.Nil(t, JoinStrings(nil))
	assert.Equal(t, "[]", string(JoinStrings([]string{})))
	assert.Equal(t, `["a<b","\""]`, string(JoinStrings([]string{"a<b", `"`})), "without escapes for HTML")
}

func TestIsNumber(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{"-1": true, "0": true, "9.5": true, `"1"`: false, "null": false, "[1]": false, "/": false, ":": false} {
		assert.Equal(t, want, IsNumber(json.RawMessage(raw)), raw)
	}
}

// A type error is told in the words of JSON.
func TestJSONErrorOfAType(t *testing.T) {
	t.Parallel()
	var into struct {
		B bool              `json:"b"`
		L []string          `json:"l"`
		A []json.RawMessage `json:"a"`
		S string            `json:"s"`
		F float64           `json:"f"`
		I int64             `json:"i"`
		M map[string]string `json:"m"`
	}
	for member, want := range map[string]string{"b": "true or false", "l": "a list of strings", "a": "a list", "f": "a number", "i": "a number", "m": "an object"} {
		raw := []byte(`{"` + member + `":"x"}`)
		assert.EqualError(t, JSONError(raw, json.Unmarshal(raw, &into)), `"`+member+`" is a JSON string, want `+want)
	}
	raw := []byte(`{"s":1}`)
	assert.EqualError(t, JSONError(raw, json.Unmarshal(raw, &into)), `"s" is a JSON number, want a string`)
	raw = []byte(`[1]`)
	assert.EqualError(t, JSONError(raw, json.Unmarshal(raw, &into)), "is a JSON array, want an object")
	assert.Same(t, io.EOF, JSONError(nil, io.EOF), "another error stays as it is")
}

// The place is that of the byte that is wrong: lines and columns count from 1.
func TestJSONErrorOfASyntax(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"x": "line 1, column 1: ", `{"a":x}`: "line 1, column 6: ", "{\n\"a\":\nx}": "line 3, column 1: ", "{\n\n  x}": "line 3, column 3: ",
		"": "line 1, column 1: ", "{\n\"a\"": "line 2, column 3: ",
	} {
		err := json.Unmarshal([]byte(raw), new(any))
		got := JSONError([]byte(raw), err)
		assert.ErrorContains(t, got, want, "%q", raw)
		assert.ErrorIs(t, got, err)
	}
}

func TestJSONOfAValue(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `{"a":"<&>"}`, JSON(map[string]string{"a": "<&>"}))
	assert.Equal(t, `"<\""`, string(Quote(`<"`)))
}

// Nothing changes in an error of MaxError bytes; a longer one has one line of at most so
// many characters, and still is the error that it was.
func TestBounded(t *testing.T) {
	t.Parallel()
	assert.NoError(t, Bounded(nil))
	err := errors.New(strings.Repeat("x", 1999) + "\n")
	assert.Same(t, err, Bounded(err))
	err = errors.New("a\nb" + strings.Repeat("x", 1998))
	got := Bounded(err)
	assert.ErrorIs(t, got, err)
	assert.EqualError(t, got, "a b"+strings.Repeat("x", 1996)+"…")
}

func TestWithoutURL(t *testing.T) {
	t.Parallel()
	assert.Same(t, io.EOF, WithoutURL(&url.Error{Op: "Get", URL: "http://u:secret@h", Err: io.EOF}))
	assert.Same(t, io.ErrUnexpectedEOF, WithoutURL(io.ErrUnexpectedEOF))
	assert.NoError(t, WithoutURL(nil))
}
