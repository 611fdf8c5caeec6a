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
		{"with more words, and both fit", withStructured(object, "found:", pretty, "."), 26, []string{"found:", object, "."}, object},
		{"with more words", withStructured(object, "found:", pretty), 20, []string{"found:", object}, ""},
		{"other words", withStructured(object, "long words that say something else"), 20, []string{"long words that say something else"}, object},
		{"no JSON", withStructured(`{"a":`, pretty), 20, []string{pretty}, `{"a":`},
		{"null", withStructured(`null`, pretty), 20, []string{pretty}, `null`},
	} {
		before := fmt.Sprint(test.in)
		got := sayOnce(test.in, test.limit)
		assert.Equal(t, test.texts, resultTexts(got), test.name)
		assert.Equal(t, test.structured, string(got.RawStructuredContent), test.name)
		assert.Equal(t, before, fmt.Sprint(test.in), test.name)
	}
	r := withStructured(object)
	r.Content = []mcp.Content{mcp.NewImageContent("A", ""), textResource(pretty)}
	got := sayOnce(r, 10)
	assert.Equal(t, []mcp.Content{r.Content[0], textResource(object)}, got.Content, "a resource keeps its address")
	assert.Nil(t, got.RawStructuredContent)
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
