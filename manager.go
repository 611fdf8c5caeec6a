package mcphybrid

// What a Manager has, how it starts and how it ends. The rest of it stands beside what it is about:
// addserver.go adds servers and removes them, receive.go turns the list of one into its tools,
// addtools.go adds tools without a server, and publish.go makes each change one catalog (catalog.go).
// newsession.go has new conversations, user.go users, settings.go what a host changes meanwhile,
// serverstatus.go how servers are, and stores.go and cache.go what outlives a run. defaultsession.go
// has the methods of the default session.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/cache"
	"github.com/mcphybrid/mcphybrid/internal/enrich"
	"github.com/mcphybrid/mcphybrid/internal/history"
	"github.com/mcphybrid/mcphybrid/internal/lazy"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/result"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/trust"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// A Manager holds what all conversations share: the servers and the catalog of
// their tools. [Manager.NewSession] returns one conversation's view of it.
//
// A host with a single conversation can use the default session, which
// [Manager.Default] returns. The Manager's Search, Call, ActivateTools and
// similar methods call the methods of that session.
//
// Its methods may be called concurrently. A method that only reads tools uses one
// version of the catalog from start to end and does not wait for the next one.
type Manager struct {
	*tenant // the part that sessions see

	def    *Session // the default session
	system *Manager // the system, if this is a user's Manager; else nil

	turns     *upstream.Turns // of all children, also the users'
	trust     *trust.Memory
	rereading sync.Mutex // held while rereadTrust reads
	reread    time.Time  // when that ended last

	lookups *enrich.Lookups // nil without [Options.Enricher]

	end context.CancelFunc // ends life

	mu             sync.Mutex     // serializes writers
	sources        []*source      // in registration order
	perServer      []*serverTools // what catalogs take of each source, or nil
	toolsShared    bool           // a catalog has perServer: it must be cloned before an element changes
	named          map[string]*source
	bytes          int            // of all definitions that servers listed
	names          *names.Book    // of the sources and of earlier ones
	attached       []*Session     // the sessions with a registry
	users          users          // not yet closed
	removedServers []string       // those removed last
	background     sync.WaitGroup // counts starting servers, embedding runs, hint lookups and calls of OnResources
	closing        sync.Once
	changed        chan struct{} // closed and replaced by each change, whether or not it succeeds: see AwaitServers

	cacheOnce     sync.Once
	cached        atomic.Pointer[cache.Found] // from loadStores until Start has used it
	cache         cache.Cache                 // of Options.Cache
	resourcesTask lazy.Task                   // calls OnResources
	startsRunning atomic.Int32                // calls of Start in progress

	storeMeters storeMeters // of the stores of the options, and of those that the host has observed

	rawDefinitions  *rawDefinitions                                 // of all users
	deferredIndexer *deferredIndexer                                // of the catalogs
	samples         atomic.Pointer[history.Series[snapshot.Sample]] // nil until Watch is called; stored with mu held
}

// NewManager returns a Manager for the servers in opts. It starts none of them.
// opts may be nil.
//
// [Manager.Start] reports what is wrong with what may come from files: a server's
// configuration, and a malformed rule. NewManager panics if a number in opts is out of
// range, or a word is none of those that are permitted.
func NewManager(opts *Options) *Manager {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.setDefaults()
	o.guard()
	m := &Manager{tenant: &tenant{opts: o, handler: wrapped(o.Middleware), owner: new(owner), policy: new(atomic.Pointer[policy]), texts: result.NewShelf(o.MaxKept), parts: saved.PartsOf(o.StateParts, o.Logger), validators: new(schema.Recent), recorder: new(atomic.Pointer[recorder])}}
	m.indexer = newIndexer(&m.opts.Search)
	for kind := range metaKinds {
		if rules.MatchAny(o.Access.Deny, kind.name()) {
			m.metaAccess.Deny = append(m.metaAccess.Deny, kind.name())
		}
	}
	m.observeStores()
	m.policy.Store(newPolicy(&m.opts, m.toolTokens, m.lineTokens))
	m.setUp(context.Background())
	return m
}

