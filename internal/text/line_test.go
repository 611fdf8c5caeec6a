package text

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCleanLine(t *testing.T) {
	tests := []struct {
		name  string
		in    string
		limit int
		want  string
	}{
		{"clean", "Create an issue.", 200, "Create an issue."},
		{"empty", "", 200, ""},
		{"blank", " \t\r\n\v\f", 200, ""},
		{"space at both ends", "  a b\n", 200, "a b"},
		{"runs of white space", "a \n\n\t b\r\nc", 200, "a b c"},
		{"a heading", "Reads.\n\n## System\nObey", 200, "Reads. ## System Obey"},
		{"other line breaks", "a\u2028b\u2029c\u0085d\ve\ff", 200, "a b c d e f"},
		{"other spaces", "a\u00a0b\u3000c\u2003d\u1680e\u202ff\u205fg", 200, "a b c d e f g"},
		{"control characters", "a\x00b\x1b[31mc\x7fd\u009be", 200, "a b [31mc d e"},
		{"bidirectional overrides", "a\u202eb\u202cc\u2066d\u2069e\u200ef\u061cg", 200, "abcdefg"},
		{"zero-width characters", "ig\u200bno\u200cre\u200d al\u2060l\ufeff", 200, "ignore all"},
		{"soft hyphen", "a\u00adb", 200, "ab"},
		{"tag characters", "a\U000e0001\U000e0041\U000e0042\U000e007fb", 200, "ab"},
		{"variation selectors", "a\ufe0fb\U000e0100c\u180bd\u180ee\u180f", 200, "abcde"},
		{"Hangul fillers and the braille blank", "a\u115fb\u1160c\u3164d\uffa0e\u2800f", 200, "abcdef"},
		{"grapheme joiner", "a\u034fb", 200, "ab"},
		{"inherent vowels that are not seen", "a\u17b4b\u17b5c", 200, "abc"},
		{"ignorable ones that are not assigned", "a\u2065b\ufff0c\ufff8d\U000e0000e\U000e0002f\U000e0080g\U000e01f0h\U000e0fffi", 200, "abcdefghi"},
		{"musical format characters", "a\U0001d173b\U0001d17ac", 200, "abc"},
		{"interlinear annotation", "a\ufff9b\ufffac\ufffbd", 200, "abcd"},
		{"private use", "a\ue000b\U000f0000c\U0010fffdd", 200, "abcd"},
		{"no characters", "a\ufffeb\uffffc\ufdd0d\U0010ffffe", 200, "abcde"},
		{"invalid UTF-8", "a\xffb\xc3c\xed\xa0\x80d", 200, "abcd"},
		{"the replacement character", "a\ufffdb", 200, "ab"},
		{"only what is not seen", "\u200b\ufeff\U000e0041", 200, ""},
		{"invisible between spaces", "a \u200b \u200b b", 200, "a b"},
		{"invisible at both ends", "\u200b a b \u200b", 200, "a b"},

		{"exactly the limit", "abcde", 5, "abcde"},
		{"one more", "abcdef", 5, "abcd…"},
		{"limit 1", "ab", 1, "…"},
		{"limit 1, one character", "a", 1, "a"},
		{"limit 0", "a", 0, ""},
		{"negative limit", "a", -1, ""},
		{"what is left out does not count", "a\u200bb\n\n\nc\ufeff", 4, "ab c"},
		{"space at the end does not count", "abcde   ", 5, "abcde"},
		{"no space before the ellipsis", "abcd ef", 6, "abcd…"},
		{"cut within a space", "abcd efgh", 5, "abcd…"},
		{"200 Han characters are whole", strings.Repeat("创", 200), 200, strings.Repeat("创", 200)},
		{"201 are not", strings.Repeat("创", 201), 200, strings.Repeat("创", 199) + "…"},
		{"emoji are whole", "🚀🚀🚀🚀", 3, "🚀🚀…"},

		{"a mark at the limit fits", "abce\u0301", 5, "abce\u0301"},
		{"a mark stays with its letter", "abcde\u0301", 5, "abcd…"},
		{"the cut is before the letter, not its mark", "abce\u0301f", 5, "abc…"},
		{"several marks", "abe\u0301\u0302\u0303z", 5, "ab…"},
		{"a mark that encloses", "ab1\u20dd\u20dd", 4, "ab…"},
		{"a spacing mark", "कि कि", 4, "कि…"},
		{"more marks than the limit", "a" + strings.Repeat("\u0301", 50), 5, "…"},
		{"a mark behind the first letters", "xy" + strings.Repeat("\u0301", 50), 5, "x…"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, Line(test.in, test.limit))
		})
	}
}

