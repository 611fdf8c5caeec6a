package eval

import (
	"fmt"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/findability"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A report is what is said of running servers. Its JSON form is a contract.
type report struct {
	Servers int `json:"servers"`
	Tools   int `json:"tools"`
	scores
	Least  float64 `json:"least"`
	Passed bool    `json:"passed"` // hit@5 is not below least
	Misses []miss  `json:"misses"` // in the order of the queries
	Helped *scores `json:"helped"` // with the words of all misses that these help, or null

	file string
}

// scores are some of the [figures], of which one right tool is as good as several.
type scores struct {
	Queries      int     `json:"queries"`
	Hit1         float64 `json:"hit@1"`
	Hit5         float64 `json:"hit@5"`
	MRR10        float64 `json:"mrr@10"`
	Unanswerable int     `json:"unanswerable"`
	Rejected     float64 `json:"rejected"`
}

// A miss is a query that finds another tool first.
type miss struct {
	Line    int                `json:"line"`
	ID      string             `json:"id"`
	Query   string             `json:"query"`
	Wanted  []string           `json:"wanted"`  // server/tool
	Nearest string             `json:"nearest"` // which of them comes first, or scores most
	Rank    int                `json:"rank"`    // its place, from 1, or 0 if it is not found
	First   string             `json:"first"`   // the tool that comes first, or "" if none does
	Decide  []findability.Word `json:"decide"`  // why it does
	Lacks   []string           `json:"lacks"`   // the words that find nothing in the nearest
	Words   []string           `json:"words"`   // those that were tried as a hint, if a model does not see the tool
	Helped  int                `json:"helped"`  // the nearest's place with them, or 0 if a model does not see it with them either

	why findability.Why
}

func newMiss(q query, wanted []*mcphybrid.BridgeTool, a findability.Answer) miss {
	w := a.Why()
	m := miss{Line: q.line, ID: q.ID, Query: q.Query, Nearest: findability.Label(a.Wanted), Rank: a.Rank, why: w,
		Wanted: []string{}, Decide: append([]findability.Word{}, w.Words...), Lacks: append([]string{}, w.Lacks...), Words: []string{}}
	for _, t := range wanted {
		m.Wanted = append(m.Wanted, findability.Label(t))
	}
	if w.First != nil {
		m.First = findability.Label(w.First)
	}
	return m
}

// print writes the report for people: the figures, the misses, those that a model does not
// see first, and whether the mark is passed.
func (r *report) print(s *terminal.Sheet) {
	s.Text(fmt.Sprintf("%s: %s, %s of %s", r.file, queriesIn(r.Queries), text.Counted(r.Tools, "tool"), text.Counted(r.Servers, "server")))
	s.Gap()
	r.scores.print(s)
	for _, unseen := range []bool{true, false} {
		for _, m := range r.Misses {
			if unseen == (m.Rank == 0 || m.Rank > findability.Seen) {
				s.Gap()
				s.Text(m.lines(r.file)...)
			}
		}
	}
	if r.Helped != nil {
		s.Gap()
		s.Text("with the words that help:")
		r.Helped.print(s)
	}
	if r.Least > 0 {
		s.Gap()
		verdict := "passed"
		if !r.Passed {
			verdict = "not passed"
		}
		s.Text(fmt.Sprintf("%s: hit@5 is %.1f %%, and must be %.1f %%", verdict, 100*r.Hit5, 100*r.Least))
	}
}

func (f scores) print(s *terminal.Sheet) {
	s.Row("hit@1     %5.1f %%", 100*f.Hit1)
	s.Row("hit@5     %5.1f %%", 100*f.Hit5)
	s.Row("mrr@10    %5.1f %%", 100*f.MRR10)
	if f.Unanswerable > 0 {
		s.Row("rejected  %5.1f %% of %d that no tool answers", 100*f.Rejected, f.Unanswerable)
	}
}

// lines returns a miss for people.
func (m miss) lines(file string) []string {
	place := "is not found"
	if m.Rank > 0 {
		place = fmt.Sprintf("is at place %d", m.Rank)
	}
	lines := []string{fmt.Sprintf("%s:%d: “%s”: %s %s", file, m.Line, m.Query, m.Nearest, place)}
	lines = append(lines, m.why.Sentences()...)
	switch words := strings.Join(m.Words, ", "); {
	case m.Helped > 0:
		lines = append(lines, fmt.Sprintf("→ with these words in its description or a hint it is at place %d: %s", m.Helped, words))
	case words != "":
		lines = append(lines, fmt.Sprintf("→ with these words it is not among the first %d either: %s", findability.Seen, words))
	}
	return lines
}
