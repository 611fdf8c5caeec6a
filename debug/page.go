package debug

import (
	"bytes"
	"context"
	"html/template"
	"slices"
	"time"
)

const (
	pageRows = 100 // rows of a list per page

	// Greatest lengths of texts, in characters.
	maxName        = 64
	maxDescription = 160 // in a list
	maxText        = 16 << 10
	maxQueryText   = 4 << 10
)

// A page is the data of the template. Only the pointers that the view needs are set.
type page struct {
	Request  request // its texts are safe to show
	At       time.Time
	Closed   bool
	Pages    pager
	Done     []outcomeRow // what buttons did last
	Buttons  bool
	Guide    *Guide // of operators, or nil
	Overview *overviewPage
	Matters  []matter // of the view attention
	Calls    *callsPage
	Why      *whyPage
	Users    []serverRow // servers of users
	HasUsers bool        // any at all
	Tools    *toolsPage
	Tool     *toolPage
	Search   *searchPage
	Sessions []sessionRow
	Session  *sessionPage
	Error    string // why there is no page
}

// Program returns how people call the program.
func (p *page) Program() string { return p.Guide.program() }

// Views returns the views that a page has a link to. That of users' servers is one of them only if
// there are any.
func (p *page) Views() []string {
	views := []string{"overview", "attention", "calls", "tools", "search", "why", "sessions"}
	if p.HasUsers {
		views = append(views, "users")
	}
	return views
}

// Now returns when the page was made, as it says.
func (p *page) Now() template.HTML { return date(p.At) }

// A with is a part of the page for a template of its own.
type with struct {
	Page *page
	List any
}

// With returns a part of the page together with the page.
func (p *page) With(part any) with { return with{p, part} }

// Follows reports whether the page follows what happens. A search would ask the embedder
// again and again.
func (p *page) Follows() bool {
	return p.Error == "" && !slices.Contains([]string{"search", "why", "tool"}, p.Request.View)
}

func (p *page) render() ([]byte, error) {
	var body bytes.Buffer
	err := pageTemplate.ExecuteTemplate(&body, "page", p)
	return body.Bytes(), err
}

// Before returns the number of the page before this one in a list.
func (p *page) Before() int { return p.Pages.Page - 1 }

// After returns the number of the page after this one in a list.
func (p *page) After() int { return p.Pages.Page + 1 }

// page gathers the data of a page. It is an error if the session or tool does not
// exist.
func (h handler) page(ctx context.Context, r request) (*page, error) {
	as := r.Session
	if r.View == "calls" {
		as = 0 // the session may have ended
	}
	snap, err := h.mgr.Snapshot(as)
	if err != nil {
		return nil, err
	}
	p := &page{Request: r, At: time.Now(), Closed: snap.Closed(), Buttons: h.operator != nil, Done: h.operator.outcomes(snap)}
	_, users := split(snap.Servers())
	p.HasUsers = len(users) > 0
	var g *Guide
	if h.operator != nil {
		g = &h.operator.guide
	}
	p.Guide, p.Request.Deed = g, deed{}
	p.Request.Query, p.Request.Server, p.Request.Name = snap.Text(r.Query).Line(maxQueryText), snap.Text(r.Server).Line(maxName), snap.Text(r.Name).Line(maxName)
	switch r.View {
	case "overview":
		p.Overview, p.Pages = newOverview(snap, g, r.Page)
	case "tools":
		p.Tools, p.Pages = newTools(snap, r)
	case "tool":
		p.Tool, err = newTool(snap, g, r.Name)
	case "search":
		p.Search = newSearch(ctx, snap, r)
	case "sessions":
		p.Sessions, p.Pages = sessionRows(snap, r.Page)
	case "session":
		p.Session = newSession(snap)
	case "attention":
		p.Matters, p.Pages = rowsOf(matters(snap, g, snap.Servers()), r.Page)
	case "calls":
		p.Calls, p.Pages = newCalls(snap, r)
	case "why":
		p.Why = newWhy(ctx, snap, r)
	case "users":
		users, p.Pages = rowsOf(users, r.Page)
		p.Users = serverRows(users)
	}
	return p, err
}

// A pager says which part of a list a page shows.
type pager struct {
	Page, Last int // from 1
	From, To   int // numbers of the first and last row, from 1
	Rows       int // number of rows on all pages
}

// newPager returns the pager for the given page of a list of rows, or for its last
// page if the list is shorter.
func newPager(rows, page int) pager {
	last := max((rows+pageRows-1)/pageRows, 1)
	page = max(min(page, last), 1)
	from, to := (page-1)*pageRows, min(page*pageRows, rows)
	return pager{page, last, min(from+1, to), to, rows}
}

// first returns the index of the first row shown.
func (p pager) first() int { return (p.Page - 1) * pageRows }

// rowsOf returns the rows of one page.
func rowsOf[T any](list []T, page int) ([]T, pager) {
	p := newPager(len(list), page)
	return list[p.first():p.To], p
}