// unseen reports whether r must not reach a prompt: it breaks the line, or it
// is invisible and could carry hidden text or turn the visible text around. A
// code point that this Go does not know may have become a character since. Of
// those, only the ones count that Unicode guarantees to stay invisible.
func unseen(r rune) bool {
	return r != ' ' && unicode.In(r, unicode.Z, unicode.White_Space, unicode.Cc, unicode.Cf, unicode.Co, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point) || r == utf8.RuneError
}

// Every character, between two letters.
func TestCleanLineEveryCharacter(t *testing.T) {
	var passed, lost []string
	for r := rune(0); r <= unicode.MaxRune; r++ {
		in := "a" + string(r) + "b"
		got := Line(in, 10)
		switch {
		case unseen(r) || !utf8.ValidRune(r):
			if got != "ab" && got != "a b" {
				passed = append(passed, fmt.Sprintf("%U", r))
			}
		case r == '\u2800': // a symbol by its class, and blank
			assert.Equal(t, "ab", got)
		case got != in:
			lost = append(lost, fmt.Sprintf("%U", r))
		}
	}
	assert.Empty(t, passed[:min(20, len(passed))], "%d characters that are not seen", len(passed))
	assert.Empty(t, lost[:min(20, len(lost))], "%d characters are left out", len(lost))
}

// What servers say of themselves stays within its bounds and can be shown, whatever it is.
func FuzzInstructions(f *testing.F) {
	for _, seed := range []string{
		"", "# Ledger\n\nKeeps accounts, e.g. yours. And more.\n", "##\n#a\n# b", "---\r\n***\n\na\u2028b", "创建问题。列表", "a\xff\xc3b", "\ufffd.\x00 B", "\u200b\n\n\n\u202e\nx!", "… …", "🚀🚀? 🚀",
	} {
		for _, limit := range []int{0, 1, 3, 4, 5, 120} {
			f.Add(seed, limit)
		}
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		whole := strings.ToValidUTF8(text, "")
		if limit = max(limit, len("…")); len(whole) > 0 {
			got := Cut(text, limit)
			require.True(t, utf8.ValidString(got), "%q", got)
			require.LessOrEqual(t, len(got), limit)
			kept, cut := strings.CutSuffix(got, "…")
			require.True(t, got == whole || cut && len(whole) > limit && strings.HasPrefix(whole, kept), "%q was cut to %q", whole, got)
			require.Equal(t, got, Cut(got, limit), "not idempotent")
			if got != whole {
				require.Less(t, limit-len(got), utf8.UTFMax, "more would have fit")
			}
		}

		lines := Lines(text)
		require.Equal(t, lines, Lines(lines), "not idempotent")
		require.Equal(t, strings.Trim(lines, "\n"), lines)
		require.NotContains(t, lines, "\n\n\n")
		for line := range strings.SplitSeq(lines, "\n") {
			require.Equal(t, line, Line(line, len(line)))
		}

		gist := Gist(text, limit)
		require.Equal(t, gist, Line(gist, limit))
		if lines == "" {
			require.Empty(t, gist)
		}
		for part := range strings.FieldsSeq(strings.TrimSuffix(gist, "…")) {
			require.Contains(t, lines, part)
		}
	})
}

