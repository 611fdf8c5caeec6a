package gateway

import (
	"fmt"
	"io"
	"os"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
)

// screenOf returns where lines for a person go, through the log so that nothing waits for who
// reads it, or nil if errs is no terminal: then there are lines of the log only.
func screenOf(errs, lines io.Writer) *terminal.Sheet {
	f, ok := errs.(*os.File)
	if !ok {
		return nil
	}
	columns, _, ok := terminal.Size(f)
	if !ok {
		return nil
	}
	return terminal.Paper(lines, columns)
}

// showStart tells a person what starts, where the page is, and how the servers start. url and
// page are "" if there are none.
func (g *gateway) showStart(s *terminal.Sheet, config, url, page string) {
	s.Text(fmt.Sprintf("%d servers of %s start; the file is read again when it changes", len(g.mgr.Servers()), config))
	if url != "" {
		s.Text("clients connect to  " + url)
	}
	if page != "" {
		s.Text("the page is at      " + page)
	}
	g.started.Go(func() {
		new(servers.Starts).Follow(g.all, g.mgr.Servers, func(line string) {
			if g.begin.Err() == nil { // else they were told to end
				s.Text(line)
			}
		})
	})
}
