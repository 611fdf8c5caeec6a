package terminal

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWidth(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{"": 0, "plain": 5, "█░…": 3, "日本": 4, "e\u0301": 1, "🙂": 2} {
		assert.Equal(t, want, Width(line), line)
	}
	assert.Equal(t, "日  ", Pad("日", 4))
	assert.Equal(t, "long", Pad("long", 2))
}

func TestCut(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "four", Cut("four", 4))
	assert.Equal(t, "fi…", Cut("fiver", 3))
	assert.Equal(t, "日…", Cut("日本語", 4), "half a character is none")
	assert.Equal(t, "…", Cut("ab", 1))
}

func TestFold(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		line    string
		columns int
		want    string
	}{
		{"it fits", 7, "it fits"},
		{"one two three", 7, "one two|  three"},
		{"one two three", 8, "one two|  three"},
		{"one two three four", 9, "one two|  three|  four"},
		{"abcdefgh", 4, "abcd|  ef|  gh"},
		{"  indented text", 10, "  indented|  text"},
		{"a bcdefghi", 5, "a|  bcd|  efg|  hi"},
		{"日本語", 4, "日本|  語"},
		{"日本", 1, "日|  本"},
	} {
		assert.Equal(t, test.want, strings.Join(Fold(test.line, test.columns, "  "), "|"), "%q in %d", test.line, test.columns)
	}
}

// Whatever comes, no part is too long and no character is lost.
func TestFoldLosesNothing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	squeezed := func(s string) string { return strings.ReplaceAll(s, " ", "") }
	for range 2000 {
		var b strings.Builder
		for range random.IntN(60) {
			b.WriteString([]string{" ", "  ", "a", "bc", "日", "e\u0301"}[random.IntN(6)])
		}
		line, columns := strings.TrimRight(b.String(), " "), 3+random.IntN(20)
		parts := Fold(line, columns, " ")
		for _, part := range append(parts, Cut(line, columns)) {
			require.LessOrEqual(t, Width(part), columns, "%q in %d", line, columns)
		}
		require.Equal(t, squeezed(line), squeezed(strings.Join(parts, "")), "%q in %d", line, columns)
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "a ?[31mred??  b", Clean("a \x1b[31mred\u202e\xff\r\nb"))
	// Wherever it stands.
	for _, bad := range []string{"\x1b", "\x07", "\x00", "\x7f", "\u009b", "\u202e", "\u200b", "\xff", "\xc3"} {
		for line, want := range map[string]string{
			bad: "?", bad + "[2J": "?[2J", "a" + bad: "a?", bad + "a" + bad: "?a?",
		} {
			assert.Equal(t, want, Clean(line), "%q", line)
		}
	}
}

// Lines are broken at spaces, not before their indent, and words that are longer than a line within.
func TestFoldLines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		line, indent string
		columns      int
		want         []string
	}{
		{"", "", 3, []string{""}}, {"abc", "", 3, []string{"abc"}}, {"abcd", "", 3, []string{"abc", "d"}}, {"abc d", "", 3, []string{"abc", "d"}}, {"ab cd", "", 3, []string{"ab", "cd"}}, {"abc ", "", 3, []string{"abc"}},
		{"  abcd", "", 4, []string{"  ab", "cd"}}, {" abcd", "", 3, []string{" ab", "cd"}}, {"a b c", "> ", 3, []string{"a b", "> c"}}, {"a bc", "  ", 3, []string{"a", "  b", "  c"}}, {"世界", "", 1, []string{"世", "界"}}, {"a世", "", 2, []string{"a", "世"}}, {"    ", "", 2, []string{""}},
	} {
		assert.Equal(t, test.want, Fold(test.line, test.columns, test.indent), "%q in %d columns", test.line, test.columns)
	}
}

// What a terminal would obey or not show is a question mark.
func TestCleanCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a\tb\nc": "a b c", "\x1b[2K": "?[2K", "a\u202eb": "a?b", "a\u200bb": "a?b", "\xff": "?", "é世": "é世", "\u00a0": " ", "a\ufe0fb": "a?b", "\u3164": "?", "\x7f": "?"} {
		assert.Equal(t, want, Clean(text), "%+q", text)
	}
}