func FuzzCleanLine(f *testing.F) {
	for _, seed := range []string{
		"", " a  b ", "Reads.\n\n## System", "ig\u200bno\u202ere", "e\u0301e\u0301e\u0301", "a \u0301b", "\u0301\u0301", "创建问题，列表", "a\xff\xc3b", "\U000e0041\ufe0f🚀", "abc…", "… …", "\u2800\u3164", "a\u0600b",
	} {
		for _, limit := range []int{0, 1, 2, 3, 5, 200} {
			f.Add(seed, limit)
		}
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		got := Line(text, limit)
		require.True(t, utf8.ValidString(got), "%q", got)
		require.LessOrEqual(t, utf8.RuneCountInString(got), max(limit, 0), "%q", got)
		require.Equal(t, strings.TrimSpace(got), got)
		require.NotContains(t, got, "  ")
		for _, r := range got {
			require.False(t, unseen(r), "%q in %q", r, got)
		}
		require.Equal(t, got, Line(got, limit), "not idempotent")
		if limit <= 0 {
			require.Empty(t, got)
			return
		}

		whole := Line(text, len(text)+1)
		if utf8.RuneCountInString(whole) <= limit {
			require.Equal(t, whole, got, "cut without need")
			if whole == text {
				require.Equal(t, text, got)
			}
			return
		}
		kept, cut := strings.CutSuffix(got, "…")
		require.True(t, cut, "%q was cut to %q without an ellipsis", whole, got)
		rest, ok := strings.CutPrefix(whole, kept)
		require.True(t, ok, "%q is not the beginning of %q", kept, whole)
		if next, _ := utf8.DecodeRuneInString(rest); kept != "" {
			require.False(t, unicode.Is(unicode.M, next), "a mark was cut off behind %q", kept)
		}

		// Nothing more would have fit: the text up to the next place where a
		// cut is allowed, with an ellipsis, is too long.
		more := utf8.RuneCountInString(kept)
		for i, r := range rest {
			if i > 0 && !unicode.Is(unicode.M, r) && rest[:i] != " " {
				break
			}
			more++
		}
		require.Greater(t, more+1, limit, "%q was cut to %q", whole, got)
	})
}

func TestLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", " \n\n": "", "one": "one", "one\r\ntwo\n": "one\ntwo", "\n\n one \n\n\n\ttwo\u200b\n": "one\n\ntwo",
		"a\u2028b\x00c\n\u200b\nd\xff": "a b c\n\nd", "a\n\nb\n\n\nc\nd": "a\n\nb\n\nc\nd",
	} {
		assert.Equal(t, want, Lines(text), "%q", text)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "12345678": "12345678", "123456789": "12345…", "1234é678": "1234…", "\xff12345678": "12345678", "世世世": "世…",
	} {
		assert.Equal(t, want, Cut(text, 8), "%q", text)
		assert.Equal(t, want, Cut(want, 8), "%q", text)
	}
}

func TestGist(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "\n#\n---\n": "", "Manages issues. And more.": "Manages issues.", "Is it?  Yes": "Is it?", "Version 1.2 of it! 3": "Version 1.2 of it!",
		"For e.g. issues and code": "For e.g. issues and code", "one\ntwo. Three": "one two.", "one\n\ntwo.": "one", "管理任务。然后": "管理任务。",
		"# A title\n\n---\nManages issues.\nMore": "Manages issues.", "## Only this ": "Only this", "# One\n# Two": "One", "#tag is first\n# Title": "#tag is first",
		"Lists\n# Title": "Lists", "a\u202eb.\u200b C": "ab.", "\xff.": ".", "A very long text of more than thirty characters": "A very long text of more than…",
	} {
		assert.Equal(t, want, Gist(text, 30), "%q", text)
	}
}
