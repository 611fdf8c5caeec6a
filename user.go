package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/storeguard"
	"github.com/mcphybrid/mcphybrid/scan"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/mcphybrid/mcphybrid/store"
)

// A User has servers and tools of its own on top of those of the Manager, the
// system, which all users share. Nobody else can find, see or call the user's own
// tools.
//
// The methods for servers, problems, marks and figures concern only the user's
// own servers. The user's sessions see the tools of both. Its methods may be
// called concurrently.
type User struct {
	own *Manager // manages the user's servers
}

// ID returns the id that was passed to [Manager.NewUser].
func (u *User) ID() string { return u.own.user.id }

// Start connects the servers of the [UserOptions]: see [Manager.Start].
func (u *User) Start(ctx context.Context) error { return u.own.Start(ctx) }

// AddServer connects one more server for the user: see [Manager.AddServer].
func (u *User) AddServer(ctx context.Context, cfg ServerConfig) error {
	return u.own.AddServer(ctx, cfg)
}

// AddTools adds tools for the user that need no connection: see
// [Manager.AddTools].
func (u *User) AddTools(name string, tools ...mcpserver.ServerTool) error {
	return u.own.AddTools(name, tools...)
}

// RemoveServer removes one of the user's servers and reports whether there was
// one with that name: see [Manager.RemoveServer].
func (u *User) RemoveServer(name string) bool { return u.own.RemoveServer(name) }

// Preload connects some of the user's servers: see [Manager.Preload].
func (u *User) Preload(ctx context.Context, patterns ...string) error {
	return u.own.Preload(ctx, patterns...)
}

// Login lets the user log in to one of the user's servers: see [Manager.Login].
func (u *User) Login(ctx context.Context, server string) error { return u.own.Login(ctx, server) }

// Logout ends the user's login to one of the user's servers: see [Manager.Logout].
func (u *User) Logout(ctx context.Context, server string) error { return u.own.Logout(ctx, server) }

// Restart connects one of the user's servers anew: see [Manager.Restart].
func (u *User) Restart(ctx context.Context, server string) error { return u.own.Restart(ctx, server) }

// Default returns the user's default session, whose registry is
// [UserOptions.Registry]. It ends with [User.Close].
func (u *User) Default() *Session { return u.own.def }

// NewSession returns a session that sees the system's tools and the user's.
// opts may be nil.
func (u *User) NewSession(opts *SessionOptions) *Session { return u.own.NewSession(opts) }

// RestoreSession restores a saved session of the same user: see
// [Manager.RestoreSession].
func (u *User) RestoreSession(state json.RawMessage, opts *SessionOptions) (s *Session, changed []string, err error) {
	return u.own.RestoreSession(state, opts)
}

// AwaitServers waits for the servers of the tools in a saved state of the user's,
// both the user's and the system's: see [Manager.AwaitServers].
func (u *User) AwaitServers(ctx context.Context, state json.RawMessage) error {
	return u.own.AwaitServers(ctx, state)
}

// Servers returns the status of the user's servers: see [Manager.Servers].
func (u *User) Servers() []ServerStatus { return u.own.Servers() }

// Problems returns the problems of the user's tools that do not keep them from
// working: see [Manager.Problems].
func (u *User) Problems() []error { return u.own.Problems() }

// Marks returns suspicious text in the definitions of the user's tools: see
// [Manager.Marks].
func (u *User) Marks() map[string][]scan.Mark { return u.own.Marks() }

// Accept releases a changed tool of the user for use: see [Manager.Accept].
func (u *User) Accept(server, tool, hash string) error { return u.own.Accept(server, tool, hash) }

// Refresh is [Manager.Refresh] for the stores of [UserOptions].
func (u *User) Refresh() error { return u.own.Refresh() }

// Watch is [Manager.Watch] for the user.
func (u *User) Watch() { u.own.Watch() }

// Snapshot is [Manager.Snapshot] for the user.
func (u *User) Snapshot(session int) (snapshot.Manager, error) { return u.own.Snapshot(session) }

// Close stops the user's servers and empties the user's sessions. The system and
// the other users go on. The vectors of the user's tools stay in the
// [vector.Store]: see [Manager.DropUser]. [Manager.Close] says which code must not
// call it.
func (u *User) Close() error { return u.own.Close() }

// The defaults of UserOptions, as in the published design.
const (
	defaultSystemResults = 3
	defaultUserResults   = 5
)

