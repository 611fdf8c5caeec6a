package mcphybrid

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"weak"

	"github.com/mcphybrid/mcphybrid/internal/registrar"
)

// A Session is one conversation's view of a [Manager]: what it may use of the
// catalog, which deferred tools are active in it, and what its model was shown.
// Its methods may be called concurrently; those that only read never wait for a
// registry, a server or another session.
type Session struct {
	scope      *scope                     // what it shares with others
	rights     rights                     // fixed at creation
	disclosure Disclosure                 // fixed at creation
	skills     rights                     // by name of skills; fixed at creation
	registrar  *registrar.Registrar[Tool] // nil without a registry
	meta       [metaKinds]metaTool

	mu      sync.Mutex
	seen    weak.Pointer[selection] // that active was last checked against; an idle session does not keep it
	active  []*BridgeTool           // in activation order; replaced, never changed
	used    map[string]int          // by registered name of active tools: the turn of the last use
	turn    int
	shown   []shown // appended to until Compact
	shownAs stamp   // what shown was last brought up to
	metas   metaSet // in shown
	pages   pages
	refused refusal
	usage   sessionUsage
	intent  string
	closed  bool
}

// SessionOptions configure a [Session]. The zero value is a session that may
// use the whole catalog and has no registry.
type SessionOptions struct {
	// Access says, by registered name, which of the Manager's tools the
	// session may use. It can't give back what the Manager's own [Options]
	// take away. Of those that are left, the first [Options.MaxInline] are
	// inline; if it denies [SearchToolName], all.
	Access Access

	// Skills says, by name, which of the Manager's skills the session may use.
	// If Access denies [SkillLoadToolName], it may use none; if that denies
	// [SkillSearchToolName], all are listed, however many.
	Skills Access

	// Disclosure is how the model comes to the deferred tools. If zero,
	// [ByActivation].
	Disclosure Disclosure

	// Registry, if not nil, is kept in step with the session: see [Registry].
	// It must not be shared with another session.
	Registry Registry
}

// NewChild returns a session for a subagent: it may use what s may, less what
// opts take away, has the intent that s has now and active tools of its own,
// and leaves no trace in s. It may outlive s.
func (s *Session) NewChild(opts *SessionOptions) *Session {
	s.mu.Lock()
	intent := s.intent
	s.mu.Unlock()
	return s.scope.newSession(s.rights, s.skills, intent, opts)
}

func (sc *scope) newSession(inherited, skills rights, intent string, opts *SessionOptions) *Session {
	var o SessionOptions
	if opts != nil {
		o = *opts
	}
	o.Disclosure.validate()
	if len(inherited) == 0 {
		inherited = inherited.and(sc.metaAccess).and(sc.user.access)
	}
	s := &Session{scope: sc, rights: inherited.and(o.Access), intent: intent, disclosure: o.Disclosure, skills: skills.and(o.Skills)}
	for kind := range s.meta {
		s.meta[kind] = metaTool{s, metaKind(kind)}
	}
	if o.Registry != nil {
		s.registrar = registrar.New(o.Registry, registered{s}, sc.opts.Logger)
	}
	sc.keeper.began(s)
	return s
}

// Close empties the session for good. A registry that it had is left without
// its tools and groups. Close does not wait for tools that run. Since it waits
// for the registry, it must not be called by a method of the registry, nor
// with a lock held that the registry needs.
func (s *Session) Close() {
	s.mu.Lock()
	s.closed, s.active, s.used, s.shown, s.pages = true, nil, nil, nil, pages{}
	s.mu.Unlock()
	s.scope.keeper.closed(s)
}

// A view is a session at one moment: what it sees of tools, and the active ones
// among them.
type view struct {
	*selection
	scope      *scope
	disclosure Disclosure
	active     []*BridgeTool // searchable; not to be changed
	paged      bool          // there are results to be read on
	metas      metaSet       // that the model was shown, and so may call

	skills      *skillSet
	skillRights rights
}

// view returns the session as it is now.
func (s *Session) view() view {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.viewLocked()
}

func (s *Session) viewLocked() view {
	if s.closed {
		return view{selection: endedSelection, scope: s.scope, skills: noSkills}
	}
	now := s.seen.Value()
	if !s.scope.current(now) || now.intent != s.intent {
		if now = s.scope.selection(s.rights, s.intent); now.ended {
			return view{selection: endedSelection, scope: s.scope, skills: noSkills}
		}
		s.active = stillSearchable(now, s.active)
		s.forgetUnused()
		s.seen = weak.Make(now)
	}
	return view{
		selection: now, scope: s.scope, disclosure: s.disclosure, active: s.active, paged: s.pages.offered, metas: s.metas,
		skills: s.scope.skills.cur.Load(), skillRights: s.skills,
	}
}

// stillSearchable returns those of tools that are so, in their order, as they
// are now. A server that was removed and added again has new tools: what was
// active of it is not.
func stillSearchable(now *selection, tools []*BridgeTool) []*BridgeTool {
	var kept []*BridgeTool
	for _, t := range tools {
		if there, p := now.lookup(t.name); p.searchable() && there.def == t.def {
			kept = append(kept, there)
		}
	}
	return kept
}

func (v view) isActive(name string) bool {
	return slices.ContainsFunc(v.active, func(t *BridgeTool) bool { return t.name == name })
}

// activeSet returns the active tools as a set.
func (v view) activeSet() map[*BridgeTool]bool {
	set := make(map[*BridgeTool]bool, len(v.active))
	for _, t := range v.active {
		set[t] = true
	}
	return set
}

