// Package approve is the command by which a person approves what a gateway holds back.
//
//	mcphybrid approve -config mcp.json -trust FILE [SERVER [NAME HASH]]
package approve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/exit"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/files"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/plain"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/trust"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/jq"
)

// Main runs the command by which a person approves what is held back.
func Main(ctx context.Context, args []string, _, out, errs *os.File) int {
	ctx, stop := exit.Signals(ctx)
	defer stop()
	return exit.Failed(Run(ctx, args, out, errs), trust.Command, errs)
}

// An approval is what a person says to that command.
//
//	mcphybrid approve [flags] [SERVER [NAME HASH]]
type approval struct {
	from               servers.Sources
	file, known        string // of the gateway's -trust, as it was given and where links lead
	server, name, hash string // "" for none
}

func (a *approval) parse(args []string, errs io.Writer) error {
	flags := flag.NewFlagSet(trust.Command, flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprintf(errs, "mcphybrid %s [flags] [SERVER [NAME HASH]]\nshows what is held back, or approves that of a server with that name and hash\n", trust.Command)
		flags.PrintDefaults()
	}
	a.from.AddFlags(flags)
	flags.StringVar(&a.file, "trust", "", "the `file` of the gateway's -trust")
	if err := flags.Parse(args); err != nil {
		return exit.Unusable(err)
	}
	if a.file == "" {
		return exit.Unusable(errors.New("-trust is missing: the file that the gateway has"))
	}
	if n := flags.NArg(); n == 2 || n > 3 {
		return exit.Unusable(fmt.Errorf("%d words after the flags: want none, a server, or a server, a name and a hash", n))
	}
	a.server, a.name, a.hash = flags.Arg(0), flags.Arg(1), flags.Arg(2)
	var err error
	if a.known, err = trust.Linked(a.file); err == nil {
		err = files.CheckOwn(a.known)
	}
	if err != nil {
		return fmt.Errorf("-trust: %w", err)
	}
	return nil
}

// servers returns the servers to ask.
func (a *approval) servers(errs io.Writer) ([]mcphybrid.ServerConfig, error) {
	cfg, err := a.from.Load(logFrom(slog.LevelWarn, errs))
	if err != nil || a.server == "" {
		return cfg.Servers, err
	}
	for _, s := range cfg.Servers {
		if s.Name == a.server {
			return []mcphybrid.ServerConfig{s}, nil
		}
	}
	return nil, fmt.Errorf("the configuration has no server %q", a.server)
}

func logFrom(level slog.Level, w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// Run shows what is held back, or approves one of it. It starts the servers itself and
// asks them what they list now. What it approves is what the person saw: the whole hash says
// so. A gateway that uses the same file goes by it within seconds.
func Run(ctx context.Context, args []string, out, errs io.Writer) error {
	var a approval
	if err := a.parse(args, errs); err != nil {
		return err
	}
	asked, err := a.servers(errs)
	if err != nil {
		return err
	}
	known := &onlooker{Shared: trust.NewFile(a.known)}
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Servers: asked, Select: jq.Selector{}, TokenStore: a.from.TokenStore(), Logger: logFrom(slog.LevelError, errs), Limits: config.Limits{StartTimeout: servers.StartTimeout},
		Trust: mcphybrid.TrustApprove, TrustStore: known,
	})
	defer mgr.Close()
	failed := mgr.Start(ctx) // what the others list can be approved
	held := trust.Quarantined(mgr)
	if a.name == "" {
		show(out, held, trust.ApproveLine(a.from, a.file))
		if len(held) == 0 && failed == nil {
			fmt.Fprintln(out, "nothing is held back")
		}
		return failed
	}
	for _, e := range held {
		if e.Tool == a.name && e.Is == a.hash {
			known.writes.Store(true)
			if err := mgr.Accept(e.Server, e.Tool, e.Is); err != nil {
				return err
			}
			fmt.Fprintf(out, "approved: %s %q of server %q\n", e.Kind, plain.Printable(e.Tool, plain.MaxName), e.Server)
			return nil
		}
	}
	return errors.Join(failed, fmt.Errorf("server %q holds back nothing with the name %q and the hash %q, of which all digits must be given: see mcphybrid %s without them",
		a.server, plain.Printable(a.name, plain.MaxName), plain.Printable(a.hash, plain.MaxName), trust.Command))
}

// show writes what is held back, so that a person can judge it.
func show(out io.Writer, held []*mcphybrid.ChangedError, command string) {
	for _, e := range held {
		how := "is new"
		if !e.Since.IsZero() {
			how = "has changed since " + e.Since.Local().Format("2006-01-02 15:04")
		}
		if e.By != "" {
			how += fmt.Sprintf("; gateways with -trust-policy %s use it already", e.By)
		}
		fmt.Fprintf(out, "%s %q of server %q %s\n", e.Kind, plain.Printable(e.Tool, plain.MaxName), e.Server, how)
		for _, mark := range e.Marks() {
			fmt.Fprintf(out, "  suspicious: %s at %s: %s\n", mark.Kind, plain.Shown(mark.Place), plain.Printable(mark.Text, plain.MaxName))
		}
		fmt.Fprintf(out, "  %s\n", plain.Shown(string(e.Definition)))
		fmt.Fprintf(out, "  to approve it: %s %s %s %s\n", command, plain.Quoted(e.Server), plain.Quoted(e.Tool), e.Is)
	}
}
