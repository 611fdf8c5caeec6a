package mcphybrid

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"weak"

	"github.com/mcphybrid/mcphybrid/internal/result"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// ErrNewerState means that a newer version of the library has saved the state. Nothing is wrong
// with it, so leave it as it is: a process of that version goes on with the conversation. See
// [Options.StateVersion].
var ErrNewerState = saved.ErrNewer

// RestoreSession returns a new session in a state that [Session.Save] returned,
// in this process or another one. Pass the options of the saved session, and its
// intent as [SessionOptions.Intent]: the state gives none of them, since who stores
// it could change them.
//
// What the model was shown is shown again, to the byte, whatever servers there are, if the
// library has the version that saved the state, and the Options the same Prompt, Search,
// JustInTime, Select and Tokens: a state has no words of the library. A tool that is missing
// here stays shown, and active, until [Session.Compact]. A call of it connects its server if
// that is configured here, and otherwise tells the model that the server is not connected. The
// session shows no tool and no skill that it may not use. A tool in quarantine stays in the
// beginning of a conversation by [Session.Turn] if the definition there was trusted
// once, and is taken back behind it; otherwise it is not shown. If the definition is
// unknown here, [Options.TrustStore] is read, at most once a second for all sessions:
// what another process accepts within a second after such a read counts as unknown until
// the next one or [Manager.Refresh]. A definition from a state is never trusted: it is
// shown, and nothing else.
//
// changed names what is not as the state has it: tools by registered name that
// are missing, different, in quarantine or not permitted, and skills. It has "MaxState" if
// that option cut the state within the beginning of a conversation by [Session.Turn]: the
// next Turn begins anew. To wait for missing servers, call [Manager.AwaitServers] first.
//
// RestoreSession fails with [ErrNewerState] if a newer version of the library saved the state,
// and that one goes on with it. It also fails, with a nil session, if state is malformed, too large (see
// [Options.MaxState]) or of a version before 2, if it belongs to another user, if
// the saved session had more access lists than opts and the Manager give the
// new one, or if it had an intent and the new one has none. It also fails if the state
// refers to a part that this Manager does not have itself and [Options.StateParts]
// fails to return: an error of the store is wrapped.
func (m *Manager) RestoreSession(state json.RawMessage, opts *SessionOptions) (s *Session, changed []string, err error) {
	return m.tenant.restore(nil, nil, "", state, opts)
}

// RestoreChild is [Manager.RestoreSession] for a saved child of s: see
// [Session.NewChild]. As there, the intent is that of s, unless opts has one.
func (s *Session) RestoreChild(state json.RawMessage, opts *SessionOptions) (child *Session, changed []string, err error) {
	return s.tenant.restore(s.rights, s.asked.skills, s.intentNow(), state, opts)
}

// parseState returns the state if it belongs to the tenant's user.
func (s *tenant) parseState(state json.RawMessage) (*saved.State, error) {
	parsed, err := saved.Parse(state, s.opts.MaxState)
	if err != nil {
		return nil, fmt.Errorf("mcphybrid: the state of the session: %w", err)
	}
	if parsed.User != s.user.id { // the state may name that user's servers
		return nil, errors.New("mcphybrid: the state belongs to a session of another user")
	}
	return parsed, nil
}

func (of *tenant) restore(inherited, skills rules.Rights, intent string, data json.RawMessage, opts *SessionOptions) (*Session, []string, error) {
	state, err := of.parseState(data)
	if err != nil {
		return nil, nil, err
	}
	s := of.newSession(inherited, skills, intent, opts)
	turns, err := s.restoreTurns(state.Told)
	if err != nil {
		s.Close()
		return nil, nil, fmt.Errorf("mcphybrid: the state of the session: %w", err)
	}
	r := restorer{s: s, v: s.view(), turns: turns, full: state.Full, kept: make(restoredTools), gone: make(map[*BridgeTool]bool), shows: make(map[string]bool), told: make(map[string]bool)}
	if err = state.Fits(len(s.rights), len(s.asked.skills), s.intent); err == nil {
		if err = r.read(state); err != nil {
			err = fmt.Errorf("the state of the session: %w", err)
		}
	}
	if err != nil {
		s.Close()
		return nil, nil, fmt.Errorf("mcphybrid: %w", err)
	}
	s.mu.Lock()
	s.lastUsed = make(map[string]lastUse, len(state.Active))
	for i, a := range state.Active {
		if t := r.tools[a.Tool-1]; t != nil && s.lastUsed[t.name].activation == 0 {
			s.lastUsed[t.name] = lastUse{turn: max(0, min(a.Used, state.Turn)), activation: i + 1}
			s.unavailable = append(s.unavailable, t) // until it is there: refit makes it active
		}
	}
	s.userTurn, s.pages = max(state.Turn, 0), pages{max(state.Results, 0), result.Restored(state.Cut), state.Paged}
	if state.Refused != nil && state.Refused.Times > 0 {
		s.refused = state.Refused
	}
	s.activations, s.full, s.restored, s.seen = len(state.Active), state.Full, r.kept, weak.Pointer[partition]{}
	s.setShown(r.list, r.prefix)
	if s.transcript = nil; r.turns.begun {
		s.transcript = &r.turns
	}
	s.remember(r.names)
	s.viewLocked()
	s.mu.Unlock()
	s.syncRegistry()
	return s, r.changed, nil
}

