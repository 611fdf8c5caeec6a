package mcphybrid

import (
	"context"
	"encoding/json"

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
