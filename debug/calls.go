package debug

import (
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// maxEventTools is how many tools of an event are shown.
const maxEventTools = 4

// A callRow is a call, a search or another event.
type callRow struct {
	snapshot.Event
	Failure string // why it failed, or ""
	Said    string // all that is known of it, if Failure is only its cause; or ""
	Note    string // what is to be said of it otherwise, or ""
	Links   []toolLink
	Linked  bool // there is a page of its session
}

// Key tells the row from others, also when the page is made again.
func (r callRow) Key() string {
	at := r.At
	if r.Times > 0 {
		at = r.First
	}
	return strconv.FormatInt(at.UnixNano(), 36)
}

type toolLink struct{ Name, Link string }

type callsPage struct {
	Rows   []callRow
	Events int // before the filters
}

// newCalls returns the newest events of the request's session, if it names one, and of
// its server.
func newCalls(snap snapshot.Manager, r request) (*callsPage, pager) {
	events := snap.Events()
	p := &callsPage{Events: len(events)}
	for _, e := range events {
		row := callRow{Event: e, Failure: e.ToolError}
		if e.Err != "" {
			row.Failure = e.Err
		}
		if e.Cause.What != "" {
			row.Failure, row.Said = e.Cause.What, e.Err
			if row.Failure == row.Said { // each is told once
				row.Said = ""
			}
			if e.Kind != string(mcphybrid.EventServer) {
				row.Failure = "the server is down: " + row.Failure
			}
		}
		if e.Kind == string(mcphybrid.EventCacheLost) {
			row.Note = lossText(e.Loss)
		}
		if r.Session > 0 && e.Number != r.Session || r.Server != "" && e.Server != r.Server || r.Failed && row.Failure == "" {
			continue
		}
		row.More += max(len(e.Tools)-maxEventTools, 0)
		for _, name := range e.Tools[:min(len(e.Tools), maxEventTools)] {
			link := toolLink{Name: name}
			if !strings.ContainsAny(name, "[…") { // nothing is hidden or cut
				link.Link = name
			}
			row.Links = append(row.Links, link)
		}
		p.Rows = append(p.Rows, row)
	}
	var pages pager
	p.Rows, pages = rowsOf(p.Rows, r.Page)
	open := make(map[int]bool)
	list, _ := snap.Sessions(0, maxLinked)
	for _, s := range list {
		open[s.Number] = true
	}
	for i := range p.Rows {
		p.Rows[i].Linked = open[p.Rows[i].Number]
	}
	return p, pages
}
