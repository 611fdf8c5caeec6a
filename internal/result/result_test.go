package result

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func textContent(text string) mcp.TextContent { return mcp.TextContent{Type: "text", Text: text} }

func textResource(text string) mcp.EmbeddedResource {
	return mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: "file:///a", MIMEType: "text/plain", Text: text})
}

func testNote(from, to, total int) string { return fmt.Sprintf("<%d-%d of %d>", from, to, total) }

// resultTexts returns the texts of r, of any kind.
func resultTexts(r *mcp.CallToolResult) []string {
	var texts []string
	for _, c := range r.Content {
		switch c := c.(type) {
		case mcp.TextContent:
			texts = append(texts, c.Text)
		case mcp.EmbeddedResource:
			if res, ok := c.Resource.(mcp.TextResourceContents); ok {
				texts = append(texts, res.Text)
			}
		}
	}
	return texts
}

// requireCut checks what must hold for every result.
func requireCut(t *testing.T, r *mcp.CallToolResult, limit int) {
	t.Helper()
	before, err := json.Marshal(r)
	require.NoError(t, err)
	joined := strings.Join(resultTexts(r), "\n")
	note, from, to := "", -1, -1
	cut, whole := Cut(r, limit, func(f, t, total int) string {
		note, from, to = testNote(f, t, total), f, t
		return note
	})
	after, err := json.Marshal(r)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "the result itself is not changed")

	if len(joined) <= max(limit, 0) {
		require.Same(t, r, cut)
		require.Empty(t, whole)
		require.Empty(t, note, "no note is asked for")
		return
	}
	require.Equal(t, joined, whole)
	require.True(t, 0 <= from && from < to && to <= len(whole), "%d-%d of %d", from, to, len(whole))
	require.LessOrEqual(t, from+len(whole)-to, max(limit, 0), "head and tail")

	// The result is the head, the note and the tail, with line breaks between
	// contents.
	squeeze := func(s string) string { return strings.ReplaceAll(s, "\n", "") }
	shown := strings.Join(resultTexts(cut), "")
	require.LessOrEqual(t, len(shown), max(limit, 0)+len(note))
	require.Equal(t, squeeze(whole[:from]+note+whole[to:]), squeeze(shown))
	require.Equal(t, 1, strings.Count(shown, note)-strings.Count(whole[:from]+whole[to:], note))
	if utf8.ValidString(whole) {
		for _, text := range resultTexts(cut) {
			require.True(t, utf8.ValidString(text), "%q", text)
		}
	}
}

func TestCut(t *testing.T) {
	image := mcp.NewImageContent("AAAA", "image/png")
	link := mcp.NewResourceLink("file:///b", "b", "", "")
	blob := mcp.NewEmbeddedResource(mcp.BlobResourceContents{URI: "file:///c", Blob: strings.Repeat("A", 100)})
	tests := []struct {
		name  string
		in    []mcp.Content
		limit int
		want  []mcp.Content // nil if in is not cut
	}{
		{"empty", nil, 0, nil},
		{"as long as the limit", []mcp.Content{textContent("123456789")}, 9, nil},
		{"one longer", []mcp.Content{textContent("1234567890")}, 9, []mcp.Content{textContent("123456<6-7 of 10>890")}},
		{"no text counts", []mcp.Content{image, link, blob}, 0, nil},
		{"limit 0", []mcp.Content{textContent("ab")}, 0, []mcp.Content{textContent("<0-2 of 2>")}},
		{"negative limit", []mcp.Content{textContent("ab")}, -7, []mcp.Content{textContent("<0-2 of 2>")}},
		{"limit 1", []mcp.Content{textContent("ab")}, 1, []mcp.Content{textContent("a<1-2 of 2>")}},
		{"a character that is longer than the limit", []mcp.Content{textContent("汉字")}, 2, []mcp.Content{textContent("<0-6 of 6>")}},
		{
			"line breaks between contents count",
			[]mcp.Content{textContent("1234"), textContent("5678")}, 8,
			[]mcp.Content{textContent("1234"), textContent("5<6-7 of 9>78")},
		},
		{
			"in the first",
			[]mcp.Content{textContent("123456789"), textContent("abc")}, 9,
			[]mcp.Content{textContent("123456<6-10 of 13>"), textContent("abc")},
		},
		{
			"at the end of a content",
			[]mcp.Content{textContent("1234"), textContent("abcd"), textContent("ABCD")}, 6,
			[]mcp.Content{textContent("1234<4-12 of 14>"), textContent("CD")},
		},
		{
			"after an end of a line",
			[]mcp.Content{textContent("123456789"), textContent("abcdefghi"), textContent("A")}, 15,
			[]mcp.Content{textContent("123456789<10-16 of 21>"), textContent("ghi"), textContent("A")},
		},
		{
			"others stay in their place",
			[]mcp.Content{image, textContent("123456"), link, textContent("lost"), blob, textContent("abcdef"), image}, 6,
			[]mcp.Content{image, textContent("1234<4-16 of 18>"), link, blob, textContent("ef"), image},
		},
		{
			"a resource",
			[]mcp.Content{textContent("1"), textResource("23456789")}, 6,
			[]mcp.Content{textContent("1"), textResource("23<4-8 of 10>89")},
		},
		{
			"empty texts",
			[]mcp.Content{textContent(""), textContent("123456789"), textContent("")}, 6,
			[]mcp.Content{textContent(""), textContent("123<4-9 of 11>9"), textContent("")},
		},
		{
			"whole lines",
			[]mcp.Content{textContent(strings.Repeat("123456789\n", 30))}, 155,
			[]mcp.Content{textContent(strings.Repeat("123456789\n", 10) + "<100-250 of 300>" + strings.Repeat("123456789\n", 5))},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := &mcp.CallToolResult{Content: test.in}
			requireCut(t, r, test.limit)
			cut, whole := Cut(r, test.limit, testNote)
			if test.want == nil {
				assert.Same(t, r, cut)
				assert.Empty(t, whole)
				return
			}
			assert.Equal(t, test.want, cut.Content)
		})
	}
}