// A restorer turns a saved list into the list that s may show.
type restorer struct {
	s       *Session
	v       *view
	full    bool          // a tool had no room in the saved session, so it offers CallToolName
	tools   []*BridgeTool // those of the state; nil for one that s may not show
	kept    restoredTools
	gone    map[*BridgeTool]bool // tools that had left where they were saved
	list    []listItem
	names   []knownName
	prefix  *promptPrefix   // with which list begins, or nil
	shows   map[string]bool // what list has that it may have once
	changed []string
	told    map[string]bool // the names in changed
	turns   transcript      // as saved, but for the places

	permitted map[string]bool // by server of the catalogs: the session may use one of its tools
}

func (r *restorer) report(name string) {
	if !r.told[name] {
		r.told[name] = true
		r.changed = append(r.changed, name)
	}
}

// permits reports whether the session may use a tool that may not be here.
func (r *restorer) permits(t rules.Subject) bool {
	return r.v.rights.Permit(t) && rules.Access(r.s.tenant.opts.Access).Permits(t)
}

// read reads the tools and the items of a state.
func (r *restorer) read(state *saved.State) error {
	if err := r.readPrefix(state); err != nil {
		return err
	}
	for _, t := range state.Tools[len(r.tools):] {
		tool, err := r.tool(t, state)
		if err != nil {
			return fmt.Errorf("tool %q: %w", t.Name, err)
		}
		r.tools = append(r.tools, tool)
		r.gone[tool] = t.Gone
	}
	here := make([]int, 0, len(r.list)+len(state.Shown)+1) // length of the list here, by that of the saved one
	for n := range len(r.list) + 1 {
		here = append(here, n)
	}
	for i, item := range state.Shown {
		e, ok, err := r.item(item)
		if err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
		if ok {
			r.show(e)
		} else if item.Tool > 0 {
			r.remember(state.Tools[item.Tool-1], r.tools[item.Tool-1])
		}
		if first := state.PrefixLen.Items; i+1 == first && len(r.list) == first {
			r.prefix = &promptPrefix{items: slices.Clip(r.list), own: true}
		}
		here = append(here, len(r.list))
	}
	if !r.turns.restore(state.Told, here) {
		r.report("MaxState")
	}
	return nil
}

// restore sets the places of a saved conversation, as they are in the list here, which may
// lack items. here is its length by that of the saved list. It returns false if the state was
// cut within the beginning, so that the next Turn begins anew.
func (t *transcript) restore(told *saved.Told, here []int) bool {
	if !t.begun {
		return true
	}
	if told.Begun >= len(here) {
		*t = transcript{}
		return false
	}
	place := func(n int) int32 { return int32(here[max(0, min(n, len(here)-1))]) }
	t.base = place(told.Begun)
	t.told = max(t.base, place(told.Items))
	for _, p := range told.Inserts {
		in := insert{told: max(t.base, place(p.Items)), at: int32(max(0, min(p.At, math.MaxInt32)))}
		if n := len(t.inserts); n > 0 {
			in.told, in.at = max(in.told, t.inserts[n-1].told), max(in.at, t.inserts[n-1].at)
		}
		t.inserts = append(t.inserts, in)
	}
	return true
}

