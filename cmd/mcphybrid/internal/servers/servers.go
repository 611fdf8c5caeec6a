// Package servers is how commands find, start and show the servers of a configuration file:
// a [File] is for those that a person waits for, [Sources] for those that log.
package servers

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// CheckLogins returns an error if no login can be saved. Those that the folder has can be used all
// the same.
func (f *File) CheckLogins() error {
	folder := f.Logins()
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		var made *os.File
		if made, err = os.CreateTemp(folder, "check.*.tmp"); err == nil {
			_, err = made.WriteString("x")
			err = errors.Join(err, made.Close(), os.Remove(made.Name()))
		}
	}
	if at := new(fs.PathError); errors.As(err, &at) {
		err = at.Err // its path is of a file that was there for a moment
	}
	if err != nil {
		return fmt.Errorf("no login can be saved in %s: %w", folder, err)
	}
	return nil
}

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

// StartTelling is Start for a command that says nothing until its servers have started: where
// nothing is drawn on stderr, it says there what it waits for.
func StartTelling(ctx context.Context, mgr *mcphybrid.Manager, stderr *os.File) error {
	started, end := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() {
		if !terminal.IsShown(stderr) {
			tellWaits(started, mgr.Servers, terminal.NewSheet(stderr).Text)
		}
	})
	err := Start(ctx, mgr, stderr)
	end()
	telling.Wait()
	return err
}

// tellWaits tells what is waited for, after a second and then less and less often, until ctx ends.
func tellWaits(ctx context.Context, servers func() []mcphybrid.ServerStatus, write func(...string)) {
	for after := time.Second; ; after *= 3 {
		select {
		case <-time.After(after):
		case <-ctx.Done():
			return
		}
		var waits []string
		for _, s := range servers() {
			if s.State == mcphybrid.StateConnecting || s.State == mcphybrid.StateConfigured {
				waits = append(waits, s.Name)
			}
		}
		more := ""
		if many := len(waits) - maxWaits; many > 0 {
			waits, more = waits[:maxWaits], fmt.Sprintf(" and %d more", many)
		}
		if waits != nil {
			write("waiting for " + strings.Join(waits, ", ") + more + " to start")
		}
	}
}

// maxWaits is how many servers tellWaits names.
const maxWaits = 5

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