// SetIntent says what the conversation is about: of [Options.Rules], those for
// that intent are in force from now on, in this session. A host that does not
// know it may ask [search.DetectIntents]. "" is no intent. What the model was shown
// before stays, until [Session.Compact]; what it may call changes at once.
func (s *Session) SetIntent(intent string) {
	s.mu.Lock()
	s.intent = intent
	s.mu.Unlock()
	if s.registrar != nil {
		s.registrar.Sync()
	}
}

// InlineTools returns the tools that the model sees from the start, in
// registration order.
func (s *Session) InlineTools() []*BridgeTool {
	return slices.Clone(s.view().inline)
}

// DeferredTools returns the tools that can be found and activated, in
// registration order. Active ones are not among them.
func (s *Session) DeferredTools() []*BridgeTool {
	v := s.view()
	active := v.activeSet()
	var list []*BridgeTool
	for t, p := range v.each() {
		if p.searchable() && !active[t] {
			list = append(list, t)
		}
	}
	return list
}

// ActiveTools returns the tools that were deferred and have been activated in
// this session, in the order of their activation.
func (s *Session) ActiveTools() []*BridgeTool {
	return slices.Clone(s.view().active)
}

// IsSearchMode reports whether there are more tools than fit inline, so that
// the session offers the search tool.
func (s *Session) IsSearchMode() bool { return s.view().searchMode() }

// SearchTool returns the search tool, or nil if there is nothing to search
// for or the session may not.
func (s *Session) SearchTool() Tool { return s.metaNamed(s.view(), SearchToolName) }

// callable returns what is callable now in the session: the inline tools, the
// meta tools and the active tools.
func (s *Session) callable(v view) []Tool {
	var list []Tool
	for _, t := range v.inline {
		list = append(list, t)
	}
	list = append(list, s.metaTools(v)...)
	for _, t := range v.active {
		list = append(list, t)
	}
	return list
}

// User returns the id of the user whose session it is, or "" if it is the
// system's: see [Manager.NewUser].
func (s *Session) User() string { return s.scope.user.id }

// A registered is a session as its registry's registrar knows it.
type registered struct{ s *Session }

// Offer returns what belongs in the session's registry.
func (r registered) Offer() registrar.Offer[Tool] {
	o := registrar.Offer[Tool]{Tools: r.s.callable(r.s.view()), Groups: make(map[string][]string)}
	for _, t := range o.Tools {
		if b, ok := t.(*BridgeTool); ok {
			o.Groups[GroupAll] = append(o.Groups[GroupAll], b.name)
			o.Groups[GroupServer+b.def.server] = append(o.Groups[GroupServer+b.def.server], b.name)
		}
	}
	return o
}

// Offered returns the tool that belongs in the session's registry under name,
// or nil.
func (r registered) Offered(name string) Tool {
	v := r.s.view()
	if t := r.s.metaNamed(v, name); t != nil {
		return t
	}
	if t, p := v.lookup(name); p == inline || v.isActive(name) {
		return t
	}
	return nil
}

// Known returns the tool of that name that the session may use, or nil.
func (r registered) Known(name string) Tool {
	if t, _ := r.s.view().lookup(name); t != nil {
		return t
	}
	return nil
}

// Copy returns a copy of t, whose calls go through the session.
func (r registered) Copy(t Tool) Tool {
	switch t := t.(type) {
	case *BridgeTool:
		return t.copyFor(r.s.Call)
	case *metaTool:
		return &metaTool{r.s, t.kind}
	}
	return t // never: a session offers no others
}

// NextTurn tells the session that a new turn of the conversation begins, such
// as with each message of the user. Only the host knows what a turn is; if it
// never says so, no tool is too old to stay active.
func (s *Session) NextTurn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
}

// Compact makes room and begins the list of tools and the prompt sections
// anew, by the catalog as it is now. It is the one safe point: only here does
// anything leave or change that the model was sent. A host calls it when it
// rewrites the conversation anyway, since the provider's cache of it is lost.
//
// Active tools are given up that were not used for [Options.ActiveTurns]
// turns, and the least recently used of more than [Options.MaxActive]; never
// one that was found or called in this turn. Compact returns them, in the
// order of their activation: they are deferred again, and can be found and
// called again. Results that were cut can no longer be read on.
func (s *Session) Compact() []*BridgeTool {
	s.mu.Lock()
	v := s.viewLocked()
	kept, gone := s.divide(v.active)
	s.active = kept
	s.forgetUnused()
	s.setShown(nil)
	s.pages.kept, s.pages.offered, s.refused = nil, false, refusal{}
	s.mu.Unlock()
	if s.registrar != nil {
		s.registrar.Sync()
	}
	if len(gone) > 0 {
		s.tell(Event{Kind: EventEvict, Tools: namesOf(gone)})
	}
	return gone
}

// forgetUnused forgets when tools were used that are not active. It is called
// with mu held.
func (s *Session) forgetUnused() {
	maps.DeleteFunc(s.used, func(name string, _ int) bool {
		return !slices.ContainsFunc(s.active, func(t *BridgeTool) bool { return t.name == name })
	})
}

// divide divides the active tools into those that stay and those that go.
func (s *Session) divide(active []*BridgeTool) (kept, gone []*BridgeTool) {
	byUse := slices.Clone(active)
	slices.SortStableFunc(byUse, func(a, b *BridgeTool) int { return cmp.Compare(s.used[a.name], s.used[b.name]) })
	excess := len(active) - s.scope.opts.MaxActive
	goes := make(map[*BridgeTool]bool)
	for i, t := range byUse {
		age := s.turn - s.used[t.name]
		goes[t] = age > 0 && (i < excess || age >= s.scope.opts.ActiveTurns)
	}
	for _, t := range active {
		if goes[t] {
			gone = append(gone, t)
		} else {
			kept = append(kept, t)
		}
	}
	return kept, gone
}