// maxKnown times [config.Limits.MaxTools] is how many tools of a server we remember,
// and how many names with a hash. We never forget one to make room: otherwise a
// server could make us forget a tool and then change it.
const maxKnown = 4

// setUp sets up the rest of a Manager whose options are set. The Manager ends
// when ctx does, if not before.
func (m *Manager) setUp(ctx context.Context) {
	m.manager = m
	m.changed = make(chan struct{})
	known := maxKnown * min(m.opts.Limits.MaxTools, NoLimit/maxKnown)
	m.serverUsage, m.names, m.named = make(map[string]*snapshot.Usage), names.NewBook(known), make(map[string]*source)
	m.rawDefinitions, m.turns = new(rawDefinitions), upstream.NewTurns()
	if m.system != nil {
		m.names, m.turns = m.system.names.Above(), m.system.turns
	}
	m.cache = cache.Open(m.opts.Cache, m.names, m.logStored)
	if m.opts.Trust == TrustOff {
		m.opts.TrustStore = nil
	}
	m.trust = trust.New(m.opts.Trust.caution(), known, m.names, m.opts.TrustStore)
	m.usageRecord, m.learnRecord = m.opts.Usage.record(), m.opts.Learn.record()
	var system *semantic
	if m.system != nil {
		system = m.system.semantic
	}
	m.semantic = newSemantic(m.opts.Semantic, m.opts.Logger, m.cur.Load, m.ownNames, system)
	m.life, m.end = context.WithCancel(ctx)
	m.lookups = m.newLookups()
	m.cur.Store(noTools)
	m.deferredIndexer = &deferredIndexer{indexer: m.indexer}
	if m.system == nil {
		// The standing of a user's tools also depends on the system's tools, which
		// change without a new catalog for the user. So a user's catalog indexes all
		// tools.
		m.deferredIndexer.searchedByDefault = m.searchedByDefault
	}
	if m.skills == nil {
		m.skills = new(skillShelf)
		m.skills.cur.Store(noSkills)
		m.skills.cur.Store(m.newSkillSet(m.opts.Skills))
		for _, err := range m.skills.cur.Load().problems {
			m.opts.Logger.Warn(err.Error())
		}
	}
	for _, cfg := range m.opts.Servers {
		if !cfg.Disabled {
			src := m.newSource(cfg)
			m.followStatus(src)
			m.stageSource(src)
		}
	}
	m.def = m.NewSession(&SessionOptions{Registry: m.opts.Registry})
	m.def.number = -1 // shown as 0
}

// saveAndIndex stores the data that outlives this run, and has the index ready for a search.
func (m *Manager) saveAndIndex() {
	m.cache.Save()
	m.saveTrust()
	m.cur.Load().index()
}

