package dialect

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIsBroken(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{"(", ")", "a)(", "[", "[^", "[a", `\`, `a\`, `[\`, "*", "+a", "a|?", "(*)", "(?:+)", "a**", "a+*", "[z-a]", "[a-zz-a]", "(?=a)[z-a]", "[a-", "[-", "[a-z-"} {
		assert.True(t, isBroken(broken), broken)
	}
	for _, fine := range []string{
		"", "()", "[]", "[^]", `\(`, `\[`, `[\]]`, `[(]`, "a*?", "a+?", "a??", "a{2}?", "]", "}", "{", "a{1001}", `(?=a)`, `(?<!a)b`, `(?<n>a)\k<n>`,
		`(?P<n>a)`, `(?i)a`, `\p{L}`, `\u0041`, `\cA`, `[\w-.]`, `[a-\d]`, `[+--]`, `[*-]`, "^*", `^[a-zA-Z0-9_-]{1,64}$`, `\**`, "é+", "[[:alpha:]]", "a++",
	} {
		assert.False(t, isBroken(fine), fine)
		assert.False(t, isBroken("(?=a)"+fine), "%s, behind what Go does not take", fine)
	}
	assert.False(t, isBroken("[](]"), "a bracket in Go, an empty class elsewhere")
	for _, fine := range []string{"[a-z]", "[a-a]", "[z-[]", "[[-A]", "(?!a)b", "(?:a)*", "((a))+", "[a-]", "[a-c-b]", "[*+?(]", `[a-\]]`, "(a)|b"} {
		assert.False(t, isBroken("(?=a)"+fine), fine)
	}
	for _, broken := range []string{"(?=", "(?:", "a||*", "[z-a", "(a", `[z-a]\`, "(|*)"} {
		assert.True(t, isBroken(broken), broken)
	}
}

// One that looks broken is not read to find out if that takes long: each such range is some 100,000 letters.
func TestBrokenAndLongToRead(t *testing.T) {
	t.Parallel()
	long := "(?i)" + strings.Repeat(`[\x{80}-\x{10fffe}]`, 10_000)
	assert.True(t, isBroken(long+"("))
	assert.False(t, isBroken(long))
}

// An expression that Go takes is not left out.
func FuzzIsBroken(f *testing.F) {
	f.Add(`^(?:[a-z]\()*$`)
	f.Fuzz(func(t *testing.T, expression string) {
		if _, err := regexp.Compile(expression); err == nil && isBroken(expression) {
			t.Errorf("%q", expression)
		}
	})
}
