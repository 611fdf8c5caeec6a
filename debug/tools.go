package debug

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/scan"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

type toolsPage struct {
	Standings []standingCount
	Sorts     []string
	Rows      []toolRow
}

type standingCount struct {
	Name  string
	Count int
}

// A toolRow is one tool in a list.
type toolRow struct {
	Name        string
	Link        string // name for a link, "" if it can't be in one
	Server      string
	Standing    string
	Reason      string
	Known       time.Time // since when the former definition is known, or zero
	Description string
	Tokens      int
}

func newTools(snap snapshot.Manager, r request) (*toolsPage, pager) {
	p := &toolsPage{Sorts: sorts}
	counts := make(map[string]int)
	servers := make(map[snapshot.Text]string) // of many tools
	var found []foundTool
	want := strings.ToLower(strings.TrimSpace(r.Query))
	tools := snap.Tools()
	for i := range tools {
		t := &tools[i]
		counts[t.Standing]++
		server, ok := servers[t.Server]
		if !ok {
			server = t.Server.Line(maxName)
			servers[t.Server] = server
		}
		if (r.Standing == "" || r.Standing == t.Standing) && (r.Server == "" || r.Server == server) && strings.Contains(strings.ToLower(t.Name), want) {
			found = append(found, foundTool{t, server})
		}
	}
	for _, standing := range standings {
		if counts[standing] > 0 {
			p.Standings = append(p.Standings, standingCount{standing, counts[standing]})
		}
	}
	switch r.Sort {
	case "name":
		slices.SortStableFunc(found, func(a, b foundTool) int { return strings.Compare(a.Name, b.Name) })
	case "server":
		slices.SortStableFunc(found, func(a, b foundTool) int { return strings.Compare(a.server, b.server) })
	case "tokens":
		slices.SortStableFunc(found, func(a, b foundTool) int { return cmp.Compare(b.Tokens, a.Tokens) })
	}
	found, pages := rowsOf(found, r.Page)
	for _, f := range found {
		p.Rows = append(p.Rows, newRow(*f.Tool))
	}
	return p, pages
}

// A foundTool is a tool that passes the filters, without its texts.
type foundTool struct {
	*snapshot.Tool
	server string
}

func newRow(t snapshot.Tool) toolRow {
	r := toolRow{
		Name: t.Name, Link: t.Name, Server: t.Server.Line(maxName), Standing: t.Standing, Reason: t.Reason.String(),
		Description: cmp.Or(t.Description.Line(maxDescription), t.Title.Line(maxDescription)), Tokens: t.Tokens,
	}
	if t.Hidden {
		r.Link = ""
	}
	if t.Standing == "quarantined" {
		r.Description = "" // nobody has looked at it yet
	}
	switch c := t.Changed; {
	case c == nil:
	case c.Added:
		r.Reason += "; it is new, and nobody has accepted it"
	case c.Was == "":
		r.Reason += "; its server has more tools than are remembered"
	default:
		r.Reason += "; its definition has changed"
		r.Known = c.Since
	}
	r.Reason = strings.TrimPrefix(r.Reason, "; ")
	return r
}

type toolPage struct {
	toolRow
	Original, Title string
	Lines           string // the description
	Schema          string
	Marks           []scan.Mark
	Was, Is         string // hashes of the definition before and after a change
	Changed         bool
	Call            string // which accepts the change; "" for an operator
	Unnamed         string // why neither a call nor a button can accept it, or ""
	Accept          *deed  // the same as a button; nil if that is another one's to do
}

func newTool(snap snapshot.Manager, g *Guide, name string) (*toolPage, error) {
	tools := snap.Tools()
	i := slices.IndexFunc(tools, func(t snapshot.Tool) bool { return t.Name == name && !t.Hidden })
	if i < 0 {
		return nil, fmt.Errorf("there is no tool %.80q", name)
	}
	t := tools[i]
	p := &toolPage{
		toolRow: newRow(t), Original: t.Original.Line(maxName), Title: t.Title.Line(maxName),
		Lines: t.Description.Lines(maxText), Schema: t.Definition.Schema(maxText), Marks: t.Definition.Marks(),
	}
	if c := t.Changed; c != nil {
		p.Was, p.Is = c.Was, c.Is
		m := changeMatter(snap, g, *c)
		p.Changed, p.Call = true, m.Call
		if c.Hidden {
			p.Unnamed = m.Do
		} else if owns(snap, t.User) {
			p.Accept = &deed{Do: "accept", Server: c.Server, Tool: c.Tool, Hash: c.Is, Label: "Accept this definition"}
		}
	}
	return p, nil
}
