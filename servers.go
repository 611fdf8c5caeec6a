package mcphybrid

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/foreign"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// statusOf returns the status of the server of src.
func (m *Manager) statusOf(src *source) ServerStatus {
	st := src.server.Status() // read before the tools: a ready server has its tools
	status := ServerStatus{Name: src.name, State: State(st.State), Since: st.Since, Took: st.Took, Err: st.Err, Failures: st.Failures, Retry: st.Retry}
	m.mu.Lock()
	defer m.mu.Unlock()
	status.Tools = len(src.listed)
	of := resources.Count(src.offers)
	status.Resources, status.Templates, status.Prompts = of[resources.Resource], of[resources.Template], of[resources.Prompt]
	return status
}

// followStatus logs each state that the server of src enters and tells the host of it.
func (m *Manager) followStatus(src *source) {
	failed := false
	src.server.OnStatus(func(ctx context.Context, st upstream.Status) {
		e := Event{Kind: EventServer, Server: src.name, State: State(st.State), Err: st.Err}
		args, level := []any{"server", e.Server}, slog.LevelDebug
		switch st.State {
		case upstream.Ready, upstream.Down, upstream.Unauthorized:
			e.Took = st.Took
		}
		if failed || st.State == upstream.Ready {
			level = slog.LevelInfo
		}
		if failed = st.Err != nil; failed {
			level, args = slog.LevelWarn, append(args, "error", st.Err)
		}
		if !st.Retry.IsZero() {
			args = append(args, "retry", st.Retry)
		}
		m.opts.Logger.Log(ctx, level, "mcphybrid: a server is "+string(st.State), args...)
		m.tellDetached(ctx, e)
	})
}

// tellDetached tells the host of an event. Nobody waits for its code once ctx has ended:
// the code may have closed the Manager or removed the server.
func (m *Manager) tellDetached(ctx context.Context, e Event) {
	_, _ = foreign.Detached(ctx, "Options.OnEvent", func() (struct{}, error) {
		m.tell(e)
		return struct{}{}, nil
	})
}

// Servers returns the status of each server, in registration order. It does not
// include tools of [Manager.AddTools].
func (m *Manager) Servers() []ServerStatus {
	figures := m.figures(m.def.view())
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	var list []ServerStatus
	for _, src := range sources {
		if src.server != nil {
			st, f := m.statusOf(src), figures[src.name]
			st.Inline, st.Tokens, st.Usage = f.Inline, f.Tokens, Usage(f.Usage)
			list = append(list, st)
		}
	}
	return list
}

