package inspect

import (
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A report is the output. Its JSON form is a contract.
type report struct {
	Servers  []serverReport      `json:"servers"`
	Inline   []string            `json:"inline"`
	Deferred []string            `json:"deferred"`
	Tokens   tokenReport         `json:"tokens"`
	Hits     []hitReport         `json:"hits"`
	Result   *mcp.CallToolResult `json:"result"`
	Problems []string            `json:"problems"`
	Why      []string            `json:"why,omitempty"` // why a search found nothing

	costs []cost // for people only
}

type serverReport struct {
	Name  string          `json:"name"`
	State mcphybrid.State `json:"state"`
	Tools int             `json:"tools"`
	Error string          `json:"error"`
}

type tokenReport struct {
	All      int `json:"all"`
	Inline   int `json:"inline"`
	Sections int `json:"sections"`
}

type hitReport struct {
	Name     string  `json:"name"`
	Server   string  `json:"server"`
	Score    float64 `json:"score"`
	Standing string  `json:"standing"` // as in a placement: inline, deferred, …
}

func newReport(mgr *mcphybrid.Manager) report {
	r := report{
		Servers: []serverReport{}, Inline: []string{}, Deferred: []string{},
		Hits: []hitReport{}, Problems: []string{},
	}
	for _, s := range mgr.Servers() {
		row := serverReport{Name: s.Name, State: s.State, Tools: s.Tools}
		if s.Err != nil {
			row.Error = s.Err.Error()
		}
		r.Servers = append(r.Servers, row)
	}
	for _, t := range mgr.InlineTools() {
		r.Inline = append(r.Inline, t.Name())
	}
	for _, t := range mgr.DeferredTools() {
		r.Deferred = append(r.Deferred, t.Name())
	}
	tokens := mgr.Stats().Tokens
	r.Tokens = tokenReport{tokens.All, tokens.Inline + tokens.Meta, tokens.Sections}
	for _, p := range mgr.Problems() {
		r.Problems = append(r.Problems, p.Error())
	}
	r.costs = costs(mgr)
	return r
}

// search adds what a search finds or, if that is nothing, why.
func (r *report) search(mgr *mcphybrid.Manager, query string) {
	for _, h := range mgr.Search(query, 0) {
		r.Hits = append(r.Hits, hitReport{h.Tool.Name(), h.Tool.Server(), h.Score, h.Standing})
	}
	if len(r.Hits) == 0 {
		r.Why = whyNothing(mgr, query)
	}
}

// print writes the report for people.
func (r *report) print(s *terminal.Sheet) {
	columns, strict := s.Columns()
	var names []string
	for _, server := range r.Servers {
		names = append(names, server.Name)
	}
	name := servers.NameColumn(names, columns-len(" unauthorized 1000 tools"), strict)
	for _, server := range r.Servers {
		s.Text(fmt.Sprintf("%s %-12s %10s", name(server.Name), server.State, text.Counted(server.Tools, "tool")), server.Error)
	}
	for _, problem := range r.Problems {
		s.Text(problem)
	}
	s.Gap()
	s.Text(fmt.Sprintf("%d inline, %d deferred", len(r.Inline), len(r.Deferred)))
	s.Text(fmt.Sprintf("about %d tokens for all definitions", r.Tokens.All))
	s.Text(fmt.Sprintf("about %d tokens for the inline ones and those that search", r.Tokens.Inline))
	s.Text(fmt.Sprintf("about %d tokens for the prompt sections", r.Tokens.Sections))
	s.Gap()
	for _, line := range chart(r.costs, columns, strict) {
		s.Row("%s", line)
	}
	list := func(heading string, names []string) {
		if len(names) > 0 {
			s.Gap()
			s.Row("%s", heading)
		}
		for _, name := range names {
			s.Row("  %s", name)
		}
	}
	list("inline:", r.Inline)
	list("deferred:", r.Deferred)
	if len(r.Hits) > 0 {
		s.Gap()
		s.Row("found:")
	}
	for _, h := range r.Hits {
		s.Row("  %6.3f  %s (%s, %s)", h.Score, h.Name, h.Server, h.Standing)
	}
	if len(r.Why) > 0 {
		s.Gap()
		s.Row("found nothing:")
	}
	for _, why := range r.Why {
		s.Text("  " + why)
	}
	if r.Result != nil {
		s.Gap()
		s.Row("result:")
		var texts []string
		for _, c := range r.Result.Content {
			texts = append(texts, mcp.GetTextFromContent(c))
		}
		s.Block(strings.Join(texts, "\n"))
	}
}