// UserOptions configure a [User]. The zero value is a user without servers. Users
// must not share a [store.Document].
type UserOptions struct {
	// Servers are the user's servers. [User.Start] connects them. They may have
	// the same names as servers of the system.
	Servers []ServerConfig

	// Access says which tools the user's sessions may use, both of the
	// system's and of the user's own.
	Access Access

	// Needs says which other tools the user's tools need: see [Options.Needs].
	// These may be tools of the user or of the system. The user's come first.
	// A name that the system does not have is no problem: its tools come and
	// go.
	Needs map[string][]string

	// Registry, if not nil, holds the callable tools of the user's default
	// session. Each change of the system's tools costs a pass over all tools
	// for every registry, so give one only to users who need it.
	Registry Registry

	// Hooks answer for the user's sessions that have none of their own, and what
	// the user's servers ask outside of a known call. A user's server may ask what
	// they answer; a server of the system, what those of [Options.Ask] do.
	Hooks ask.Hooks

	// Cache, TrustStore and VectorCache are the user's [Options.Cache],
	// [Options.TrustStore] and [SemanticOptions.Cache]. Without them, nothing
	// is stored.
	Cache       store.Document
	TrustStore  store.Document
	VectorCache store.Document

	// LearnStore keeps what the user's sessions learned: see [LearnOptions]. [User.Start]
	// reads it. It has no effect without [Options.Learn].
	LearnStore store.Document

	// SystemResults is the largest number of the system's tools that a search
	// finds, and UserResults that of the user's own. Tools that the query names
	// don't count. A search without a limit of its own finds up to the sum of
	// both, which replaces [RankingOptions.Results] and
	// [JustInTimeOptions.Results] for this user.
	//
	// If zero, they default to 3 and 5. If negative, there is no such limit, and
	// [RankingOptions.Results] is used in the sum.
	SystemResults int
	UserResults   int
}

// users are the Managers of a system's users by id. A value is nil while DropUser
// removes that user.
type users map[string]*Manager

func (u users) list() []*Manager {
	list := make([]*Manager, 0, len(u))
	for _, m := range u {
		if m != nil {
			list = append(list, m)
		}
	}
	return list
}

// leave removes m, which has ended, from the users of its system.
func (m *Manager) leave() {
	if m.system == nil {
		return
	}
	m.system.mu.Lock()
	defer m.system.mu.Unlock()
	if m.system.users[m.user.id] == m {
		delete(m.system.users, m.user.id)
	}
}

// NewUser creates the user with that id. opts may be nil.
//
// The user's sessions see the system's tools followed by the user's own, which
// have an index of their own. If a name exists in both, the user's tool wins,
// except in a session that has shown the name: there it means the tool that was
// shown, until [Session.Compact].
// The user inherits everything that opts does not set: limits, middleware,
// skills, the inline policy, and [Options.Access], which also applies to the
// user's own tools.
//
// Neither the system nor another user can reach the user's tools, by search, call,
// error or store. [User.RestoreSession] accepts only states of the same user's
// sessions.
//
// With [Options.Semantic], the vectors of the user's tools have a scope of their
// own in the same [vector.Store]: "user:" followed by the id. If the system's
// scope is not "system", that scope and a slash come first. A query is embedded
// once for both scopes.
//
// NewUser fails if id is empty, not UTF-8 or longer than 1,000 bytes, with [ErrDuplicate] if a User with that id has
// not been closed, and with [ErrClosed] after [Manager.Close].
func (m *Manager) NewUser(id string, opts *UserOptions) (*User, error) {
	own, err := m.newUser(id, opts)
	if err != nil {
		return nil, err
	}
	return &User{own}, nil
}

