package result

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/assert"
)

func withStructured(structured string, texts ...string) *mcp.CallToolResult {
	r := &mcp.CallToolResult{RawStructuredContent: json.RawMessage(structured)}
	for _, t := range texts {
		r.Content = append(r.Content, textContent(t))
	}
	return r
}

// Of what structured content and texts say both, one stays where either is too long.
// Structured content is what the server sent, or what a host has in its place.
func TestStructured(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]*mcp.CallToolResult{
		"":        {},
		`{"a":1}`: {RawStructuredContent: json.RawMessage(`{"a":1}`), StructuredContent: map[string]any{"a": 2}},
		`{"a":2}`: {StructuredContent: map[string]any{"a": 2}},
	} {
		got, err := Structured(r)
		assert.NoError(t, err)
		assert.Equal(t, want, string(got))
	}
	_, err := Structured(&mcp.CallToolResult{StructuredContent: func() {}})
	assert.Error(t, err)
}

func TestSayOnce(t *testing.T) {
	t.Parallel()
	const object, pretty = `{"a":1,"b":[1,2]}`, "{\n  \"b\": [1, 2],\n  \"a\": 1\n}"
	for _, test := range []struct {
		name       string
		in         *mcp.CallToolResult
		limit      int
		texts      []string
		structured string
	}{
		{"both fit", withStructured(object, pretty), len(pretty), []string{pretty}, object},
		{"the text is longer, and the shorter form fits", withStructured(object, pretty), len(object), []string{object}, object},
		{"neither fits, and the text is longer", withStructured(object, pretty), 10, []string{object}, ""},
		{"neither fits, and the text is as short", withStructured(object, object), 10, []string{object}, ""},
		{"the structured content is longer", withStructured(pretty, object), len(object), []string{object}, ""},
		{"a text for each element", withStructured(`{"result":[{"a":1},{"a":2}]}`, "{\n     \"a\": 1\n}", "{\n     \"a\": 2\n}"), 28, []string{`{"result":[{"a":1},{"a":2}]}`}, `{"result":[{"a":1},{"a":2}]}`},
		{"in another order", withStructured(`{"result":[{"a":1},{"a":2}]}`, "{\n     \"a\": 2\n}", "{\n     \"a\": 1\n}"), 28, []string{"{\n     \"a\": 2\n}", "{\n     \"a\": 1\n}"}, ""},
		{"a text wrapped", withStructured(`{"result":"a \"b\""}`, `a "b"`), 8, []string{`a "b"`}, ""},
		{"one element", withStructured(`{"result":[{"a":1}]}`, "{\n     \"a\": 1\n}"), 10, []string{"{\n     \"a\": 1\n}"}, ""},
		{"no element", withStructured(`{"result":[]}`, "nothing here"), 5, []string{"nothing here"}, `{"result":[]}`},
		{"a string", withStructured(`"a \"b\""`, `a "b"`, "c"), 8, []string{`a "b"`, "c"}, ""},
		{"with more words, and both fit", withStructured(object, "found:", pretty, "."), 26, []string{"found:", object, "."}, object},
		{"with more words", withStructured(object, "found:", pretty), 20, []string{"found:", object}, ""},
		{"other words", withStructured(object, "long words that say something else"), 20, []string{"long words that say something else"}, object},
		{"no JSON", withStructured(`{"a":`, pretty), 20, []string{pretty}, `{"a":`},
		{"null", withStructured(`null`, pretty), 20, []string{pretty}, `null`},
	} {
		before := fmt.Sprint(test.in)
		got := sayOnce(test.in, Bounds{Text: test.limit})
		assert.Equal(t, test.texts, resultTexts(got), test.name)
		assert.Equal(t, test.structured, string(got.RawStructuredContent), test.name)
		assert.Equal(t, before, fmt.Sprint(test.in), test.name)
	}
	r := withStructured(object)
	r.Content = []mcp.Content{mcp.NewImageContent("A", ""), textResource(pretty)}
	got := sayOnce(r, Bounds{Text: 10})
	assert.Equal(t, []mcp.Content{r.Content[0], textResource(object)}, got.Content, "a resource keeps its address")
	assert.Nil(t, got.RawStructuredContent)
}

