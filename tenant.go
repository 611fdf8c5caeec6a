package mcphybrid

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/internal/result"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/mcphybrid/mcphybrid/internal/usage"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// A tenant is what sessions share that see the same tools: all sessions of the system, or
// all of one user, who sees the system's tools and her own. It holds the options, the
// current catalog and policy, and what was made of them.
//
// It is the part of a [Manager] that files of sessions may use, which are a layer below the
// Manager's: see ARCHITECTURE.md. What they need a Manager for is in sessionManager.
type tenant struct {
	opts    Options // fixed at creation
	handler Handler // calls a tool, wrapped in the middleware of opts
	indexer *indexer
	owner   *owner         // of its tools
	below   *tenant        // the system's tenant, if this is a user's; else nil
	user    user           // zero if this is the system's
	manager sessionManager // whose sessions these are

	metaAccess  rules.Access   // denies the meta tools that opts deny
	semantic    *semantic      // nil without [Options.Semantic]
	usageRecord *usage.Record  // nil without [Options.Usage]
	learnRecord *usage.Record  // in how many of the tenant's sessions tools were used; nil without [Options.Learn]
	skills      *skillShelf    // shared with the system
	texts       *result.Shelf  // of all sessions, likewise
	parts       *saved.Parts   // of saved sessions, likewise; nil without [Options.StateParts]
	validators  *schema.Recent // likewise
	metaExports metaExports

	life     context.Context           // ends with the Manager
	recorder *atomic.Pointer[recorder] // nil inside until Watch is called; shared with the system

	cur    atomic.Pointer[catalog] // never nil; the Manager stores it with its mu held
	policy *atomic.Pointer[policy] // never nil inside; shared with the system

	partitioning sync.Mutex
	partitioned  *partitionSet // guarded by partitioning
	partitions   atomic.Uint64 // number of partitions made so far
	screenings   screenings

	usageMu     sync.Mutex
	serverUsage map[string]*snapshot.Usage // by server
}

// A user is the part of a tenant that belongs to a user.
type user struct {
	id     string
	access rules.Access   // for all its sessions
	most   map[*owner]int // limit of tools per owner in the answer to a search
}

// A sessionManager is what sessions ask of their [Manager], which alone knows servers. A
// session holds no lock of its own when it calls a method.
type sessionManager interface {
	// began is called for each new session, and closed for each that is closed.
	began(s *Session)
	closed(s *Session)

	// known returns what can be said of the tools that patterns are about.
	known() rules.Known

	// allListed reports whether all servers have listed their tools.
	allListed() bool

	// connecting returns what patterns see of the tool with that registered
	// name, if it would belong to a server that is still connecting.
	connecting(tool string) (rules.Subject, bool)

	// unlistedServerOf returns the owner of the server to which the unknown tool with that
	// registered name would belong, if it was started and by the catalogs has not listed its
	// tools, and what patterns see of the tool.
	unlistedServerOf(tool string, by []*catalog) (*owner, rules.Subject)

	// connectingServers returns the names of the servers that are still
	// connecting, except those of which r permits no tool.
	connectingServers(r rules.Rights) []string

	// permits reports whether the configuration of an owner's server permits a
	// tool. It does if there is no such server.
	permits(of *owner, t rules.Subject) bool

	// trusted reports whether a definition is or was the known one of its tool. If it is
	// unknown, trusted reads the trust store, at most once a second.
	trusted(of *owner, d *definition) bool

	// connectServer connects an owner's server, as a call of one of its tools does. It
	// reports whether there is such a server.
	connectServer(ctx context.Context, of *owner, server string) (there bool, err error)

	// askSkill asks an owner's server for the skill whose SKILL.md has that URI, and makes it
	// part of the catalog, if the server does not list it.
	askSkill(ctx context.Context, of *owner, server, uri string) error

	// server returns an owner's server and what patterns see of something of it whose
	// name is not known, or nil.
	server(of *owner, name string) (*upstream.Server, rules.Subject)

	// status returns the status of an owner's server.
	status(of *owner, name string) (ServerStatus, bool)
}

// of returns the tenant of an owner's tools.
func (s *tenant) of(o *owner) *tenant {
	if s.below != nil && o == s.below.owner {
		return s.below
	}
	return s
}

// catalogs returns the current catalogs that the sessions see: the system's and,
// in a user's tenant, then the user's own.
func (s *tenant) catalogs() []*catalog {
	if s.below != nil {
		return []*catalog{s.below.cur.Load(), s.cur.Load()}
	}
	return []*catalog{s.cur.Load()}
}
