package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testdata/expressions.golden has what becomes of expressions of all forms: how they are bounded, what
// they select, and how many bytes they pay for.
func TestExpressionsGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What becomes of expressions: bounded (c: mcphybrid_counted, and so on), what they select from {a: 1, b: [3, 1, 2], s: \"x,y\"}, and the bytes they pay for.\n\n")
	value, err := decode(`{"a": 1, "b": [3, 1, 2], "s": "x,y"}`)
	require.NoError(t, err)
	short := strings.NewReplacer(prefixed+"counted", "c", prefixed, "_")
	bounded := func(expression string) string {
		q, err := gojq.Parse(expression)
		if err != nil {
			return "?"
		}
		of := new(bounder)
		if of.query(q); of.err != nil {
			return "refused"
		}
		return short.Replace(q.String())
	}
	for _, expression := range []string{
		".", "..", ".a", ".a?", `."a"`, `.["a"]`, `."\("a")"`, `.["\("a")"]`, ".b[0]", ".b[.a]", ".b[1:]", ".b[:1]", ".b[.a:2]", ".b[-1]", ".b[]", ".s[1:]", "(.b)[0]", ".b | .[0]", ".b[[1]]",
		"1", "-.a", "-(.a + 1)", `"x"`, `"x\(.a)y"`, `"\(.a)"`, `"\("x")\(.s)"`, "null", "[]", "[.a, 2]", "[[.a]][0]", "{}", "{a}", `{"x": .a}`, `{"x\(.a)": 1}`, "{(.s): .b}", "{$__loc__}", `{"a", s}`, "{a: 1}.a", ". as $x | {$x}", "$__loc__",
		".a + 1", ".a - 1", ".a * 2", ".a / 2", ".a % 2", ".b + [4]", ".b - [1]", ".s + \"z\"", "{} + {a: 2}", "null + 1", ".a == 1", ".a < 2 and .a >= 1 or false", ".x // 5", ".a, .s", ".a | . + 1 | [.]",
		"if .a then 1 end", "if .a then 1 else 2 end", "if .x then 1 elif .a + 1 then [2] else 3 end", "try error([1]) catch .", "try (.a + {})", ".a as $x | $x + 1", ".b as [$x, $y] | [$x, $y]", ". as {a: $x, s: $y} | $y", `. as {"a": $x} ?// $x | $x`, `. as {$a} | $a`, `. as {("a" + ""): [$x]} ?// {a: $x} | $x`,
		"reduce .b[] as $x (0; . + $x)", "reduce .b[] as $x ([]; [$x, .])", "reduce ([1], [2])[] as $x ([0]; . + [$x])", "foreach .b[] as $x (0; . + $x)", "foreach .b[] as $x (0; . + $x; [$x, .])", "reduce {a: [.b]} as {a: [[$x]]} (0; . + $x)", "label $f | 1, break $f, 2",
		"@json", "@text", "@csv", ".b | @csv", ".b | @tsv", "@html", "@base64 \"\"", `@json "x"`,
		"keys", ".b | sort", ".b | sort | .[0]", ".b | sort[0]", ".b | unique", ".b | sort_by(-.)", ".b | sort_by(., [.])[0]", ".b | group_by(. > 1)", ".b | unique_by(1)", ".b | min_by(-.), max_by(-.)", ".b | map([.])", ".b | min, max", ".b | nth(1)", "nth(1; .b[])", `getpath(["b", 0])`, `getpath(["b"], ["a"])`, "path(.b[0])", "[paths]", ".b | reverse | add", ".s | split(\",\")", ".b | join(\",\")", ".s | contains(\"x\")", ".s | test(\"X\")", ".s | ascii_upcase", "tojson", "tojson | fromjson", ".s | [tonumber?]", "\"12\" | tonumber", "to_entries | from_entries", "with_entries(.key += 1)", "with_entries({key, value: 1})", ".b | first, last", "[limit(2; .b[])]", "[.b[] | select(. > 1)]", "any, all", ".b | any(. > 2)", "has(\"a\")", "[range(3)]", "[range(1; 9; 3)]", ".b | length", "length", ".b | flatten", "[recurse | numbers]", "first(range(10))", "[.[] | strings, numbers]", "isempty(empty)", ".s | ltrimstr(\"x\") | rtrimstr(\"y\")", "not", "[.b[] | -.] | map(abs)",
		"input", "input + 1", "1 + input", "-input", "[input]", "{a: input}", "{(input): 1}", `{"\(input)": 1}`, `"\(input)"`, ".[input]", ".[input:]", ".[:input]", ".[1:input]", `."\(input)"`, ".a[input]", ".a[1:input]", "(input)", "(input)[0]", "if input then 1 end", "if 1 then input end", "if 1 then 2 elif input then 3 end", "if 1 then 2 elif 3 then input end", "if 1 then 2 else input end",
		"try input", "try 1 catch input", "reduce input as $x (0; 1)", "reduce 1 as $x (input; 1)", "reduce 1 as $x (0; input)", "reduce 1 as {(input): $x} (0; 1)", "foreach input as $x (0; 1)", "foreach 1 as $x (input; 1)", "foreach 1 as $x (0; input)", "foreach 1 as $x (0; 1; input)", "foreach 1 as {(input): $x} (0; 1)", "label $f | input",
		"input as $x | 1", "1 as $x | input", "1 as [{(input): $x}] | 1", `1 as {"\(input)": $x} | 1`, "1 as {a: {(input): $x}} | 1", "1 as [$y] ?// {(input): $y} | 1", "map(input)", "select(input)", "first(input)", "sort_by(input)", "nth(input)", "getpath(input)", "test(input)", "path(input)", "input | 1", "1 | input", "input, 1", "1, input", "input // 1", "input and 1", "input == 1",
		".a = 1", ".a |= 1", ".a += 1", ".a -= 1", ".a *= 1", ".a /= 1", ".a %= 1", ".a //= 1", "def f: 1; f", `import "a" as a; .`, `include "a"; .`, `module {}; .`, "$ENV", "$__prog_args", "{$ENV}", "env", "now", "mcphybrid_counted", "mcphybrid_plus(1; 2)", "sort(1)", "splits(1)", "gsub(1; 2)", "foo", "limi(1)", "limit(1)", ".a.[", ".a]", "\"", "$x", "break $x",
	} {
		how := bounded(expression)
		code, spent, err := compile(expression)
		selected := ""
		if err == nil {
			selected, err = evaluate(t.Context(), code, spent, value)
		}
		fmt.Fprintf(&b, "%s  ⇒  %s", expression, how)
		if err != nil {
			fmt.Fprintf(&b, "  ⇒  error: %s\n", short.Replace(err.Error()))
			continue
		}
		fmt.Fprintf(&b, "  ⇒  %s (%d)\n", strings.ReplaceAll(selected, "\n", " ⏎ "), spent.bytes)
	}
	golden.Compare(t, "expressions.golden", b.String())
}