// Structured content that a client counts on stays within the bound of media, and what the model
// reads is cut as ever.
func TestPromisedStructuredContent(t *testing.T) {
	t.Parallel()
	const object, pretty = `{"a":1,"b":[1,2]}`, "{\n  \"b\": [1, 2],\n  \"a\": 1\n}"
	for _, test := range []struct {
		name       string
		in         *mcp.CallToolResult
		media      int
		texts      []string
		structured string
	}{
		{"a text says the same", withStructured(object, pretty), len(object), []string{object}, object},
		{"no text", withStructured(object), len(object), nil, object},
		{"other words", withStructured(object, "words"), len(object), []string{"words"}, object},
		{"too long for media, too", withStructured(object, "words"), len(object) - 1, []string{"words", object}, ""},
		{"too long, and a text says the same", withStructured(object, pretty), len(object) - 1, []string{object}, ""},
	} {
		got := Limit(test.in, Bounds{Text: 10, Media: test.media, Promised: true}, testNotes)
		assert.Equal(t, test.texts, resultTexts(got), test.name)
		assert.Equal(t, test.structured, string(got.RawStructuredContent), test.name)
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in            *mcp.CallToolResult
		source, whole string
	}{
		{withStructured("", "a", "b"), "a\nb", "a\nb"},
		{withStructured(`{"a":1}`, "one"), `{"a":1}`, "one\n{\"a\":1}"},
		{withStructured(`{"a":1}`, `{ "a": 1 }`), `{"a":1}`, `{ "a": 1 }`},
		{withStructured(`{"content":"[1, 2]"}`, `[1, 2]`), `[1, 2]`, `[1, 2]`},
		{withStructured(`{"result":[{"a":1}]}`, `{"a":1}`), `{"result":[{"a":1}]}`, `{"a":1}`},
	} {
		source, whole := Texts(test.in)
		assert.Equal(t, test.source, source)
		assert.Equal(t, test.whole, whole)
	}
}

func TestWithText(t *testing.T) {
	t.Parallel()
	image := mcp.NewImageContent("A", "")
	r := withStructured(`{}`)
	r.Content = []mcp.Content{image, textContent("a"), nil, image, textContent("b")}
	got := WithText(r, "x")
	assert.Equal(t, []mcp.Content{image, textContent("x"), image}, got.Content)
	assert.Nil(t, got.RawStructuredContent)
	r.Content = []mcp.Content{image}
	assert.Equal(t, []mcp.Content{textContent("x"), image}, WithText(r, "x").Content)
}

// A text is not decoded to more values than the structured content has, which has a limit.
func TestSaysDecodesNoMoreThanIsBounded(t *testing.T) {
	structured := json.RawMessage(`{"a":["` + strings.Repeat("x", 1<<20) + `"]}`)
	texts := []string{"[" + strings.Repeat("0,", 2<<20) + "0]"}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	assert.False(t, Says(texts, structured))
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(40<<20))
}

// Of many values nothing is decoded: a text says all of them if it is the same JSON but for spaces.
func TestSaysOfManyValues(t *testing.T) {
	list := func(sep string, n int) string { return `{"a":[` + strings.Repeat("0,"+sep, n-3) + `0]}` }
	for name, test := range map[string]struct {
		structured string
		texts      []string
		want       bool
		from, to   int
	}{
		"the same, with spaces":       {list("", maxCompared+1), []string{"x", list("\n ", maxCompared+1), list("", maxCompared+1)}, true, 1, 2},
		"another":                     {list("", maxCompared+1), []string{list("", maxCompared+2)}, false, 0, 0},
		"in parts":                    {list("", maxCompared+1), []string{"0"}, false, 0, 0},
		"the limit is decoded":        {list("", maxCompared), []string{"0"}, true, 0, 0},
		"the same text, which is bad": {list("", maxCompared+1) + "]", []string{list("", maxCompared+1) + "]"}, false, 0, 0},
	} {
		all, from, to := compare(test.texts, json.RawMessage(test.structured))
		assert.Equal(t, []any{test.want, test.from, test.to}, []any{all, from, to}, name)
	}
	structured, same := json.RawMessage(list("", 1<<19)), list(" ", 1<<19)
	assert.Less(t, testing.AllocsPerRun(1, func() { Says([]string{same}, structured) }), 100.0)
}