func TestCutKeepsTheRest(t *testing.T) {
	cut, whole := Cut(nil, 0, testNote)
	assert.Nil(t, cut)
	assert.Empty(t, whole)

	r := &mcp.CallToolResult{
		Result:               mcp.Result{Meta: mcp.NewMetaFromMap(map[string]any{"a": 1})},
		StructuredContent:    map[string]any{"long": "0123456789"},
		RawStructuredContent: json.RawMessage(`{"long":"0123456789"}`),
		IsError:              true,
	}
	text := textContent("0123456789")
	text.Annotations = &mcp.Annotations{Audience: []mcp.Role{mcp.RoleUser}}
	text.Meta = mcp.NewMetaFromMap(map[string]any{"b": 2})
	r.Content = []mcp.Content{text}
	cut, whole = Cut(r, 3, testNote)
	assert.Equal(t, "0123456789", whole)
	want := *r
	text.Text = "01<2-9 of 10>9"
	want.Content = []mcp.Content{text}
	assert.Equal(t, &want, cut)
	assert.Equal(t, "0123456789", r.Content[0].(mcp.TextContent).Text)
}

// scripts are characters as people see them. They must not be split.
var scripts = map[string][]string{
	"Latin":       {"a", "e\u0301", "n\u0303\u0323"},
	"Chinese":     {"汉", "字", "㐂\ufe00"},
	"Thai":        {"ที่", "นั่", "กำ"},
	"Devanagari":  {"कि", "क्", "नि", "ज़्"},
	"Korean":      {"한", "글"},
	"Arabic":      {"بِ", "سْ", "مِّ"},
	"flags":       {"🇩🇪", "🇫🇷", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"},
	"families":    {"👨‍👩‍👧‍👦", "👩🏽‍❤️‍💋‍👨🏿", "👍🏾", "❤️"},
	"line breaks": {"\r\n", "x", "\n"},
}

func TestPagesSplitNoCharacter(t *testing.T) {
	for name, characters := range scripts {
		longest, text := 0, ""
		var ends []int // in characters
		for i := range 12 {
			c := characters[i%len(characters)]
			longest = max(longest, len(c))
			text += c
			ends = append(ends, len(text))
		}
		for limit := longest + 1; limit < len(text); limit++ {
			for from := 0; from < len(text); {
				part, next := Page(text, from, limit)
				require.LessOrEqual(t, len(part), limit)
				require.Contains(t, ends, next, "%s: %q ends in a character", name, part)
				require.Greater(t, next-from, 0)
				from = next
			}
			var from, to int
			Cut(mcp.NewToolResultText(text), limit, func(f, t, _ int) string {
				from, to = f, t
				return ""
			})
			require.Contains(t, append(ends, 0), from, "%s, %d: the head of %q", name, limit, text)
			require.Contains(t, append(ends, 0), to, "%s, %d: the tail of %q", name, limit, text)
			require.Greater(t, from+longest, limit-limit/3-limit/10, "%s, %d: the head is as long as it can be", name, limit)
			require.Less(t, to-longest, len(text)-limit/3+limit/10+1, "%s, %d: the tail is as long as it can be", name, limit)
		}
	}
}

// A text that fits is not cut, wherever its lines end.
func TestHeadOfATextThatFits(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 97) + "\nab"
	assert.Equal(t, 100, headEnd(text, 101))
	assert.Equal(t, 100, headEnd(text, 100))
	assert.Equal(t, 98, headEnd(text, 99), "a line ends in the last tenth")
	assert.Equal(t, 50, headEnd(text, 50))
}

