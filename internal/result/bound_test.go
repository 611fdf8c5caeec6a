package result

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var testNotes = Notes{
	Cut:     testNote,
	LeftOut: func(kind, mime string, size int) string { return fmt.Sprintf("<%s %s %d>", kind, mime, size) },
	More:    func(contents int) string { return fmt.Sprintf("<%d more>", contents) },
}

// fitted returns r as it is served: [Limit] and then [Cut].
func fitted(r *mcp.CallToolResult, b Bounds, n Notes) (fit *mcp.CallToolResult, whole string) {
	return Cut(Limit(r, b, n), b.Text, n.Cut)
}

func TestFit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("A", 100)
	blob := func(size int) mcp.EmbeddedResource {
		return mcp.NewEmbeddedResource(mcp.BlobResourceContents{URI: "u", MIMEType: "m", Blob: long[:size]})
	}
	link := func(name string) mcp.ResourceLink { return mcp.NewResourceLink("", name, "", "") }
	text := textContent("1234567890")
	var none *mcp.TextContent
	tests := []struct {
		name     string
		in, want []mcp.Content // nil if in stays
	}{
		{"what fits", []mcp.Content{text, mcp.NewImageContent("AAAA", "i"), blob(18), link("b")}, nil},
		{"an image", []mcp.Content{text, mcp.NewImageContent(long[:31], "image/png")}, []mcp.Content{text, textContent("<image image/png 40>")}},
		{"a sound", []mcp.Content{mcp.NewAudioContent(long, "wav"), text}, []mcp.Content{textContent("<audio wav 103>"), text}},
		{"a file", []mcp.Content{blob(60)}, []mcp.Content{textContent("<file m 62>")}},
		{"together", []mcp.Content{mcp.NewImageContent(long[:20], ""), blob(10), mcp.NewImageContent(long[:9], "")}, []mcp.Content{mcp.NewImageContent(long[:20], ""), textContent("<file m 12>"), mcp.NewImageContent(long[:9], "")}},
		{"a sound is a medium", []mcp.Content{mcp.NewImageContent(long[:20], ""), mcp.NewAudioContent(long[:11], ""), mcp.NewAudioContent(long[:10], "")}, []mcp.Content{mcp.NewImageContent(long[:20], ""), textContent("<audio  11>"), mcp.NewAudioContent(long[:10], "")}},
		{"links", []mcp.Content{link(long[:30]), link(long[:10]), link("b")}, []mcp.Content{link(long[:30]), textContent("<link  10>"), link("b")}},
		{"a link's type", []mcp.Content{mcp.NewResourceLink("", long[:20], "", long[:13]), mcp.NewResourceLink("", long[:20], "", long[:14])}, []mcp.Content{mcp.NewResourceLink("", long[:20], "", long[:13]), textContent("<link " + long[:14] + " 34>")}},
		{"a long address", []mcp.Content{mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: long, Text: "text"})}, []mcp.Content{textContent("text")}},
		{"anything else", []mcp.Content{mcp.ToolUseContent{Type: "tool_use", Name: long}}, []mcp.Content{textContent("<content  150>")}},
		{"pointers", []mcp.Content{&text, nil, none, (*mcp.EmbeddedResource)(nil), mcp.EmbeddedResource{}}, []mcp.Content{text}},
		{
			"pointers within", []mcp.Content{&mcp.EmbeddedResource{Type: "resource", Resource: &mcp.TextResourceContents{URI: "file:///a", MIMEType: "text/plain", Text: long}}},
			[]mcp.Content{textResource(long[:22] + "<22-89 of 100>" + long[89:])},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := &mcp.CallToolResult{Content: test.in}
			fit, _ := fitted(r, Bounds{Text: 33, Media: 30}, testNotes)
			if test.want == nil {
				assert.Same(t, r, fit)
				return
			}
			assert.Equal(t, test.want, fit.Content)
		})
	}
	nothing, whole := fitted(nil, Bounds{}, testNotes)
	assert.Nil(t, nothing)
	assert.Empty(t, whole)
}

func TestFitManyContents(t *testing.T) {
	t.Parallel()
	none := (*mcp.TextContent)(nil)
	first := slices.Repeat([]mcp.Content{mcp.NewImageContent("", "")}, 16)
	tests := []struct {
		name       string
		rest, want []mcp.Content
	}{
		{"one text stays, as one", []mcp.Content{textContent("a")}, []mcp.Content{textContent("a")}},
		{"texts are joined", []mcp.Content{textContent("a"), textResource("b"), textContent("")}, []mcp.Content{textContent("a\nb")}},
		{"texts are joined, then cut", []mcp.Content{textContent(strings.Repeat("a", 30)), textContent(strings.Repeat("b", 30))}, []mcp.Content{textContent(strings.Repeat("a", 22) + "<22-50 of 61>" + strings.Repeat("b", 11))}},
		{"others are counted", []mcp.Content{mcp.NewImageContent("A", ""), textContent("a"), mcp.NewResourceLink("a", "", "", "")}, []mcp.Content{textContent("a"), textContent("<2 more>")}},
		{"empty ones are dropped", []mcp.Content{textContent(""), none, nil}, nil},
	}
	for _, test := range tests {
		r := &mcp.CallToolResult{Content: slices.Concat(first, test.rest)}
		fit, _ := fitted(r, Bounds{Text: 33}, testNotes)
		assert.Equal(t, slices.Concat(first, test.want), fit.Content, test.name)
		assert.Len(t, r.Content, len(first)+len(test.rest))
	}
	r := &mcp.CallToolResult{Content: slices.Repeat(first, 4)}
	fit, _ := fitted(r, Bounds{Text: 64 * 64}, testNotes)
	assert.Same(t, r, fit)
	fit, _ = fitted(r, Bounds{Text: 64*64 - 1}, testNotes)
	assert.Len(t, fit.Content, 64)
}

