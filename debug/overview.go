package debug

import (
	"time"

	"github.com/mcphybrid/mcphybrid"
)

type overviewPage struct {
	Stats    mcphybrid.Stats
	Servers  []serverRow
	Ready    int // servers
	Managed  int // servers, ready or not
	Sessions int
	Problems int
	Held     int // in quarantine
	Plot     *plot
}

// A serverRow is one server, or the tools without a connection of one name.
type serverRow struct {
	mcphybrid.ServerSnapshot
	Link string        // name to ask for, "" if it can't be shown
	Mean time.Duration // of its calls
}

func newOverview(snap *mcphybrid.Snapshot, page int) (*overviewPage, pager) {
	o := &overviewPage{
		Stats: snap.Session().Stats, Problems: len(snap.Problems()), Held: snap.Held(), Plot: newPlot(snap.Samples()),
	}
	_, sessions := snap.Sessions(0, 0)
	o.Sessions = sessions - 1 // the Manager's own is always there
	servers := snap.Servers()
	for _, s := range servers {
		if s.State != "" {
			o.Managed++
		}
		if s.State == mcphybrid.StateReady {
			o.Ready++
		}
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