// known returns what can be said of the tools that patterns are about: those of all
// servers, whether or not the options permit them, and the meta tools.
func (m *Manager) known() (k rules.Known) {
	if m.system != nil {
		k = m.system.known()
	} else {
		for kind := range metaKinds {
			k.Tools = append(k.Tools, rules.Tool{Name: kind.name()})
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, src := range m.sources {
		defs := src.listed
		if src.server == nil {
			defs = src.defs
		} else if src.listedAt.IsZero() {
			k.Missing = append(k.Missing, rules.Tool{Name: src.claim.Start(), Server: src.name})
		}
		for _, d := range defs {
			k.Tools = append(k.Tools, d.names())
		}
		for _, o := range src.offers {
			k.Tools = append(k.Tools, o.Entry.Names)
		}
	}
	return k
}

// connecting returns what patterns see of the tool with that registered name, if it
// would belong to a server that is still connecting.
func (m *Manager) connecting(tool string) (rules.Tool, bool) {
	for _, src := range m.connectingSources() {
		if own, ok := src.claim.Own(tool); ok {
			return rules.Tool{Name: tool, Server: src.name, Own: own}, true
		}
	}
	return rules.Tool{}, false
}

// unlistedServerOf returns the owner of the server to which the unknown tool with that registered
// name would belong, if it is not connecting and has never listed its tools, or nil; and
// what patterns see of the tool.
func (m *Manager) unlistedServerOf(tool string) (*owner, rules.Tool) {
	m.mu.Lock()
	for _, src := range m.sources {
		if own, ok := src.claim.Own(tool); ok && src.server != nil && src.begun && src.listedAt.IsZero() && src.server.Status().State != upstream.Connecting {
			m.mu.Unlock()
			return m.owner, rules.Tool{Name: tool, Server: src.name, Own: own}
		}
	}
	m.mu.Unlock()
	if m.system != nil {
		return m.system.unlistedServerOf(tool)
	}
	return nil, rules.Tool{}
}

// connectingServers returns the names of the servers that are still connecting, in
// registration order and each once. It omits servers of which r permits no tool.
func (m *Manager) connectingServers(r rules.Rights) (names []string) {
	for _, src := range m.connectingSources() {
		if r.Permit(src.anyTool()) && !slices.Contains(names, src.name) {
			names = append(names, src.name)
		}
	}
	return names
}

// connectingSources returns the sources that are still connecting, in registration
// order. A user's Manager returns those of its system first.
func (m *Manager) connectingSources() []*source {
	var sources []*source
	if m.system != nil {
		sources = m.system.connectingSources()
	}
	m.mu.Lock()
	sources = append(sources, m.sources...)
	m.mu.Unlock()
	return slices.DeleteFunc(sources, func(src *source) bool {
		return src.server == nil || src.server.Status().State != upstream.Connecting
	})
}

// status returns the status of an owner's server with that name.
func (m *Manager) status(of *owner, name string) (st ServerStatus, ok bool) {
	m, src := m.serverOf(of, name)
	if src == nil {
		return st, false
	}
	return m.statusOf(src), true
}

// serverOf returns the source of an owner's server with that name, or nil, and
// the Manager that has it.
func (m *Manager) serverOf(of *owner, name string) (*Manager, *source) {
	if of != m.owner && m.system != nil {
		m = m.system
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if src := m.find(name); src != nil && src.server != nil {
		return m, src
	}
	return m, nil
}

func (m *Manager) server(of *owner, name string) (*upstream.Server, rules.Tool) {
	_, src := m.serverOf(of, name)
	if src == nil {
		return nil, rules.Tool{}
	}
	return src.server, src.subjectOf("")
}

func (m *Manager) permits(of *owner, t rules.Tool) bool {
	_, src := m.serverOf(of, t.Server)
	return src == nil || permitsOwn(src.cfg.Tools, t)
}

func (m *Manager) trusted(of *owner, d *definition, refresh bool) bool {
	m, _ = m.serverOf(of, d.Server)
	if refresh {
		if err := m.refreshTrust(); err != nil {
			m.opts.Logger.Warn(prefixed(err, "").Error())
		}
	}
	return m.trust.Knew(d.Server, &d.Trusted)
}

func (m *Manager) connectServer(ctx context.Context, of *owner, server string) (there bool, err error) {
	_, src := m.serverOf(of, server)
	if src == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, m.opts.Limits.CallTimeout)
	defer cancel()
	return true, src.server.Connect(ctx)
}

// Login lets the user log in to a server of [Manager.Start] or [Manager.AddServer] by
// OAuth, and then connects it. Tools that are active stay so. It finds the
// authorization server, registers a client if need be, shows a page by
// [Options.OpenURL] and waits for the browser until ctx ends. The tokens go to
// [Options.TokenStore] and are refreshed until the authorization server refuses that;
// then the server is [StateUnauthorized] again. Errors have no secrets.
func (m *Manager) Login(ctx context.Context, server string) error {
	src, err := m.begunServer(server)
	switch {
	case err != nil:
	case src.account == nil:
		err = errors.New("it has no URL")
	case m.opts.OpenURL == nil:
		err = errors.New("Options.OpenURL is not set")
	default:
		_ = src.server.Connect(ctx) // the refusal tells where to log in
		open := m.opts.OpenURL
		err = src.account.Login(ctx, func(ctx context.Context, url string) (string, error) {
			return foreign.Call("Options.OpenURL", func() (string, error) {
				return open(ctx, LoginPage{m.user.id, server, url})
			})
		})
		if err == nil {
			err = src.server.Again(ctx)
		}
		err = src.server.Hide(err)
	}
	return prefixed(err, "login to server %q: ", server)
}

// begunServer returns the source of a server whose start was begun, whether or not it
// succeeded.
func (m *Manager) begunServer(name string) (*source, error) {
	_, src := m.serverOf(m.owner, name)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case src == nil:
		return nil, errors.New("there is no such server")
	case !src.begun:
		return nil, errors.New("it was not started")
	}
	return src, nil
}

// Restart closes the connection to a server of [Manager.Start] or [Manager.AddServer],
// which ends its process, and connects anew at once. Calls that are under way fail. The
// tools stay, and so does what is active. It returns when the server is ready or has
// failed; then the server is tried again like any other.
func (m *Manager) Restart(ctx context.Context, server string) error {
	src, err := m.begunServer(server)
	if err == nil {
		err = src.server.Restart(ctx)
	}
	return prefixed(err, "restart of server %q: ", server)
}

// Logout ends the login to a server: it deletes the tokens from [Options.TokenStore],
// closes the connection, and asks the authorization server to revoke the tokens, if it
// told [Manager.Login] how and tells the same now. The server is [StateUnauthorized]
// then, unless it was not connected or works without a login. Its tools stay. If the
// revocation fails, the tokens are deleted all the same. It is no error if nobody was
// logged in.
//
// Nothing else ends a login: not [Manager.RemoveServer], [Manager.DropUser] or
// [Manager.Close], since the server or the user may come back.
func (m *Manager) Logout(ctx context.Context, server string) error {
	_, src := m.serverOf(m.owner, server)
	var err error
	switch {
	case src == nil:
		err = errors.New("there is no such server")
	case src.account == nil:
		err = errors.New("it has no URL")
	default:
		err = src.server.Hide(src.account.Logout(ctx, func() error { return src.server.LoggedOut(ctx) }))
	}
	return prefixed(err, "logout from server %q: ", server)
}

// figures returns those of each server and group of tools that has tools in v, by name.
func (m *Manager) figures(v *view) map[string]snapshot.Figures {
	of := make(map[string]snapshot.Figures)
	for t, p := range v.each() {
		if v.own().tool(t.name) != t { // it belongs to the user's system
			continue
		}
		f := of[t.def.Server]
		f.Tools++
		f.Tokens += m.toolTokens(t)
		if p == inline {
			f.Inline++
		}
		of[t.def.Server] = f
	}
	m.usageMu.Lock()
	defer m.usageMu.Unlock()
	for name, f := range of {
		if u := m.usage[name]; u != nil {
			f.Usage = snapshot.Usage(*u)
			of[name] = f
		}
	}
	return of
}

// Preload connects the servers that have a tool whose registered name matches one
// of the patterns, as in [Access]. Their first calls then need not wait. Use it
// with [Options.Cache] or [ServerLimits.IdleTimeout], where a server starts only when
// one of its tools is called.
//
// Preload connects the servers concurrently and returns when each is ready or has
// failed. The error joins one error for each failed server, which names it.
func (m *Manager) Preload(ctx context.Context, patterns ...string) error {
	_ = ctx.Err() // a nil ctx panics here, where the host can recover
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	c := m.cur.Load()
	wanted := make(map[string]bool)
	for _, t := range c.tools {
		if t.def.names().MatchesAny(patterns) {
			wanted[t.def.Server] = true
		}
	}
	errs := make([]error, len(sources))
	var wg sync.WaitGroup
	for i, src := range sources {
		if src.server == nil || !wanted[src.name] {
			continue
		}
		wg.Go(func() {
			errs[i] = prefixed(src.server.Connect(ctx), "server %q: ", src.name)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
