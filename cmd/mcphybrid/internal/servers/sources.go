package servers

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/files"
	"github.com/mcphybrid/mcphybrid/store"
)

// Sources say which servers there are and how we log in to them.
type Sources struct {
	Config, Dialect string
	Logins          string // a folder
}

// AddFlags adds the flags for s.
func (s *Sources) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&s.Config, "config", "mcp.json", "the `file` with the servers, as an MCP client writes it")
	flags.StringVar(&s.Dialect, "dialect", "", "the `client` that the file is written for, such as vscode; by default it is recognized")
	flags.StringVar(&s.Logins, "tokens", "", "use the logins in this `folder`: mcphybrid login -tokens puts them there")
}

// Load reads the configuration. Problems with single servers are logged.
func (s *Sources) Load(log *slog.Logger) (*config.File, error) {
	cfg, err := s.Read()
	if err != nil {
		if len(cfg.Servers) == 0 {
			return cfg, err
		}
		log.Warn(err.Error()) // the other servers work
	}
	for _, note := range cfg.Notes {
		log.Info(note)
	}
	return cfg, nil
}

// Read reads the configuration and logs nothing.
func (s *Sources) Read() (*config.File, error) {
	return files.LoadServers(s.Config, &config.Options{Dialect: s.Dialect})
}

// Problems returns those of a file, and of the error of reading it: one for each server that
// can't be used, or one for the file.
func Problems(cfg *config.File, err error) (all []error) {
	if joined, ok := errors.Unwrap(err).(interface{ Unwrap() []error }); ok {
		all = slices.Clone(joined.Unwrap())
	} else if err != nil {
		all = []error{err}
	}
	for _, s := range cfg.Servers {
		if s.Unset != nil {
			all = append(all, fmt.Errorf("server %q: %w", s.Name, s.Validate()))
		}
	}
	return all
}

// TokenStore returns where logins are kept, or nil for nowhere.
func (s *Sources) TokenStore() store.Tokens {
	if s.Logins == "" {
		return nil
	}
	return store.FileTokens(s.Logins)
}

// StartTimeout is long enough for a launcher such as npx to download a server before
// its first run. Clients don't wait that long: see -wait.
const StartTimeout = time.Minute