// restoreTurns has s begin as a saved conversation did, unless the host asks for another
// disclosure now. It returns what the model was told, in which the places are missing.
func (s *Session) restoreTurns(told *saved.Told) (t transcript, err error) {
	if told == nil {
		return t, nil
	}
	d := Disclosure(slices.Index(disclosureNames[:], told.By))
	if d <= Automatic {
		return t, fmt.Errorf("there is no disclosure %q", text.Line(told.By, text.MaxName))
	}
	if s.asked.disclosure != Automatic && s.asked.disclosure != d {
		return t, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disclosure.Store(int32(d))
	s.transcript = &transcript{noBridge: told.NoBridge && d == ByBridge, loads: told.Loads && d == ByProvider}
	return transcript{begun: true, noBridge: s.transcript.noBridge, adds: told.Adds, loads: s.transcript.loads, why: disclosureReason(max(0, min(told.Why, len(reasons)-1)))}, nil
}

// readPrefix reads what a saved list began with, if the state has that apart. If sessions like s begin with the
// same here, the list shares that, and nobody reads what the state says of it.
func (r *restorer) readPrefix(state *saved.State) error {
	if state.PrefixKey == "" {
		return nil
	}
	o, w := r.v.promptPrefix(), saver{isGone: func(*BridgeTool) bool { return false }} // all are in the catalogs
	if w.save(o.items, o); len(o.items) == 0 || w.state.Key() != state.PrefixKey {
		return state.Whole(r.s.tenant.parts)
	}
	if err := state.Begin(saved.Prefix{Tools: w.state.Tools}); err != nil {
		return err
	}
	r.tools, r.prefix = make([]*BridgeTool, len(w.places)), o
	for t, place := range w.places {
		r.tools[place-1] = t
	}
	for _, e := range o.items {
		r.show(e)
	}
	r.list = slices.Clip(o.items)
	return nil
}

// remember has the name of a tool that the list does not show mean that tool. kept is
// nil if s may not show it.
func (r *restorer) remember(t saved.Tool, kept *BridgeTool) {
	r.names = append(r.names, knownName{t.Subject, r.ownerOf(t)})
	if kept != nil && kept.through != nil && r.kept[kept.name] == nil {
		r.kept[kept.name] = &restoredTool{kept, r.gone[kept]}
	}
}

func (r *restorer) ownerOf(t saved.Tool) *owner {
	if sc := r.s.tenant; !t.OfUser && sc.below != nil {
		return sc.below.owner
	}
	return r.s.tenant.owner
}

// tool returns the tool of the catalog that is the saved one, in the saved version.
// If there is none, it returns one made from the state, and nil if the session may
// not show it. It reports all but the first of these.
func (r *restorer) tool(t saved.Tool, state *saved.State) (*BridgeTool, error) {
	sc, owner := r.s.tenant, r.ownerOf(t)
	if _, meta := metaKindOf(t.Name); meta || t.OfUser != (owner.user != "") {
		return nil, errors.New("no such tool can be in this state")
	}
	var there *BridgeTool
	var held *ChangedError
	if c := r.v.of(owner); c != nil {
		held = c.quarantineOf(t.Subject)
		if same := c.tool(t.Name); same != nil && same.def.Server == t.Server && same.def.Own == t.Own { // even if the user has a tool of this name by now
			there = same
		}
	}
	if !r.permits(t.Subject) || !sc.manager.permits(owner, t.Subject) || held != nil && !r.turns.begun {
		r.report(t.Name)
		return nil, nil
	}
	if there != nil && t.Is(there.def.Raw, &there.def.Trusted.Sum) {
		return there, nil
	}
	kept := &BridgeTool{name: t.Name, owner: owner, through: r.s.Call, def: new(definition)}
	name := func(d *definition) { d.Server, d.Own, d.registered, d.wanted = t.Server, t.Own, t.Name, t.Wanted }
	name(kept.def)
	if err := state.Load(&t, sc.parts); err != nil {
		return nil, err
	}
	if t.Definition != nil {
		d, err := parseDefinition(t.Server, json.RawMessage(t.Definition), sc.opts.Limits.MaxDefinition)
		if err == nil && d.Own != t.Own {
			err = errors.New("the definition is of another tool")
		}
		if err != nil {
			return nil, err
		}
		if !d.Apps.model { // no session has shown it
			r.report(t.Name)
			return nil, nil
		}
		kept.def = d
		name(d)
	}
	if held != nil && (t.Definition == nil || !r.trusts(kept)) {
		r.report(t.Name)
		return nil, nil
	}
	if there == nil || there.def.Canonical() != kept.def.Canonical() {
		r.report(t.Name)
	}
	return kept, nil
}

// trusts reports whether a definition of a tool in quarantine was trusted once, here or by
// another process.
func (r *restorer) trusts(t *BridgeTool) bool {
	return r.s.tenant.manager.trusted(t.owner, t.def)
}

// item returns the item whose saved form is e, and whether the session may show it.
func (r *restorer) item(e saved.Item) (x listItem, ok bool, err error) {
	i := slices.IndexFunc(savedForms, func(f savedForm) bool { return f.kind == e.Kind && f.tool == (e.Tool > 0) })
	if i < 0 {
		return x, false, fmt.Errorf("there is no kind %q of items, or it has no tool", text.Line(e.Kind, text.MaxName))
	}
	f := savedForms[i]
	x = listItem{slot: f.slot, section: f.section, line: min(lineForm(max(e.Line, 0)), lineForms-1)}
	switch {
	case f.kind == savedName:
		return x, false, nil
	case f.tool:
		if x.tool = r.tools[e.Tool-1]; x.tool != nil && x.tool.def.Raw == nil {
			return x, false, errors.New("its tool has no definition")
		}
		return x, x.tool != nil && (x.slot != asDeferred || r.v.disclosure == ByProvider), nil
	case f.slot == asMeta:
		kind, ok := metaKindOf(e.Meta)
		if !ok || (kind == metaSearch) != (f.section == searchText) {
			return x, false, fmt.Errorf("there is no such tool %q", text.Line(e.Meta, text.MaxName))
		}
		x.meta = kind
		if f.section == searchText {
			x.mentions = r.mentioned(e.Servers)
		}
		bridge := x.meta == metaDescribe || x.meta == metaCall || x.meta == metaReadOnlyCall
		return x, mayUse(r.v.rights, e.Meta) && (!bridge || r.v.disclosure == ByBridge || r.full), nil
	case f.section == callableText:
		kind, ok := metaKindOf(e.Meta)
		if !ok {
			return x, false, fmt.Errorf("there is no such tool %q", text.Line(e.Meta, text.MaxName))
		}
		x.meta = kind
		return x, mayUse(r.v.rights, e.Meta) && r.v.disclosure == ByBridge, nil
	case f.section == guideText:
		return x, true, nil
	case f.section == skillText && e.Skills != nil:
		o, err := r.v.restoreSkills(e.Skills, r.report)
		x.mentions = &mentions{skills: o}
		return x, o != nil, err
	}
	x.mentions = r.mentioned(e.Servers)
	return x, len(x.mentions.servers) > 0, nil
}

// show appends an item to the list, unless its tool is there already. Only a forged
// state has one twice.
func (r *restorer) show(e listItem) {
	name := ""
	switch {
	case e.slot == asRemoved:
		delete(r.shows, e.tool.name)
	case e.isTool():
		name = e.tool.name
	case e.isMeta():
		name = e.meta.name()
	case e.section == guideText || e.section == exampleText: // making one can take long
		name = "an example"
	case e.section == summaryLines && e.tool != nil:
		name = "a summary of " + e.tool.name
	case e.section == activeText:
		name = e.tool.name
	}
	if name != "" && r.shows[name] {
		return
	}
	r.shows[name] = true
	if e.tool != nil && e.tool.through != nil {
		r.kept[e.tool.name] = &restoredTool{e.tool, r.gone[e.tool]}
	}
	r.list = append(r.list, e)
}

// mentioned returns what of the servers that a saved item tells of the session may know: servers of
// which it may use a tool, or the one that stands for those that it was told of. If it is what
// sessions like s are told first, they share it.
func (r *restorer) mentioned(servers []*saved.Server) *mentions {
	kept := serverList{}
	for _, o := range servers {
		if r.permits(o.Tool) || r.permitsOneOf(o.Server) {
			kept = append(kept, o)
		}
	}
	if lastServers(r.list) == nil { // else others would share what this list alone mentions before
		if all := r.v.searchableServers(); slices.EqualFunc(all.servers, kept, (*saved.Server).Same) {
			return all
		}
	}
	return &mentions{servers: kept}
}

// permitsOneOf reports whether the session may use a tool of that server that is here.
func (r *restorer) permitsOneOf(server string) bool {
	if r.permitted == nil {
		r.permitted = make(map[string]bool)
		for t := range r.v.each() {
			if !r.permitted[t.def.Server] {
				r.permitted[t.def.Server] = r.v.rights.Permit(t.def.subject())
			}
		}
	}
	return r.permitted[server]
}
