package mcphybrid

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/blocks"
	"github.com/mcphybrid/mcphybrid/internal/foreign"
	"github.com/mcphybrid/mcphybrid/internal/login"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"unicode/utf8"
)

// A source is one place in the registration order: a server, or a group of tools
// without a connection. The Manager's mu guards the fields that change.
type source struct {
	listing

	server   *upstream.Server // nil for tools without a connection
	account  *login.Account   // at the server; nil unless it has a URL
	cfg      ServerConfig     // of the server
	invalid  error            // why cfg is invalid, or nil
	begun    bool             // the server was started
	live     bool             // the server has listed its tools in this run
	listedAt time.Time        // when the server last listed its tools; zero if never

	bytes int // of the definitions that the server listed
}

// find returns the source with that name, the first one if there are several, or nil.
// The caller holds mu.
func (m *Manager) find(name string) *source { return m.named[name] }

// listings yields those of sources, in order.
func listings(sources []*source) iter.Seq[*listing] {
	return func(yield func(*listing) bool) {
		for _, src := range sources {
			if !yield(&src.listing) {
				return
			}
		}
	}
}

// place has catalogs take what src has now. A new source comes last. The caller holds mu.
func (m *Manager) place(src *source) {
	i := slices.Index(m.sources, src)
	if i < 0 {
		m.sources, m.blocks = append(m.sources, src), append(m.blocks, m.blockOf(&src.listing, nil))
		if m.named[src.name] == nil {
			m.named[src.name] = src
		}
		return
	}
	if b := m.blockOf(&src.listing, m.blocks[i]); b != m.blocks[i] {
		if m.lent {
			m.blocks, m.lent = slices.Clone(m.blocks), false
		}
		m.blocks[i] = b
	}
}

// displace forgets src and reports whether it was there. The caller holds mu.
func (m *Manager) displace(src *source) bool {
	i := slices.Index(m.sources, src)
	if i < 0 {
		return false
	}
	m.sources, m.blocks = slices.Delete(m.sources, i, i+1), slices.Delete(slices.Clone(m.blocks), i, i+1)
	m.bytes -= src.bytes
	m.cache.Forget(src.name)
	if m.named[src.name] == src {
		delete(m.named, src.name)
		if i = slices.IndexFunc(m.sources, func(other *source) bool { return other.name == src.name }); i >= 0 {
			m.named[src.name] = m.sources[i]
		}
	}
	return true
}

// newSource returns the source of a server. Starting the server reports an invalid
// cfg.
func (m *Manager) newSource(cfg ServerConfig) *source {
	cfg = cfg.Clone()
	src := &source{
		listing: listing{name: cfg.Name, prefix: cfg.Prefix, claim: names.Alone(cfg.Name, cfg.Prefix), tools: cfg.Tools, needs: cfg.Needs, remote: true},
		cfg:     cfg,
	}
	src.invalid = src.cfg.Validate()
	if src.invalid == nil && m.find(cfg.Name) != nil {
		src.invalid = ErrDuplicate
	}
	src.server = upstream.New(m.upstreamConfig(src), src.upstreamLimits(&m.opts), func(ctx context.Context, list upstream.List) error {
		return m.receive(ctx, src, list)
	})
	src.hide = src.server.Hide
	return src
}

func (m *Manager) upstreamConfig(src *source) upstream.Config {
	cfg := &src.cfg
	to := upstream.Config{Server: *cfg, Invalid: src.invalid, User: m.owner.user, Ask: m.opts.Ask, Log: m.opts.Logger}
	if u, err := url.Parse(cfg.URL); err == nil && cfg.URL != "" {
		src.account = m.account(cfg)
		to.Account, to.Unauthorized = src.account, func(scopes []string) error {
			return &AuthorizationError{cfg.Name, u.Scheme + "://" + u.Host, scopes}
		}
	}
	return to
}

// account returns the account of the Manager's user at a server.
func (m *Manager) account(cfg *ServerConfig) *login.Account {
	sum := sha256.Sum256([]byte(cfg.URL))
	to := login.Config{
		URL: cfg.URL, Key: fmt.Sprintf("%s/%s/%x", url.PathEscape(m.user.id), url.PathEscape(cfg.Name), sum[:8]),
		Store: m.opts.TokenStore, HTTP: upstream.Transport(cfg.HTTPClient), Log: m.opts.Logger,
	}
	if cfg.OAuth != nil {
		to.OAuth = *cfg.OAuth
	}
	return login.New(to)
}

func (src *source) upstreamLimits(o *Options) upstream.Limits {
	return upstream.Limits{
		StartTimeout: cmp.Or(max(src.cfg.StartTimeout, 0), o.Limits.StartTimeout), CallTimeout: cmp.Or(max(src.cfg.CallTimeout, 0), o.Limits.CallTimeout),
		MaxMessage: o.Limits.MaxMessage, MaxDefinition: o.Limits.MaxDefinition, MaxListing: o.Limits.MaxListing,
		MaxTools: o.Limits.MaxTools, MaxPages: o.Limits.MaxPages, MaxUnasked: o.Limits.MaxUnasked, MaxTimeouts: o.Limits.MaxTimeouts,
		Reconnect: o.Limits.Reconnect, Refresh: o.Limits.Refresh, Idle: o.Limits.IdleTimeout,
	}
}

