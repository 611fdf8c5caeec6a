package dialect

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/expression"
	"github.com/stretchr/testify/assert"
)

func TestIsBroken(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{"(", ")", "a)(", "[", "[^", "[a", `\`, `a\`, `[\`, "*", "+a", "a|?", "(*)", "(?:+)", "a**", "a+*", "[z-a]", "[a-zz-a]", "(?=a)[z-a]", "[a-", "[-", "[a-z-"} {
		assert.True(t, isBroken(broken, reading()), broken)
	}
	for _, fine := range []string{
		"", "()", "[]", "[^]", `\(`, `\[`, `[\]]`, `[(]`, "a*?", "a+?", "a??", "a{2}?", "]", "}", "{", "a{1001}", `(?=a)`, `(?<!a)b`, `(?<n>a)\k<n>`,
		`(?P<n>a)`, `(?i)a`, `\p{L}`, `\u0041`, `\cA`, `[\w-.]`, `[a-\d]`, `[+--]`, `[*-]`, "^*", `^[a-zA-Z0-9_-]{1,64}$`, `\**`, "é+", "[[:alpha:]]", "a++",
	} {
		assert.False(t, isBroken(fine, reading()), fine)
		assert.False(t, isBroken("(?=a)"+fine, reading()), "%s, behind what Go does not take", fine)
	}
	assert.False(t, isBroken("[](]", reading()), "a bracket in Go, an empty class elsewhere")
	for _, fine := range []string{"[a-z]", "[a-a]", "[z-[]", "[[-A]", "(?!a)b", "(?:a)*", "((a))+", "[a-]", "[a-c-b]", "[*+?(]", `[a-\]]`, "(a)|b"} {
		assert.False(t, isBroken("(?=a)"+fine, reading()), fine)
	}
	for _, broken := range []string{"(?=", "(?:", "a||*", "[z-a", "(a", `[z-a]\`, "(|*)"} {
		assert.True(t, isBroken(broken, reading()), broken)
	}
}

// One that looks broken is not read to find out if that takes long: each such range is some 100,000 letters.
func TestBrokenAndLongToRead(t *testing.T) {
	t.Parallel()
	long := "(?i)" + strings.Repeat(`[\x{80}-\x{10fffe}]`, 10_000)
	assert.True(t, isBroken(long+"(", reading()))
	assert.False(t, isBroken(long, reading()))
	var many []string
	for i := range 4000 {
		many = append(many, fmt.Sprintf(`"p%d":{"pattern":"(?i)[\\x{80}-\\x{10fffe}](%d"}`, i, i))
	}
	converted, losses := Convert(json.RawMessage(`{"type":"object","properties":{`+strings.Join(many, ",")+`}}`), OpenAI)
	assert.NotContains(t, string(converted), "pattern")
	assert.Equal(t, "/properties/p0/pattern: not a regular expression, left out", losses[0])
	assert.Equal(t, "and 3900 more", losses[len(losses)-1])
}

// reading returns what may be spent on reading the expressions of a schema.
func reading() *int64 { n := int64(expression.MaxReading); return &n }

// An expression that Go takes is not left out.
func FuzzIsBroken(f *testing.F) {
	f.Add(`^(?:[a-z]\()*$`)
	f.Fuzz(func(t *testing.T, pattern string) {
		if _, err := regexp.Compile(pattern); err == nil && isBroken(pattern, reading()) && expression.ReadingCost(pattern) <= expression.MaxReading {
			t.Errorf("%q", pattern)
		}
	})
}
