package debug

import (
	"time"

	"github.com/mcphybrid/mcphybrid"
)

type overviewPage struct {
	Stats    mcphybrid.Stats
	Servers  []serverRow
	Ready    int // servers that are ready
	Managed  int // servers with a connection, ready or not
	Sessions int
	Problems int
	Held     int  // tools in quarantine
	Reads    bool // a server has resources, templates or prompts
	Plot     *plot
}

// A serverRow is one server, or a group of tools that need no connection.
type serverRow struct {
	mcphybrid.ServerSnapshot
	Link string        // name for a link, "" if it can't be in one
	Mean time.Duration // mean duration of its calls
}

func newOverview(snap *mcphybrid.Snapshot, page int) (*overviewPage, pager) {
	o := &overviewPage{
		Stats: snap.Session().Stats, Problems: len(snap.Problems()), Held: snap.Held(), Plot: newPlot(snap.Samples()),
	}
	_, sessions := snap.Sessions(0, 0)
	o.Sessions = sessions - 1 // without the Manager's own session
	servers := snap.Servers()
	for _, s := range servers {
		if s.State != "" {
			o.Managed++
		}
		if s.State == mcphybrid.StateReady {
			o.Ready++
		}
		o.Reads = o.Reads || s.Resources+s.Templates+s.Prompts > 0
	}
	servers, pages := rowsOf(servers, page)
	for _, s := range servers {
		row := serverRow{ServerSnapshot: s, Link: s.Name, Mean: mean(s.Figures.Usage)}
		if s.Hidden {
			row.Link = ""
		}
		o.Servers = append(o.Servers, row)
	}
	return o, pages
}

func mean(u mcphybrid.Usage) time.Duration { return u.Latency / time.Duration(max(u.Calls, 1)) }
