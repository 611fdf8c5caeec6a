package jq

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the language has beside paths and functions.
func TestForms(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`if .total > 5 then "a" elif .total > 2 then "b" else "c" end`: `"b"`,
		`if .total > 5 then "a" elif .total > 3 then "b" else "c" end`: `"c"`,
		`. as {total: $n} | $n`:                                "3",
		`. as {"total": $n, items: [{$title}]} | [$n, $title]`: `[3,"Crash"]`,
		`. as {("to" + "tal"): $n} | $n`:                       "3",
		`["a", null, 1, true, "b"] | join("-")`:                `"a--1-true-b"`,
		`[] | join("-")`:                                       `""`,
		`"a,b,,c" | split(",")`:                                `["a","b","","c"]`,
		`"" | split(",")`:                                      `[]`,
		`"aaa" | test("^a{2,3}$"), test("a{4}")`:               "true\nfalse",
		`[3, 1, 3, 2] - [3]`:                                   `[1,2]`,
		`9007199254740993 + 2, 9007199254740993 * 3`:           "9007199254740995\n27021597764222979",
		`"[1,[2]]" | fromjson`:                                 `[1,[2]]`,
		`"12.5" | tonumber`:                                    "12.5",
	} {
		got, err := Selector{}.Select(t.Context(), expression, issues)
		require.NoError(t, err, expression)
		assert.Equal(t, want, got, expression)
		assert.NoError(t, Selector{}.Check(expression), expression)
	}
}

// What an expression can't do is said by the first who sees it.
func TestRefusedForms(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`@json "x\(.total)"`:                "the format @json is not available before a string",
		`. as {(input): $n} | $n`:           "the function input/0 is not available",
		`. as {"\(input)": $n} | $n`:        "the function input/0 is not available",
		`if 1 then 2 elif input then 3 end`: "the function input/0 is not available",
		`if 1 then 2 elif 1 then input end`: "the function input/0 is not available",
		`[.[0]] | {a: .b`:                   "the expression ends too early",
	} {
		err := Selector{}.Check(expression)
		assert.ErrorContains(t, err, want, expression)
		_, err = Selector{}.Select(t.Context(), expression, issues)
		assert.ErrorContains(t, err, want, expression)
	}
	for expression, want := range map[string]string{
		`[[1]] | join("")`:                      "join can't join array",
		`[{}] | join("")`:                       "join can't join object",
		`"x" | join("")`:                        "join needs an array and a string, not string and string",
		`["x"] | join(1)`:                       "join needs an array and a string, not array and number",
		`"x" | split(1)`:                        "split needs two strings, not string and number",
		`1 | split("x")`:                        "split needs two strings, not number and string",
		`"x" | test(1)`:                         "test needs two strings, not string and number",
		`"[1" | fromjson`:                       "fromjson cannot be applied",
		`5 | fromjson`:                          "fromjson",
		`"x" | tonumber`:                        "tonumber",
		`{} * 2`:                                "only numbers can be multiplied and divided, not object and number",
		`2 / "x"`:                               "only numbers can be multiplied and divided, not number and string",
		`[range(9000)] as $x | "\($x)"`:         "a part of a string has more than 16384 bytes",
		`[range(9000)] as $x | "a\(1, $x)b"`:    "a part of a string has more than 16384 bytes",
		`getpath(["a", [range(20)]])`:           "the array is too large to be looked for in another",
		`"x" | test("a{900}b{900}c{900}")`:      "the regular expression is too large for the text",
		`until(false; .)`:                       errSteps.Error(),
		`[range(3) | until(false; .)] | length`: errSteps.Error(),
	} {
		_, err := Selector{}.Select(t.Context(), expression, issues)
		assert.ErrorContains(t, err, want, expression)
	}
	_, err := Selector{}.Select(t.Context(), "sort", "["+strings.Repeat("1,", maxSorted)+"1]")
	assert.ErrorContains(t, err, "an array of more than 250000 elements can't be sorted")
}

// A number that is as long as two of the longest is calculated with no more.
func TestLongNumbers(t *testing.T) {
	t.Parallel()
	input := `{"a": ` + strings.Repeat("9", maxDigits) + `}`
	for _, expression := range []string{".a * .a + 1", "1 + .a * .a", ".a * .a - 1", "1 - .a * .a", ".a * .a * 1", "1 * (.a * .a)", "(.a * .a) / 1"} {
		_, err := Selector{}.Select(t.Context(), expression, input)
		assert.ErrorContains(t, err, errMade.Error(), expression)
	}
	got, err := Selector{}.Select(t.Context(), ".a + 1", input)
	require.NoError(t, err)
	assert.Equal(t, "1"+strings.Repeat("0", maxDigits), got)
}

func TestShapeOfNull(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "null", Selector{}.Shape("null"))
}
