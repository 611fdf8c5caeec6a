package jq

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const issues = `{"total": 3, "items": [
	{"id": 9007199254740993, "title": "Crash", "labels": ["bug", "ui"], "user": {"name": "Ann"}},
	{"id": 2, "title": "Slow start", "labels": ["bug"], "user": {"name": "Bob"}},
	{"id": 3, "title": "Docs", "labels": [], "user": {"name": "Ann"}}]}`

func TestSelect(t *testing.T) {
	for expression, want := range map[string]string{
		".total":            "3",
		".items[0].id":      "9007199254740993",
		".items[].title":    "\"Crash\"\n\"Slow start\"\n\"Docs\"",
		".items | length":   "3",
		".items[1:] | .[0]": `{"id":2,"labels":["bug"],"title":"Slow start","user":{"name":"Bob"}}`,
		`[.items[] | select(.labels | any(. == "bug")) | {id, by: .user.name}]`:     `[{"by":"Ann","id":9007199254740993},{"by":"Bob","id":2}]`,
		`.items | group_by(.user.name) | map({(.[0].user.name): length}) | add`:     `{"Ann":2,"Bob":1}`,
		`.items | map(.title) | join(", ")`:                                         `"Crash, Slow start, Docs"`,
		`[.items[].title | select(test("^[a-d]"; null)?)]`:                          "",
		`[.items[].title | select(test("^[A-D]"))]`:                                 `["Crash","Docs"]`,
		`.items[] | select(.title | contains("start")) | "\(.id): \(.title)"`:       `"2: Slow start"`,
		`.items | sort_by(.title) | first.title`:                                    `"Crash"`,
		`reduce .items[].id as $i (0; . + 1)`:                                       "3",
		`.items as [$a, $b] | $b.id`:                                                "2",
		`[.items[] | .id] | min`:                                                    "2",
		`.items[0] | to_entries | map(.key)`:                                        `["id","labels","title","user"]`,
		`.none`:                                                                     "null",
		`.items[] | select(.id == 77)`:                                              "",
		`.items[0].labels - ["ui"]`:                                                 `["bug"]`,
		`2 * 3 + 8 / 4 - 1`:                                                         "7",
		`[limit(2; .items[].title)] | @csv`:                                         `"\"Crash\",\"Slow start\""`,
		`if .total > 2 then "many" else "few" end`:                                  `"many"`,
		`try error("x") catch .`:                                                    `"x"`,
		`.items | sort_by(.user.name, -.id)[].id`:                                   "9007199254740993\n3\n2",
		`.items | unique_by(.user.name)[1].id, (min_by(.id), max_by(.id)).id`:       "2\n2\n9007199254740993",
		`[.items[].labels[]] | unique, sort[0], .[["ui"]]`:                          "[\"bug\",\"ui\"]\n\"bug\"\n[1]",
		`[path(.items[(0, 1)].id), path(getpath(["items", 0])), path(nth(1)?)]`:     `[["items",0,"id"],["items",1,"id"],["items",0]]`,
		`"[1, {\"a\": 2.50}]" | fromjson, (.[4:8] | fromjson?), ("2e1" | tonumber)`: "[1,{\"a\":2.50}]\n20",
		`.items[0].title | split("a")`:                                              `["Cr","sh"]`,
		`[paths(type == "number")] | length`:                                        "4",
		`.. | .name? // empty`:                                                      "\"Ann\"\n\"Bob\"\n\"Ann\"",
	} {
		got, err := Selector{}.Select(t.Context(), expression, issues)
		if expression == `[.items[].title | select(test("^[a-d]"; null)?)]` {
			require.ErrorContains(t, err, "the function test/2 is not available; there is test/1")
			continue
		}
		require.NoError(t, err, expression)
		assert.Equal(t, want, got, expression)
	}
}

