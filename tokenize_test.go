package mcphybrid

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSpecA5Tokenize(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   string
		want []string
	}{
		{"the example of the specification", "create-github-issue", []string{"create", "github", "issue"}},
		{"lower-cased", "Create GitHub ISSUE", []string{"create", "github", "issue"}},
		{"camel case is one term", "createIssue", []string{"createissue"}},
		{"every ASCII separator", "aa_bb.cc/dd:ee,ff(gg)hh\tii\njj", []string{"aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh", "ii", "jj"}},
		{"terms of one byte are dropped", "a 1 get x-y z", []string{"get"}},
		{"terms of two bytes are kept", "go 42 k8", []string{"go", "42", "k8"}},
		{"digits belong to a term", "s3bucket v2", []string{"s3bucket", "v2"}},
		{"digits of other scripts", "٣ ४२", []string{"٣", "४२"}},
		{"numbers that are no digits separate", "ab½cd Ⅷ", []string{"ab", "cd"}},
		{"repeated terms stay", "issue list issue", []string{"issue", "list", "issue"}},
		{"accents are kept", "Café RÉSUMÉ", []string{"café", "résumé"}},
		{"one accented letter has two bytes", "é", []string{"é"}},
		{"a combining mark is no letter", "cafe\u0301s", []string{"cafe"}},
		{"one Han character has three bytes", "文", []string{"文"}},
		{"a run of Han characters is one term", "创建问题", []string{"创建问题"}},
		{"Han between Latin without a separator", "创建issue", []string{"创建issue"}},
		{"Han with a full-width comma", "搜索，文件", []string{"搜索", "文件"}},
		{"kana and hangul", "ファイル 파일", []string{"ファイル", "파일"}},
		{"the dotted capital I becomes an i", "İstanbul İ", []string{"istanbul"}},
		{"the Kelvin sign becomes a k", "\u212a \u212a8s", []string{"k8s"}},
		{"invalid UTF-8 separates", "ab\xffcd\xc3", []string{"ab", "cd"}},
		{"an encoded surrogate separates", "ab\xed\xa0\x80cd", []string{"ab", "cd"}},
		{"emoji separate", "ab🚀cd", []string{"ab", "cd"}},
		{"NUL separates", "ab\x00cd", []string{"ab", "cd"}},
		{"nothing but separators", " -_!… ", nil},
		{"empty", "", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Tokenize(test.in)
			if len(test.want) == 0 {
				assert.Empty(t, got)
				return
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// tokenizeByRune is the rule of A5, written rune by rune.
func tokenizeByRune(text string) []string {
	var terms []string
	term := ""
	end := func() {
		if len(term) >= 2 {
			terms = append(terms, term)
		}
		term = ""
	}
	for _, r := range text {
		r = unicode.ToLower(r)
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			term += string(r)
		} else {
			end()
		}
	}
	end()
	return terms
}

func FuzzTokenize(f *testing.F) {
	for _, seed := range []string{
		"", "a", "create-github-issue", "Create_Issue v2 (beta)", "创建 issue", "İstanbul", "\u212a8s", "ab\xffcd", "ﬃ ß ǅ", "٣ ½ Ⅷ", "e\u0301e", "ab\x00cd",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Tokenize(text)
		for _, term := range got {
			require.Greater(t, len(term), 1, "term %q of %q", term, text)
			for _, r := range term {
				require.True(t, unicode.IsLetter(r) || unicode.IsDigit(r), "%q in term %q of %q", r, term, text)
			}
		}
		want := tokenizeByRune(text)
		require.Equal(t, strings.Join(want, " "), strings.Join(got, " "), "text %q", text)
		require.Len(t, got, len(want), "text %q", text)
		require.Equal(t, got, Tokenize(strings.Join(got, " ")), "text %q", text)
	})
}

// A word of a query that looks like an identifier may be a name. A word of ordinary text,
// with whatever stands at its ends, is none.
func TestQueryNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		query string
		want  []string
		only  bool
	}{
		{"close create_issue", []string{"create_issue"}, false},
		{"the tool `git.log`, or createIssue", []string{"git.log", "createIssue"}, false},
		{"close it. Then: list a-b", []string{"a-b"}, false},
		{"\"a-b\"'c-d'`e-f`,g-h", []string{"a-b", "c-d", "e-f", "g-h"}, false},
		{"-close issues_ a/ :b", nil, false},
		{"an HTTPServer of GITHUB", nil, false},
		{"issues", []string{"issues"}, false},
		{" issues. ", []string{"issues."}, false},
		{"Select:a, b\tc", []string{"a", "b", "c"}, true},
		{"select:", []string{"select:"}, false},
		{"select a", nil, false},
		{"", nil, false},
	} {
		names, only := queryNames(test.query)
		assert.True(t, slices.Equal(test.want, names), "%q: %q", test.query, names)
		assert.Equal(t, test.only, only, test.query)
	}
}
