package result

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/assert"
)

// A result that is fitted stays as it is, and so does what its contents have room for behind their
// end.
func TestFitLeavesTheResult(t *testing.T) {
	t.Parallel()
	texts := func(n int) (list []mcp.Content) {
		for i := range n {
			list = append(list, textContent(fmt.Sprint("text ", i)))
		}
		return list
	}
	long := json.RawMessage(`"` + strings.Repeat("x", 100) + `"`)
	for name, r := range map[string]*mcp.CallToolResult{
		"too many":         {Content: texts(20)},
		"too many, nil":    {Content: append(texts(20), nil, mcp.NewImageContent("AAAA", "i"))},
		"structured":       {Content: texts(1), RawStructuredContent: long},
		"structured alone": {RawStructuredContent: long},
		"too long":         {Content: []mcp.Content{textContent(strings.Repeat("x", 1000))}},
		"too large":        {Content: append(texts(1), mcp.NewImageContent(strings.Repeat("A", 1000), "i"))},
	} {
		before := texts(40)
		behind := append(before[:0], r.Content...)[:40] // of which r has the first
		r.Content = behind[:len(r.Content)]
		was := append([]mcp.Content(nil), behind...)
		fit, _ := fitted(r, Bounds{Text: 60, Media: 60}, testNotes)
		assert.NotSame(t, r, fit, name)
		assert.Equal(t, was, behind, name)
	}
}

// Of two that go on from the same texts, as a copy of a session does, each has its own.
func TestKeptAreNotShared(t *testing.T) {
	t.Parallel()
	s := NewShelf(1 << 30)
	k := append(make(Kept, 0, 9), Kept(nil).With(s, "a", "text")...)
	one, other := k.With(s, "b", "text"), k.With(s, "c", "text")
	for id, want := range map[string]bool{"a": true, "b": true, "c": false} {
		_, ok := one.Text(id, nil)
		assert.Equal(t, want, ok, id)
	}
	for id, want := range map[string]bool{"a": true, "b": false, "c": true} {
		_, ok := other.Text(id, nil)
		assert.Equal(t, want, ok, id)
	}
}

// At the limits all are kept, and above them the oldest is not.
func TestLimitsOfKept(t *testing.T) {
	t.Parallel()
	half := strings.Repeat("x", 16<<20/2)
	s := NewShelf(1 << 30)
	assert.Len(t, Kept(nil).With(s, "a", half).With(s, "b", half), 2)
	assert.Len(t, Kept(nil).With(s, "a", half).With(s, "b", half+"x"), 1)
	var k Kept
	for i := range 8 {
		k = k.With(s, fmt.Sprint(i), "x")
	}
	assert.Len(t, k, 8)
	assert.Len(t, k.With(s, "more", "x"), 8)
}