func TestErrors(t *testing.T) {
	for expression, want := range map[string]string{
		".items[":             "the expression ends too early",
		".items[}":            `the expression is wrong before byte 8, at "}"`,
		".total[0]":           "expected an array but got: number (3)",
		"del(.items)":         "the function del/1 is not available",
		"{$ENV}":              "the variable $ENV is not available",
		"[1][[.items]]":       "the array is too large to be looked for in another",
		".total = 4":          "assignments are not available",
		"def f: 1; f":         "modules and definitions of functions are not available",
		"$ENV.HOME":           "the variable $ENV is not available",
		"@base64":             "the format @base64 is not available; @json, @text, @csv and @tsv are",
		"$x":                  "variable not defined: $x",
		`. * 2`:               "only numbers can be multiplied and divided, not object and number",
		`.total | test("(")`:  "test needs two strings, not number and string",
		`"x" | test("(")`:     "missing closing )",
		`.items|contains([])`: "contains is only for strings here",
	} {
		_, err := Selector{}.Select(t.Context(), expression, issues)
		assert.ErrorContains(t, err, want, expression)
	}
	for text, want := range map[string]string{
		"":                                  "the result is not JSON",
		"hello":                             "the result is not JSON",
		"{} {}":                             "the result is not JSON",
		strings.Repeat(" ", MaxInput) + "1": "the result has 4194305 bytes, more than 4194304",
		"[" + strings.Repeat("1,", 499_999) + "1]":                                    "the result has more than 500000 values",
		"[" + strings.Repeat("1", 1001) + "]":                                         "the result has a number of more than 1000 digits",
		`["\"` + strings.Repeat("1", 1001) + `", ` + strings.Repeat("1", 999) + `.5]`: "the result has a number of more than 1000 digits",
	} {
		_, err := Selector{}.Select(t.Context(), ".", text)
		assert.ErrorContains(t, err, want)
	}
	_, err := Selector{}.Select(t.Context(), strings.Repeat(".", MaxExpression+1), "1")
	assert.ErrorContains(t, err, "the expression has 2001 bytes, more than 2000")
}

