package debug

import (
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// maxMatters is how much of what needs attention is on top of the overview.
const maxMatters = 8

type overviewPage struct {
	Matters  []matter // the first
	Amount   int      // of all matters
	Stats    snapshot.Stats
	Servers  []serverRow
	Ready    int // servers that are ready
	Managed  int // servers with a connection, ready or not
	Down     int // servers that need attention
	Users    int // servers of users
	Sessions int
	Held     int  // tools in quarantine
	Reads    bool // a server has resources, templates or prompts
	Stores   []storeRow
	Plot     *plot
	Empty    string // what to do if there are no servers, or ""
}

// FirstServer returns an example of a file.
func (*overviewPage) FirstServer() string { return firstServer }

// More returns how many matters are not on the overview.
func (o *overviewPage) More() int { return o.Amount - len(o.Matters) }

// Columns returns how many columns the table of servers has.
func (o *overviewPage) Columns() int {
	if o.Reads {
		return 11
	}
	return 8
}

// A serverRow is one server, or a group of tools that need no connection.
type serverRow struct {
	snapshot.Server
	Link string        // name for a link, "" if it can't be in one
	Mean time.Duration // mean duration of its calls
}

// A storeRow is one store.
type storeRow struct {
	snapshot.Store
	Mean time.Duration
}

func storeRows(stores []snapshot.Store) (rows []storeRow) {
	for _, s := range stores {
		rows = append(rows, storeRow{s, s.Latency / time.Duration(s.Calls)})
	}
	return rows
}

// Bare reports whether all figures of the server are 0.
func (r serverRow) Bare() bool {
	return r.Figures.Tools+r.Figures.Usage.Calls+r.Resources+r.Templates+r.Prompts == 0
}

// split separates the servers of users from the others.
func split(servers []snapshot.Server) (system, users []snapshot.Server) {
	for _, s := range servers {
		if s.User.Line(1) == "" {
			system = append(system, s)
		} else {
			users = append(users, s)
		}
	}
	return system, users
}

func serverRows(servers []snapshot.Server) (rows []serverRow) {
	for _, s := range servers {
		row := serverRow{Server: s, Link: s.Name, Mean: mean(s.Figures.Usage)}
		if s.Hidden || s.User.Line(1) != "" {
			row.Link = ""
		}
		rows = append(rows, row)
	}
	return rows
}

func newOverview(snap snapshot.Manager, g *Guide, page int) (*overviewPage, pager) {
	servers := snap.Servers()
	all := matters(snap, g, servers)
	system, users := split(servers)
	o := &overviewPage{
		Matters: all[:min(len(all), maxMatters)], Amount: len(all), Users: len(users), Stats: snap.Session().Stats, Plot: newPlot(snap.Samples()),
	}
	_, sessions := snap.Sessions(0, 0)
	o.Sessions = sessions - 1 // without the Manager's own session
	for _, m := range all {
		if m.rank == rankHeld {
			o.Held++
		}
	}
	for _, s := range system {
		if s.State != "" {
			o.Managed++
		}
		if s.State == string(mcphybrid.StateReady) {
			o.Ready++
		}
		if _, ok := serverMatter(s, g); ok {
			o.Down++
		}
		o.Reads = o.Reads || s.Resources+s.Templates+s.Prompts > 0
	}
	if len(servers) == 0 && g != nil {
		o.Empty = g.empty()
	}
	system, pages := rowsOf(system, page)
	o.Servers, o.Stores = serverRows(system), storeRows(snap.Stores())
	return o, pages
}

func mean(u snapshot.Usage) time.Duration { return u.Latency / time.Duration(max(u.Calls, 1)) }
