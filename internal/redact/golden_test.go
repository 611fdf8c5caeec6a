package redact

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/golden"
)

// What is left of texts with secrets, in each form in which people see them.
func TestGoldenRedacted(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What people see of texts that have the secrets pass-word, pass-word-long, Tok1 and ab, which is too short to be hidden in pieces.\n\n")
	e := New([]string{"Tok1", "pass-word", "ab", "pass-word-long", "pass-word"})
	short := func(s string) string {
		if len(s) > 100 {
			return fmt.Sprintf("%q… %d bytes …%q", s[:30], len(s), s[len(s)-30:])
		}
		return fmt.Sprintf("%q", s)
	}
	for _, text := range []string{
		"", "plain", "pass-word", "PASS-WORD", "a pass-word-long b", "pass-\u200bword", "pass-\nword", "pass-wor…", "PASS-WOR… and pass…", "pas…", "pass…word", "Tok1…", "tok1…", "Tok…", "…", "x…pass-w… y", "to ab",
		"a\tb\x00c\u202e", "  two\n    four\n\nlast  ", strings.Repeat(" ", 50) + "deep", strings.Repeat("é", 30), strings.Repeat("x", 19) + "pass-word", strings.Repeat("x", 20) + "pass-word",
		strings.Repeat("x", 8*20+1<<10-4) + "pass-word", strings.Repeat("x", 8*20+1<<10-9) + "pass-word", strings.Repeat("x", 8*20+1<<10-9) + "pass-word!", strings.Repeat("\n", 500) + "last", strings.Repeat("x\n", 500),
		strings.Repeat("\u200b", 8*20+1<<10-9) + "pass-word",
	} {
		fmt.Fprintf(&b, "%s\n  is the line %s\n  and the lines %s, the longer ones %s\n", short(text), short(e.Line(text, 20)), short(e.Lines(text, 20)), short(e.Lines(text, 2000)))
	}
	b.WriteString("\nNames of tools, and those on their servers.\n")
	for _, names := range [][2]string{
		{"mcp_s__a", "a"}, {"mcp_s__pass-word", "pass-word"}, {"mcp_s__pass_word", "pass-word"}, {"mcp_s__pass-word", "other"}, {"mcp_s__a b", "a b"}, {"mcp_s__x", "pass-\u200bword"}, {"mcp_s__x", "pass-word\u200b"}, {"mcp_s__\u200bx", "x"},
		{"mcp_s__" + strings.Repeat("x", 300), "x"}, {"", ""},
	} {
		shown, ok := e.Name(names[0], names[1])
		fmt.Fprintf(&b, "%s, %s: %s, unchanged %v\n", short(names[0]), short(names[1]), short(shown), ok)
	}
	b.WriteString("\nMarks, which spell characters.\n")
	for _, mark := range []string{"", "plain", "passU+200B-word", "pass-wU+10FFFFord", "pass-woU+200B", "passU+20-word", "passU+1234567-word", "passU+abcd-word", "U+200B", "a\nb"} {
		fmt.Fprintf(&b, "%q: %q\n", mark, e.Mark(mark))
	}
	b.WriteString("\nSchemas, of at most 60 bytes where they are indented.\n")
	for _, raw := range []string{
		`{}`, `{"a":"b","c":[1,2]}`, `{"a":"pass-word"}`, `{"a":"\u0070ass-word"}`, `{"a":"\u0022"}`, `{"a":"\u005c"}`, `{"a":"\u000a"}`, `{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`, `{"a":"\\u0070ass"}`, `{"a":`, `{"a":"` + strings.Repeat("x", 52) + `"}`, `{"a":"` + strings.Repeat("x", 53) + `"}`, "",
	} {
		fmt.Fprintf(&b, "%q: %q\n", raw, e.Schema(json.RawMessage(raw), 60))
	}
	b.WriteString("\nTerms of documents, and of the query.\n")
	for _, terms := range [][2]string{{"pass", "x"}, {"pass", "pass"}, {"pas", "x"}, {"word", "x"}, {"tok1", "x"}, {"ok1", "x"}, {"long", "x"}, {"other", "x"}, {"passw", "x"}, {"", "x"}} {
		fmt.Fprintf(&b, "%q, %q: %q\n", terms[0], terms[1], e.Term(terms[0], terms[1]))
	}
	golden.Compare(t, "redacted.golden", b.String())
}