// hostile are expressions that would take much, over an input of 200,000 numbers and a text of a
// million bytes.
var hostile = []string{
	`"x" * 1000000000`, `"xxxxxxxxxx" | . * 1e9`, `.text * .n`,
	`.text | ` + strings.Repeat(`. + . | `, 200) + `length`,
	strings.Repeat(`[.,.] | `, 200) + `.`,
	`.list | ` + strings.Repeat(`[.,.] | `, 60) + `tojson | length`,
	`.list | ` + strings.Repeat(`{a:.,b:.} | `, 60) + `tojson | length`,
	`.list | ` + strings.Repeat(`. + . | `, 60) + `length`,
	`[.list[] as $a | .list[] as $b | .list[] as $c | 1] | length`,
	`[.list[] as $a | .list[] as $b | [$a,$b]]`,
	`[range(1e18)] | length`, `range(1e18)`, `last(range(1e18))`, `[range(0; 1e18; 0)]`, `[repeat(1)]`, `repeat(.)`, `[recurse(.)]`, `until(false; .)`, `[while(true; .)]`,
	`reduce range(1e9) as $i ([]; . + [$i])`, `reduce range(1e9) as $i (""; . + "xxxxxxxxxxxxxxxx")`, `reduce range(1e6) as $i (0; [.])`,
	`foreach range(1e9) as $i (.text; . + .text)`,
	`.[1e9] = 1`, `null | .[1e9] |= 1`, `setpath([1000000000]; 1)`, `[limit(1e9; repeat(.text))]`,
	`def f: f; f`, `def f: [f]; f`, `input`, `[inputs]`, `env`, `$ENV`, `import "a" as a; .`, `now`, `debug`, `input_filename`, `halt`, `getpath(["text"]) | gsub("x"; "xxxxxxxx")`,
	`.text | [scan("")]`, `.text | explode`, `[.list, .list] | transpose`, `[.list,.list,.list] | combinations`,
	`.text | test("(((a{100}){100}){100}){100}")`, `.text | test("` + strings.Repeat("(x+x+)+", 200) + `y")`,
	`.list - .list | length`, `.list | contains(.)`, `.text as $t | .list | map("x") | join($t)`, `.text | split("")`, `[.text | split("")[] | split("")]`,
	`reduce range(60) as $i (10; . * .)`, `reduce range(100000) as $i (.big; . + .big)`, `.text as $t | "` + strings.Repeat(`\($t)`, 200) + `"`,
	`[range(1000000)] | tojson | fromjson | tojson | fromjson | length`, `try (` + strings.Repeat(`[.,.] | `, 60) + `tojson) catch 1, repeat(try ([.list,.list]|tojson) catch 1)`,
	`[.list[] | . as $x | [.list?]]`, `label $out | repeat(.)`, `.list | sort_by(.) | group_by(.) | map(unique) | flatten | tojson | tojson | tojson | tojson | tojson | tojson | length`,
	`[paths] | tojson`, `[..] | [..] | [..] | length`, `@json | @json | @json | @json | @json | @json | @json | @json | length`, `with_entries(.value |= .)`, `.list | map(tojson) | map(tojson) | add`,
	`[.list[] | "\(.)\(.)\(.)\(.)"] | add | [.,.] | tojson`, `walk(.)`, `tostream`, `ascii`, `@base32d`, `splits("x")`, `$__loc__`, `.list | min_by([range(1000)])`, `.list|map([range(100)])|length`,
	`. as $x | .list[:2000] | sort_by($x)`, `. as $x | [range(1000)] | group_by($x)`, `. as $x | [range(1000)] | min_by($x)`, `.list as $l | $l[$l[:100000]]`,
	`.list as $l | $l | nth($l[:100000])`, `.list as $l | $l | getpath([$l[:100000]])`, `reduce range(22) as $i ("9"; . + .) | tonumber`, `"[" + (reduce range(22) as $i ("9"; . + .)) + "]" | fromjson | .[0] + 1`,
	`[range(1000) as $i | .big] | reduce range(10) as $i (.; . + .) | tojson | length`, `.list + .list + .list + .list | sort | length`, `[range(900)] as $a | [range(900) | $a + [.]] - [range(900) | $a + [-.]]`,
	`"[" + (reduce range(20) as $i ("{\"\":1},"; . + .)) + "1]" | [fromjson, fromjson]`, `reduce range(23) as $i ("\u007f"; . + .) | tojson | length`,
	`reduce range(11) as $i ("["; . + .) | . + . + . + . + "1" | fromjson`, `reduce range(300) as $i (.; [.]) | [paths] | [.[], .[]] | length`,
	strings.Repeat("(", 1000) + "." + strings.Repeat(")", 1000), strings.Repeat("-", 1000) + "1", strings.Repeat("[", 990) + strings.Repeat("]", 990), strings.Repeat("try ", 490) + ".",
}

// No expression takes more than its limits, whether it fails or not, and it leaves nothing behind.
func TestHostile(t *testing.T) {
	list := strings.TrimSuffix(strings.Repeat("12345,", 200_000), ",")
	text := fmt.Sprintf(`{"list": [%s], "text": %q, "n": 1000000, "big": %s}`, list, strings.Repeat("x", 1<<20), strings.Repeat("9", 999))
	require.GreaterOrEqual(t, len(hostile), 40)
	value, err := decode(text) // once: it is the same for all
	require.NoError(t, err)
	before := runtime.NumGoroutine()
	for _, expression := range hostile {
		peak := watchMemory()
		begun := time.Now()
		selected := ""
		code, spent, err := compile(expression)
		if err == nil {
			selected, err = evaluate(t.Context(), code, spent, value)
		}
		took, most := time.Since(begun), peak()
		name := expression[:min(len(expression), 60)]
		assert.LessOrEqual(t, len(selected), MaxOutput, name)
		if err != nil {
			assert.LessOrEqual(t, len(err.Error()), 2*maxError, name)
			assert.NotContains(t, err.Error(), "\n", name)
		}
		assert.Less(t, took, 20*time.Second, name) // two seconds on an idle machine
		assert.Less(t, most, 512<<20, name)
		t.Logf("%5d ms %4d MB %-60s %.80v", took.Milliseconds(), most>>20, name, err)
	}
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before && time.Now().Before(end); { // one that has said that it ends may be there still
		runtime.Gosched()
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), before)
}

