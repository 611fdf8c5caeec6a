package jq

import (
	"errors"
	"math/big"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/expression"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What an operator or a function makes is paid for before it is made, and no value is larger
// than one may be.
func TestWhatIsMadeIsPaid(t *testing.T) {
	t.Parallel()
	list := []any{"a", "b"}
	large := strings.Repeat("x", maxValue/2+1)
	for name, make := range map[string]func(s *spending) any{
		"plus":     func(s *spending) any { return s.plus("a", "b") },
		"minus":    func(s *spending) any { return s.minus(list, list[:1]) },
		"join":     func(s *spending) any { return s.join(list, ",") },
		"split":    func(s *spending) any { return s.split("a,b", ",") },
		"fromjson": func(s *spending) any { return s.fromJSON(`{"a":1}`) },
	} {
		some := new(spending)
		assert.NotEqual(t, any(errMade), make(some), name)
		assert.Positive(t, some.bytes, name)
		assert.False(t, some.over, name)
		none := &spending{bytes: MaxMade}
		assert.Equal(t, any(errMade), make(none), name)
		assert.True(t, none.over, name)
		assert.Equal(t, MaxMade, none.bytes, name)
	}
	for name, make := range map[string]func(s *spending) any{
		"plus":  func(s *spending) any { return s.plus(large, large) },
		"join":  func(s *spending) any { return s.join([]any{large, large}, "") },
		"split": func(s *spending) any { return s.split(large, "") },
	} {
		s := new(spending)
		assert.True(t, make(s) == any(errMade), name)
		assert.True(t, s.over, name)
		assert.Zero(t, s.bytes, name)
	}
}

// Strings with parts are paid for as they are made, those without are there already; and the last byte
// may be spent.
func TestWhatIsPaidToTheLastByte(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]bool{`"abc"`: false, `"a\(.)c"`: true, `"\(.)" | length`: true, `. + 1`: false, `[.]`: true, `{a: .}`: true} {
		code, spent, err := compile(expression)
		require.NoError(t, err)
		_, err = evaluate(t.Context(), code, spent, 5)
		require.NoError(t, err, expression)
		assert.Equal(t, want, spent.bytes > 0, expression)
	}
	s := &spending{bytes: MaxMade - 5}
	assert.True(t, s.pay(5))
	assert.False(t, s.pay(1))
	assert.True(t, s.over)
	assert.Equal(t, 1000, cost(new(big.Int).Lsh(big.NewInt(1), 2999), 1<<20))
	assert.Equal(t, 16, cost(big.NewInt(7), 1<<20))
}

// A regular expression may have 5000 instructions, and these may be asked for each of 100 MiB.
func TestLargestExpressions(t *testing.T) {
	t.Parallel()
	literal := strings.Repeat("a", maxRegexp-1) // and one instruction more
	tree, err := syntax.Parse("aaa", syntax.Perl)
	require.NoError(t, err)
	each := instructions(tree)
	require.Equal(t, 4, each)
	most := maxMatch / each
	matches := test
	for _, test := range []struct {
		text, expression string
		want             any
	}{
		{"a", literal, false},
		{"a", literal + "a", errors.New("the regular expression is too large for the text")},
		{strings.Repeat("b", most), "aaa", false},
		{strings.Repeat("b", most+1), "aaa", errors.New("the regular expression is too large for the text")},
	} {
		assert.Equal(t, test.want, matches(test.text, test.expression), "%d, %d", len(test.text), len(test.expression))
	}
}

// What takes long to read is refused before: each such range is some 100,000 letters.
func TestExpressionsThatTakeLongToRead(t *testing.T) {
	t.Parallel()
	want := errors.New("the regular expression is too large")
	for _, expression := range []string{"(?i)" + strings.Repeat(`[\x{80}-\x{10fffe}]`, 3), "(?i)[" + strings.Repeat("b-\U0001e942", 3) + "]", strings.Repeat(`\pL`, 200), strings.Repeat("a", expression.MaxReading+1)} {
		assert.Equal(t, any(want), test("x", expression), "%.40s", expression)
	}
}
