package mcphybrid

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/hints"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
)

// What a model reads of skills, and which skills there can be.
func TestSkillTextsTable(t *testing.T) {
	compareTable(t, "skilltexts", "What stands before the text of a skill, sections of skills, and what is no skill.", func(table *factTable) {
		for i := range 16 {
			var tools, without, missing []string
			if i&1 != 0 {
				tools = []string{"a", "b"}
			}
			if i&2 != 0 {
				without = []string{"c", "d"}
			}
			if i&4 != 0 {
				missing = []string{"e", "f"}
			}
			table.row(fmt.Sprintf("tools %v, without room %v, missing %v, bridge %t", tools, without, missing, i&8 != 0), textSkill("s", tools, without, missing, i&8 != 0))
		}
		for _, n := range []int{0, 1, 2, maxFilesShown, maxFilesShown + 1, maxFilesShown + 7} {
			e := &resources.Entry{Item: &resources.Item{ID: "skill://s/SKILL.md", Manifest: &resources.Manifest{Files: []resources.File{{URI: "skill://s/SKILL.md", Path: "SKILL.md"}}}}}
			for i := range n {
				e.Manifest.Files = append(e.Manifest.Files, resources.File{URI: fmt.Sprint("skill://s/", i), Path: fmt.Sprint(i, "\n")})
			}
			for _, reads := range []bool{true, false} {
				line := textServedSkill(&servedSkill{entry: e, names: rules.Subject{Server: "a\n\"b"}}, reads)
				if long := strings.Index(line, ", 2, 3"); long > 0 {
					line = line[:long] + "…" + line[len(line)-20:]
				}
				table.row(fmt.Sprintf("%d files, read %t", n, reads), line)
			}
		}
		hosts := &skill{Skill: Skill{Name: "h"}, element: textSkillElement("h", "a <b> & \"c\"\nd")}
		served := newServedSkill(rules.Subject{Name: "mcp_a__s", Server: "a&\nb"}, "e <f>\ng")
		for _, o := range []skillsText{{}, {Count: 3}, {Count: 3, More: true}, {Listed: []*skill{hosts}}, {Listed: []*skill{hosts}, More: true}, {Listed: []*skill{hosts, served}}, {Listed: []*skill{hosts}, Count: 2}, {Listed: []*skill{served}, Count: 1, More: true}} {
			table.row(fmt.Sprintf("%d listed, %d more, told before %t", len(o.Listed), o.Count, o.More), o.section(), *o.save())
		}
		for _, found := range []int{0, 1, 2} {
			table.row(fmt.Sprint(found, " found"), textFoundSkills(found, true), textFoundSkills(found, false), textFoundResources(found))
		}
		table.row("none of that name", textNoSkill("a\nb", nil, false), textNoSkill("a", nil, true), textNoSkill("a", []string{"b", "c"}, true), textNoSkill("a", []string{"b"}, false))
		table.row("it fails", textSkillFailed("a", errors.New("no\ndisk")))
		x := func(n int) string { return strings.Repeat("x", n) }
		for _, sk := range []Skill{
			{}, {Name: "a"}, {Name: "a", Description: "d"}, {Name: "a", Description: "d", Body: "b"}, {Name: "a", Description: " \n", Body: "b"}, {Name: "a", Description: "d", Body: " \n"},
			{Name: x(maxSkillName), Description: "d", Body: "b"}, {Name: x(maxSkillName + 1), Description: "d", Body: "b"}, {Name: "-a", Description: "d", Body: "b"}, {Name: "a-", Description: "d", Body: "b"}, {Name: "a-1", Description: "d", Body: "b"}, {Name: "A", Description: "d", Body: "b"}, {Name: "a_b", Description: "d", Body: "b"}, {Name: "é", Description: "d", Body: "b"},
			{Name: "a", Description: strings.Repeat("é", maxSkillDescription), Body: "b"}, {Name: "a", Description: strings.Repeat("é", maxSkillDescription+1), Body: "b"},
			{Name: "a", Description: "d", Body: "b", Tools: make([]string, maxSkillTools)}, {Name: "a", Description: "d", Body: "b", Tools: make([]string, maxSkillTools+1)},
			{Name: "a", Description: "d", Body: x(maxSkillBody)}, {Name: "a", Description: "d", Body: x(maxSkillBody + 1)},
		} {
			table.row(fmt.Sprintf("%s %d, %d characters, %d tools, %d bytes", sk.Name, len(sk.Name), len([]rune(sk.Description)), len(sk.Tools), len(sk.Body)), fmt.Sprint(sk.Validate()))
		}
	})
}