// A limit that is reached can't be caught, and how much an operator compares is bounded.
func TestLimitsAreToldWhateverCatches(t *testing.T) {
	for expression, want := range map[string]string{
		"try (reduce range(60) as $i (.; [., .])) catch empty": errMade.Error(),
		"try (reduce range(60) as $i (.; [., .])) catch 1":     errMade.Error(),
		"[range(1001)] - [range(1000)]":                        "the arrays are too long to be subtracted",
	} {
		_, err := Selector{}.Select(t.Context(), expression, issues)
		assert.ErrorContains(t, err, want, expression)
	}
	selected, err := Selector{}.Select(t.Context(), "[range(1000)] - [range(1000)]", issues)
	assert.NoError(t, err)
	assert.Equal(t, "[]", selected)
}

// An error that repeats a long text takes no more than its first bytes, however many words it has.
func TestErrorOfManyWords(t *testing.T) {
	text := `"` + strings.Repeat("a ", 1_900_000) + `"`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Selector{}.Select(t.Context(), "error", text)
	runtime.ReadMemStats(&after)
	assert.ErrorContains(t, err, "error: a a a a")
	assert.Less(t, len(err.Error()), maxError+10)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(40<<20)) // of which the text takes some; its words would take as much again
}

// What expressions select from is decoded within limits too.
func TestHostileInput(t *testing.T) {
	for _, text := range []string{
		"[" + strings.Repeat("1,", MaxValues) + "1]", "[" + strings.Repeat("[],", MaxValues/2-2) + "1]", "[" + strings.Repeat(`{"":1},`, MaxValues/5-2) + "1]",
		`[` + strings.Repeat(`"",`, MaxValues-3) + `""]`, strings.Repeat("[", 5000) + strings.Repeat("]", 5000), strings.Repeat("[", MaxInput), strings.Repeat("[\n", MaxInput/2),
		`["` + strings.Repeat(`\u0001`, MaxInput/6-10) + `"]`, `"` + strings.Repeat("x", MaxInput-2) + `"`,
	} {
		peak := watchMemory()
		begun := time.Now()
		shape := Selector{}.Shape(text)
		_, err := Selector{}.Select(t.Context(), ".", text)
		took, most := time.Since(begun), peak()
		assert.Less(t, took, 20*time.Second, text[:20])
		assert.Less(t, most, 512<<20, text[:20])
		t.Logf("%5d ms %4d MB %-20s %.60s %v", took.Milliseconds(), most>>20, text[:20], shape, err)
	}
}

// watchMemory returns a function that returns the most bytes that the heap had meanwhile, more
// than before.
func watchMemory() (peak func() int) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	first, most := int(m.HeapAlloc), 0
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			runtime.ReadMemStats(&m)
			most = max(most, int(m.HeapAlloc)-first)
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() int {
		close(stop)
		<-over
		return most
	}
}

// A selection ends with its context.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Selector{}.Select(ctx, "range(1e18)", "1")
	assert.ErrorIs(t, err, errSteps)
}

