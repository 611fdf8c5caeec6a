package expression

import (
	"regexp/syntax"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzSize compares the estimate with the program that Go makes.
func FuzzSize(f *testing.F) {
	for _, s := range []string{
		"", "a", "x{1000}", "(x{0,9}){3,}", "((x?)*)+", "(?:){500}", "(?i)k{5}[a-z]ß", `\pL{30}|\PL`, "a|b|cd|", "[^\\x00-\\x{10FFFF}]{2}x", "(|a)*", "(x*)*", "(?:x{2}){0}", "x{0,0}", "(a{0,1}|){3,5}?", "^$\\b\\B\\A\\z.(?s:.)",
		"(?:(?:a{2}b{3}){4}c?){5,7}", "((a){0,2}){0,2}", "(?U)x{2,}y+", "[[:alpha:]]{2}", "[Kk]{3}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		if ReadingCost(expression) > MaxReading {
			t.Skip("refused before it is read")
		}
		parsed, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			t.Skip("not an expression")
		}
		size := SizeOf(parsed)
		if size.Instructions > 1<<14 || size.Runes > 1<<19 {
			t.Skip("refused before it is compiled")
		}
		program, err := syntax.Compile(parsed.Simplify())
		require.NoError(t, err)
		runes := 0
		for _, inst := range program.Inst {
			if len(inst.Rune) > 4 { // not those that all share, or literals
				runes += len(inst.Rune)
			}
		}
		assert.GreaterOrEqual(t, size.Instructions+2, int64(len(program.Inst)), "and two for the start and the end")
		assert.GreaterOrEqual(t, size.Runes, int64(runes))
	})
}