// Start connects the servers in the [Options] that have not been started. It
// connects them concurrently, each within its start timeout, and returns when
// every server is ready or has failed. A server's tools enter the catalog as
// soon as it is ready.
//
// Programs start a few at a time: as many as there are processors, but at least four; of one
// package, which npx or the like downloads, one. The start timeout begins when a server's
// turn comes.
//
// A program that has said nothing yet but is at work, such as npx, which downloads a server
// at its first start, gets up to five minutes more, and Start waits for it. On Linux, the use
// of the processor tells; elsewhere, only what the program writes to standard error.
//
// ctx bounds how long Start waits, and nothing else: servers that are not ready when it ends go
// on starting, and all run until [Manager.Close]. So a host that must not wait minutes gives
// ctx a timeout, or calls Start in a goroutine.
//
// The error wraps one error for each server that is not ready when Start returns, which names
// the server and is about its last attempt. Its text has each cause once. The other servers work. If a rule in the [Options]
// is malformed, the error says so, and Start does nothing else: no session has a tool until
// [Manager.SetRules].
func (m *Manager) Start(ctx context.Context) error {
	_ = ctx.Err() // a nil ctx panics here, where the host can recover
	if err := m.policy.Load().invalid; err != nil {
		return err
	}
	cached, err := m.loadStores()
	if err != nil {
		return prefixed(err, "")
	}
	m.mu.Lock()
	if m.life.Err() != nil {
		m.mu.Unlock()
		return fmt.Errorf("mcphybrid: %w", ErrClosed)
	}
	var waiting []*source
	var failed startError
	for _, src := range m.sources {
		if src.server == nil || src.begun {
			continue
		}
		if err := src.claimNames(m.names); err != nil {
			failed.add(src.name, err)
			continue
		}
		m.stageSource(src) // its names may collide
		src.begun = true
		waiting = append(waiting, src)
	}
	m.background.Add(len(waiting))
	m.mu.Unlock()

	if m.usageRecord != nil {
		if err := m.usageRecord.Load(); err != nil {
			m.opts.Logger.Warn("mcphybrid: loading the record of use failed", "error", err)
		}
		_ = m.takeOrder() // fails only if the Manager was closed
	}
	if m.learnRecord != nil {
		if err := m.learnRecord.Load(); err != nil {
			m.opts.Logger.Warn("mcphybrid: loading what was learned failed", "error", err)
		}
	}
	stale, err := m.applyCached(waiting, cached.Lists)
	m.cached.Store(nil) // later servers are not in it
	if err != nil {
		m.opts.Logger.Warn("mcphybrid: using the cached catalog failed", "error", err)
	}
	for _, src := range stale {
		src.server.Begin()
	}
	m.mu.Lock()
	waiting = slices.DeleteFunc(waiting, func(src *source) bool {
		known := !src.listedAt.IsZero()
		if known {
			m.background.Done()
		}
		return known
	})
	m.mu.Unlock()
	m.startsRunning.Add(1)
	var wg sync.WaitGroup
	for _, src := range waiting {
		start := src.server.Begin()
		wg.Go(func() {
			defer m.background.Done()
			_ = start(ctx) // what counts is how the server is when all have been tried
		})
	}
	wg.Wait()
	m.startsRunning.Add(-1)
	m.saveAndIndex()
	m.logIdlePatterns()
	for _, src := range waiting {
		if err := src.server.NotReady(ctx); err != nil {
			failed.add(src.name, err)
		}
	}
	return failed.orNil()
}

// Close stops all servers and leaves no process behind, no tool or group in a registry, and no
// goroutine but those in which code of the host hangs, such as [Options.OnEvent]. It also
// closes all users. Afterwards sessions are empty. Running calls end with an error. Close
// always returns nil.
//
// Close waits for some of the host's code, and would wait for itself if it were
// called there: by a method of a [Registry] or a [store.Document], by the [Options.Logger], by
// [SemanticOptions.Progress], or by Dimensions of an embedder. These must leave it to
// a new goroutine. All other code may call Close. The caller must not hold a lock that
// a registry needs.
//
// Close also ends the processes that a server started itself: on Linux those that kept
// the server's environment, and those whose parents, back to the server, still live;
// elsewhere those that stayed in its process group.
func (m *Manager) Close() error {
	m.closing.Do(func() {
		if r := m.recorder.Load(); r != nil {
			r.hide(m.serverSecrets(), m.concerns)
		}
		m.mu.Lock()
		m.end()
		sources, attached, users := m.sources, m.attached, m.users.list()
		m.sources, m.perServer, m.named, m.bytes, m.attached = nil, nil, nil, 0, nil
		m.cur.Store(ended)
		m.mu.Unlock()

		m.forgetPartitions()
		for _, s := range attached {
			s.registrar.close()
		}
		var wg sync.WaitGroup
		for _, u := range users {
			wg.Go(func() { _ = u.Close() })
		}
		for _, src := range sources {
			if src.server != nil {
				wg.Go(src.server.Close)
			}
		}
		wg.Wait()
		m.background.Wait()
		if m.system == nil {
			m.skills.close()
		}
		m.cache.Close()
		if m.usageRecord != nil {
			if err := m.usageRecord.Save(time.Now()); err != nil {
				m.opts.Logger.Warn("mcphybrid: storing the record of use failed", "error", err)
			}
		}
		if err := m.saveLearned(); err != nil {
			m.opts.Logger.Warn("mcphybrid: storing what was learned failed", "error", err)
		}
		m.leave()
	})
	return nil
}