func FuzzSelect(f *testing.F) {
	for _, expression := range hostile {
		f.Add(expression, issues)
	}
	f.Add(".items[].title", issues)
	f.Fuzz(func(t *testing.T, expression, text string) {
		selected, err := Selector{}.Select(t.Context(), expression, text)
		if err != nil {
			assert.Empty(t, selected)
			assert.NotContains(t, err.Error(), "\n")
			return
		}
		for line := range strings.Lines(selected) {
			assert.True(t, json.Valid([]byte(line)) || strings.Contains(line, "nan") || strings.Contains(line, "Infinity"), line)
		}
	})
}

func TestShape(t *testing.T) {
	for text, want := range map[string]string{
		issues:                                   `{items: [3 × {id: number, labels: [2 × string], title: string, user: {name: string}}], total: number}`,
		"[]":                                     "[0]",
		"12":                                     "number",
		"nothing":                                "",
		"Found 2 issues:\n{\"n\": [true, null]}": `{n: [2 × boolean]}`,
		"{\"a b\": {}, \"\": 1, \"2\": 1}":       `{"": number, "2": number, "a b": {}}`,
		`{"azAZ09_": 1, "_": 1, "0a": 1, "9": 1}`: `{"0a": number, "9": number, _: number, azAZ09_: number}`,
		`{"a-": 1, "é": 1, "A": 1, "Z": 1}`:       `{A: number, Z: number, "a-": number, "é": number}`,
		`{"a": 1, "z": 1, "a:": 1, "@": 1}`:       `{"@": number, a: number, "a:": number, z: number}`,
	} {
		assert.Equal(t, want, Selector{}.Shape(text), text)
	}
	var wide strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&wide, `,"%s%d": [{"a": {"b": {"c": {"d": 1}}}}]`, strings.Repeat("k", 100), i)
	}
	assert.Equal(t, `{"a-b": {a: {a: {a: {a: {a: {…}}}}}}, n: number}`, Selector{}.Shape(`{"n": 1, "a-b": {"a": {"a": {"a": {"a": {"a": {}}}}}}}`))
	versions := strings.Repeat(`"v": {"license": "MIT", "node": 18},`, 9)
	for i := range 9 {
		versions = strings.Replace(versions, `"v"`, fmt.Sprintf(`"1.%d"`, i), 1)
	}
	assert.Equal(t, `{at: {"1.0": {license: string, node: number}, "1.1", 7 more}}`, Selector{}.Shape(`{"at": {`+strings.TrimSuffix(versions, ",")+`}}`))
	deep := strings.Repeat(`{"k": 1, "list": [`, 200) + "1" + strings.Repeat("]}", 200)
	assert.Equal(t, "{k: number, list: [1 × {k: number, list: [1 × {k: number, list: [1 × {…}]}]}]}", Selector{}.Shape(deep))
	// As deep as there is room, for all members alike.
	long := make([]string, 8)
	for i := range long {
		long[i] = fmt.Sprintf(`"k%d": {"%s": [1]}`, i, strings.Repeat("x", 59)+`": 1, "y`)
	}
	assert.Equal(t, `{k0: {…}, k1: {…}, k2: {…}, k3: {…}, k4: {…}, k5: {…}, k6: {…}, k7: {…}, k8: number}`, Selector{}.Shape("{"+strings.Join(long, ",")+`,"k8": 1}`))
	shape := Selector{}.Shape("{" + wide.String()[1:] + "}")
	assert.Less(t, len(shape), 2*maxShape)
	assert.Contains(t, shape, "more}")
	selected, err := Selector{}.Select(t.Context(), ".n", "Found 2 issues:\n{\"n\": [true, null]}")
	require.NoError(t, err)
	assert.Equal(t, "[true,null]", selected)
}

// Nothing is decoded for a shape: of a long list, the first element is read.
func TestShapeDecodesNothing(t *testing.T) {
	list := `{"list": [` + strings.Repeat(`{"id": 1}, `, 50_000) + `{}]}`
	assert.Equal(t, "{list: [50001 × {id: number}]}", Selector{}.Shape(list))
	assert.Less(t, testing.AllocsPerRun(1, func() { Selector{}.Shape(list) }), 100.0)
}
