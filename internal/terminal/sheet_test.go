package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSheet(t *testing.T) {
	t.Parallel()
	write := func(columns int) string {
		var b bytes.Buffer
		s := Paper(&b, columns)
		s.Row("%-8s %s", "a row", "that goes on\x1b[2J")
		s.Text("a text", "", "with a part that goes on")
		s.Gap()
		s.Block("a block\n\tof\x1b two lines that go on\n")
		assert.NoError(t, s.Err())
		return b.String()
	}
	assert.Equal(t, "a row    that goes on?[2J\na text  with a part that goes on\n\na block\n    of? two lines that go on\n", write(0))
	assert.Equal(t, "a row    that goes …\na text\n    with a part that\n    goes on\n\na block\n    of? two lines\nthat go on\n", write(20))
	columns, strict := Paper(nil, 0).Columns()
	assert.Equal(t, usualColumns, columns)
	assert.False(t, strict)
	columns, strict = Paper(nil, 61).Columns()
	assert.Equal(t, 61, columns)
	assert.True(t, strict)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestSheetKeepsTheError(t *testing.T) {
	t.Parallel()
	s := Paper(full{}, 0)
	s.Row("a")
	s.Gap()
	assert.EqualError(t, s.Err(), "no space left")
}

// JSON for programs is indented, ends with a line break, and has no escapes for HTML.
func TestPrintJSON(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	assert.NoError(t, PrintJSON(&b, map[string]any{"a": "<&>", "b": []int{1}}))
	assert.Equal(t, "{\n  \"a\": \"<&>\",\n  \"b\": [\n    1\n  ]\n}\n", b.String())
	assert.Error(t, PrintJSON(full{}, 1))
	assert.Error(t, PrintJSON(&b, func() {}))
}

// A terminal obeys nothing in JSON, and shows all of it; a program reads the same as was written.
func TestPrintJSONForATerminal(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b[2J\x7f\u009b2J\u202eé漢\u200b\u3000\U000e0041\ufffd"
	var b strings.Builder
	require.NoError(t, PrintJSON(&b, hostile))
	assert.Equal(t, `"\u001b[2J\u007f\u009b2J\u202eé漢\u200b\u3000\udb40\udc41\ufffd"`+"\n", b.String())
	var read string
	require.NoError(t, json.Unmarshal([]byte(b.String()), &read))
	assert.Equal(t, hostile, read)
}
