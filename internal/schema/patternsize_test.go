package schema

import (
	"encoding/json"
	"fmt"
	"regexp/syntax"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a server writes into a schema costs little to compile, whatever it is: a pattern of
// some kilobytes could take gigabytes, and seconds.
func TestHostileSchemasAreCheap(t *testing.T) {
	const most = 64 << 20 // allocated in all, most of it garbage by then
	list := func(n int, of string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = strings.ReplaceAll(of, "#", fmt.Sprint(i))
		}
		return strings.Join(items, ",")
	}
	again := strings.Repeat
	patterns := func(of string) string { return `{"properties":{` + list(16, `"p#":{"pattern":"`+of+`#"}`) + `}}` }
	for name, schema := range map[string]string{
		"repetitions":            `{"pattern":"` + again("x{1000}", 3200) + `"}`,
		"repetitions within":     patterns("((x{10}){10}){10}"),
		"optional":               patterns("x{0,1000}"),
		"classes":                `{"pattern":"` + again(`\\pL`, 60000) + `"}`,
		"a class of classes":     `{"pattern":"[` + again(`\\pL`, 60000) + `]"}`,
		"classes repeated":       patterns(`^\\pL{900}`),
		"without case":           `{"pattern":"(?i)[` + again(`b-\\x{1e942}`, 1000) + `]"}`,
		"without case, later":    `{"pattern":"x(?s-m:y)(?smi)[` + again(`b-\\x{1e942}`, 1000) + `]"}`,
		"loops":                  `{"pattern":"` + again("(a*)", 16000) + `"}`,
		"alternatives":           `{"pattern":"` + again("a|", 16000) + `"}`,
		"many patterns":          `{"properties":{` + list(1300, `"p#":{"pattern":"x{500}#"}`) + `}}`,
		"names by patterns":      `{"patternProperties":{` + list(4000, `"x#":{}`) + `}}`,
		"deep":                   again(`{"items":`, 120) + "{}" + again("}", 120),
		"all of":                 `{"allOf":[` + list(4000, `{}`) + `]}`,
		"numbers":                `{"allOf":[` + list(2000, `{"multipleOf":1e400}`) + `]}`,
		"invalid in each draft":  `{"allOf":[` + list(2000, `{"type":1}`) + `]}`,
		"a name like a long one": `{"properties":{"` + again("a", 250_000) + `":{"type":"string"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, json.Valid([]byte(schema)))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			NewValidator(json.RawMessage(schema)).Validate(json.RawMessage(`{}`))
			runtime.ReadMemStats(&after)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most))
		})
	}
}

func TestSizeOfPatterns(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{"", "abc", "a|b|c", "(a)(b)", "(a*)*", "(a?)+", "x{3,7}", "x{3,}", "x{0}", "(x{2}|y){10}", `\pL{5}`, "(?i)straße[a-z]", `^\bx$`, "[^a]", "()", "(|){3}"} {
		checkSize(t, expression)
	}
	size, ranges := sizeOf(parsed(t, "[a-c]{10}"))
	assert.Equal(t, 14, size)
	assert.Equal(t, 20, ranges)
	assert.True(t, folds("x(?s-m:y)(?mi:z)"))
	assert.False(t, folds("i(?s-m:y)(?P<i>z)(?:i)"))
}

func parsed(t *testing.T, expression string) *syntax.Regexp {
	re, err := syntax.Parse(expression, syntax.Perl)
	require.NoError(t, err, expression)
	return re
}

// checkSize compares the bound with the size of the program.
func checkSize(t *testing.T, expression string) {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return
	}
	size, ranges := sizeOf(re)
	if size > maxPatternSize || ranges > maxPatternLoad {
		return
	}
	program, err := syntax.Compile(re.Simplify())
	require.NoError(t, err, expression)
	assert.LessOrEqual(t, len(program.Inst), size, expression)
}

func FuzzSizeOfPatterns(f *testing.F) {
	for _, seed := range []string{"a", "(a*){3,9}|[^x]{2}", `(?i)\pL{7}?`, "(?:x|y|){5,}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		if len(expression) <= 1<<10 && loadOf(expression) <= maxPatternLoad {
			checkSize(t, expression)
		}
	})
}
