package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	mcpserver "github.com/mark3labs/mcp-go/server"
)

// A User is one user of a Manager, the system: with servers and tools of its
// own over the system's, which all users share. Nobody else finds, sees or calls
// the user's own tools.
//
// Servers, Problems, Marks, ServerStats, Accept and what adds and removes
// servers are about the user's own; sessions see both. Its methods may be
// called concurrently.
type User struct {
	own *Manager // of the user's servers; its user says whose
}

// ID returns the id by which [Manager.NewUser] made the user.
func (u *User) ID() string { return u.own.user.id }

// Start connects the servers of the [UserOptions]: see [Manager.Start].
func (u *User) Start(ctx context.Context) error { return u.own.Start(ctx) }

// AddServer connects one more server of the user's: see [Manager.AddServer].
func (u *User) AddServer(ctx context.Context, cfg ServerConfig) error {
	return u.own.AddServer(ctx, cfg)
}

// AddTools adds tools of the user's that need no connection: see
// [Manager.AddTools].
func (u *User) AddTools(name string, tools ...mcpserver.ServerTool) error {
	return u.own.AddTools(name, tools...)
}

// RemoveServer removes a server of the user's and reports whether there was
// one: see [Manager.RemoveServer].
func (u *User) RemoveServer(name string) bool { return u.own.RemoveServer(name) }

// Preload connects servers of the user's: see [Manager.Preload].
func (u *User) Preload(ctx context.Context, patterns ...string) error {
	return u.own.Preload(ctx, patterns...)
}

// Default returns the user's default session, which [UserOptions.Registry]
// follows. It ends with the user.
func (u *User) Default() *Session { return u.own.def }

// NewSession returns a session that sees the system's tools and the user's.
// Options may be nil.
func (u *User) NewSession(opts *SessionOptions) *Session { return u.own.NewSession(opts) }

// RestoreSession restores a saved session of the same user: see
// [Manager.RestoreSession].
func (u *User) RestoreSession(state json.RawMessage, opts *SessionOptions) (s *Session, changed []string, err error) {
	return u.own.RestoreSession(state, opts)
}

// Servers returns how the user's servers are: see [Manager.Servers].
func (u *User) Servers() []ServerStatus { return u.own.Servers() }

// ServerStats returns figures of the user's servers: see [Manager.ServerStats].
func (u *User) ServerStats() []ServerStats { return u.own.ServerStats() }

// Problems returns what is wrong with the user's tools and can be lived with:
// see [Manager.Problems].
func (u *User) Problems() []error { return u.own.Problems() }

// Marks returns what in the definitions of the user's tools looks as if it was
// meant to steer the model: see [Manager.Marks].
func (u *User) Marks() []ToolMarks { return u.own.Marks() }

// Accept lets a changed tool of the user's be used again: see [Manager.Accept].
func (u *User) Accept(server, tool, hash string) error { return u.own.Accept(server, tool, hash) }

// Watch and Snapshot are those of the Manager, for the user's page: see
// [Manager.Watch] and [Manager.Snapshot].
func (u *User) Watch() { u.own.Watch() }

// Snapshot is [Manager.Snapshot] for the user.
func (u *User) Snapshot(session int) (*Snapshot, error) { return u.own.Snapshot(session) }

// Close ends the user's servers, and the sessions of the user are empty from
// then on. The system and the other users go on. What a [vector.Store] has of
// the user's tools stays there: see [Manager.DropUser].
func (u *User) Close() error { return u.own.Close() }

// The defaults of [UserOptions] are those of the published design.
const (
	DefaultSystemResults = 3
	DefaultUserResults   = 5
)

// UserOptions configure a [User]. The zero value is a user
// without servers. What is kept in a [Store] must be the user's own.
type UserOptions struct {
	// Servers are the user's, connected by [User.Start].
	// They may be called as servers of the system.
	Servers []ServerConfig

	// Access says, by registered name, which tools the user's sessions may
	// use, of the system's and of the user's own.
	Access Access

	// Needs says which other tools the user's tools need, as [Options.Needs]
	// does: of the user's own and, in the places behind these, of the system's.
	// What the system does not have is no problem: it may come and go.
	Needs map[string][]string

	// Registry is kept in step with the user's default session. If nil, none
	// is. Of each registry, that of any session, all is looked at with each
	// change of the system's tools.
	Registry Registry

	// Cache, TrustStore and VectorCache are what [Options] and
	// [SemanticOptions] have, for the user's servers. If nil, nothing is kept.
	Cache       Store
	TrustStore  Store
	VectorCache Store

	// SystemResults and UserResults are how many of the system's tools and of
	// the user's own a search finds at most, what the query names aside. Their
	// sum is how many it finds if no number is asked for, and takes the place
	// of [Options.SearchResults] and [JustInTimeOptions.Results].
	//
	// If zero, they default to [DefaultSystemResults] and
	// [DefaultUserResults]. If negative, there is no such limit, and
	// SearchResults counts in the sum.
	SystemResults int
	UserResults   int
}

