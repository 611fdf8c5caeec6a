package mcphybrid

import (
	"time"

	"github.com/mcphybrid/mcphybrid/snapshot"
)

// An EventKind says what happened in a session, or to a server.
type EventKind string

const (
	EventCall     EventKind = "call"     // the model called a tool, with or without success
	EventSearch   EventKind = "search"   // the model searched
	EventActivate EventKind = "activate" // deferred tools became active
	EventEvict    EventKind = "evict"    // Compact dropped active tools
	EventRead     EventKind = "read"     // a resource was read or subscribed to, or a prompt was got, with or without success
	EventFull     EventKind = "full"     // tools stay deferred, because the list has no room: see ListOptions
	EventBegin    EventKind = "begin"    // the first Turn of a conversation chose its Disclosure
	EventWaiting  EventKind = "waiting"  // the model can't get tools until Compact: those of Turn.Waiting that the Turn before, in this process, had not

	// EventCacheLost means that a request read less from the provider's cache than the
	// request before it had left there: see [Session.CountUsage].
	EventCacheLost EventKind = "cache lost"

	// These have no Session.
	EventServer  EventKind = "server"  // a server entered a State: it was lost, for example, or is ready again
	EventChanged EventKind = "changed" // the definition of a tool or the like has changed: Err is the ChangedError

	// EventStore means that a store can't be reached, that it can be reached again, after Took, or
	// that another process was first: see [Manager.ObserveSessions]. Store is its name, and Err is
	// nil if it is back. A function that is told must not call Start, AddServer or AddTools, which may wait for that store.
	EventStore EventKind = "store"
)

// An Event is something that happened in a session, or to a server.
type Event struct {
	Kind    EventKind
	Session *Session      // nil for what happened to a server
	Tools   []string      // registered names of the tools called, found, activated, dropped, changed, waiting or without room
	Server  string        // server of the called tool or of what was read, or "" if that is unknown; what it happened to
	State   State         // what the server entered
	Query   string        // query of a search; URI of a resource; name of a prompt
	Store   string        // name of the store, with EventStore
	Took    time.Duration // duration of a call, a search, a read or a start
	Err     error         // error of a call or a read; nil if the tool answered, even with an error. Why a server is not ready, or what has changed
	Label   string        // of the session: see SessionOptions
	User    string        // the id of the session's or the server's User, or ""

	Disclosure Disclosure // of an EventBegin
	Why        string     // why that was chosen

	FromApp  bool // an EventCall is an app's: see [Session.CallFromApp]
	FromCode bool // an EventCall is made by code of the model's: see [Session.CallFromCode]

	// ToolError is the beginning of what the called tool answered, if that is an
	// error: a line of at most 500 characters, as the server wrote it.
	ToolError string

	// Loss is what a request lost, with [EventCacheLost]; otherwise it is zero.
	Loss snapshot.Loss
}

// emit passes an event to the host. The caller holds no lock.
func (s *Session) emit(e Event) {
	e.Session, e.Label = s, s.asked.label
	s.tenant.emit(e)
}

func (s *tenant) emit(e Event) {
	e.User = s.user.id
	if r := s.recorder.Load(); r != nil {
		r.record(e)
	}
	if s.opts.OnEvent != nil {
		s.opts.OnEvent(e)
	}
}
