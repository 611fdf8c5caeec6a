package snapshot

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

type prefix string

func (p prefix) Line(text string, limit int) string  { return string(p) + text[:min(limit, len(text))] }
func (p prefix) Lines(text string, limit int) string { return string(p) + "lines " + text }

func TestText(t *testing.T) {
	t.Parallel()
	text := NewText("word", prefix("-"))
	assert.Equal(t, []string{"-wo", "-word", "-lines word"}, []string{text.Line(2), text.String(), text.Lines(2)})
	assert.Equal(t, text, NewText("word", prefix("-")))
	assert.NotEqual(t, text, NewText("word", prefix("+")))
	assert.Empty(t, Text{}.Line(2)+Text{}.String()+Text{}.Lines(2), "the zero value has no eraser")
}
