package mcphybrid

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/internal/foreign"
	"github.com/mcphybrid/mcphybrid/internal/guard"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/result"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/mcphybrid/mcphybrid/internal/usage"
)

// A scope is what the sessions share that see the same tools: those of the system,
// or those of the system and one user. A [Manager] fills it. Sessions know
// nothing of servers.
type scope struct {
	opts    Options // fixed at creation
	handler Handler // calls a tool, wrapped in the middleware of opts
	indexer *indexer
	owner   *owner // of its tools
	below   *scope // the system's scope, if this is a user's; else nil
	user    user   // zero if this is the system's scope
	keeper  keeper // the Manager

	metaAccess rules.Access   // denies the meta tools that opts deny
	semantic   *semantic      // nil without [Options.Semantic]
	uses       *usage.Record  // nil without [Options.Usage]
	skills     *skillShelf    // shared with the system
	texts      *result.Shelf  // of all sessions, likewise
	parts      *saved.Parts   // of saved sessions, likewise; nil without [Options.StateParts]
	validators *schema.Recent // likewise

	life     context.Context           // ends with the Manager
	recorder *atomic.Pointer[recorder] // nil inside until Watch is called; shared with the system

	cur    atomic.Pointer[catalog] // never nil; the Manager stores it with its mu held
	policy *atomic.Pointer[policy] // never nil inside; shared with the system

	partitioning sync.Mutex
	partitioned  *partitionSet // guarded by partitioning
	partitions   atomic.Uint64 // number of partitions made so far

	usageMu sync.Mutex
	usage   map[string]*Usage // by server
}

// A user is the part of a scope that belongs to a user.
type user struct {
	id     string
	access rules.Access   // for all its sessions
	most   map[*owner]int // limit of tools per owner in the answer to a search
}

// A keeper is the part of a Manager that sessions use. A session holds no lock of
// its own when it calls a method.
type keeper interface {
	// began is called for each new session, and closed for each that is closed.
	began(s *Session)
	closed(s *Session)

	// known returns what can be said of the tools that patterns are about.
	known() rules.Known

	// connecting returns what patterns see of the tool with that registered
	// name, if it would belong to a server that is still connecting.
	connecting(tool string) (rules.Tool, bool)

	// unlistedServerOf returns the server to which the unknown tool with that registered name
	// would belong, if it is down and has never listed its tools, and what patterns
	// see of the tool.
	unlistedServerOf(tool string) (*owner, rules.Tool)

	// connectingServers returns the names of the servers that are still
	// connecting, except those of which r permits no tool.
	connectingServers(r rules.Rights) []string

	// permits reports whether the configuration of an owner's server permits a
	// tool. It does if there is no such server.
	permits(of *owner, t rules.Tool) bool

	// trusted reports whether a definition is or was the known one of its tool. With
	// refresh set, it reads the trust store first.
	trusted(of *owner, d *definition, refresh bool) bool

	// connectServer connects an owner's server, as a call of one of its tools does. It
	// reports whether there is such a server.
	connectServer(ctx context.Context, of *owner, server string) (there bool, err error)

	// server returns an owner's server and what patterns see of something of it whose
	// name is not known, or nil.
	server(of *owner, name string) (*upstream.Server, rules.Tool)

	// status returns the status of an owner's server.
	status(of *owner, name string) (ServerStatus, bool)
}

// of returns the scope of an owner's tools.
func (s *scope) of(o *owner) *scope {
	if s.below != nil && o == s.below.owner {
		return s.below
	}
	return s
}

// A partitionSet holds the partitions of one version of the catalogs and the
// policy.
type partitionSet struct {
	catalogs []*catalog
	policy   *policy

	mu    sync.Mutex
	byKey map[partitionKey]*lazyPartition
}

// most returns how many partitions the set has at most.
func (set *partitionSet) most() int {
	tools := 1
	for _, c := range set.catalogs {
		tools += len(c.tools)
	}
	return max(maxPromptPrefixes, min(maxPartitions, maxVerdicts/tools))
}

// A partitionKey identifies a partition in its set. The intent has a field of its
// own: it can be any text, and joined with the rights it could look like others.
type partitionKey struct {
	intent, rights string
	inlineUsed     inlineUse
	nameOwners     [sha256.Size]byte
}

type lazyPartition struct {
	once sync.Once
	partition
}

