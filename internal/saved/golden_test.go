package saved

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// testdata/states.golden has what is left of states that don't fit, and what is read of others.
func TestStatesGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("A state, and what is left of it within fewer and fewer bytes: only where something changes.\n\n")
	tool := func(name, definition string) Tool {
		return Tool{Subject: rules.Subject{Name: "mcp_s__" + name, Server: "s", Own: name}, Definition: Bytes(definition)}
	}
	whole := func() *State {
		return &State{
			Catalog: "c", User: "u", Lists: 1, Skills: 2, Turn: 3, Intent: "i", Results: 4, Paged: true, Full: true, Refused: &Refusal{"x", 2}, Told: &Told{By: "b", Begun: 1, Inserts: []Insert{{1, 2}}},
			Tools:  []Tool{tool("a", `{"name":"a"}`), tool("b", `{"name":"b","description":"a longer one"}`), tool("c", "\xff"), tool("d", "")},
			Shown:  []Item{{Kind: "tool", Tool: 1}, {Kind: "tool", Tool: 2, Line: 7}, {Kind: "servers", Servers: []*Server{{Server: "s", Tools: 2, About: "a", Gist: "g"}}}, {Kind: "tool", Tool: 3}, {Kind: "again", Tool: 1}, {Kind: "skills", Skills: &Skills{Listed: []Skill{{Name: "k", Description: "K"}}, Count: 2, More: true}}},
			Active: []Active{{Tool: 2, Used: 1}, {Tool: 4, Used: 2}, {Tool: 3, Used: 3}},
		}
	}
	before := ""
	for limit := len(whole().JSON(1<<20, nil)); limit > 0; limit-- {
		data := string(whole().JSON(limit, nil))
		if data != before {
			fmt.Fprintf(&b, "%d: %d %s\n", limit, len(data), data)
			before = data
		}
	}
	b.WriteString("\nWhat is read, within 300 bytes.\n\n")
	read := func(data string, limit int) {
		s, err := Parse([]byte(data), limit)
		fmt.Fprintf(&b, "%s\n", text.Line(data, 200))
		if err != nil {
			fmt.Fprintf(&b, "   error %v\n", err)
			return
		}
		fmt.Fprintf(&b, "   left %d, %s\n", s.left, text.RawJSON(s))
	}
	ok := `{"name":"mcp_s__a","server":"s","own":"a"}`
	for _, data := range []string{
		``, `null`, `[]`, `3`, `{`, `{}`, `{"version":-1}`, `{"version":"x"}`, `{"version":999}`, `{"version":999,"tools":3}`, fmt.Sprintf(`{"version":%d}`, oldest-1), fmt.Sprintf(`{"version":%d}`, oldest), fmt.Sprintf(`{"version":%d}`, Newest), fmt.Sprintf(`{"version":%d}`, Newest+1), fmt.Sprintf(` { "version" : %d , "catalog" : "\u0041\/\n" } `, Newest),
	} {
		read(data, 300)
	}
	for _, members := range []string{
		`"tools":[]`, `"tools":null`, `"tools":{}`, `"tools":3`, `"tools":[3]`, `"tools":[{}]`, `"tools":[` + ok + `]`, `"tools":[{"name":"a b","server":"s","own":"a"}]`, `"tools":[{"name":"a","own":"a"}]`, `"tools":[{"name":"a","server":"s"}]`, `"tools":[{"name":"a","server":"s","own":"a","definition":"{}"}]`, `"tools":[{"name":"a","server":"s","own":"a","definition":["/w=="]}]`, `"tools":[{"name":"a","server":"s","own":"a","definition":["?"]}]`, `"tools":[{"name":"a","server":"s","own":"a","definition":{}}]`, `"tools":[{"name":"a","server":"s","own":"a","definition":["/w==","/w=="]}]`, `"tools":[{"name":"a","server":"s","own":"a","definition":null}]`,
		`"tools":[` + ok + `],"shown":[{"kind":"k","tool":1}]`, `"tools":[` + ok + `],"shown":[{"kind":"k","tool":2}]`, `"shown":[{"kind":"k","tool":-1}]`, `"shown":[{"kind":"k"}]`, `"shown":[{"kind":"k","servers":[null]}]`, `"shown":[{"kind":"k","servers":[{"server":"s"}]}]`, `"shown":[{"kind":"k","skills":{"listed":{}}}]`,
		`"tools":[` + ok + `],"active":[{"tool":1,"used":3}]`, `"tools":[` + ok + `],"active":[{"tool":1},{"tool":2}]`, `"active":[{"tool":0}]`,
		`"first":1`, `"first":-1,"opening":"k"`, `"first":2,"opening":"k"`, `"first":100000000,"opening":"k"`, `"first":2,"opening":"k","gone":[1,2]`, `"first":2,"opening":"k","gone":[3]`, `"first":2,"opening":"k","gone":[0]`, `"gone":[1]`, `"first":2,"opening":"k","shown":[{"kind":"k","tool":2}]`, `"first":2,"opening":"k","shown":[{"kind":"k","tool":3}]`, `"first":1,"opening":"k","began":{"tools":[` + ok + `],"shown":[{"kind":"k","tool":1}]}`, `"first":1,"opening":"k","began":3`, `"opening":"","began":{}`,
	} {
		read(fmt.Sprintf(`{"version":%d,%s}`, Newest, members), 300)
	}
	b.WriteString("\nHow many bytes a text counts, and how many it has.\n\n")
	for _, s := range []string{``, `{}`, ` { } `, "\t[\r\n]", `"a b"`, `"\u0041"`, `"\u00e9"`, `"\u6f22"`, `"\ud83d\ude00"`, `"\/"`, `"\\"`, `"\""`, `"\n"`, `"\u00"`, `"\`, `"`, `é`, `"é"`, `{"a":"\u0020 ","b": 1}`, `"\u004"`, `"\u00411"`} {
		fmt.Fprintf(&b, "%-28s %d of %d\n", s, size([]byte(s)), len(s))
	}
	b.WriteString("\nAt the limit and beyond.\n\n")
	base := fmt.Sprintf(`{"version":%d,"catalog":"x"}`, Newest)
	for _, c := range []struct {
		data  string
		limit int
	}{{base, len(base)}, {base, len(base) - 1}, {base + strings.Repeat(" ", 9), len(base)}, {base + strings.Repeat(" ", 3*len(base)), len(base)}, {base + strings.Repeat(" ", 3*len(base)+4), len(base)}} {
		_, err := Parse([]byte(c.data), c.limit)
		fmt.Fprintf(&b, "%d bytes within %d: %v\n", len(c.data), c.limit, err)
	}
	entries := func(n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(`{"a":[1,2,"],\""]},`, n), ",") + "]"
	}
	fmt.Fprintf(&b, "lists of as many entries as may be %v, of one more %v, of none %v\n", fewEntries([]byte(entries(maxEntries))), fewEntries([]byte(entries(maxEntries+1))), fewEntries([]byte("[]")))
	b.WriteString("\nWhich new sessions a saved one fits.\n\n")
	for _, s := range []State{{}, {Lists: 1}, {Skills: 1}, {Intent: "i"}} {
		for _, n := range []struct {
			lists, skills int
			intent        string
		}{{0, 0, ""}, {1, 1, "j"}, {2, 2, "i"}} {
			fmt.Fprintf(&b, "%s into %d, %d, %q: %v\n", golden.Text(s), n.lists, n.skills, n.intent, s.Fits(n.lists, n.skills, n.intent))
		}
	}
	b.WriteString("\nWhich servers say the same.\n\n")
	one := Server{Server: "s", Tools: 1, About: "a", Gist: "g", Own: "o", Tool: rules.Subject{Name: "n", Server: "s", Own: "t", Wanted: "w"}}
	for _, change := range []func(*Server){func(*Server) {}, func(s *Server) { s.Server = "x" }, func(s *Server) { s.Tools = 2 }, func(s *Server) { s.About = "x" }, func(s *Server) { s.Gist = "x" }, func(s *Server) { s.Own = "x" }, func(s *Server) { s.Tool.Name = "x" }, func(s *Server) { s.Tool.Server = "x" }, func(s *Server) { s.Tool.Own = "x" }, func(s *Server) { s.Tool.Wanted = "x" }} {
		other := one
		change(&other)
		data, _ := json.Marshal(other)
		fmt.Fprintf(&b, "%v %s\n", one.Same(&other), data)
	}
	golden.Compare(t, "states.golden", b.String())
}
