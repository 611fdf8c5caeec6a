package resources

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/search"
)

// testdata/located.golden has what sessions may have of two owners' servers, and who has it.
func TestLocatedGolden(t *testing.T) {
	t.Parallel()
	held := errors.New("held back")
	is := func(e *Entry, state string) *Entry {
		switch state {
		case "barred":
			e.Barred = errors.New("barred for all")
		case "held":
			e.Quarantined = held
		case "unlisted":
			e.Unlisted = true
		}
		return e
	}
	resource := func(server, uri, name, state string) *Entry {
		return is(entry(t, server, Resource, fmt.Sprintf(`{"uri":%q,"name":%q}`, uri, name)), state)
	}
	template := func(server, uri, name, state string) *Entry {
		return is(entry(t, server, Template, fmt.Sprintf(`{"uriTemplate":%q,"name":%q}`, uri, name)), state)
	}
	prompt := func(server, name, state string) *Entry {
		return is(entry(t, server, Prompt, fmt.Sprintf(`{"name":%q}`, name)), state)
	}
	mine := []*Entry{
		resource("a", "mem://H/open", "report", ""), resource("a", "mem://h/own", "no-report", ""), resource("a", "mem://h/barred", "report", "barred"), resource("a", "mem://h/held", "report", "held"), resource("a", "skill://one/f0.md", "a file", ""),
		template("a", "db://t/{id}", "t", ""), template("a", "db://held/{id}", "held", "held"), template("a", "db://no/{id}", "no-t", ""), template("a", "db://both/{id}", "held", "held"), template("a", "db://both/{+id}", "both", ""),
		is(skill(t, "a", "one", 1), ""), is(skill(t, "a", "late", 2), "held"), is(skill(t, "a", "no-skill", 1), ""), is(skill(t, "a", "off", 0), "barred"),
		prompt("a", "ask", ""), prompt("a", "asks", "held"),
		resource("b", "mem://H/open", "report", ""), template("b", "db://t/{+any}", "t", ""), prompt("b", "ask", ""), is(skill(t, "b", "one", 1), "unlisted"),
		resource("c", "mem://c", "no-c", ""), template("c", "DB://Orders/{id}", "held", "held"),
	}
	theirs := []*Entry{
		resource("a", "mem://h/theirs", "report", ""), resource("a", "mem://h/barred", "report", ""), template("a", "y://{id}", "y", ""), prompt("a", "theirs", ""), is(skill(t, "a", "two", 1), ""),
		resource("d", "mem://H/open", "report", ""), prompt("d", "ask", ""), is(skill(t, "d", "two", 1), ""), resource("d", "mem://d", "no-d", ""), is(skill(t, "d", "three", 0), "held"),
	}
	owned := func(of string, entries []*Entry, skilled ...string) Owned {
		return Owned{of, NewShelf(nil, entries, skilled, func(docs []*search.Document) *search.Index { return search.NewIndex(docs, nil) })}
	}
	links := (*Links)(nil).With(Place{"x", "b"}, []string{"mem://linked", "mem://secret"}).With(Place{"x", "gone"}, []string{"mem://linked", "mem://gone"}).
		With(Place{"y", "d"}, []string{"mem://linked", "mem://theirs"}).With(Place{"y", "b"}, []string{"mem://theirs"}).With(Place{"x", "a"}, []string{"db://no/1", "mem://h/%62arred", "mem://H/open"})
	no := func(of rules.Subject) error {
		if strings.HasPrefix(of.Own, "no-") {
			return errors.New("not for you")
		}
		return nil
	}
	places := func(list []Place) string {
		all := make([]string, len(list))
		for i, p := range list {
			all[i] = fmt.Sprintf("%v/%s", p.Of, p.Server)
		}
		return strings.Join(all, " ")
	}
	entries := func(list []*Entry) string {
		all := make([]string, len(list))
		for i, e := range list {
			all[i] = e.Names.Server + " " + e.ID
		}
		return strings.Join(all, ", ")
	}
	var b strings.Builder
	b.WriteString("What sessions may have of servers of two owners, x and y, and who has it. Of y's server a they have nothing that x's has too.\n")
	for _, session := range []struct {
		shows   string
		change  func(v *View)
		located bool
	}{
		{"a session with rights", func(v *View) {}, true},
		{"without skills", func(v *View) { v.BarSkill = func(rules.Subject) error { return errors.New("no skills") } }, false},
		{"without what is of server a", func(v *View) {
			v.Bar = func(of rules.Subject) error {
				if of.Server == "a" {
					return errors.New("nothing of a")
				}
				return nil
			}
		}, false},
		{"with nothing", func(v *View) { v.Bar = func(rules.Subject) error { return errors.New("nothing") } }, false},
		{"without servers", func(v *View) { v.Shelves, v.Unlisted = nil, nil }, false},
		{"of y alone", func(v *View) { v.Shelves, v.Unlisted = v.Shelves[1:], v.Unlisted[1:] }, false},
	} {
		v := &View{
			Shelves: []Owned{owned("x", mine, "a", "b", "gone"), owned("y", theirs, "a", "d"), {Of: "z"}}, Bar: no, BarSkill: no,
			BarURI: func(_ any, of rules.Subject) error {
				if strings.Contains(of.URI, "secret") || strings.Contains(strings.Join(of.Forms, " "), "secret") || of.URI == "db://t/7" {
					return errors.New("not this URI")
				}
				return nil
			},
			Unlisted: []Place{{"x", "c"}, {"x", "gone"}, {"y", "c"}, {"y", "e"}},
			Server:   func(p Place) (rules.Subject, bool) { return rules.Subject{Server: p.Server}, p.Server != "gone" },
		}
		session.change(v)
		fmt.Fprintf(&b, "\n== %s\n\n", session.shows)
		for kind := range NumKinds {
			fmt.Fprintf(&b, "offered, each %s: %s\n", kind, entries(v.Offered(kind)))
		}
		fmt.Fprintf(&b, "reads %v, reads files %v, servers with skills: %s\n", v.Reads(), v.ReadsFiles(), places(v.Skilled()))
		for _, uri := range []string{"skill://new/SKILL.md", "skill://no-new/SKILL.md", "skill://secret/SKILL.md"} {
			fmt.Fprintf(&b, "may ask for %s: %s; only a: %s; only d: %s; only gone: %s\n", uri, places(v.MayAsk("", uri)), places(v.MayAsk("a", uri)), places(v.MayAsk("d", uri)), places(v.MayAsk("gone", uri)))
		}
		for _, n := range []int{1, 2, 9} {
			fmt.Fprintf(&b, "search, %d: %s\n", n, entries(v.Search("report t", n)))
		}
		for _, of := range []any{"x", "y", "z"} {
			fmt.Fprintf(&b, "%v's a has mem://h/theirs %v, its d has ask %v\n", of, v.Entry(Place{of, "a"}, Resource, "mem://h/theirs") != nil, v.Entry(Place{of, "d"}, Prompt, "ask") != nil)
		}
		fmt.Fprintf(&b, "sees a's open %v, its own %v, y's theirs %v, its barred %v, one that is on no shelf %v\n", v.Sees("x", mine[0]), v.Sees("x", mine[1]), v.Sees("y", theirs[0]), v.Sees("y", theirs[1]), v.Sees("other", mine[0]))
		for _, q := range []struct {
			kind Kind
			ids  []string
		}{
			{Resource, []string{
				"mem://H/open", "mem://h/open", "MEM://h/open", "mem://h/own", "mem://h/%6fwn", "mem://h/barred", "mem://h/%62arred", "mem://h/held", "mem://h//held", "mem://h/theirs", "mem://h/%74heirs", "mem://h/none", "mem://h/hel", "mem://c", "mem://d", "mem://secret", "mem:c",
				"db://t/1", "db://t/7", "db://t/1/2", "db://t/secret", "db://held/1", "db://no/1", "db://both/1", "db://both/1/2", "db://none/1", "y://1", "db://orders/1", "DB://Orders/1", "db://Orders//1",
				"skill://one/f0.md", "skill://one/SKILL.md", "skill://one/%660.md", "skill://late/f0.md", "skill://late/./f0.md", "skill://no-skill/f0.md", "skill://off/SKILL.md", "skill://two/f0.md", "skill://two/other.md", "skill://three/SKILL.md",
				"mem://linked", "mem://gone", "mem://theirs", "ask", strings.Repeat("x", maxAsked+1),
			}},
			{Template, []string{"db://t/{id}", "db://held/{id}", "db://no/{id}", "y://{id}", "db://t/1"}}, {Prompt, []string{"ask", "asks", "theirs", "as", "none"}},
			{Skill, []string{"skill://one/SKILL.md", "skill://two/SKILL.md", "skill://late/SKILL.md", "skill://no-skill/SKILL.md", "skill://off/SKILL.md", "skill://tw/SKILL.md", "skill://one/f0.md"}},
		} {
			for i, id := range q.ids {
				if !session.located && i > 0 {
					break
				}
				var outcomes, servers []string
				for _, server := range []string{"", "a", "b", "c", "d", "e", "gone"} {
					at, err := v.Locate(t.Context(), q.kind, server, id, links)
					outcome := fmt.Sprintf("%v/%s", at.Of, at.Server)
					var unknown *Unknown
					switch {
					case errors.As(err, &unknown):
						outcome = fmt.Sprintf("unknown, near %q, servers %q", unknown.Nearest, unknown.Servers)
					case err != nil:
						outcome += " refused: " + err.Error()
					}
					if i := slices.Index(outcomes, outcome); i >= 0 {
						servers[i] += ", " + server
					} else {
						outcomes, servers = append(outcomes, outcome), append(servers, map[bool]string{true: "any", false: server}[server == ""])
					}
				}
				fmt.Fprintf(&b, "%s %.60s\n", q.kind, id)
				for i, outcome := range outcomes {
					fmt.Fprintf(&b, "   %s: %s\n", servers[i], strings.ReplaceAll(outcome, `near [], servers []`, "nothing near"))
				}
			}
		}
	}
	golden.Compare(t, "located.golden", b.String())
}