func TestPage(t *testing.T) {
	lines := "123456789\nabcdefghi\n"
	marks := "e" + strings.Repeat("\u0301", 100)
	tests := []struct {
		text        string
		from, limit int
		part        string
		next        int
	}{
		{"", 0, 5, "", 0},
		{"abc", 0, 3, "abc", 3},
		{"abc", 0, 2, "ab", 2},
		{"abc", 2, 2, "c", 3},
		{"abc", 3, 2, "", 3},
		{"abc", 4, 2, "", 3},
		{"abc", -1, 2, "ab", 2},
		{"abc", 0, 0, "a", 1},
		{"abc", 1, -1, "b", 2},
		{"汉字", 1, 3, "字", 6},
		{"汉字", 0, 1, "汉", 3}, // at least one code point
		{"汉字", 4, 3, "", 6},
		{lines, 0, 11, "123456789\n", 10},
		{lines, 0, 12, "123456789\nab", 12}, // the line ends too early
		{lines, 0, 20, lines, 20},
		{lines + "x", 10, 10, "abcdefghi\n", 20},
		{"ab\r\ncd", 0, 3, "ab", 2},
		{"👨‍👩‍👧‍👦!", 0, 25, "👨‍👩‍👧‍👦", 25},
		{"!👨‍👩‍👧‍👦", 0, 24, "!", 1},
		{"👨‍👩‍👧‍👦", 0, 24, "👨", 4}, // less than a character, so code points
		{"🇩🇪🇫🇷", 0, 15, "🇩🇪", 8},
		{"a🇩🇪🇫🇷", 0, 9, "a🇩🇪", 9},
		{marks, 0, 150, marks[:149], 149}, // longer than the code looks at
		{"\x80\x80\x80", 1, 1, "\x80", 2},
		{"a\xe6\xb1", 2, 1, "\xb1", 3},
		{"\xe6\xb1\xe6\xb1\x89", 0, 3, "\xe6\xb1", 2},
	}
	for _, test := range tests {
		part, next := Page(test.text, test.from, test.limit)
		assert.Equal(t, test.part, part, "%q from %d, limit %d", test.text, test.from, test.limit)
		assert.Equal(t, test.next, next, "%q from %d, limit %d", test.text, test.from, test.limit)
	}
}

// requirePages checks that all pages together make the text.
func requirePages(t *testing.T, text string, limit int) {
	t.Helper()
	var b strings.Builder
	for from := 0; from < len(text); {
		part, next := Page(text, from, limit)
		require.Equal(t, from+len(part), next)
		require.NotEmpty(t, part)
		require.LessOrEqual(t, len(part), max(limit, utf8.UTFMax))
		if r, n := utf8.DecodeRuneInString(part); len(part) > limit {
			require.Equal(t, string(r), part[:n], "only a code point may be longer than the limit")
		}
		b.WriteString(part)
		from = next
	}
	require.Equal(t, text, b.String())
}

// randomText returns up to 300 bytes in which boundaries are hard to find.
func randomText(rng *rand.Rand) string {
	pieces := []string{"\n", "\r", "\u200d", "\u0301", "\ufe0f", "🇩", "\xff", "\xe6", "\x80", "word ", "汉", "👩", "🏽", strings.Repeat("\u0301", 40)}
	for _, characters := range scripts {
		pieces = append(pieces, characters...)
	}
	var b strings.Builder
	for size := rng.IntN(300); b.Len() < size; {
		b.WriteString(pieces[rng.IntN(len(pieces))])
	}
	return b.String()
}

func TestRandomResults(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		text := randomText(rng)
		requirePages(t, text, 1+rng.IntN(100))
		r := &mcp.CallToolResult{}
		for range rng.IntN(6) {
			switch rng.IntN(3) {
			case 0:
				r.Content = append(r.Content, textContent(randomText(rng)))
			case 1:
				r.Content = append(r.Content, textResource(randomText(rng)))
			case 2:
				r.Content = append(r.Content, mcp.NewImageContent("AAAA", "image/png"))
			}
		}
		requireCut(t, r, rng.IntN(400))
	}
}

