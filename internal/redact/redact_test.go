package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/stretchr/testify/assert"
)

func TestErase(t *testing.T) {
	t.Parallel()
	e := New([]string{"hunter22", "hunter2233"})
	assert.Equal(t, "a [secret] b", strings.ReplaceAll(e.Line("a hun\u200bter2233\nb", 80), maskOf(e), "[secret]"))
	assert.NotContains(t, e.Line("cut: hunter…", 80), "hunter", "a beginning of a secret")
	assert.NotContains(t, e.Lines("one\n  hunter22\n", 80), "hunter22")
	assert.NotContains(t, e.Schema(json.RawMessage(`{"x":"\u0068unter22"}`), 80), "unter22")
	shown, same := e.Name("mcp_a__run", "run")
	assert.True(t, same)
	assert.Equal(t, "mcp_a__run", shown)
	_, same = e.Name("mcp_a__hunter", "hunter22")
	assert.False(t, same)
	shown, same = e.Name("mcp a", "a") // no safe name, and yet nothing to hide
	assert.Equal(t, "mcp a", shown)
	assert.True(t, same)
	shown, same = e.Name("mcp_hunter22", "a")
	assert.NotContains(t, shown, "hunter22")
	assert.False(t, same)
	assert.Equal(t, "hunter", e.Term("hunter", "hunter"), "what was asked for")
	assert.NotEqual(t, "hunter", e.Term("hunter", "other"))
}

func maskOf(e *Redactor) string { return e.Line("hunter22", 80) }

// A text without secrets stays, whatever it is; one with a secret shows nothing of it.
func TestRedactedTexts(t *testing.T) {
	t.Parallel()
	e := New([]string{"hunter22", "hunter22", "Sesame99"})
	mask := maskOf(e)
	for _, text := range []string{"plain", "U+200B, U+E0041", "a-b_c"} {
		assert.Equal(t, text, e.Mark(text))
		assert.Equal(t, text, e.Lines(text, 80))
	}
	assert.Equal(t, mask, e.Mark("hunter22"))
	assert.Equal(t, mask, e.Mark("huU+200Bnter22"), "a mark may stand within a secret")
	assert.Equal(t, mask, e.Mark("hunte"), "it may be the beginning of one that was cut")

	// A name.
	shown, same := e.Name("mcp_s__a", "hun\u200bter22")
	assert.Equal(t, mask, shown, "invisible characters split the secret")
	assert.False(t, same)
	shown, same = e.Name("mcp_s__a", "a.b")
	assert.Equal(t, "mcp_s__a", shown)
	assert.True(t, same)

	// Beginnings of secrets, in any case, of at least so many bytes.
	for n := range 8 {
		got := e.Line("x "+"HUNTER22"[:n]+"… y", 80)
		if n >= upstream.MinNamedSecret {
			assert.Equal(t, "x "+mask+"… y", got, n)
		} else {
			assert.Equal(t, "x "+"HUNTER22"[:n]+"… y", got, n)
		}
	}
	assert.Equal(t, "sesam", e.Line("sesam", 80), "nothing was cut")
	assert.Equal(t, mask+"… "+mask+"…", e.Line("sesame… hunter…", 80), "each cut")
	assert.Equal(t, "sesa", e.Term("sesa", "sesa"))
	assert.Equal(t, mask, e.Term("sesame9", "sesa"))
	assert.Equal(t, mask, e.Term("same99", ""), "any piece of it")
	assert.Equal(t, "unt"[:upstream.MinNamedSecret-1], e.Term("unt"[:upstream.MinNamedSecret-1], ""))
}

// A long text is cut before it is read, and what was cut there may be a secret.
func TestLongTextsAreCut(t *testing.T) {
	t.Parallel()
	e := New([]string{"hunter22"})
	const limit, most = 10, 8*10 + 1<<10
	invisible := func(n int) string { return strings.Repeat("\x00", n) }
	assert.Equal(t, "end", e.Line(invisible(most-3)+"end", limit))
	assert.Equal(t, "en…", e.Line(invisible(most-2)+"end", limit))
	assert.Equal(t, "end", e.Lines(invisible(most-3)+"end", limit))
	assert.Equal(t, "en…", e.Lines(invisible(most-2)+"end", limit))
	assert.Equal(t, maskOf(e)+"…", e.Line(strings.Repeat("\x00", 8*80+1<<10-7)+"hunter22", 80), "the beginning of a secret")
}

// Lines keep the spaces at their beginning, up to 40, and end after 400 lines or limit.
func TestRedactedLines(t *testing.T) {
	t.Parallel()
	e := New(nil)
	assert.Equal(t, "a\n  b c\n"+strings.Repeat(" ", 40)+"d", e.Lines("a\n  b\tc\n"+strings.Repeat(" ", 50)+"d\n\n", 800))
	got := e.Lines(strings.Repeat("a\n", 401), 2000)
	assert.Equal(t, strings.Repeat("a\n", 400)+"…", got)
	assert.Equal(t, strings.TrimSuffix(strings.Repeat("a\n", 399), "\n"), e.Lines(strings.Repeat("a\n", 399), 2000))
	assert.Equal(t, "aaaa\n…", e.Lines("aaaa\nb", 5), "five bytes with the line's end")
	assert.Equal(t, "aaa\nb\n…", e.Lines("aaa\nb\nc", 5))
}

// A schema is indented if it fits, and its escapes are read unless they would change it.
func TestRedactedSchema(t *testing.T) {
	t.Parallel()
	e := New([]string{"hunter22"})
	assert.Equal(t, "{\n  \"a\": \"é\"\n}", e.Schema(json.RawMessage(`{"a":"\u00e9"}`), 80))
	assert.Equal(t, "{\n  \"a\": \"\\u0022\\u005c\"\n}", e.Schema(json.RawMessage(`{"a":"\u0022\u005c"}`), 80))
	assert.Equal(t, "{\n  \"a\": \"\\u000a\"\n}", e.Schema(json.RawMessage(`{"a":"\u000a"}`), 80))
	assert.Equal(t, "{\n  \"a\": 1\n}", e.Schema(json.RawMessage(`{"a":1}`), 14), "it is cut once it is indented")
	assert.Equal(t, "{\"a\":1…\n…", e.Schema(json.RawMessage(`{"a":12}`), 7), "what is longer is not indented")
	assert.Equal(t, `{"a":`, e.Schema(json.RawMessage(`{"a":`), 80), "malformed")
}
