package gateway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid"
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
	off := slices.DeleteFunc(slices.Clone(g.opts.servers), func(c mcphybrid.ServerConfig) bool { return !c.Disabled })
	others := ""
	if len(off) > 0 {
		others = fmt.Sprintf(", %d switched off", len(off))
	}
	begin := "servers of " + config + " start"
	n := len(g.opts.servers) - len(off)
	if n == 1 {
		begin = "server of " + config + " starts"
	}
	s.Text(fmt.Sprintf("%d %s%s; the file is read again when it changes", n, begin, others))
	if url != "" {
		s.Text("clients connect to  " + url)
	} else {
		s.Text("it waits for one client on standard input; -http serves any number")
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

// A withoutStarts is the log of a Manager beside a screen: it leaves out what the screen tells,
// the states of servers until all have started.
type withoutStarts struct {
	slog.Handler
	all context.Context // ends when all have started or failed
}

func (h withoutStarts) Handle(ctx context.Context, r slog.Record) error {
	if h.all.Err() == nil && strings.HasPrefix(r.Message, "mcphybrid: a server is ") {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h withoutStarts) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withoutStarts{h.Handler.WithAttrs(attrs), h.all}
}

func (h withoutStarts) WithGroup(name string) slog.Handler {
	return withoutStarts{h.Handler.WithGroup(name), h.all}
}
