// Package login logs a person in to the servers of a configuration file.
//
//	mcphybrid login [-config mcp.json] [-dialect CLIENT] [-tokens FOLDER] [SERVER…]
//
// Without servers, it takes those that want a login. For each it prints the address of a
// page, waits for the browser, and says what came of it. The exit status is 0 if all logins
// succeeded, 1 if one did not, and 2 for wrong flags. Later runs of all commands find the
// tokens in the folder -tokens.
package login

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/exit"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
)

// Main runs the command and returns its exit status.
func Main(ctx context.Context, args []string, _, out, errs *os.File) int {
	ctx, stop := exit.Interrupts(ctx)
	defer stop()
	return exit.With(run(ctx, args, out, errs), "login", errs)
}

func run(ctx context.Context, args []string, stdout, stderr *os.File) error {
	var file servers.File
	flags := flag.NewFlagSet("login", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "mcphybrid login [flags] [SERVER…]\nlogs you in to these servers, or to all that want a login")
		flags.PrintDefaults()
	}
	file.AddFlags(flags, "the `file` in which an MCP client has its servers")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return exit.Unusable(err)
	}
	if file.Logins() == "" {
		return exit.Unusable(errors.New("there is no folder to keep logins in: name one with -tokens"))
	}
	cfg, err := file.Load(file.Path)
	if err != nil {
		if len(cfg.Servers) == 0 {
			return err
		}
		terminal.NewSheet(stderr).Block(err.Error()) // the other servers work
	}
	if cfg.Servers, err = chosen(cfg.Servers, flags.Args()); err != nil {
		return err
	}
	opts := file.Options(cfg)
	opts.OpenURL = servers.ShowPage(stderr)
	mgr := mcphybrid.NewManager(opts)
	defer mgr.Close()
	if err := servers.Start(ctx, mgr, stderr); err != nil {
		return err
	}
	return logIn(ctx, mgr, flags.NArg() > 0, file.CheckLogins, terminal.NewSheet(stdout))
}

// chosen returns the servers with these names or, without names, those that may want a login.
func chosen(all []mcphybrid.ServerConfig, names []string) (list []mcphybrid.ServerConfig, err error) {
	for _, name := range names {
		if !slices.ContainsFunc(all, func(s mcphybrid.ServerConfig) bool { return s.Name == name && !s.Disabled }) {
			return nil, fmt.Errorf("the configuration has no server %q that is switched on", name)
		}
	}
	for _, s := range all {
		if slices.Contains(names, s.Name) || len(names) == 0 && s.URL != "" {
			list = append(list, s)
		}
	}
	return list, nil
}

// logIn logs in to the servers that want it, or to all if they were named, one after the
// other, and writes a line about each, and about those that did not say whether they want it.
// Before the first it asks whether logins can be saved.
func logIn(ctx context.Context, mgr *mcphybrid.Manager, named bool, canSave func() error, sheet *terminal.Sheet) error {
	wanted, failed, no := 0, 0, "no server"
	for _, s := range mgr.Servers() {
		if !named && s.State != mcphybrid.StateUnauthorized {
			if s.State == mcphybrid.StateDown && s.Err != nil {
				no = "no other server"
				sheet.Text(s.Name + " is down: " + s.Err.Error())
			}
			continue
		}
		if wanted++; wanted == 1 {
			if err := canSave(); err != nil {
				return fmt.Errorf("%w; make room there, let your user write there, or name another folder with -tokens", err)
			}
		}
		err := mgr.Login(ctx, s.Name)
		switch {
		case ctx.Err() != nil:
			return servers.ErrInterrupted
		case err != nil:
			failed++
			sheet.Text(s.Name + ": " + strings.TrimPrefix(err.Error(), fmt.Sprintf("mcphybrid: login to server %q: ", s.Name)))
		default:
			sheet.Text(s.Name + ": logged in")
		}
	}
	if wanted == 0 {
		sheet.Text(no + " wants a login")
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d logins failed", failed, wanted)
	}
	return sheet.Err()
}
