package text

import (
	"testing"

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
