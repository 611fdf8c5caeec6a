package mcphybrid

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// A source is one place in the registration order: a server, or tools without
// a connection. What changes of it is guarded by the Manager's mu.
type source struct {
	name     string
	server   *upstream.Server // nil for tools without a connection
	cfg      ServerConfig     // of the server
	invalid  error            // what is wrong with cfg, or nil
	begun    bool             // the server was started
	listed   []*definition    // what the server says it has
	listedAt time.Time        // when it said so last; zero if never
	changed  []*ChangedError  // of these
	defs     []*definition    // of listed, what may be used; all, without a connection
	problems []error

	known map[string]*definition // by own name; only used by who lists, not guarded
}

// newSource returns the place of a server; what is wrong with cfg, the
// server's start reports.
func (m *Manager) newSource(cfg ServerConfig) *source {
	src := &source{name: cfg.Name, cfg: cfg.clone(), known: make(map[string]*definition)}
	src.invalid = src.cfg.validate()
	if src.invalid == nil && m.find(cfg.Name) >= 0 {
		src.invalid = ErrDuplicate
	}
	src.server = upstream.New(src.upstreamConfig(m.opts.Logger), src.upstreamLimits(&m.opts), func(ctx context.Context, elements []upstream.Element) error {
		defs, problems, err := parseDefinitions(ctx, src.cfg, elements, m.opts.MaxDefinition)
		if err != nil {
			return err
		}
		for i, err := range problems {
			problems[i] = src.server.Hide(err)
		}
		src.adopt(defs, m.opts.MaxTools)
		return m.setTools(src, defs, problems)
	})
	return src
}

func (src *source) upstreamConfig(log *slog.Logger) upstream.Config {
	cfg := &src.cfg
	return upstream.Config{
		Name: cfg.Name, Command: cfg.Command, Args: cfg.Args, Env: cfg.Env, Dir: cfg.Dir,
		URL: cfg.URL, Headers: cfg.Headers, InProcess: cfg.InProcess, Invalid: src.invalid,
		LogLevel: cfg.LogLevel, OnNotification: cfg.OnNotification, Log: log,
	}
}

func (src *source) upstreamLimits(o *Options) upstream.Limits {
	return upstream.Limits{
		StartTimeout: cmp.Or(max(src.cfg.StartTimeout, 0), o.StartTimeout), CallTimeout: cmp.Or(max(src.cfg.CallTimeout, 0), o.CallTimeout),
		MaxMessage: o.MaxMessage, MaxDefinition: o.MaxDefinition, MaxTools: o.MaxTools, MaxPages: o.MaxPages, MaxUnasked: o.MaxUnasked,
		Reconnect: o.Reconnect, Refresh: o.Refresh, Idle: o.IdleTimeout,
	}
}

// adopt makes defs the tools of the server. One that is listed just as it was
// before is the same *definition again. Only one goroutine at a time lists a
// server's tools.
func (src *source) adopt(defs []*definition, maxTools int) {
	for i, d := range defs {
		if old := src.known[d.name]; old != nil && bytes.Equal(old.raw, d.raw) {
			defs[i] = old
			continue
		}
		d.call = func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
			return src.server.Call(ctx, d.name, args, d.repeatable())
		}
		if len(src.known) >= 2*maxTools { // names without end
			clear(src.known)
		}
		src.known[d.name] = d
	}
}

// setTools makes one step from the tools that src had to those it has now.
func (m *Manager) setTools(src *source, defs []*definition, problems []error) error {
	err := m.change(func() error {
		if !slices.Contains(m.sources, src) {
			return errors.New("it was removed while it started")
		}
		src.listedAt = time.Now()
		if slices.Equal(src.listed, defs) && slices.EqualFunc(src.problems, problems, func(a, b error) bool { return a.Error() == b.Error() }) {
			return errNoChange
		}
		src.listed, src.problems = defs, problems
		m.judge(src)
		return nil
	})
	if err == nil && m.opening.Load() == 0 { // else Start does, for all at once
		m.save()
	}
	return err
}