// newUser returns the Manager of a user's own servers; m is its system.
func (m *Manager) newUser(id string, opts *UserOptions) (*Manager, error) {
	var o UserOptions
	if opts != nil {
		o = *opts
	}
	err := m.mayBegin(id)
	if err != nil {
		return nil, fmt.Errorf("mcphybrid: user %.100q: %w", id, err)
	}
	u := &Manager{system: m, tenant: &tenant{
		opts: m.opts, handler: m.handler, indexer: m.indexer, metaAccess: m.metaAccess, policy: m.policy, skills: m.skills, texts: m.texts, parts: m.parts, validators: m.validators, recorder: m.recorder,
		below: m.tenant, owner: &owner{id}, user: user{id: id, access: rules.Access(o.Access.Clone()), most: make(map[*owner]int)},
	}}
	results := sum(u.limitResults(m.owner, o.SystemResults, defaultSystemResults), u.limitResults(u.owner, o.UserResults, defaultUserResults))
	u.opts.Search.Results = min(results, m.opts.Search.Limit)
	u.opts.Servers, u.opts.Needs, u.opts.Registry, u.opts.Ask.Hooks = slices.Clone(o.Servers), cloneNeeds(o.Needs), o.Registry, o.Hooks
	u.opts.Cache, u.opts.TrustStore = storeguard.Document(o.Cache, "UserOptions.Cache", storeguard.MaxCall), storeguard.Document(o.TrustStore, "UserOptions.TrustStore", storeguard.MaxCall)
	u.opts.Usage = nil // the record is of the system's tools
	if m.opts.Learn != nil {
		u.opts.Learn = &LearnOptions{Store: storeguard.Document(o.LearnStore, "UserOptions.LearnStore", storeguard.MaxCall), HalfLife: m.opts.Learn.HalfLife}
	}
	u.opts.Logger = m.opts.Logger.With("user", id)
	if jit := m.opts.JustInTime; jit != nil {
		u.opts.JustInTime = &JustInTimeOptions{Threshold: jit.Threshold, Results: u.opts.Search.Results}
	}
	if so := m.opts.Semantic; so != nil {
		own := *so
		own.Scope, own.Cache, own.Progress = so.userScope(id), storeguard.Document(o.VectorCache, "UserOptions.VectorCache", 0), nil
		u.opts.Semantic = &own
	}
	u.setUp(m.life)

	m.mu.Lock()
	if err = m.mayBeginLocked(id); err == nil {
		if m.users == nil {
			m.users = make(users)
		}
		m.users[id] = u
	}
	m.mu.Unlock()
	if err != nil {
		_ = u.Close() // never fails
		return nil, fmt.Errorf("mcphybrid: user %q: %w", id, err)
	}
	u.sync() // with the changes made meanwhile
	return u, nil
}

// maxUserID is the greatest length of a user's id in bytes: saved states have it.
const maxUserID = 1000

// mayBegin returns why the user can't be created now, or nil.
func (m *Manager) mayBegin(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mayBeginLocked(id)
}

func (m *Manager) mayBeginLocked(id string) error {
	_, taken := m.users[id]
	switch {
	case id == "":
		return errors.New("the id is empty")
	case len(id) > maxUserID:
		return fmt.Errorf("the id has %d bytes, more than the limit of %d", len(id), maxUserID)
	case !utf8.ValidString(id):
		return fmt.Errorf("the id %q is not UTF-8: saved as JSON it could be that of another user", id)
	case m.life.Err() != nil:
		return ErrClosed
	case taken:
		return ErrDuplicate
	}
	return nil
}

// limitResults limits how many tools of an owner a search in u's sessions finds.
// It returns their share in a search without a limit of its own.
func (m *Manager) limitResults(of *owner, n, standard int) int {
	switch {
	case n < 0:
		return m.opts.Search.Results
	case n == 0:
		n = standard
	}
	m.user.most[of] = n
	return n
}

// userScope returns the scope that holds the vectors of a user's tools.
func (o *SemanticOptions) userScope(id string) string {
	if o.Scope == defaultScope {
		return "user:" + id
	}
	return o.Scope + "/user:" + id
}

// DropUser removes a user for good. It closes the [User], if there is one, and
// deletes the user's scope from the [vector.Store]. It ends no login: see
// [User.Logout]. If the user comes back, all tools are embedded again. The host must
// delete the stores that it named in [UserOptions] before it calls [Manager.NewUser]
// with the same id again.
//
// It is not an error if there is no such user. After an error DropUser may be
// called again. Code that must not call [Manager.Close] must not call DropUser either.
func (m *Manager) DropUser(ctx context.Context, id string) error {
	m.mu.Lock()
	u, there := m.users[id]
	if there && u == nil {
		m.mu.Unlock()
		return fmt.Errorf("mcphybrid: user %q is being removed already", id)
	}
	if m.users == nil {
		m.users = make(users)
	}
	m.users[id] = nil // keeps NewUser out until the deletion is done
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.users, id)
	}()
	if u != nil {
		_ = u.Close() // never fails
	}
	if so := m.opts.Semantic; so != nil && id != "" {
		_, err := hostcode.Detached(ctx, "SemanticOptions.Store", func() (struct{}, error) {
			return struct{}{}, m.semantic.Store.Drop(ctx, so.userScope(id))
		})
		return prefixed(err, "user %q: ", id)
	}
	return nil
}