// AddTools adds tools that need no connection. Their handlers run in this process,
// on the goroutine of the call. They must heed their context, which ends after
// [ServerLimits.CallTimeout]. A tool without a handler can be found but not called.
//
// name takes the place of a server's name: it must not be empty. The tools come
// last in registration order, in the order given. You can add more tools under the
// same name later: they follow the earlier ones.
//
// If AddTools returns an error, it has added nothing. The error is [ErrDuplicate]
// if a server has that name or name already has a tool with the same name.
func (m *Manager) AddTools(name string, tools ...mcpserver.ServerTool) error {
	return prefixed(m.addTools(name, tools), "tools of %q: ", name)
}

func (m *Manager) addTools(name string, tools []mcpserver.ServerTool) error {
	if name == "" {
		return errors.New("the name is empty")
	}
	if !utf8.ValidString(name) { // a state and a store would have another
		return errors.New("the name is not valid UTF-8")
	}
	var defs []*definition
	var problems []error
	for i, t := range tools {
		d, err := m.localDefinition(name, t)
		if err != nil {
			problems = append(problems, fmt.Errorf("tool %d: %w", i, err))
			continue
		}
		defs = append(defs, d)
	}
	if problems != nil {
		return errors.Join(problems...)
	}
	if _, err := m.recall(); err != nil {
		return err
	}
	if err := m.weigh(m.life, defs); err != nil {
		if m.life.Err() != nil {
			return ErrClosed
		}
		return err
	}
	return m.change(func() error {
		src := cmp.Or(m.find(name), &source{listing: listing{name: name}})
		if src.server != nil {
			return ErrDuplicate
		}
		all := slices.Concat(src.defs, defs)
		names := make(map[string]bool, len(all))
		for _, d := range all {
			if names[d.Own] {
				return fmt.Errorf("tool %q: %w", d.Own, ErrDuplicate)
			}
			names[d.Own] = true
		}
		if err := src.claimNames(m.names); err != nil {
			return err
		}
		for _, d := range defs {
			if err := src.nameTool(m.names, d); err != nil {
				return fmt.Errorf("tool %q: %w", d.Own, err)
			}
		}
		src.defs = all
		m.place(src)
		return nil
	})
}

func (m *Manager) localDefinition(server string, t mcpserver.ServerTool) (*definition, error) {
	raw, err := json.Marshal(t.Tool)
	if err != nil {
		return nil, err
	}
	d, err := parseDefinition(server, raw, m.opts.Limits.MaxDefinition)
	if err != nil {
		return nil, err
	}
	d.call = callHandler(t.Handler, d.Own, m.opts.Limits.CallTimeout)
	return d, nil
}

// callHandler returns a function that calls handler within the timeout. A panic of
// the handler becomes an error of that call.
func callHandler(handler mcpserver.ToolHandlerFunc, name string, timeout time.Duration) func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
	return func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
		return foreign.Within(ctx, timeout, func(ctx context.Context) (*mcp.CallToolResult, error) {
			var r mcp.CallToolRequest
			r.Params.Name = name
			r.Params.RawArguments = args
			if err := json.Unmarshal(args, &r.Params.Arguments); err != nil {
				return nil, err
			}
			if handler == nil {
				return nil, errors.New("the tool has no handler")
			}
			return foreign.Call("the handler", func() (*mcp.CallToolResult, error) {
				result, err := handler(ctx, r)
				if err == nil && result == nil {
					err = errors.New("the handler returned no result")
				}
				return result, err
			})
		})
	}
}

// blockOf returns the block of a listing. It is old, the one before, if that is it
// still, and keeps the *BridgeTool of each tool that old has with the same definition.
// It is nil if there is nothing to know.
func (m *Manager) blockOf(src *listing, old *block) *block {
	note := &blockNote{of: src, offering: src.offering, lists: src.listed != nil || !src.remote}
	if src.collision != nil {
		note.problems = slices.Concat([]error{src.collision}, src.problems)
	}
	if src.listed != nil {
		note.needs = src.needs
	}
	note.plain = len(note.entries)+len(note.changed)+len(note.problems)+len(note.needs) == 0
	switch {
	case note.plain && len(src.defs) == 0 && !note.lists:
		return nil
	case note.plain && old != nil && old.Note.plain && old.Note.lists == note.lists && slices.Equal(old.Note.defs, src.defs):
		return old
	}
	var tools []*BridgeTool
	for _, d := range src.defs {
		if !rules.Access(m.opts.Access).Permits(d.names()) {
			continue
		}
		t := &BridgeTool{name: d.registered, def: d, owner: m.owner}
		if old != nil {
			if same := old.Find(t.name); same != nil && same.def == d {
				t = same
			}
		}
		tools = append(tools, t)
		note.wants, note.tell = note.wants || d.Always, note.tell || d.Needs != nil || d.BadNeeds != nil
	}
	return blocks.New(src.number, tools, (*BridgeTool).Name, note, note.wants || note.tell || !note.plain)
}
