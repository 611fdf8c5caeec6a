package mcphybrid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

const (
	debugRows        = 100 // of a list on one page
	debugDescription = 160 // characters in a list
	debugHits        = 20
	debugParts       = 60 // of one score
)

// A debugPage is what the template shows. Of the pointers, those are set that
// belong to the view.
type debugPage struct {
	Asked    asked // texts in it are fit to be shown
	At       time.Time
	Closed   bool
	Pages    pager
	Overview *overviewPage
	Tools    *toolsPage
	Tool     *toolPage
	Search   *searchPage
	Sessions []sessionRow
	Session  *sessionPage
	Problems []string
	Error    string // why there is no page
}

// Views are those that lead somewhere from everywhere.
func (*debugPage) Views() []string {
	return []string{"overview", "tools", "search", "sessions", "problems"}
}

// Before and After are the pages around the one that is shown.
func (p *debugPage) Before() int { return p.Pages.Page - 1 }
func (p *debugPage) After() int  { return p.Pages.Page + 1 }

// A pager says which part of a list is shown.
type pager struct {
	Page, Last int // from 1
	From, To   int // of the rows, from 1
	Rows       int // of all pages
}

// rowsOf returns the rows of one page, of the last one if there are not as many.
func rowsOf[T any](list []T, page int) ([]T, pager) {
	last := max((len(list)+debugRows-1)/debugRows, 1)
	page = max(min(page, last), 1)
	from, to := (page-1)*debugRows, min(page*debugRows, len(list))
	return list[from:to], pager{page, last, min(from+1, to), to, len(list)}
}

// page gathers what a page shows. It is an error if there is no such thing.
func (d *debugger) page(ctx context.Context, e *eraser, a asked) (*debugPage, error) {
	s, err := d.find(a.Session)
	if err != nil {
		return nil, err
	}
	p := &debugPage{Asked: a, At: time.Now(), Closed: d.m.life.Err() != nil}
	p.Asked.Query, p.Asked.Server, p.Asked.Name = e.line(a.Query, maxQueryBytes), e.line(a.Server, maxNameLength), e.line(a.Name, maxNameLength)
	s.Session = s.double()
	switch a.View {
	case "overview":
		p.Overview, p.Pages = d.overview(e, s, a.Page)
	case "tools":
		p.Tools, p.Pages = d.tools(e, s, a)
	case "tool":
		p.Tool, err = d.tool(e, s, a.Name)
	case "search":
		p.Search = d.search(ctx, e, s, a)
	case "sessions":
		p.Sessions, p.Pages = d.sessionRows(a.Page)
	case "session":
		p.Session = d.session(e, s)
	case "problems":
		var list []error
		list, p.Pages = rowsOf(d.m.Problems(), a.Page)
		for _, problem := range list {
			p.Problems = append(p.Problems, e.line(strings.TrimPrefix(problem.Error(), "mcphybrid: "), text.MaxError))
		}
	}
	return p, err
}

type overviewPage struct {
	Stats    Stats
	Servers  []serverRow
	Ready    int // servers
	Managed  int // servers, ready or not
	Sessions int
	Problems int
	Held     int // in quarantine
	Plot     *plot
}

// A serverRow is one place in the registration order.
type serverRow struct {
	Name    string
	Link    string // name to ask for, "" if it can't be shown
	State   State  // "" of tools without a connection
	Since   time.Time
	Took    time.Duration
	Reason  string // why it is down or degraded
	Failed  int    // attempts in a row
	Retry   time.Time
	Figures ServerStats
	Mean    time.Duration // of its calls
}

func (d *debugger) overview(e *eraser, s liveSession, page int) (*overviewPage, pager) {
	o := &overviewPage{Stats: s.Stats(), Problems: len(d.m.Problems()), Sessions: len(d.newest()), Plot: d.plot()}
	for _, err := range d.m.Problems() {
		if errors.Is(err, ErrQuarantined) {
			o.Held++
		}
	}
	m := d.m
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	figures := make(map[string]*ServerStats)
	var rows []serverRow
	for _, src := range sources {
		row := serverRow{Name: src.name}
		if src.server != nil {
			st := m.statusOf(src)
			row.State, row.Since, row.Took, row.Failed, row.Retry = st.State, st.Since, st.Took, st.Failures, st.Retry
			if st.Err != nil {
				row.Reason = e.line(st.Err.Error(), text.MaxError)
			}
			o.Managed++
			if st.State == StateReady {
				o.Ready++
			}
		}
		rows = append(rows, row)
		figures[src.name] = new(ServerStats)
	}
	for t, st := range m.session.double().view().each() {
		if f := figures[t.def.server]; f != nil {
			f.Tools++
			f.Tokens += m.toolTokens(t)
			if st == inline {
				f.Inline++
			}
		}
	}
	m.usageMu.Lock()
	for name, u := range m.usage {
		if f := figures[name]; f != nil {
			f.Usage = *u
		}
	}
	m.usageMu.Unlock()
	rows, pages := rowsOf(rows, page)
	for i := range rows {
		r := &rows[i]
		r.Figures = *figures[r.Name]
		r.Mean = mean(r.Figures.Usage)
		r.Name, r.Link = e.line(r.Name, maxNameLength), r.Name
		if r.Name != r.Link {
			r.Link = ""
		}
	}
	o.Servers = rows
	return o, pages
}

