package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

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

// A user is what a Manager knows that is a user's.
type user struct {
	system *Manager
	id     string
	access Access           // of all its sessions
	most   map[*Manager]int // tools of each in the answer to a search
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

// leave is called when m, the user's Manager, has come to its end.
func (u *user) leave(m *Manager) {
	if u.system == nil {
		return
	}
	u.system.mu.Lock()
	defer u.system.mu.Unlock()
	if u.system.users[u.id] == m {
		delete(u.system.users, u.id)
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
	u := &Manager{
		opts: m.opts, handler: m.handler, ranking: m.ranking, metaAccess: m.metaAccess, policy: m.policy, skills: m.skills,
		user: user{system: m, id: id, access: o.Access.clone(), most: make(map[*Manager]int)},
	}
	results := u.limitResults(m, o.SystemResults, DefaultSystemResults) + u.limitResults(u, o.UserResults, DefaultUserResults)
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

// limitResults sets how many of the tools of another Manager, or its own, u
// finds, and returns how many of them count in a search without a number.
func (u *Manager) limitResults(of *Manager, n, standard int) int {
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

// User returns the id of the user whose session it is, or "" if it is the
// system's: see [Manager.NewUser].
func (s *Session) User() string { return s.m.user.id }