// What a value costs, and that it is more than the most as soon as it is.
func TestCost(t *testing.T) {
	t.Parallel()
	long := new(big.Int).Lsh(big.NewInt(1), 299) // 300 bits
	for _, test := range []struct {
		value any
		want  int
	}{
		{nil, 16}, {true, 16}, {1, 16}, {1.5, 16}, {"", 16}, {"abc", 19}, {"\"\\", 20}, {"\x1f", 22}, {"\x7f", 22}, {" ~é", 20}, {"\n", 22},
		{json.Number("1"), 16}, {json.Number(strings.Repeat("9", 17)), 17}, {big.NewInt(1), 16}, {long, 100},
		{[]any{}, 16}, {[]any{1}, 32}, {[]any{1, []any{"a"}}, 16 + 16 + 16 + 17}, {map[string]any{}, 16}, {map[string]any{"ab": 1}, 16 + 32 + 2 + 16}, {map[string]any{"a": 1, "\"": []any{}}, 16 + 2*32 + 1 + 2 + 2*16},
	} {
		assert.Equal(t, test.want, cost(test.value, 1000), "%v", test.value)
		assert.Equal(t, test.want, cost(test.value, test.want), "%v", test.value)
		assert.Greater(t, cost(test.value, test.want-1), test.want-1, "%v", test.value)
	}
	assert.Equal(t, 16+32+16, cost([]any{[]any{1}, 2}, 64))
	for _, v := range []any{[]any{[]any{1}, 2}, map[string]any{"": []any{1}}} {
		assert.Greater(t, cost(v, 63), 1<<40, "%v", v)
	}
}