// catalogs returns the current catalogs that the sessions see: the system's and,
// in a user's scope, then the user's own.
func (s *scope) catalogs() []*catalog {
	if s.below != nil {
		return []*catalog{s.below.cur.Load(), s.cur.Load()}
	}
	return []*catalog{s.cur.Load()}
}

// current reports whether sel was made from the newest catalogs and policy.
func (s *scope) current(sel *partition) bool {
	if sel == nil || sel.policy != s.policy.Load() || sel.own() != s.cur.Load() {
		return false
	}
	return s.below == nil || sel.catalogs[0] == s.below.cur.Load()
}

// forgetPartitions drops the kept partitions, and with them their catalogs.
func (s *scope) forgetPartitions() {
	s.partitioning.Lock()
	defer s.partitioning.Unlock()
	s.partitioned = nil
}

// partition returns what a session with these rights and this intent sees now.
// since returns what the session brings along from before.
func (s *scope) partition(r rules.Rights, intent string, since func([]*catalog) carryOver) *partition {
	s.partitioning.Lock()
	if old := s.partitioned; old == nil || old.policy != s.policy.Load() || !slices.Equal(old.catalogs, s.catalogs()) {
		s.partitioned = &partitionSet{catalogs: s.catalogs(), policy: s.policy.Load(), byKey: make(map[partitionKey]*lazyPartition)}
	}
	all := s.partitioned
	s.partitioning.Unlock()

	before := since(all.catalogs)
	key := partitionKey{intent: intent, inlineUsed: before.inlineUsed, nameOwners: before.key()}
	if len(r) > 0 {
		key.rights = fmt.Sprintf("%q", r)
	}
	all.mu.Lock()
	sel := all.byKey[key]
	if sel == nil {
		if len(all.byKey) >= all.most() {
			for other := range all.byKey { // any one makes room
				delete(all.byKey, other)
				break
			}
		}
		sel = new(lazyPartition)
		all.byKey[key] = sel
	}
	all.mu.Unlock()
	sel.once.Do(func() {
		sel.id = s.partitions.Add(1)
		sel.catalogs, sel.policy, sel.rights, sel.intent, sel.carryOver = all.catalogs, all.policy, r, intent, before
		sel.indexer = s.indexer
		for _, c := range sel.catalogs {
			sel.ended = sel.ended || c.ended
		}
		sel.decide()
		sel.reads = sel.resources(s).Reads()
	})
	return &sel.partition
}

// searchable yields the tools of c, and whether a session without restrictions searches for
// them.
func (s *scope) searchable(c *catalog) iter.Seq2[*BridgeTool, bool] {
	p := &partition{catalogs: []*catalog{c}, policy: s.policy.Load(), rights: rules.Rights{}.And(s.metaAccess)}
	p.decide()
	return func(yield func(*BridgeTool, bool) bool) {
		for t, st := range p.each() {
			if !yield(t, st.Searchable()) {
				return
			}
		}
	}
}

// guard keeps the host's code from ending the process: a panic in it becomes an error
// or a log record.
func (o *Options) guard() {
	o.Logger = foreign.Logger(o.Logger)
	o.Cache = guard.Document(o.Cache, "Options.Cache", guard.MaxCall)
	o.TrustStore = guard.Document(o.TrustStore, "Options.TrustStore", guard.MaxCall)
	o.StateParts = guard.Parts(o.StateParts, "Options.StateParts")
	if o.Usage != nil {
		u := *o.Usage
		u.Store = guard.Document(u.Store, "UsageOptions.Store", guard.MaxCall)
		o.Usage = &u
	}
	if _, ours := o.Tokens.(quarterBytes); !ours {
		o.Tokens = hostTokens{&foreign.Counter{What: "Options.Tokens", Of: o.Tokens.CountTokens, Estimate: quarterBytes{}.CountTokens, Log: o.Logger}}
	}
	if tell := o.OnResources; tell != nil {
		o.OnResources = func(user string) { foreign.Logged(o.Logger, "Options.OnResources", func() { tell(user) }) }
	}
	if tell := o.OnRequest; tell != nil {
		o.OnRequest = func(ctx context.Context, server string) {
			foreign.Logged(o.Logger, "Options.OnRequest", func() { tell(ctx, server) })
		}
	}
	if tell := o.OnEvent; tell != nil {
		o.OnEvent = func(e Event) { foreign.Logged(o.Logger, "Options.OnEvent", func() { tell(e) }) }
	}
}

