package search

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"golang.org/x/text/unicode/norm"
)

func analyzed(text string) string {
	var terms []string
	for _, t := range plainTerms(text) {
		terms = append(terms, t.text)
	}
	return strings.Join(terms, " ")
}

func TestAnalyze(t *testing.T) {
	tests := []struct {
		name string
		in   string
		want string // terms with spaces between them
	}{
		{"snake case", "create_issue", "creat issu"},
		{"kebab case and dots", "list-files.v2/x", "list fil 2 v2"},
		{"camel case", "createPullRequest", "creat pull request createpullrequest"},
		{"capitals before a word", "HTTPServer", "http serv httpserv"},
		{"capitals", "HTTP", "http"},
		{"a plural of capitals", "URLs", "url"},
		{"and in an identifier", "getURLsFor", "get url for geturlsf"},
		{"no plural", "HTTPset", "htt pset httpset"},
		{"digits", "user_id2", "user id 2 id2"},
		{"digits behind letters", "utf8", "utf 8 utf8"},
		{"digits between", "OAuth2Token", "auth 2 token oauth2token"},
		{"one lower-case letter before", "iPhone", "phon iphon"},
		{"numbers", "42 3d 1.5", "42 3 3d 1 5"},
		{"single letters", "a B c x", ""},
		{"umlauts", "Überweisungen Straße", "uberweisungen strass"},
		{"in decomposed form", norm.NFD.String("Überweisungen naïve"), "uberweisungen naiv"},
		{"Vietnamese", "thời tiết Đà Nẵng", "thoi tiet da nang"},
		{"Turkish", "İstanbul ısı", "istanbul isi"},
		{"Nordic and Polish", "smørrebrød łódź æon þing", "smorrebrod lodz aeon thing"},
		{"capital sharp s", "STRAẞE", "strass"},
		{"Greek and Cyrillic", "Αθήνα Москва Ёлка", "αθηνα москва елка"},
		{"Chinese", "查询天气", "查 询 查询 天 询天 气 天气"},
		{"Chinese between words", "用GitHub查", "用 git hub github 查"},
		{"kana", "カレンダー", "カ レ カレ ン レン ダ ンダ ー ダー"},
		{"half-width kana", "ｶﾚﾝﾀﾞｰ", "カ レ カレ ン レン ダ ンダ ー ダー"},
		{"Hangul", "일정", "일 정 일정"},
		{"Hangul in decomposed form", norm.NFD.String("일정"), "일 정 일정"},
		{"Thai with marks", "ที่อยู่", "ที่ อ ที่อ ยู่ อยู่"},
		{"full width", "ＡＰＩ　１２", "api 12"},
		{"Roman numbers and ligatures", "Ⅷ ﬁle", "viii fil"},
		{"Arabic", "الطقس", "الطقس"},
		{"Hebrew with points", "שָׁלוֹם", norm.NFKC.String("שָׁלוֹם")},
		{"Devanagari", "मौसम की", "मौसम की"},
		{"digits of other scripts", "٣٤", "٣٤"},
		{"emoji", "send🚀mail ❤️", "send mail"},
		{"control characters", "send\x00mail\x1b[0m now\x7f", "send mail 0 0m now"},
		{"invalid UTF-8", "send\xffmail\xc3", "send mail"},
		{"an encoded surrogate", "send\xed\xa0\x80mail", "send mail"},
		{"combining accents alone", "\u0301 \u0301\u0302", ""},
		{"a combining accent behind ASCII", "cafe\u0301s", "caf"},
		{"separators", " -_!…—、。 ", ""},
		{"nothing", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, analyzed(test.in), "%q", test.in)
		})
	}
}

func TestAnalyzeForms(t *testing.T) {
	got := map[string]form{}
	for _, term := range plainTerms("readFile 天气 words") {
		got[term.text] = term.form
	}
	assert.Equal(t, map[string]form{"read": word, "fil": word, "readfil": whole, "天": character, "气": character, "天气": pair, "word": word}, got)
}

// A term longer than maxTermBytes is cut between runes.
func TestAnalyzeLongTerms(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("x", 1000),
		strings.Repeat("п", 1000),
		"я1" + strings.Repeat("क", 1000),
		"xy" + strings.Repeat("п", 1000) + "Z",
		strings.Repeat("aB", 1000),
		"ก" + strings.Repeat("\u0e48", 100) + "ข" + strings.Repeat("\u0e49", 100),
		strings.Repeat("𝒳é漢ก\u0e48", 100),
		strings.Repeat("ab1", 1000),
	} {
		terms := plainTerms(text)
		assert.NotEmpty(t, terms)
		for _, term := range terms {
			assert.True(t, utf8.ValidString(term.text), "%.20q: term %q", text, term.text)
			assert.LessOrEqual(t, len(term.full), 64, "%.20q", text)
		}
	}
	assert.Len(t, analyzed(strings.Repeat("x", 1000)), 64)
	assert.Len(t, analyzed(strings.Repeat("п", 1000)), 64)
}

