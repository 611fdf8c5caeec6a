// Package snapshot has what a Manager of package mcphybrid shows to people, as plain data
// without secrets. mcphybrid.Manager.Snapshot returns a [Manager]. Package debug renders it
// as web pages. The figures in it, such as [Stats], are also what methods of package
// mcphybrid return.
package snapshot

import (
	"context"
	"time"

	"github.com/mcphybrid/mcphybrid/scan"
	"github.com/mcphybrid/mcphybrid/search"
)

// A Manager shows a Manager of package mcphybrid to people, as one of its sessions sees
// it. It works on a copy of that session, so nothing changes in the session. Each method
// reads the state at the time of the call.
//
// It hides the secrets of the servers' configurations in all names, errors and texts.
//
// Package mcphybrid implements it. Later versions may add methods.
type Manager interface {
	// Closed reports whether the Manager is closed.
	Closed() bool

	// User returns the id of the user whose Manager it is, or "".
	User() Text

	// Text returns text without the secrets that the snapshot hides.
	Text(text string) Text

	// Problems returns the problems of tools that keep no other tool from working,
	// without changed definitions.
	Problems() []Text

	// Changes returns the definitions that have changed and that a person has not
	// accepted: those of the Manager, then those of the user whose session it is.
	Changes() []Change

	// Servers returns each server and each group of tools without a connection, in
	// registration order. Those of users follow, in the order of their ids.
	Servers() []Server

	// Tools returns all tools in registration order, then those in quarantine.
	Tools() []Tool

	// ActiveTools returns the session's active tools in the order of their activation.
	ActiveTools() []Tool

	// WhyNot says why the session can't call a tool of that registered name. It is empty
	// if the session can. It tells more than a caller is told: what the configuration
	// leaves out.
	WhyNot(name string) Text

	// Session returns the session that sees all this.
	Session() Session

	// Sessions returns sessions by their place in a list: the default session at 0,
	// then the open ones that the Manager has recorded, newest first. It returns those
	// at the places from <= i < to, and the length of the whole list.
	Sessions(from, to int) (list []Session, total int)

	// Events returns the newest events that the Manager has recorded, newest first. The
	// snapshot of a user has those of the user.
	Events() []Event

	// Stores returns the stores that were called: those of the Manager's options, and those that
	// the host has it observe. The snapshot of a user has none.
	Stores() []Store

	// Samples returns the measurements that the Manager has taken, oldest first. There
	// are at most 240, and they reach back to the first.
	Samples() []Sample

	// Search searches as the session does, and changes nothing in it.
	Search(ctx context.Context, q Query) Search

	// Explain returns how the words of query score the deferred tool with that registered
	// name. The Explanation is empty for any other tool.
	Explain(query, name string) search.Explanation
}

// A Change is a definition that differs from the known one, or a new one that is held
// back.
type Change struct {
	User         Text      // the id of the user whose server it is, or ""
	Server, Tool string    // Tool is the own name of a tool or a prompt, a URI or its template
	Hidden       bool      // Server or Tool differs from what it stands for, to hide a secret
	Kind         string    // "tool", "resource", "resource template" or "prompt"
	Name         string    // the registered name
	Quarantined  bool      // it is held back: it can't be shown or called
	Added        bool      // it is new, and no definition of it is known
	Since        time.Time // when the known definition was first seen or accepted; zero if there is none
	Was, Is      string    // hashes of the known and of the new definition; Was is empty if there is none
}

// A Server is a server, or a group of tools without a connection, which has no State.
type Server struct {
	Name   string
	Hidden bool // Name differs from the server's name, to hide a secret
	User   Text // the id of the user whose server it is, or ""

	State string        // a State of package mcphybrid, or ""
	Since time.Time     // when the server entered State; of one that is tried again in vain, when its connection was lost, or it was first tried
	Took  time.Duration // how long its last start took until it was ready or failed
	Tools int           // number of its tools

	Resources, Templates, Prompts, Skills int // numbers of these

	Instructions Text // what the server says of itself; "" without any, and while they are held back

	Err      string    // why it is down, degraded or unauthorized, or was before this attempt, in a line; else ""
	Cause    Cause     // the same in a few words
	Failures int       // how many attempts to connect have failed in a row
	Retry    time.Time // when something is tried again, or zero

	Figures Figures // as the default session sees the tools; none of a user's server
}

// A Store is what keeps something for the Manager or its host, and the figures of its calls.
type Store struct {
	Name string // "Cache", "TrustStore", "StateParts", "Usage", "Learn", "Sessions" or "Leases"

	Calls       int
	Latency     time.Duration // total of all calls
	Longest     time.Duration
	Conflicts   int // another process was first, or has taken the lease
	Unavailable int // calls that could not reach the engine
	Failures    int // calls that failed otherwise

	Away time.Time // since when the engine can't be reached; zero if it can
	Err  Text      // of the last call that failed; "" since one has reached the engine
}