// What is paid for counts until all is paid that may be, and after that nothing is.
func TestSpend(t *testing.T) {
	t.Parallel()
	s := &spending{bytes: MaxMade - 17}
	assert.Equal(t, "", s.spend(""))
	assert.Equal(t, MaxMade-1, s.bytes)
	assert.True(t, s.pay(1))
	assert.True(t, s.pay(0))
	assert.False(t, s.over)
	assert.False(t, s.pay(1))
	assert.True(t, s.over)
	assert.False(t, s.pay(0), "it is over")
	assert.Equal(t, MaxMade, s.bytes)

	s = new(spending)
	most := strings.Repeat("x", maxValue-16)
	assert.True(t, s.spend(most) == any(most))
	assert.False(t, s.over)
	assert.True(t, s.spend(most+"x") == any(errMade))
	assert.True(t, s.over)
}

// Each limit of what is made at once is met, and exceeded by one.
func TestMadeAtTheLimits(t *testing.T) {
	t.Parallel()
	list := func(n int, e any) []any { return slices.Repeat([]any{e}, n) }
	text := func(n int) string { return strings.Repeat("x", n) }
	refused := errors.New("the arrays are too long to be subtracted")
	of := func(v any) string { // no value of megabytes in a message
		switch v := v.(type) {
		case error:
			return v.Error()
		case string:
			return fmt.Sprint("text ", len(v))
		case []any:
			return fmt.Sprint("list ", len(v))
		}
		return fmt.Sprint(v)
	}
	limit := new(big.Int).Lsh(big.NewInt(1), 4*maxDigits-1) // of so many bits
	longer := new(big.Int).Lsh(big.NewInt(1), 4*maxDigits)
	for name, test := range map[string]struct{ got, want any }{
		"plus":                 {new(spending).plus(text(maxValue/2-16), text(maxValue/2-16)), "text 16777184"},
		"plus, larger":         {new(spending).plus(text(maxValue/2-16), text(maxValue/2-15)), errMade},
		"plus of the left":     {new(spending).plus(text(2*maxValue), ""), errMade},
		"plus of the right":    {new(spending).plus("", text(2*maxValue)), errMade},
		"plus, a long number":  {new(spending).plus(limit, 0), limit},
		"plus, a longer one":   {new(spending).plus(0, longer), errMade},
		"minus":                {new(spending).minus(list(1000, 1), list(1000, 1)), "list 0"},
		"minus, of more":       {new(spending).minus(list(1001, 1), list(1000, 1)), refused},
		"minus, of large ones": {new(spending).minus(list(1000, text(15)), list(1000, text(15))), "list 0"},
		"minus, of larger":     {new(spending).minus(list(1000, text(16)), list(1000, text(17))), refused},
		"minus, of one larger": {new(spending).minus(list(1000, text(17)), list(1000, text(15))), "list 1000"},
		"minus, nothing":       {new(spending).minus(list(1000, text(1000)), nil), "cannot subtract"},
		"times":                {numbers(times, limit, 1), limit},
		"times, longer":        {numbers(times, longer, 1), errMade},
		"divided, longer":      {numbers(divided, 1, longer), errMade},
		"part":                 {part(text(maxPart - 16)), "text 16368"},
		"part, larger":         {part(text(maxPart - 15)), "a part of a string has more than 16384 bytes"},
		"few":                  {few(list(maxSorted, 1)), "list 250000"},
		"few, more":            {few(list(maxSorted+1, 1)), "an array of more than 250000 elements can't be sorted"},
		"few, no array":        {few(text(maxSorted + 1)), "text 250001"},
		"at":                   {at([]any{text(maxPlace - 32)}), "list 1"},
		"at, larger":           {at([]any{text(maxPlace - 31)}), "the array is too large to be looked for in another"},
		"at, no array":         {at(text(maxPlace)), "text 200"},
		"atPath":               {atPath([]any{1, []any{text(maxPlace - 32)}}), "list 2"},
		"atPath, larger":       {atPath([]any{1, []any{text(maxPlace - 31)}}), "the array is too large to be looked for in another"},
		"toNumber":             {toNumber(strings.Repeat("0", maxDigits-1) + "7"), "7"},
		"toNumber, longer":     {toNumber(strings.Repeat("0", maxDigits) + "7"), "tonumber is for at most 1000 digits"},
		"fromJSON":             {new(spending).fromJSON(`"` + text(MaxInput-2) + `"`), "text 4194302"},
		"fromJSON, larger":     {new(spending).fromJSON(`"` + text(MaxInput-1) + `"`), errMade},
		"fromJSON, objects":    {(&spending{bytes: MaxMade - 256 - 16}).fromJSON(`{}`), "map[]"},
		"fromJSON, no room":    {(&spending{bytes: MaxMade - 256 - 15}).fromJSON(`{}`), errMade},
		"fromJSON, no objects": {(&spending{bytes: MaxMade - 255}).fromJSON(`{}`), errMade},
		"fromJSON, a number":   {new(spending).fromJSON(strings.Repeat("1", maxDigits+1)), "the text has a number of more than 1000 digits"},
		"join":                 {new(spending).join([]any{text(maxValue - 2), nil}, "-"), "text 16777215"},
		"join, larger":         {new(spending).join([]any{text(maxValue - 1), nil}, "-"), errMade},
		"join, numbers":        {new(spending).join([]any{json.Number("1.50"), true, "x"}, "--"), "text 13"},
		"split":                {new(spending).split(text(maxValue-48), "-"), "list 1"},
		"split, larger":        {new(spending).split(text(maxValue-47), "-"), errMade},
		"split, into many":     {new(spending).split(strings.Repeat("-", 342_391), "-"), "list 342392"},
		"split, into more":     {new(spending).split(strings.Repeat("-", 342_392), "-"), errMade},
		"split, nothing":       {new(spending).split("", "-"), "list 0"},
	} {
		want, ok := test.want.(string)
		if !ok {
			want = of(test.want)
		}
		if got := of(test.got); want == "cannot subtract" {
			assert.Contains(t, got, want, name)
		} else {
			assert.Equal(t, want, got, name)
		}
	}
	var spent [5]int
	for i, pay := range []func(s *spending) any{
		func(s *spending) any { return s.plus("ab", "c") }, func(s *spending) any { return s.minus([]any{1, 2}, []any{}) }, func(s *spending) any { return s.join([]any{"ab", "c"}, "--") },
		func(s *spending) any { return s.split("a-b", "-") }, func(s *spending) any { return s.fromJSON(`[{}, 1]`) },
	} {
		s := new(spending)
		pay(s)
		spent[i] = s.bytes
	}
	assert.Equal(t, [5]int{18 + 17, 32, 2 + 1 + 4, 2*48 + 3, 256 + 48}, spent)
}

