package mcphybrid

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/foreign"
	"github.com/mcphybrid/mcphybrid/internal/login"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"unicode/utf8"
)

// A source is one place in the registration order: a server, or a group of tools
// without a connection. The Manager's mu guards the fields that change. Who changes what
// catalogs take of it calls [Manager.putSource].
type source struct {
	name    string
	cfg     ServerConfig     // of the server
	server  *upstream.Server // nil for tools without a connection
	account *login.Account   // at the server; nil unless it has a URL
	invalid error            // why cfg is invalid, or nil

	claim     names.Claim     // of the names of its tools
	number    int             // of the claim's prefix
	collision *CollisionError // or nil

	begun    bool      // the server was started
	live     bool      // the server has listed its tools in this run
	listedAt time.Time // when the server last listed its tools; zero if never

	listed []*definition      // the tools that the server listed; nil before its first list
	offers []*resources.Offer // what it listed beside tools
	bytes  int                // of the definitions that it listed

	// What catalogs take of these.
	defs     []*definition      // the tools that are not in quarantine; without a connection, all tools
	entries  []*resources.Entry // those of offers, some of them in quarantine
	changed  []*ChangedError    // what has changed
	problems []error
}

// hide hides the server's secrets in err.
func (src *source) hide(err error) error {
	if src.server == nil {
		return err
	}
	return src.server.Hide(err)
}

// find returns the source with that name, the first one if there are several, or nil.
// The caller holds mu.
func (m *Manager) find(name string) *source { return m.named[name] }

// putSource has catalogs take what src has now. A new source comes last. The caller holds
// mu.
func (m *Manager) putSource(src *source) {
	i := slices.Index(m.sources, src)
	if i < 0 {
		m.sources, m.tools = append(m.sources, src), append(m.tools, m.serverTools(src, nil))
		if m.named[src.name] == nil {
			m.named[src.name] = src
		}
		return
	}
	if now := m.serverTools(src, m.tools[i]); now != m.tools[i] {
		if m.toolsShared {
			m.tools, m.toolsShared = slices.Clone(m.tools), false
		}
		m.tools[i] = now
	}
}

// dropSource forgets src and reports whether it was there. The caller holds mu.
func (m *Manager) dropSource(src *source) bool {
	i := slices.Index(m.sources, src)
	if i < 0 {
		return false
	}
	m.sources, m.tools = slices.Delete(m.sources, i, i+1), slices.Delete(slices.Clone(m.tools), i, i+1)
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
	src := &source{name: cfg.Name, cfg: cfg, claim: names.Alone(cfg.Name, cfg.Prefix)}
	src.invalid = src.cfg.Validate()
	if src.invalid == nil && m.find(cfg.Name) != nil {
		src.invalid = ErrDuplicate
	}
	src.server = upstream.New(m.upstreamConfig(src), src.upstreamLimits(&m.opts), func(ctx context.Context, list upstream.List) error {
		return m.receive(ctx, src, list)
	})
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
	if _, err := m.loadCache(); err != nil {
		return err
	}
	if err := m.weigh(m.life, defs); err != nil {
		if m.life.Err() != nil {
			return ErrClosed
		}
		return err
	}
	return m.change(func() error {
		src := cmp.Or(m.find(name), &source{name: name})
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
		m.putSource(src)
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

// serverTools returns what catalogs take of src. It is old, what they took before, if that
// is the same still, and keeps the *BridgeTool of each tool that old has with the same
// definition. It is nil if there is nothing to take.
func (m *Manager) serverTools(src *source, old *serverTools) *serverTools {
	s := &serverTools{server: src.name, hide: src.hide, number: src.number, defs: src.defs, entries: src.entries, changed: src.changed, problems: src.problems, lists: src.listed != nil || src.server == nil}
	if src.collision != nil {
		s.problems = slices.Concat([]error{src.collision}, src.problems)
	}
	if src.listed != nil {
		s.needs = src.cfg.Needs
	}
	switch {
	case s.onlyTools() && len(src.defs) == 0 && !s.lists:
		return nil
	case s.onlyTools() && old != nil && old.onlyTools() && old.lists == s.lists && slices.Equal(old.defs, src.defs):
		return old
	}
	var tools []*BridgeTool
	for _, d := range src.defs {
		if !rules.Access(m.opts.Access).Permits(d.names()) {
			continue
		}
		t := &BridgeTool{name: d.registered, def: d, owner: m.owner}
		if old != nil {
			if same := old.tool(t.name); same != nil && same.def == d {
				t = same
			}
		}
		tools = append(tools, t)
		s.declares, s.alwaysLoaded = s.declares || d.Needs != nil || d.BadNeeds != nil, s.alwaysLoaded || d.Always
	}
	s.setTools(tools)
	return s
}

// claimNames gives the source the prefix of its tools' names: the same at each call.
func (src *source) claimNames(book *names.Book) error {
	c, first, err := book.Claim(src.name, src.cfg.Prefix)
	if err != nil {
		return err
	}
	src.claim, src.number, src.collision = c, book.Number(c), nil
	if first != "" {
		src.collision = &CollisionError{src.name, c.Wanted, c.Prefix, first}
	}
	return nil
}

// nameTool gives d its registered name: the same at each call.
func (src *source) nameTool(book *names.Book, d *definition) (err error) {
	if d.registered, err = book.Name(src.claim, d.Own); err != nil {
		return err
	}
	if alone := names.Alone(src.name, src.cfg.Prefix); alone != src.claim {
		d.wanted = alone.Name(d.Own)
	}
	return nil
}

// subjectOf returns what patterns see of what a server lists under a name, beside tools.
func (src *source) subjectOf(own string) rules.Tool {
	t := rules.Tool{Name: src.claim.Name(own), Server: src.name, Own: own}
	if own == "" {
		t.Name = src.claim.Start()
	}
	if alone := names.Alone(src.name, src.cfg.Prefix); alone != src.claim {
		t.Wanted = alone.Name(own)
	}
	return t
}

// anyTool returns what patterns see of a tool of which only the server is known.
func (src *source) anyTool() rules.Tool { return anyTool(src.claim) }