// A Cause is why a server is not ready, in words for people.
type Cause struct {
	// Kind is "program", "folder" or "package" if it can't be started, since its program,
	// its folder, or what a launcher such as npx should get is not there; "registry" if the
	// launcher can't ask for it; "exit" if its program ended, "killed" if by a signal;
	// "output" if it writes what is no MCP message to its standard output;
	// "token" if the token in its configuration was refused, or it has none and there is no
	// login; "login" if a person has to log in; "status" if its address answers with an error status, "address" if nobody answers
	// there, "foreign" if that is no MCP server; "timeout" if it does not answer in time; or "".
	Kind string

	What string // a line of at most 300 characters; "" if nothing is wrong
}

// Figures are those of the tools of one server that a session sees.
type Figures struct {
	Tools  int
	Inline int
	Tokens int   // of the definitions
	Usage  Usage // calls in all sessions, including those of users
}

// A Tool is a tool and its standing in the session.
type Tool struct {
	Name     string // registered name
	Hidden   bool   // Name differs from the registered name, to hide a secret
	Original Text   // its name on its server
	Server   Text
	User     Text   // the id of the user whose tool it is, or ""
	Standing string // "inline", "deferred", "active", "summarized", "hidden" or "quarantined"; "" in a search result
	Reason   Text   // the reason for Standing
	Tokens   int    // of the definition; 0 in quarantine
	Used     int    // turn of the last use of an active tool

	Title, Description Text

	Changed    *Change // not nil if the definition has changed
	Definition Definition
}

// A Definition reads a tool's definition when it is asked.
type Definition interface {
	// Schema returns the schema of the arguments as the server wrote it, as indented
	// JSON, cut to about limit characters and to 400 lines.
	Schema(limit int) string

	// Marks returns the suspicious text in the definition, but no names of other
	// servers' tools. [scan.Definition] says how long that takes.
	Marks() []scan.Mark
}

// A Session is a session and its figures.
type Session struct {
	Number     int       // from 1, in the order in which sessions began; 0 for the default session
	Began      time.Time // zero for the default session
	Label      Text      // what the host calls it
	User       Text      // the id of the user, or ""
	Intent     Text
	Turn       int
	Disclosure string // how the model gets deferred tools: a Disclosure of package mcphybrid
	Why        string // why the first Turn chose it, or "" if there was none
	Stats      Stats
	Losses     []Loss // the last 8 of the session, newest first
}

// An Event is something that happened in a session, or to a server. Its texts are lines of
// at most 2,000 characters.
type Event struct {
	Kind   string // an EventKind of package mcphybrid
	At     time.Time
	Number int      // of the session, which may have ended: see [Session]; negative for none
	Tools  []string // registered names of at most 20 tools called, found, dropped, changed or without room
	More   int      // number of further tools
	Server string   // of the called tool or of what was read, or "" if that is unknown; what it happened to
	State  string   // what the server entered
	Query  string   // query of a search; URI of a resource; name of a prompt
	Store  string   // name of the store, with EventStore
	Took   time.Duration
	Err    string // why a call or a read failed or a server is not ready, or what has changed; else ""
	Label  string // of the session
	User   string // the id of the session's or the server's user, or ""

	Disclosure string // that the first Turn chose
	Why        string // why it chose that

	// Times is how often in a row a server was tried in vain with the same Cause, from First
	// to At. It is 0 for what happened once.
	Times int
	First time.Time
	Cause Cause // of Err, if that is a server that is not ready

	ToolError string // the beginning of what the called tool answered, if that is an error
	Loss      Loss   // what a request lost of the provider's cache
}

// A Sample is the tokens of tools in one request. It is the mean over the newest sessions,
// or the figures of the default session if there is no other.
type Sample struct {
	At       time.Time
	Sessions int // number of sessions averaged, at most 64
	All      int // see [Tokens]
	Sent     int // see [Tokens.Sent]
}

// A Query says what to search for.
type Query struct {
	Text        string
	Limit       int      // the largest number of hits; if zero, that of the Manager
	Servers     []string // names or patterns of servers; if empty, all
	ServerLimit int      // the largest number of hits from one server; if zero, that of the Manager; if negative, none
	ByWords     bool     // by words alone, not by meaning too
	All         bool     // also tools that the model has without a search
}

// A Search is the result of a search.
type Search struct {
	Took           time.Duration // without explaining the scores
	Words, Meaning int           // candidates by words and by meaning
	Err            Text          // why the search by meaning failed or is incomplete, or ""
	Hits           []Hit         // best first
}

// A Hit is a tool that a search found, with the parts of its score by words.
type Hit struct {
	Tool                     Tool
	Score, Words, Similarity float64
	NeededBy                 string // name of the hit that needs it, or ""
	Explained                search.Explanation
}