// What the sections say of servers, for each number of tokens.
func TestSummariesTable(t *testing.T) {
	compareTable(t, "summaries", "What the sections say of servers, with the least tokens of each: here a token is a byte.", func(table *factTable) {
		count := func(s string) int { return len(s) }
		all := serverList{
			{Server: "a", Tools: 1, About: "notes", Gist: "Keeps notes."}, {Server: "b\nc", Tools: 20}, {Server: "d", Tools: 3, About: "x\ny", Own: "Hers."}, {Server: "e", Tools: 4, Gist: "Does\nthis.", Own: "Does that."},
		}
		for n := range len(all) + 1 {
			list := all[:n]
			table.row(fmt.Sprint(n, " servers"), list.counts())
			last := "?"
			for most := range 400 {
				if s := list.summary(most, count); s != last {
					last = s
					table.row(fmt.Sprint("  summary of ", most), last)
				}
			}
			last = "?"
			for most := range 400 {
				if s := list.gists("Heading", most, "12345", count); s != last {
					last = s
					table.row(fmt.Sprint("  gists of ", most), last)
				}
			}
		}
		tool := &BridgeTool{name: "mcp_a__b", def: &definition{toolDocument: toolDocument{Server: "a", Name: "b", Description: "Does\nthis and that", InputSchema: []byte(`{"type":"object"}`)}, Own: "b"}}
		none := &BridgeTool{name: "mcp_a__c", def: new(definition)}
		for form := range lineForms {
			for _, most := range []int{0, 4, 100} {
				table.row(fmt.Sprintf("line of form %d, %d characters", form, most), fmt.Sprintf("%q %q", textLine(tool, form, most), textLine(none, form, most)))
			}
		}
		table.row("a definition", textDefinition(tool))
		table.row("a namespace", textNamespace("a\nb", ""), textNamespace("a", "c\nd"))
		for kind := range metaKinds {
			table.row("callable "+kind.name(), textCallableLine(kind))
		}
		table.row("as OpenAI has it", textForToolSearch("`mcp_tool_search` and mcp_tool_searches"))
		table.row("who is mentioned", mentionsServer([]listItem{{section: searchText, mentions: &mentions{servers: all}}, {section: summaryLines}}, "d"), mentionsServer([]listItem{{section: inlineLines, mentions: &mentions{servers: all}}}, "d"), mentionsServer(nil, "d"), lastServers(nil) == nil)
	})
}

// What the model reads of hints, up to the limits.
func TestNotesTable(t *testing.T) {
	compareTable(t, "notes", "Hints of tools, and the block that a model reads of them.", func(table *factTable) {
		x := func(n int) string { return strings.Repeat("x", n) }
		short := func(block string) string {
			for _, n := range []int{1000, 500, 200, 100} {
				for strings.Contains(block, x(n)) {
					block = strings.Replace(block, x(n), fmt.Sprintf("<%d>", n), 1)
				}
			}
			return block
		}
		lengths := func(n ...int) (lines []string) {
			for _, n := range n {
				lines = append(lines, x(n))
			}
			return lines
		}
		for _, h := range []hints.Hints{
			{}, {Preconditions: []string{""}}, {Preconditions: []string{"a\nb", "", "c"}, AntiPatterns: []string{"d"}, OutputShape: "e", ChainsWith: []string{"f", "", "g\nh"}}, {ChainsWith: []string{"", "\n"}},
			{OutputShape: x(maxNoteText)}, {OutputShape: x(maxNoteText + 1)}, {ChainsWith: lengths(text.MaxName, text.MaxName+1)}, {ChainsWith: lengths(100, 96, 5)},
			{Preconditions: lengths(200, 200, 200, 200, 158), OutputShape: "y"}, {Preconditions: lengths(200, 200, 200, 200, 159), OutputShape: "y"}, {Preconditions: lengths(200, 200, 200, 200, 160), OutputShape: "y"}, {Preconditions: lengths(200, 200, 200, 200, 145), OutputShape: "y"}, {Preconditions: lengths(200, 200, 200, 200, 144), OutputShape: "y"}, {Preconditions: lengths(200, 200, 200, 200, 200, 1), AntiPatterns: []string{"z"}},
		} {
			lines := noteLines(h)
			table.row(fmt.Sprint(len(lines), " bytes"), strings.Split(short(lines), "\n"))
		}
		table.row("none", overrideBlock(nil), overrideBlock([]noted{{"t", hints.Hints{}}}))
		// Eight notes of 1,017 bytes leave 56 of 8,192.
		long := noted{"t", hints.Hints{Preconditions: lengths(200, 200, 200, 200, 148)}}
		for _, last := range []int{37, 38, 39} {
			for _, n := range []int{8, 9} {
				tools := append(slices.Repeat([]noted{long}, n), noted{"last", hints.Hints{}}, noted{"u", hints.Hints{OutputShape: x(last)}})
				block := overrideBlock(tools)
				_, after, _ := strings.Cut(block, "- u\n")
				table.row(fmt.Sprintf("%d notes of %d bytes, and one of %d", n, len("- t\n"+noteLines(long.hints)), len("- u\n"+noteLines(tools[n+1].hints))), fmt.Sprintf("%d notes, %d bytes, the heading first %t", strings.Count(block, "\n- "), len(block), strings.HasPrefix(block, blockHeading)), after)
			}
		}
	})
}

// The words of a query that may be names.
func TestQueryNamesTable(t *testing.T) {
	compareTable(t, "querynames", "Queries, the words that may be names of tools, and whether it has nothing else.", func(table *factTable) {
		for _, query := range []string{
			"", " ", "word", " word ", "two words", "create_issue now", "`create_issue`, \"b.c\" 'd/e' f:g h-i", "createIssue is HTTPServer or iPhone", "user's _x x_ -a a- a-b", "a b_c", "_", "__", "x__y z",
			"select:", "select: ", "select:a", "SELECT: a,b c", "  Select:a", "select: `a`,'b'", "selected:a b", "select a", "a\tb_c\nd_e\u00a0f_g", "ä_b éÉa aÉb", "1_2 a1B", ",", ",,a",
		} {
			names, only := queryNames(query)
			table.row(fmt.Sprintf("%q", query), fmt.Sprintf("%q, only %t", names, only))
		}
	})
}

// A tool that was taken back and is there again has one note.
func TestToolHasOneNote(t *testing.T) {
	t.Parallel()
	m := withHints(t, table{"mcp_s__a": {OutputShape: "text"}}, 2, Options{})
	s := m.NewSession(nil)
	s.Tools()
	want := s.OverrideBlock()
	assert.Contains(t, want, "- mcp_s__a\n")
	s.mu.Lock()
	s.setShown(slices.Concat(s.shown, s.shown), nil)
	s.mu.Unlock()
	assert.Equal(t, want, s.OverrideBlock())
}