func mean(u Usage) time.Duration { return u.Latency / time.Duration(max(u.Calls, 1)) }

type toolsPage struct {
	Standings []standingCount
	Sorts     []string
	Rows      []toolRow
}

type standingCount struct {
	Name  string
	Count int
}

type toolRow struct {
	Name        string
	Link        string // name to ask for, "" if it can't be shown
	Server      string
	Standing    string
	Reason      string
	Description string
	Tokens      int

	tool *BridgeTool   // nil if it is held back
	held *ChangedError // or nil
	name string
}

// toolRows returns all tools, in registration order, and then those that are
// held back; without texts.
func (d *debugger) toolRows(s liveSession) (rows []toolRow, changed map[string]*ChangedError) {
	changed = make(map[string]*ChangedError)
	for _, p := range s.Placements() {
		rows = append(rows, toolRow{tool: p.Tool, name: p.Tool.name, Server: p.Tool.def.server, Standing: p.Standing, Reason: p.Reason, Tokens: d.m.toolTokens(p.Tool)})
	}
	for _, err := range d.m.Problems() {
		var c *ChangedError
		if !errors.As(err, &c) {
			continue
		}
		changed[c.Name] = c
		if c.Held {
			rows = append(rows, toolRow{held: c, name: c.Name, Server: c.Server, Standing: "quarantined"})
		}
	}
	return rows, changed
}

func (d *debugger) tools(e *eraser, s liveSession, a asked) (*toolsPage, pager) {
	p := &toolsPage{Sorts: debugSorts}
	rows, changed := d.toolRows(s)
	counts := make(map[string]int)
	for _, r := range rows {
		counts[r.Standing]++
	}
	for _, standing := range debugStandings {
		if counts[standing] > 0 {
			p.Standings = append(p.Standings, standingCount{standing, counts[standing]})
		}
	}
	want := strings.ToLower(strings.TrimSpace(a.Query))
	rows = slices.DeleteFunc(rows, func(r toolRow) bool {
		return a.Standing != "" && r.Standing != a.Standing || a.Server != "" && r.Server != a.Server || !strings.Contains(strings.ToLower(r.name), want)
	})
	switch a.Sort {
	case "name":
		slices.SortStableFunc(rows, func(a, b toolRow) int { return strings.Compare(a.name, b.name) })
	case "server":
		slices.SortStableFunc(rows, func(a, b toolRow) int { return strings.Compare(a.Server, b.Server) })
	case "tokens":
		slices.SortStableFunc(rows, func(a, b toolRow) int { return cmp.Compare(b.Tokens, a.Tokens) })
	}
	rows, pages := rowsOf(rows, a.Page)
	for i := range rows {
		rows[i].write(e, changed[rows[i].name])
	}
	p.Rows = rows
	return p, pages
}

// write fills in what is shown of a row; change is that of its tool, or nil.
func (r *toolRow) write(e *eraser, change *ChangedError) {
	r.Server = e.line(r.Server, maxNameLength)
	var ok bool
	if r.Name, ok = e.name(r.name, r.definition()); ok {
		r.Link = r.name
	}
	if r.tool != nil {
		r.Description = e.line(cmp.Or(r.tool.def.description, r.tool.def.title), debugDescription)
	}
	if change != nil {
		r.Reason = strings.TrimPrefix(r.Reason+"; it has changed since "+change.Since.UTC().Format(time.DateTime), "; ")
	}
	r.Reason = e.line(r.Reason, text.MaxError)
}

type toolPage struct {
	toolRow
	Original, Title string
	Lines           string // the description
	Schema          string
	Marks           []Mark
	Was, Is         string // hashes of definitions, if it has changed
}

func (d *debugger) tool(e *eraser, s liveSession, name string) (*toolPage, error) {
	rows, changed := d.toolRows(s)
	i := slices.IndexFunc(rows, func(r toolRow) bool { return r.name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no tool %.80q", name)
	}
	p := &toolPage{toolRow: rows[i]}
	change := changed[name]
	p.write(e, change)
	def := p.definition()
	p.Original, p.Title = e.line(def.name, maxNameLength), e.line(def.title, maxNameLength)
	p.Lines, p.Schema = e.lines(def.description, maxDebugText), e.schema(def.input)
	for _, m := range marksIn(def.raw, func(string) bool { return false }) {
		p.Marks = append(p.Marks, Mark{m.Kind, e.line(m.Place, maxNameLength), e.mark(m.Text)})
	}
	if change != nil {
		p.Was, p.Is = change.Was, change.Is
	}
	return p, nil
}

func (r *toolRow) definition() *definition {
	if r.held != nil {
		return r.held.def
	}
	return r.tool.def
}
