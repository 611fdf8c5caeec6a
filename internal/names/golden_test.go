package names

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/golden"
)

// testdata/names.golden has which names tools get, and which prefixes servers.
func TestNamesGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("Which names tools get whose server is alone: its name and the prefix that it was given, the claim, then names.\n\n")
	prefix := func(n int) string { return "mcp_" + strings.Repeat("p", n-4) }
	for _, c := range [][2]string{
		{"git", ""}, {"git-hub", ""}, {"git", "ops"}, {"git", "mcp_ops"}, {"git", "mcp_"}, {"git", "mcp"}, {"", ""}, {"é", ""}, {"a\x7fb", ""}, {"git", "a b"}, {"git", "a__b"}, {"git_", ""},
		{"long", prefix(maxPrefix)}, {"long", prefix(maxPrefix + 1)}, {"other", prefix(maxPrefix + 1)}, {"long", prefix(200)},
	} {
		alone := Alone(c[0], c[1])
		fmt.Fprintf(&b, "%q %q: %q, %q, names start %q\n", c[0], c[1], alone.Wanted, alone.Prefix, alone.Start())
		room := 64 - len(alone.Prefix) - 2
		for _, tool := range []string{"run", "", "a b", "run\x80", "é", strings.Repeat("t", room), strings.Repeat("t", room+1), "r_0123abcd", "r_0123abcg", "0123abcd"} {
			name := alone.Name(tool)
			own, ok := alone.Own(name)
			fmt.Fprintf(&b, "   %-24q %s (%d), hash %v, own %q %v\n", tool, name, len(name), looksSuffixed(name), own, ok)
		}
	}
	b.WriteString("\nWhat looks like a name with a hash.\n\n")
	for _, name := range []string{"_0123abcd", "0123abcd", "a_0123abcd", "a-0123abcd", "_", "", "a_0123abc", "a_0123ABCD"} {
		fmt.Fprintf(&b, "%q %v\n", name, looksSuffixed(name))
	}
	b.WriteString("\nA book, and one above it: each claim, whose prefix stood in its way, and its number; then all.\n\n")
	book := NewBook(2)
	above := book.Above()
	state := func(shows string, b2 *Book) {
		fmt.Fprintf(&b, "   %s has %d:", shows, b2.Len())
		for _, c := range b2.Claims() {
			fmt.Fprintf(&b, " %s", golden.Text(c))
		}
		fmt.Fprintf(&b, "; refused %s\n", golden.Text(b2.Refused()))
	}
	claim := func(shows string, of *Book, server, given string) {
		c, first, err := of.Claim(server, given)
		fmt.Fprintf(&b, "%s: %q %q: %q first %q %v, number %d\n", shows, server, given, c.Prefix, first, err, of.Number(c))
	}
	before := book.Prefixes()
	claim("book", book, "git", "")
	claim("book", book, "git", "")
	lent := book.Prefixes()
	claim("book", book, "Git", "git")
	claim("book", book, "a", "git__")
	claim("book", book, "b", "git__x")
	claim("book", book, "c", "x__y__z")
	claim("book", book, "d", "x")
	claim("book", book, "d", "aaa")
	claim("above", above, "git", "")
	claim("above", above, "new", "git")
	claim("above", above, "e", "x__y")
	claim("above", above, "f", "")
	claim("book", book, "g", "f")
	state("book", book)
	state("above", above)
	b.WriteString("\nPrefixes, as they were lent: none, one, and all. For each name the server, the prefix and its number.\n\n")
	all, others := book.Prefixes(), above.Prefixes()
	for _, name := range []string{"mcp_git__run", "mcp_git_run", "mcp_git__", "mcp_git", "mcp_x__y__z__t", "mcp_aaa__t", "aaa", "", "zzz", "mcp_f__t"} {
		for _, p := range []Prefixes{before, lent, all} {
			fmt.Fprintf(&b, "%-16s of %d: %q %q %d   ", name, p.Len(), p.Server(name), p.Prefix(name), p.Number(name))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "all meet those above at %v, these meet all at %v, none meet %v and %v\n", all.Meeting(others), others.Meeting(all), before.Meeting(all), all.Meeting(before))
	b.WriteString("\nNames of one server that are alike, of which it may have two with a hash.\n\n")
	c, _, _ := book.Claim("git", "")
	one := c.Name("a b")
	for _, tool := range []string{"run", "a b", strings.TrimPrefix(one, "mcp_git__"), "a b", "c d", "run_it", "e f"} {
		name, err := book.Name(c, tool)
		fmt.Fprintf(&b, "%-24q %s %v\n", tool, name, err)
	}
	b.WriteString("\nRestored.\n\n")
	restored := NewBook(9)
	claims := append(book.Claims(), Claim{"", "mcp_q", "mcp_q"}, Claim{"q", "q", "mcp_q"}, Claim{"q", "mcp_q", "q"}, Claim{"q", "mcp_q", "mcp_é"}, Claim{"q", "mcp_q", prefix(maxPrefix + 1)}, Claim{"r", "mcp_r", prefix(maxPrefix)}, Claim{"git", "mcp_git", "mcp_other"}, Claim{"h", "mcp_h", "mcp_git__x"}, Claim{"git", "mcp_git", "mcp_git"}, Claim{"h", "mcp_h", "mcp_git__x"})
	restored.Restore(claims)
	state("restored", restored)
	restored.Restore([]Claim{{"h", "mcp_h", "mcp_git__x"}, {"i", "mcp_i", ""}})
	state("restored again", restored)
	for i := range maxRefused + 5 {
		restored.Restore([]Claim{{fmt.Sprint(i), "", ""}})
	}
	fmt.Fprintf(&b, "   then %d are refused, then %d\n", len(restored.Refused()), len(restored.Refused()))
	for _, merged := range [][]Claim{Merge([]Claim{{"a", "mcp_x", "mcp_x"}}, []Claim{{"b", "mcp_x", "mcp_x"}, {"c", "mcp_c", "mcp_c"}}), Merge(nil, nil), Merge(nil, []Claim{{"b", "mcp_b", "mcp_b"}, {"a", "mcp_b", "mcp_z"}, {"a", "mcp_a", "mcp_a"}})} {
		fmt.Fprintf(&b, "   merged %s\n", golden.Text(merged))
	}
	golden.Compare(t, "names.golden", b.String())
}
