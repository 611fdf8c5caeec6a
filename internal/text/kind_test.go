package text

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestNext(t *testing.T) {
	for in, want := range map[string]Kind{
		"a": Lower, "Z": Upper, "7": Digit, "_": Separator, " x": Separator,
		"é": Lower, "É": Upper, "٣": Digit, "ß1": Lower, "я": Lower, "Я": Upper,
		"\u0301": Accent, "天气": Dense, "한": Dense, "カ": Dense, "ก": Dense, "\u0e31": Joiner,
		"\xff": Separator, "\xe5\xa4": Separator, "\ufffd": Separator,
	} {
		r, kind, n := Next([]byte(in))
		assert.Equal(t, want, kind, "%q", in)
		if first := []rune(in)[0]; first != 0xfffd {
			assert.Equal(t, first, r)
			assert.Equal(t, len(string(first)), n)
		}
	}
	_, _, n := Next([]byte("\xe5\xa4"))
	assert.Equal(t, 1, n, "invalid UTF-8 is skipped byte by byte")
}

// The words of identifiers begin at the capitals for which BeginsWord says so.
func TestBeginsWord(t *testing.T) {
	for in, want := range map[string]string{
		"openIssue": "open Issue", "HTTPServer": "HTTP Server", "getURL": "get URL", "log2File": "log2 File", "ABC": "ABC",
	} {
		got := in[:1]
		for i := 1; i < len(in); i++ {
			after := Separator
			if i+1 < len(in) {
				after = ASCIIKinds[in[i+1]]
			}
			if ASCIIKinds[in[i]] == Upper && BeginsWord(ASCIIKinds[in[i-1]], after) {
				got += " "
			}
			got += in[i : i+1]
		}
		assert.Equal(t, want, got)
	}
}

func TestASCIILetters(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		b := byte(c)
		lower, upper := strings.IndexByte("abcdefghijklmnopqrstuvwxyz", b) >= 0, strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZ", b) >= 0
		assert.Equal(t, lower, IsLower(b), "%q", b)
		assert.Equal(t, upper, IsUpper(b), "%q", b)
		digit := strings.IndexByte("0123456789", b) >= 0
		assert.Equal(t, lower || upper || digit || b == '_' || b == '-', IsSafeByte(b), "%q", b)
		want := Separator
		switch {
		case lower:
			want = Lower
		case upper:
			want = Upper
		case digit:
			want = Digit
		}
		if c < utf8.RuneSelf {
			assert.Equal(t, want, ASCIIKinds[c], "%q", b)
		}
	}
}

// The edges of each range of characters, and what a script says that has no spaces.
func TestKindOfEdges(t *testing.T) {
	t.Parallel()
	for r, want := range map[rune]Kind{
		'ÿ': Lower, 'Ÿ': Upper, 0x2ff: Separator, 0x300: Accent, 0x36f: Accent, 0x370: Upper, 0x371: Lower,
		0x4dff: Separator, 0x4e00: Dense, 0x9fff: Dense, 0xabff: Separator, 0xac00: Dense, 0xd7a3: Dense,
		0xa000: Lower, 0xd7a4: Separator, 0x4dbf: Dense, 0x4dc0: Separator,
		0xfdff: Separator, 0xfe00: Accent, 0xfe0f: Accent, 0xfe10: Separator,
		'ー': Dense, 'あ': Dense, 'ア': Dense, '㐀': Dense, 'ᄀ': Dense,
		'ก': Dense, '\u0e31': Joiner, '฿': Separator, '๑': Digit, 'ກ': Dense, 'ក': Dense, 'က': Dense,
		'ǅ': Upper, '\u0901': Lower, '½': Digit, '·': Separator, '٣': Digit,
	} {
		assert.Equal(t, want, KindOf(r), "%q %U", r, r)
	}
}

func TestLettersAreASet(t *testing.T) {
	t.Parallel()
	assert.Zero(t, Letters(nil))
	assert.Equal(t, uint32(1<<1|1<<2|1<<26), Letters([]byte("abzab")))
	assert.Equal(t, Letters([]byte("abc")), Letters([]byte("CBA")))
}