// What a text has is measured without decoding it, and may be as much as the limits.
func TestMeasure(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("1", maxDigits)
	for _, test := range []struct {
		text    string
		objects int
		want    string
	}{
		{"", 0, ""}, {"{}", 1, ""}, {`[{"{": "{,{"}, {"\"{": {}}]`, 3, ""}, {`["\\", {}]`, 1, ""},
		{digits, 0, ""}, {"1" + digits, 0, "the x has a number of more than 1000 digits"}, {"-1.0e+1" + digits[7:], 0, ""}, {"-1.0E+1" + digits[6:], 0, "the x has a number of more than 1000 digits"},
		{"[" + digits + "," + digits + "]", 0, ""}, {digits + " " + digits, 0, ""}, {digits + "{" + digits, 1, ""}, {`"` + digits + digits + `"`, 0, ""}, {digits + `""` + digits, 0, ""}, {digits + `"\""` + digits, 0, ""},
		{strings.Repeat(",", MaxValues-1), 0, ""}, {strings.Repeat(",", MaxValues), 0, "the x has more than 500000 values"},
		{strings.Repeat("[", MaxValues-1), 0, ""}, {strings.Repeat("[", MaxValues), 0, "the x has more than 500000 values"},
		{strings.Repeat("{", (MaxValues-1)/4), (MaxValues - 1) / 4, ""}, {strings.Repeat("{", (MaxValues-1)/4+1), 0, "the x has more than 500000 values"},
		{strings.Repeat("{", (MaxValues-1)/4) + ",,,", (MaxValues - 1) / 4, ""}, {strings.Repeat("{", (MaxValues-1)/4) + ",,,,", 0, "the x has more than 500000 values"},
	} {
		objects, err := measure(test.text, "x")
		if test.want != "" {
			assert.EqualError(t, err, test.want, "%.40q", test.text)
			continue
		}
		assert.NoError(t, err, "%.40q", test.text)
		assert.Equal(t, test.objects, objects, "%.40q", test.text)
	}
}

// An evaluation may look at its context so often, and is over then for as long as anyone looks.
func TestSteps(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := &stepContext{Context: ctx, over: make(chan struct{})}
	for range MaxSteps - 1 {
		s.Done()
	}
	assert.NoError(t, s.Err())
	assert.True(t, s.Done() == (<-chan struct{})(s.over))
	assert.Equal(t, errSteps, s.Err())
	s.Done()
	select {
	case <-s.Done():
	default:
		assert.Fail(t, "it is over")
	}
	few := &stepContext{Context: ctx, over: make(chan struct{})}
	assert.True(t, few.Done() == ctx.Done())
	cancel()
	assert.Equal(t, context.Canceled, few.Err())
}