func FuzzPage(f *testing.F) {
	f.Add("汉字\n👨‍👩‍👧‍👦 \r\n🇩🇪🇫🇷 कि\xff\x80", 0, 5)
	f.Add(strings.Repeat("\u0301", 70), 3, 1)
	f.Fuzz(func(t *testing.T, text string, from, limit int) {
		if len(text) > 4096 {
			t.Skip("long")
		}
		part, next := Page(text, from, limit)
		start := next - len(part)
		require.True(t, 0 <= start && next <= len(text))
		require.Equal(t, text[start:next], part)
		require.Less(t, start-min(max(from, 0), len(text)), utf8.UTFMax)
		require.Equal(t, start == len(text), part == "")
		requirePages(t, text, max(1, limit))
	})
}

func FuzzCut(f *testing.F) {
	f.Add("123456789\nabc", "汉字👨‍👩‍👧‍👦", 9)
	f.Add("\xff\x80\x80", "", 1)
	f.Fuzz(func(t *testing.T, a, b string, limit int) {
		if len(a)+len(b) > 4096 {
			t.Skip("long")
		}
		for _, content := range [][]mcp.Content{
			{textContent(a)},
			{textContent(a), textContent(b)},
			{textResource(a), mcp.NewImageContent("AAAA", "image/png"), textContent(b), textContent(a)},
		} {
			requireCut(t, &mcp.CallToolResult{Content: content}, limit)
		}
	})
}

func BenchmarkCut(b *testing.B) {
	for name, line := range map[string]string{"ASCII": "A line of the result, as long as many.\n", "Chinese": "人人生而自由，在尊严和权利上一律平等。", "marks": "\u0301"} {
		r := mcp.NewToolResultText(strings.Repeat(line, (1<<20)/len(line)))
		b.Run("text="+name, func(b *testing.B) {
			for b.Loop() {
				Cut(r, 32<<10, testNote)
			}
		})
	}
}

// People are told the beginning of an error's first text, on one line.
func TestFailure(t *testing.T) {
	t.Parallel()
	failed := func(contents ...mcp.Content) *mcp.CallToolResult {
		return &mcp.CallToolResult{IsError: true, Content: contents}
	}
	first := mcp.NewTextContent("no\ndisk")
	for _, test := range []struct {
		r    *mcp.CallToolResult
		want string
	}{
		{nil, ""}, {mcp.NewToolResultText("fine"), ""}, {failed(), "an error without a text"},
		{failed(mcp.NewTextContent(" "), nil, mcp.NewImageContent("", ""), &first, mcp.NewTextContent("more")), "no disk"},
		{failed(mcp.NewEmbeddedResource(mcp.TextResourceContents{Text: "in a resource"})), "in a resource"},
		{failed(mcp.NewTextContent(strings.Repeat("x", 500))), strings.Repeat("x", 500)},
		{failed(mcp.NewTextContent(strings.Repeat("x", 501))), strings.Repeat("x", 499) + "…"},
		{failed(mcp.NewTextContent(strings.Repeat(" ", 8*500-1) + "xy")), "x"},
	} {
		assert.Equal(t, test.want, Failure(test.r))
	}
}

// What a pointer points to is that; a pointer to nothing is nothing.
func TestDirect(t *testing.T) {
	t.Parallel()
	text, image, audio, link := mcp.NewTextContent("t"), mcp.NewImageContent("d", "m"), mcp.NewAudioContent("d", "m"), mcp.NewResourceLink("u", "", "", "")
	words, blob := mcp.TextResourceContents{Text: "t"}, mcp.BlobResourceContents{Blob: "b"}
	embedded, within := mcp.NewEmbeddedResource(words), mcp.NewEmbeddedResource(&words)
	for _, test := range []struct {
		give, want mcp.Content
		pointed    bool
	}{
		{nil, nil, true}, {text, text, false}, {embedded, embedded, false},
		{&text, text, true}, {&image, image, true}, {&audio, audio, true}, {&link, link, true}, {&embedded, embedded, true}, {&within, embedded, true},
		{within, embedded, true}, {mcp.NewEmbeddedResource(&blob), mcp.NewEmbeddedResource(blob), true},
		{(*mcp.TextContent)(nil), nil, true}, {(*mcp.ImageContent)(nil), nil, true}, {(*mcp.AudioContent)(nil), nil, true}, {(*mcp.ResourceLink)(nil), nil, true},
		{(*mcp.EmbeddedResource)(nil), nil, true}, {mcp.EmbeddedResource{}, nil, true},
		{mcp.NewEmbeddedResource((*mcp.TextResourceContents)(nil)), nil, true}, {mcp.NewEmbeddedResource((*mcp.BlobResourceContents)(nil)), nil, true},
	} {
		got, pointed := Direct(test.give)
		assert.Equal(t, test.want, got)
		assert.Equal(t, test.pointed, pointed, "%T", test.give)
	}
}