func TestFitStructured(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"long": "` + strings.Repeat("x", 40) + `"}`)
	tests := []struct {
		name  string
		text  string
		limit int
		whole string
		kept  bool
	}{
		{"fits", "short", len(raw), "", true},
		{"is cut as a text", "short", 30, "short\n" + string(raw), false},
		{"is in a text already, longer", strings.ReplaceAll(string(raw), " ", "\n"), 30, strings.ReplaceAll(string(raw), " ", ""), false},
		{"is in a text already, as short", strings.ReplaceAll(string(raw), " ", ""), 30, strings.ReplaceAll(string(raw), " ", ""), false},
	}
	for _, test := range tests {
		for _, encoded := range []bool{true, false} {
			r := &mcp.CallToolResult{Content: []mcp.Content{textContent(test.text)}, StructuredContent: map[string]any{"long": strings.Repeat("x", 40)}}
			if encoded {
				r.RawStructuredContent = raw
			} else if !test.kept {
				test.whole = strings.ReplaceAll(test.whole, ": ", ":")
			}
			fit, whole := fitted(r, Bounds{Text: test.limit}, testNotes)
			assert.Equal(t, test.kept, fit.StructuredContent != nil, test.name)
			assert.Equal(t, encoded && test.kept, fit.RawStructuredContent != nil, test.name)
			assert.Equal(t, test.whole, whole, test.name)
			assert.Len(t, r.Content, 1)
			assert.NotNil(t, r.StructuredContent)
		}
	}
}

// Whatever a server sends, what is left is within the bounds.
func FuzzFit(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":"abc"}],"structuredContent":{"a":[1,2]}}`), 5)
	f.Add([]byte(`{"content":[{"type":"resource","resource":{"uri":"file:///a","blob":"AAAA"}},{"type":"resource_link","uri":"u","name":"n"}]}`), 0)
	f.Add([]byte(`{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"some text"}},null],"structuredContent":[]}`), 3)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		r := new(mcp.CallToolResult)
		if limit < 0 || limit > 1<<20 || json.Unmarshal(data, r) != nil {
			t.Skip("no result, or no limit")
		}
		before, err := json.Marshal(r)
		require.NoError(t, err)
		notes := 0
		b := Bounds{Text: limit, Media: 2 * limit}
		fit, _ := fitted(r, b, Notes{
			Cut:     func(int, int, int) string { notes++; return "!" },
			LeftOut: func(string, string, int) string { notes++; return "!" },
			More:    func(int) string { notes++; return "!" },
		})
		after, err := json.Marshal(r)
		require.NoError(t, err)
		require.Equal(t, string(before), string(after), "the result itself is not changed")
		require.LessOrEqual(t, len(fit.Content), b.contents()+3, "a text, a note, and structured content as a text")
		sizes := make(map[string]int)
		for _, c := range fit.Content {
			kind, _, size := measure(c)
			if kind == "text" {
				text, _ := textOf(c)
				sizes["texts"] += len(text)
				kind = "other"
			}
			if kind == "image" || kind == "audio" || kind == "file" {
				kind = "media"
			} else {
				kind = "other"
			}
			sizes[kind] += size
		}
		require.LessOrEqual(t, sizes["texts"], limit+notes)
		require.LessOrEqual(t, sizes["other"], limit)
		require.LessOrEqual(t, sizes["media"], 2*limit)
		require.LessOrEqual(t, len(fit.RawStructuredContent), limit)
	})
}

// However many texts there are, long structured content is read once. The bytes that
// are taken from memory count the steps, so the test runs alone.
func TestFitReadsStructuredOnce(t *testing.T) {
	const size = 1 << 20
	r := &mcp.CallToolResult{RawStructuredContent: []byte(`["` + strings.Repeat("x", size) + `"]`)}
	for range 100 {
		r.Content = append(r.Content, mcp.NewTextContent("1"))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fit, _ := fitted(r, Bounds{Text: 64 << 10}, testNotes)
	runtime.ReadMemStats(&after)
	assert.Nil(t, fit.RawStructuredContent)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(20*size))

	// A text that has it stays alone, spaces apart.
	r = &mcp.CallToolResult{RawStructuredContent: []byte(`{"a": [1, 2]}`), Content: []mcp.Content{textContent("1"), textContent(" {\"a\":[1,2]} ")}}
	fit, _ = fitted(r, Bounds{Text: 5}, testNotes)
	assert.Nil(t, fit.RawStructuredContent)
	assert.Less(t, len(fit.Content), 3)
}