// What is told of an error is one line, short, and valid text.
func TestCut(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", " a \n\tb ": "a b", "a\xffb": "a?b", strings.Repeat("x", 300): strings.Repeat("x", 300), strings.Repeat("x", 301): strings.Repeat("x", 300) + "…",
		strings.Repeat("é", 150): strings.Repeat("é", 150), "x" + strings.Repeat("é", 150): "x" + strings.Repeat("é", 149) + "…",
		"a" + strings.Repeat(" ", 1198) + "b": "a b", "a" + strings.Repeat(" ", 1199) + "b": "a",
	} {
		assert.Equal(t, want, cut(in), "%.20q", in)
	}
}

// At most a megabyte is selected, and an expression has at most so many bytes.
func TestSelectAtTheLimits(t *testing.T) {
	t.Parallel()
	text := `"` + strings.Repeat("x", MaxOutput/2-3) + `"` // a line of it is half of what may be, but for one byte of two
	got, err := Selector{}.Select(t.Context(), "., .", text)
	require.NoError(t, err)
	assert.Len(t, got, MaxOutput-1)
	_, err = Selector{}.Select(t.Context(), "., ., empty, 1", text)
	assert.Equal(t, errOutput, err)
	_, err = Selector{}.Select(t.Context(), ".", `"`+strings.Repeat("x", MaxOutput-2)+`"`)
	assert.Equal(t, errOutput, err)
	got, err = Selector{}.Select(t.Context(), ".", `"`+strings.Repeat("x", MaxOutput-3)+`"`)
	require.NoError(t, err)
	assert.Len(t, got, MaxOutput-1)
	assert.NoError(t, Selector{}.Check("."+strings.Repeat(" ", MaxExpression-1)))
	assert.Error(t, Selector{}.Check("."+strings.Repeat(" ", MaxExpression)))
}

// testdata/shapes.golden has the shapes of texts.
func TestShapesGolden(t *testing.T) {
	t.Parallel()
	members := func(n int, value string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"k%02d": %s`, i, value))
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	named := func(names ...string) string {
		var list []string
		for i, name := range names {
			text, _ := json.Marshal(name)
			list = append(list, fmt.Sprintf("%s: %s", text, []string{"1", "[]"}[i%2])) // not all are alike
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	lines := func(n int) string { return "text\n" + strings.Repeat("[not\n", n) + "{\"a\": 1}" }
	var b strings.Builder
	b.WriteString("The shapes of texts.\n\n")
	for _, text := range []string{
		"", "x", "null", "true", "false", "-1", `"a"`, "[]", "[[]]", "{}", " [1, \"a\"] ", `[{"a": [], "b": {}}, 2]`, "[[[[[[[[1]]]]]]]]", `{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":1}}}}}}}}`, `{"a": 1, "a": "b"}`,
		members(8, "1"), members(9, "1"), members(9, `[{"x": null}]`), strings.Replace(members(9, "1"), "1}", "\"\"}", 1), members(2, `{"x": 1}`),
		named("a", "A", "z", "Z", "_", "a1", "_9"), named("1a", "a-b", "a b", "é", "", "a\"b", "`", "{", "@", "[", "/", ":", "a:", "a/"), named(strings.Repeat("k", 60), strings.Repeat("m", 61)), named(strings.Repeat("-", 60), strings.Repeat("+", 61), "-"+strings.Repeat("é", 40), "a\nb  c", "\u200b\u0007"),
		members(60, "1")[:1] + `"x": "", ` + members(60, "1")[1:], members(50, `[1]`)[:1] + `"x": "", ` + members(50, `{"a": {"b": [{"c": 1}]}}`)[1:], `{"x": "", ` + members(70, "1")[1:],
		"one\n{\"a\": 1}", "one\n[1]\n", "one\n {\"a\": 1}", "one {\"a\": 1}", "{x}\n{\"a\": 1}", "\n\n[1]", lines(15), lines(16), "[1]\n[2]",
	} {
		fmt.Fprintf(&b, "%.70s\n   %s\n", strings.ReplaceAll(text, "\n", "⏎"), Selector{}.Shape(text))
	}
	golden.Compare(t, "shapes.golden", b.String())
}