func TestAnalyzeAllocs(t *testing.T) {
	for _, text := range []string{
		"createPullRequest in a repository",
		"Überweisungen in €, thời tiết",
		norm.NFD.String("Überweisungen naïve 일정"),
		"查询天气 カレンダー ที่อยู่ ｶﾚﾝﾀﾞｰ",
		"☃ 🚀 Ⅷ ﬁle ΐ",
	} {
		var a analyzer
		text := []byte(text)
		assert.Zero(t, testing.AllocsPerRun(20, func() {
			a.reset()
			a.add(text)
		}), "%q", text)
	}
}

// add may be called for several texts. It does not join terms across them.
func TestAnalyzeAppends(t *testing.T) {
	var a analyzer
	a.add([]byte("readFile"))
	a.add([]byte("天"))
	a.add([]byte("气"))
	var terms []string
	for i := range a.terms {
		terms = append(terms, string(a.term(i)))
	}
	assert.Equal(t, []string{"read", "fil", "readfil", "天", "气"}, terms)
}

// The fast path for plain words gives the same terms as word.
func TestAnalyzePlainWord(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		line := make([]byte, 1+rng.IntN(12))
		for i := range line {
			line[i] = "abesingdyABS2 _\xc3\xa9"[rng.IntN(17)]
		}
		var short, long analyzer
		if k := text.ASCIIKinds[line[0]&0x7f]; k == text.Separator || line[0] >= utf8.RuneSelf {
			continue
		}
		rest, ok := short.plainWord(bytes.Clone(line))
		if !ok {
			continue
		}
		assert.Equal(t, string(long.word(bytes.Clone(line))), string(rest), "%q", line)
		assert.Equal(t, long.terms, short.terms, "%q", line)
		assert.Equal(t, string(long.bytes), string(short.bytes), "%q", line)
	}
}

func FuzzAnalyze(f *testing.F) {
	for _, seed := range []string{
		"createPullRequest HTTPServer URLs getURLsFor user_id2 utf8 OAuth2Token iPhone", "Überweisungen in € thời tiết İstanbul straße",
		"查询天气 カレンダー 일정 ที่อยู่ ｶﾚﾝﾀﾞｰ ＡＰＩ", "שָׁלוֹם الطقس मौसम 葛\U000E0100城", "a\u0301\u0301 \xff\xfe\xed\xa0\x80 \x00 🚀❤️ Ⅷ ﬁ \ufdfa",
		strings.Repeat("п", 40), strings.Repeat("aB1", 30), "flies queries running planned nationally", "a\u0300\u0321\u0e48\u0345", "\u1100\u1161\u11a8",
	} {
		f.Add([]byte(seed))
	}
	f.Add([]byte("\xf2\u00ba")) // cut off in the middle of a character
	f.Fuzz(func(t *testing.T, line []byte) {
		var a analyzer
		before := bytes.Clone(line)
		if got, want := a.normalize(line), norm.NFKC.Bytes(bytes.ToValidUTF8(line, []byte(" "))); !bytes.Equal(got, want) {
			t.Fatalf("%q is normalized to %q, want %q", line, got, want)
		}
		a.add(line)
		if !bytes.Equal(line, before) {
			t.Fatalf("%q was changed to %q", before, line)
		}
		for i, s := range a.terms {
			if s.start < 0 || s.start >= s.end || s.end > s.full || int(s.full) > len(a.bytes) || s.full-s.start > 64 {
				t.Fatalf("%q: term %d is %+v, of %d bytes", line, i, s, len(a.bytes))
			}
			term := a.term(i)
			if !utf8.Valid(term) {
				t.Fatalf("%q: term %q is no text", line, term)
			}
			switch s.form {
			case word:
				if len(term) == 1 && text.ASCIIKinds[term[0]] == text.Lower && s.full-s.start == 1 {
					t.Fatalf("%q: single letter %q", line, term)
				}
			case character, pair: // analyzed again, it is the same
				again := plainTerms(string(term))
				if last := again[len(again)-1]; last.text != string(term) && len(term) < 64-utf8.UTFMax {
					t.Fatalf("%q: term %q analyzed again is %q", line, term, again)
				}
			}
			stemmed := bytes.Clone(a.bytes[s.start:s.full])
			n := stem(stemmed)
			if n < 1 || n > len(stemmed) {
				t.Fatalf("%q: stem of %q has %d bytes", line, a.bytes[s.start:s.full], n)
			}
		}
		// Separators around a text and earlier texts change nothing.
		first := analyzed(string(line))
		a.reset()
		a.add([]byte("another text, 別の"))
		a.reset()
		a.add(append(append([]byte(" . "), line...), " ."...))
		var terms []string
		for i := range a.terms {
			terms = append(terms, string(a.term(i)))
		}
		if second := strings.Join(terms, " "); first != second {
			t.Fatalf("%q: %q, and again %q", line, first, second)
		}
	})
}
