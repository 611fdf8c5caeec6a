// Package inspect shows which tools a model would get from the MCP servers of a
// configuration file: which are inline and which deferred, how many tokens each server
// costs, and how many deferring saves. It can also try a search or a call.
//
//	mcphybrid inspect -config mcp.json [-dialect CLIENT] [-login SERVER | -logout SERVER] [-json] [-query Q] [-call NAME -args JSON] [-cache FILE]
//
// A flag that would have no effect beside the others is an error. The exit status is 0 also if a
// server is down, 1 if the file can't be read or the call fails, and 2 for wrong flags.
//
// With -login, it prints the address of a page where you log in to the server, and waits
// for the browser. Later runs find the tokens in the folder -tokens.
//
// With -cache, it takes the tools of servers seen in the last five minutes from the file
// and starts such a server only for a call.
//
// On a terminal, standard error shows how the servers start, and lines fit its width. In
// a pipe, nothing is cut.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/exit"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/mcphybrid/mcphybrid/store"
)

// Main runs the command and returns its exit status.
func Main(ctx context.Context, args []string, _, out, errs *os.File) int {
	ctx, stop := exit.Interrupts(ctx)
	defer stop()
	return exit.With(run(ctx, args, out, errs), "inspect", errs)
}

// settings are the flags.
type settings struct {
	file                   servers.File
	cache                  string
	query, call, arguments string
	login, logout          string
	json                   bool
}

func run(ctx context.Context, args []string, stdout, stderr *os.File) error {
	var s settings
	flags := flag.NewFlagSet("inspect", flag.ContinueOnError)
	flags.SetOutput(stderr)
	s.file.AddFlags(flags, "the `file` in which an MCP client has its servers")
	flags.BoolVar(&s.json, "json", false, "print JSON")
	flags.StringVar(&s.query, "query", "", "search the tools for this `text`")
	flags.StringVar(&s.call, "call", "", "call the tool of this registered `name`")
	flags.StringVar(&s.arguments, "args", "{}", "the arguments of the call, as `JSON`")
	flags.StringVar(&s.login, "login", "", "log in to the `server` of this name")
	flags.StringVar(&s.logout, "logout", "", "log out from the `server` of this name")
	flags.StringVar(&s.cache, "cache", "", "keep the tools in this `file`, and start from it")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return exit.Unusable(err)
	}
	if err := s.idle(flags); err != nil {
		return exit.Unusable(err)
	}
	if flags.NArg() > 0 {
		return exit.Unusable(servers.Unexpected(flags.Arg(0)))
	}
	return s.inspect(ctx, stdout, stderr)
}

// idle names a flag that would have no effect beside the others.
func (s *settings) idle(flags *flag.FlagSet) (err error) {
	flags.Visit(func(f *flag.Flag) {
		why := ""
		switch {
		case f.Name == "args" && s.call == "":
			why = "without -call"
		case f.Name == "login" && s.logout != "":
			why = "with -logout"
		}
		if why != "" && err == nil {
			err = fmt.Errorf("-%s has no effect %s", f.Name, why)
		}
	})
	return err
}

func (s *settings) inspect(ctx context.Context, stdout, stderr *os.File) error {
	complaints := terminal.NewSheet(stderr)
	cfg, err := s.file.Load(s.file.Path)
	if err != nil {
		if len(cfg.Servers) == 0 {
			return err
		}
		complaints.Block(err.Error()) // the other servers work
	}
	for _, note := range cfg.Notes {
		complaints.Text(note)
	}
	for _, server := range cfg.Servers {
		if server.Disabled {
			complaints.Text(fmt.Sprintf("%s: server %q is switched off", s.file.Path, server.Name))
		}
	}
	opts := s.file.Options(cfg)
	if s.cache != "" {
		opts.Cache = store.File(s.cache)
	}
	opts.OpenURL = servers.ShowPage(stderr)
	mgr := mcphybrid.NewManager(opts)
	defer mgr.Close()
	if err := servers.StartTelling(ctx, mgr, stderr); err != nil {
		return err
	}
	if s.login != "" {
		if err := mgr.Login(ctx, s.login); err != nil {
			return err
		}
	}
	if s.logout != "" {
		if err := mgr.Logout(ctx, s.logout); err != nil {
			return err
		}
	}

	r := newReport(mgr)
	if s.query != "" {
		r.search(mgr, s.query)
	}
	called := error(nil)
	if s.call != "" {
		show := terminal.Show(stderr, calling(s.call))
		r.Result, err = mgr.Call(ctx, s.call, s.arguments)
		show.Stop(false)
		if err != nil {
			complaints.Text(err.Error()) // the result says it too
			called = exit.ErrFound
		}
	}
	if s.json {
		return cmp.Or(terminal.PrintJSON(stdout, r), called)
	}
	sheet := terminal.NewSheet(stdout)
	r.print(sheet)
	return cmp.Or(sheet.Err(), called)
}

// calling draws for how long a call has been under way.
func calling(tool string) func() []string {
	began := time.Now()
	return func() []string {
		return []string{fmt.Sprintf("… %6.2fs  calling %s", time.Since(began).Seconds(), tool)}
	}
}