// users are the Managers of a system's users by id; nil while what is left of
// one is removed.
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

// leave is called when m has come to its end. A user's is no more among its
// system's then.
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

// NewUser returns the User of that id.
//
// A user's sessions see the system's tools and behind them the user's own, which
// are in an index of their own; of a name that both have, they see the user's.
// Everything else but what opts say is the system's: limits, middleware, skills,
// [Options.Access], which holds for the user's tools too, and what decides which
// tools are inline.
//
// Nothing of a user is in what the system or another user keeps, finds, says
// in an error or restores from a saved session: [User.RestoreSession] takes
// the states of the same user's sessions only.
//
// With [Options.Semantic], the user's tools are in a scope of their own in the
// same [vector.Store]: "user:" and id or, if the system's is not "system", that
// before it and a slash. A query is embedded once for both.
//
// Options may be nil. It is an error if id is empty; [ErrDuplicate] if the last
// User of that id has not been closed; and [ErrClosed].
func (m *Manager) NewUser(id string, opts *UserOptions) (*User, error) {
	own, err := m.newUser(id, opts)
	if err != nil {
		return nil, err
	}
	return &User{own}, nil
}

// newUser returns what a User has of its own: a Manager over m, the system.
func (m *Manager) newUser(id string, opts *UserOptions) (*Manager, error) {
	var o UserOptions
	if opts != nil {
		o = *opts
	}
	err := m.mayBegin(id)
	if err != nil {
		return nil, fmt.Errorf("mcphybrid: user %q: %w", id, err)
	}
	u := &Manager{system: m, scope: &scope{
		opts: m.opts, handler: m.handler, ranking: m.ranking, metaAccess: m.metaAccess, policy: m.policy, skills: m.skills,
		below: m.scope, owner: &owner{id}, user: user{id: id, access: o.Access.clone(), most: make(map[*owner]int)},
	}}
	results := u.limitResults(m.owner, o.SystemResults, DefaultSystemResults) + u.limitResults(u.owner, o.UserResults, DefaultUserResults)
	u.opts.SearchResults = min(results, m.opts.SearchLimit)
	u.opts.Servers, u.opts.Needs, u.opts.Registry = slices.Clone(o.Servers), cloneNeeds(o.Needs), o.Registry
	u.opts.Cache, u.opts.TrustStore = o.Cache, o.TrustStore
	u.opts.Usage = nil // the record is of the system's tools
	u.opts.Logger = m.opts.Logger.With("user", id)
	if jit := m.opts.JustInTime; jit != nil {
		u.opts.JustInTime = &JustInTimeOptions{Threshold: jit.Threshold, Results: u.opts.SearchResults}
	}
	if so := m.opts.Semantic; so != nil {
		own := *so
		own.Scope, own.Cache, own.Progress = so.userScope(id), o.VectorCache, nil
		u.opts.Semantic = &own
	}
	u.begin(m.life)
	if u.semantic != nil {
		u.semantic.asking, u.semantic.turn = m.semantic.asking, m.semantic.turns
	}

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
	u.sync() // with what has changed meanwhile
	return u, nil
}

// mayBegin returns why there can't be a Manager for the user now, or nil.
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
	case m.life.Err() != nil:
		return ErrClosed
	case taken:
		return ErrDuplicate
	}
	return nil
}

// limitResults sets how many tools of an owner u's sessions find, and returns
// how many of them count in a search without a number.
func (u *Manager) limitResults(of *owner, n, standard int) int {
	switch {
	case n < 0:
		return u.opts.SearchResults
	case n == 0:
		n = standard
	}
	u.user.most[of] = n
	return n
}

// userScope returns where the vectors of a user's tools are.
func (o *SemanticOptions) userScope(id string) string {
	if o.Scope == defaultScope {
		return "user:" + id
	}
	return o.Scope + "/user:" + id
}

// DropUser removes what m keeps of a user for good: it closes the user's
// Manager, if there is one, and removes the user's scope from the
// [vector.Store], so that a user who comes back has all tools embedded anew. What
// [UserOptions] name is the host's to remove, before the user comes back. It is
// not an error if there is no such user. After an error it may be called again.
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
	m.users[id] = nil // nobody comes back meanwhile
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
		if err := so.Store.Drop(ctx, so.userScope(id)); err != nil {
			return fmt.Errorf("mcphybrid: user %q: %w", id, err)
		}
	}
	return nil
}