// tokens counts the tokens of a text. It calls the host's code: the caller holds no
// lock.
func (s *scope) tokens(text string) int { return s.opts.Tokens.CountTokens(text) }

// toolTokens returns the tokens of the definition of t. It calls no code of the host.
func (s *scope) toolTokens(t *BridgeTool) int {
	if n := t.tokens.Load(); n > 0 {
		return int(n)
	}
	n := s.weightOf(t, definitionText(t), func(w *weights) int { return w.definition })
	t.tokens.Store(int64(n))
	return n
}

// lineTokens returns the tokens of the line of t in the sections. It calls no code of
// the host.
func (s *scope) lineTokens(t *BridgeTool, form lineForm) int {
	return s.weightOf(t, textLine(t, form, s.opts.Prompt.MaxDescription), func(w *weights) int { return w.lines[form] })
}

// hostTokens is the host's counter.
type hostTokens struct{ *foreign.Counter }

func (c hostTokens) CountTokens(text string) int { return c.Count(text) }

// weigh counts the tokens of definitions, each once. The caller holds no lock, and
// has not published the definitions.
func (s *scope) weigh(ctx context.Context, defs []*definition) error {
	if _, ok := s.opts.Tokens.(hostTokens); !ok {
		return nil
	}
	counted, err := foreign.Detached(ctx, "Options.Tokens", func() ([]*weights, error) {
		list := make([]*weights, len(defs))
		for i, d := range defs {
			if list[i] = d.weights; list[i] == nil && ctx.Err() == nil {
				list[i] = s.weights(d)
			}
		}
		return list, nil
	})
	if err != nil {
		return err
	}
	for i, w := range counted {
		if defs[i].weights != w {
			defs[i].weights = w
		}
	}
	return nil
}

// weights counts the tokens of a definition.
func (s *scope) weights(d *definition) *weights {
	t := &BridgeTool{name: d.registered, def: d}
	if t.name == "" { // AddTools names it later
		t.name = names.Alone(d.Server, "").Name(d.Own)
	}
	w := &weights{name: t.name, definition: s.tokens(definitionText(t)), lines: make([]int, lineForms)}
	for form := range w.lines {
		if s.opts.Prompt.MaxListingTokens < NoLimit {
			w.lines[form] = s.tokens(textLine(t, lineForm(form), s.opts.Prompt.MaxDescription))
		}
	}
	return w
}

// weightOf returns what of counts of the definition of t. For a name that is not the
// one that was counted with, it estimates the difference, and for a definition that
// was not counted, all of text.
func (s *scope) weightOf(t *BridgeTool, text string, of func(*weights) int) int {
	var estimate quarterBytes
	w := t.def.weights
	if w == nil {
		return estimate.CountTokens(text)
	}
	n := of(w)
	if n > 0 && t.name != w.name {
		n += estimate.CountTokens(t.name) - estimate.CountTokens(w.name)
	}
	return n
}

// newPolicy returns the policy for opts. tokens and lineTokens are called with locks
// held.
func newPolicy(opts *Options, tokens func(*BridgeTool) int, lineTokens func(*BridgeTool, lineForm) int) *policy {
	set, err := newRuleSet(opts.Rules)
	if err != nil { // the rules may be there to keep a tool from models: so they get none
		set, _ = rules.NewSet([]rules.Rule{{Name: "malformed rules", Patterns: []string{"*"}, Action: rules.Exclude}})
		err = fmt.Errorf("mcphybrid: Options.Rules: %w", err)
	}
	p := &policy{
		pins: opts.Pins, rules: set, invalid: err, tokens: tokens,
		limit: opts.Inline.Max, allUpTo: opts.Inline.Max, maxTokens: opts.Inline.MaxTokens, fewer: opts.Inline.fewer,
		lineTokens: lineTokens, listInline: opts.Prompt.ListInline, maxListing: opts.Prompt.MaxListingTokens,
		list: listLimits{items: opts.List.Max, tokens: opts.List.MaxTokens, itemsEach: opts.List.ServerMax, tokensEach: opts.List.ServerTokens},
	}
	if jit := opts.JustInTime; jit != nil {
		p.limit, p.allUpTo = 0, jit.Threshold
	}
	return p
}
