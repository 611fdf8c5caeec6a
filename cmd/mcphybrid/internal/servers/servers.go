// Package servers is how commands find, start and show the servers of a configuration file:
// a [File] is for those that a person waits for, [Sources] for those that log.
package servers

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/files"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/mcphybrid/mcphybrid/jq"
	"github.com/mcphybrid/mcphybrid/store"
)

// A File says where servers are configured, and where logins to them are kept.
type File struct {
	Path, Dialect string
	Tokens        string // a folder, or "" for that of the user
}

// AddFlags adds the flags for f. usage says what the file of -config is for.
func (f *File) AddFlags(flags *flag.FlagSet, usage string) {
	flags.StringVar(&f.Path, "config", "mcp.json", usage)
	flags.StringVar(&f.Dialect, "dialect", "", "the `client` whose file it is, such as vscode, if not recognized")
	flags.StringVar(&f.Tokens, "tokens", "", "keep logins in this `folder`, not in your user's configuration")
}

// Load reads a file in the dialect of f.
func (f *File) Load(path string) (*config.File, error) {
	return files.LoadServers(path, &config.Options{Dialect: f.Dialect})
}

// Options returns those of a Manager that tries each server once.
func (f *File) Options(cfg *config.File) *mcphybrid.Options {
	opts := &mcphybrid.Options{Servers: cfg.Servers, Select: jq.Selector{}, Limits: config.Limits{Reconnect: -1}}
	if folder := f.Logins(); folder != "" {
		opts.TokenStore = store.FileTokens(folder)
	}
	return opts
}

// Logins returns the folder in which logins are kept, or "" if there is none.
func (f *File) Logins() string { return cmp.Or(f.Tokens, usersTokens()) }

// usersTokens returns where the user's tokens are, or "" if there is no such place.
func usersTokens() string {
	folder, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(folder, "mcphybrid", "tokens")
}

// ShowPage prints the address of the page where a person logs in.
func ShowPage(to *os.File) func(context.Context, mcphybrid.LoginPage) (string, error) {
	return func(_ context.Context, page mcphybrid.LoginPage) (string, error) {
		_, err := fmt.Fprintf(to, "To log in to %s, open this page:\n%s\n", page.Server, page.URL)
		return "", err
	}
}

// ErrInterrupted says that a person did not wait for the servers.
var ErrInterrupted = errors.New("interrupted")

// Unexpected is the error of an argument of a command that takes the file by a flag.
func Unexpected(argument string) error {
	return fmt.Errorf("unexpected argument %q: name the file by -config", argument)
}

// Start starts the servers, each of which is tried once, and waits also for those that are still
// at work, such as downloading. The status of each says what is wrong with it.
func Start(ctx context.Context, mgr *mcphybrid.Manager, stderr *os.File) error {
	show := terminal.Show(stderr, starting(mgr.Servers))
	_ = mgr.Start(ctx)
	awaitWork(ctx, mgr.Servers)
	show.Stop(true)
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return nil
}

// awaitWork waits until no server connects any more, or ctx ends.
func awaitWork(ctx context.Context, servers func() []mcphybrid.ServerStatus) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for slices.ContainsFunc(servers(), func(s mcphybrid.ServerStatus) bool { return s.State == mcphybrid.StateConnecting }) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
