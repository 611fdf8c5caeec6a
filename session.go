package mcphybrid

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// maxLabel is how many characters of a session's label count.
const maxLabel = 200

// A Session is one conversation's view of a [Manager]. It records which tools of
// the catalog the conversation may use, which deferred tools are active, and
// what the model was shown. Its methods may be called concurrently. A method that
// only reads never waits for a registry or a server.
type Session struct {
	tenant     *tenant        // shared with other sessions
	rights     rules.Rights   // fixed at creation
	asked      *wishes        // fixed at creation
	disclosure atomic.Int32   // the Disclosure; Automatic until the first Turn
	registrar  *registrar     // nil without a registry
	caller     *broker.Caller // of its calls; fixed at creation

	mu          sync.Mutex
	seen        weak.Pointer[partition] // the one that active was last checked against; an idle session does not keep it alive
	active      []*BridgeTool           // in activation order; replaced, never changed
	unavailable []*BridgeTool           // of a saved state: active, but now not to be had here; replaced, never changed
	overflow    map[*BridgeTool]bool    // inline tools of seen that the list does not get: it has no room, or is fixed; replaced, never changed
	learned     map[string]bool         // by registered name: tools that were called; at most maxLearned
	lastUsed    map[string]lastUse      // by registered name of active tools and those that are unavailable
	userTurn    int

	// shown is what the model was given. It is appended to, and nothing in it changes, with
	// these exceptions. Compact drops it, and so does the first Turn if the conversation
	// offers other tools of ours than the list did: see fixDisclosure. Before a Turn, a tool that
	// is held back is removed; from then on, an item at the end takes it back and, where the
	// provider can, a tool that has left, and [remaining] leaves both out. What came and was
	// taken back before the model was told is dropped: see forgetUntold.
	shown []listItem

	prefix      *promptPrefix // with which shown begins; nil if with none that is shared
	knownNames  []knownName   // other tools that the model knows by name, oldest first; replaced, never changed
	shownAs     listVersion   // the state that shown was last updated to
	covered     *coverage     // the servers to search that shown mentions; nil if that is not known
	metas       metaSet       // the meta tools in shown
	full        bool          // a tool had no room since the last Compact
	closed      bool
	number      int // given by the recorder; 0 if it has none yet, negative for a default session
	restored    restoredTools
	activations int // number of activations so far
	pages       pages
	links       *resources.Links // to which results linked; nil if none did
	subscribed  map[*resourceSubscription]struct{}
	refused     *saved.Refusal // or nil; replaced, never changed
	transcript  *transcript    // nil before the first Turn
	usage       sessionUsage
	ledger      *ledger // nil before the first CountUsage
	intent      string
}

// SessionOptions configure a [Session]. The zero value is a session that may
// use the whole catalog and has no registry.
type SessionOptions struct {
	// Label tells people which conversation it is, in events, logs and the pages of
	// package debug: one line, of which the first 200 characters count. The model
	// never sees it. A child without one has that of its parent.
	Label string

	// Access says which of the Manager's tools the session may use. It can only
	// narrow [Options.Access]. [Session.Problems] reports entries that match
	// no tool. The first
	// [InlineOptions.Max] tools that remain are inline, or all of them if
	// Access denies [SearchToolName].
	Access Access

	// Skills says, by name, which of the Manager's skills the session may use. Those of
	// servers have names, servers and URIs as resources do.
	// If Access denies [SkillLoadToolName], the session may use no skill. If
	// Access denies [SkillSearchToolName], the prompt lists all skills,
	// whatever their number.
	Skills Access

	// Intent is what the conversation is about: see [Session.SetIntent]. If "", a
	// child begins with the intent of its parent.
	Intent string

	// Disclosure is how the model gets the deferred tools. If zero, [Automatic].
	Disclosure Disclosure

	// AllowedCallers says who may call the tools of servers, as the provider names
	// them: for Anthropic "direct" and "code_execution_20260521" or an earlier one, for
	// OpenAI's responses "direct" and "programmatic". If nil, the model alone. With
	// others, code that the model writes calls tools from the provider's sandbox, which
	// the host adds to the request. The host answers such calls as all others. A session
	// must keep its callers when it is restored. There may be 8 names, of
	// letters, digits, "_" and "-".
	AllowedCallers []string

	// Client says that the model is that of an MCP client, as behind a gateway. Many
	// clients leave out the sections, and their users permit tools by name. So the
	// description of the search tool says what there is to find. With [ByBridge],
	// [ReadOnlyCallToolName] is offered too: who permits it permits no tool that
	// says it may write. A client checks the structured content of a tool that was listed with an output
	// schema, and a page of the server may show it (see [BridgeTool.AppURI]), so a call of such a tool by its
	// name keeps what [Options.MaxResult] would make a text.
	Client bool

	// Registry, if not nil, holds the session's callable tools: see [Registry].
	// It must not be shared with another session.
	Registry Registry

	// Hooks answer what servers ask during the session's calls. The hooks of
	// [Options.Ask] or, for a user's session, of [UserOptions] stand in for those
	// that are nil. A child has the hooks of its parent.
	Hooks ask.Hooks
}

// Wishes are what a host asked for by [SessionOptions], as far as the session looks it up later, and
// few hosts ask for.
type wishes struct {
	disclosure Disclosure
	client     bool
	label      string
	callers    []string
	skills     rules.Rights // to skills, by name; those of the parent among them
}

// noWishes are those of most sessions, which share them.
var noWishes wishes

// NewChild returns a session for a subagent. The child may use what s may use,
// narrowed by opts, and starts with the intent of s. It has its own active tools,
// changes nothing in s, and may outlive s. opts may be nil.
func (s *Session) NewChild(opts *SessionOptions) *Session {
	var o SessionOptions
	if opts != nil {
		o = *opts
	}
	o.Label, o.Hooks = cmp.Or(o.Label, s.asked.label), o.Hooks.Or(s.caller.Hooks())
	return s.tenant.newSession(s.rights, s.asked.skills, s.intentNow(), &o)
}

