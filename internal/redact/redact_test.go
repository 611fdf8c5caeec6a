package redact

import (
	"encoding/json"
	"strings"
	"testing"

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