func (s *Session) intentNow() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.intent
}

func (of *tenant) newSession(inherited, skills rules.Rights, intent string, opts *SessionOptions) *Session {
	var o SessionOptions
	if opts != nil {
		o = *opts
	}
	o.Disclosure.validate()
	validateCallers(o.AllowedCallers)
	if len(inherited) == 0 {
		inherited = inherited.And(of.metaAccess).And(of.user.access)
	}
	s := &Session{tenant: of, rights: inherited.And(rules.Access(o.Access)), intent: rules.CutIntent(cmp.Or(o.Intent, intent)), asked: &noWishes}
	skills = skills.And(rules.Access(o.Skills))
	if o.Disclosure != Automatic || o.Client || o.Label != "" || o.AllowedCallers != nil || len(skills) > 0 {
		s.asked = &wishes{o.Disclosure, o.Client, text.Line(o.Label, maxLabel), slices.Clone(o.AllowedCallers), skills}
	}
	s.disclosure.Store(int32(o.Disclosure))
	own, told := o.Hooks.Or(of.opts.Ask.Hooks), of.opts.Ask.Hooks
	if of.below != nil { // its servers were told of other hooks
		told = of.below.opts.Ask.Hooks
	}
	s.caller = broker.NewCaller(of.user.id, own, told)
	if o.Registry != nil {
		s.registrar = newRegistrar(o.Registry, s, of.opts.Logger)
	}
	of.manager.began(s)
	return s
}

// maxCallers is how many names of callers a session has at most.
const maxCallers = 8

func validateCallers(names []string) {
	if len(names) > maxCallers {
		panic(fmt.Sprintf("mcphybrid: SessionOptions.AllowedCallers has %d names, at most %d are possible", len(names), maxCallers))
	}
	for _, name := range names {
		if !text.IsSafeName(name) {
			panic(fmt.Sprintf("mcphybrid: SessionOptions.AllowedCallers has %q, which is no name", text.Line(name, text.MaxName)))
		}
	}
}

// Close empties the session for good and removes its tools and groups from its
// registry. Close does not wait for running calls, but ends what they ask. It does
// wait for the registry: a registry's method must not call Close, and the caller
// must not hold a lock that the registry needs.
func (s *Session) Close() {
	s.mu.Lock()
	s.pages.kept.Drop()
	var stops []func()
	for sub := range s.subscribed {
		if sub.stop != nil { // else SubscribeResource sees that s is closed
			stops = append(stops, sub.stop)
		}
	}
	s.closed, s.active, s.unavailable, s.overflow, s.learned, s.lastUsed, s.shown, s.covered, s.prefix, s.transcript = true, nil, nil, nil, nil, nil, nil, nil, nil, nil
	s.knownNames, s.restored, s.links, s.subscribed, s.pages, s.refused = nil, nil, nil, nil, pages{}, nil
	s.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	s.caller.End()
	s.tenant.manager.closed(s)
}

// Problems returns an error for each entry that matches no tool in the session's
// access lists: its own, and those of the session and the user that it is of. A
// typo in Deny leaves the tool permitted. An entry that may be about a
// server that has not listed its tools yet is left out.
func (s *Session) Problems() (idle []error) {
	if len(s.rights) == 0 {
		return nil
	}
	k := s.tenant.manager.known()
	for _, a := range s.rights {
		idle = append(idle, a.Idle(k, "Access")...)
	}
	return idle
}

// SetIntent says what the conversation is about, such as "browse". From now on
// this session applies those [Options.Rules] that are for that intent. "" means
// no intent. Of an intent of more than 1,000 bytes the beginning counts, and no code
// point is split. A host that does not know the intent can ask
// [search.DetectIntents].
//
// What the model may call changes at once. What it was shown stays until
// [Session.Compact].
func (s *Session) SetIntent(intent string) {
	s.mu.Lock()
	s.intent = rules.CutIntent(intent)
	s.mu.Unlock()
	s.syncRegistry()
}

// InlineTools returns the tools that the model sees from the start, in
// registration order. The caller owns the slice.
func (s *Session) InlineTools() []*BridgeTool {
	return slices.Clone(s.view().inline)
}

// DeferredTools returns the tools that can be found and activated, in
// registration order, without the active ones.
func (s *Session) DeferredTools() []*BridgeTool {
	v := s.view()
	active := v.activeSet()
	var list []*BridgeTool
	for t, st := range v.each() {
		if st.Searchable() && !active[t] {
			list = append(list, t)
		}
	}
	return list
}

// ActiveTools returns the deferred tools that have been activated in this
// session, in the order of activation.
func (s *Session) ActiveTools() []*BridgeTool {
	return slices.Clone(s.view().active)
}

// IsSearchMode reports whether the session has tools that are not inline, so that it offers the
// search tool: more than fit, or such as a rule or [Options.JustInTime] keeps out.
func (s *Session) IsSearchMode() bool { return s.view().searchMode() }

// SearchTool returns the search tool, or nil if the session does not offer it: there is nothing to
// search for, and never was, or the session may not search. [ByBridge] always offers it, but for a
// session that [Automatic] chose it for.
func (s *Session) SearchTool() Tool { return s.metaNamed(s.view(), SearchToolName) }

// Disclosure returns how the session's model gets the deferred tools: what the host asked
// for or, if that is [Automatic], what the first [Session.Turn] chose. A runtime that
// can't send deferred tools as such can't serve [ByProvider].
func (s *Session) Disclosure() Disclosure { return Disclosure(s.disclosure.Load()) }
