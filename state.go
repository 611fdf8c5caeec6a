package mcphybrid

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// stateVersion is the version of the format in which sessions are saved.
const stateVersion = 1

// A savedSession is the saved state of a session.
type savedSession struct {
	Version int          `json:"version"`
	Catalog string       `json:"catalog"` // fingerprint
	User    string       `json:"user,omitempty"`
	Lists   int          `json:"lists"`            // number of access lists on its tools
	Skills  int          `json:"skills,omitempty"` // number of access lists on its skills
	Turn    int          `json:"turn"`
	Intent  string       `json:"intent,omitempty"`
	Shown   []savedShown `json:"shown,omitempty"`
	Active  []savedTool  `json:"active,omitempty"`  // in activation order
	Results int          `json:"results,omitempty"` // number of results cut so far
	Paged   bool         `json:"paged,omitempty"`   // one was cut since the last Compact
	Refused *refusal     `json:"refused,omitempty"`
}

// A savedShown is a [shown] with names instead of tools.
type savedShown struct {
	Inline   string       `json:"inline,omitempty"`
	Active   string       `json:"active,omitempty"`
	Deferred string       `json:"deferred,omitempty"`
	Sum      string       `json:"sum,omitempty"` // start of the hash of the tool's definition
	Summary  string       `json:"summary,omitempty"`
	Example  string       `json:"example,omitempty"`
	Line     lineForm     `json:"line,omitempty"`   // of Inline and Summary
	Counts   int          `json:"counts,omitempty"` // see savedCounts
	Meta     string       `json:"meta,omitempty"`
	Offer    *searchOffer `json:"offer,omitempty"`
	Skills   *savedSkills `json:"skills,omitempty"`
}

// A savedName is the member of a [savedShown] that names the tool of an item with
// that place and section.
type savedName struct {
	place   place
	section section
	member  func(*savedShown) *string
}

var savedNames = []savedName{
	{asTool, inlineLines, func(s *savedShown) *string { return &s.Inline }},
	{asTool, noSection, func(s *savedShown) *string { return &s.Active }},
	{asDeferred, noSection, func(s *savedShown) *string { return &s.Deferred }},
	{notListed, summaryLines, func(s *savedShown) *string { return &s.Summary }},
	{notListed, exampleText, func(s *savedShown) *string { return &s.Example }},
}

// savedCounts are the values of Counts, by the section that has the counts.
var savedCounts = map[section]int{inlineLines: 5, summaryLines: 7}

// save returns the saved form of e; restorer.item is its inverse.
func (e shown) save() savedShown {
	saved := savedShown{Line: e.line}
	if e.tool != nil {
		i := slices.IndexFunc(savedNames, func(n savedName) bool { return n.place == e.place && n.section == e.section })
		*savedNames[i].member(&saved), saved.Sum = e.tool.name, e.tool.def.shortSum()
		return saved
	}
	if e.place == asMeta {
		saved.Meta = metaNames[e.meta]
	}
	if e.offer != nil && e.section == skillText {
		saved.Skills = e.offer.skills.save()
	} else if e.offer != nil {
		saved.Offer, saved.Counts = &e.offer.servers, savedCounts[e.section]
	}
	return saved
}

// item returns the item whose saved form is saved, if the session may show it.
func (r *restorer) item(saved savedShown) (e shown, ok bool) {
	for _, n := range savedNames {
		if name := *n.member(&saved); name != "" {
			e = shown{place: n.place, section: n.section, line: min(saved.Line, lineForms-1), tool: r.tool(name, saved.Sum)}
			return e, e.tool != nil && (e.place != asDeferred || r.v.disclosure == ByProvider)
		}
	}
	switch {
	case saved.Meta != "":
		e = shown{place: asMeta, meta: metaKind(slices.Index(metaNames[:], saved.Meta))}
		if bridge := e.meta == metaDescribe || e.meta == metaCall; e.meta >= metaKinds || bridge && r.v.disclosure != ByBridge || !r.v.rights.mayUse(saved.Meta) {
			return e, false
		}
		if e.meta == metaSearch {
			e.section, e.offer = searchText, r.offer(saved.Offer)
		}
		return e, true
	case saved.Skills != nil:
		o := r.v.restoreSkills(saved.Skills, r.report)
		return shown{section: skillText, offer: &told{skills: o}}, o != nil
	}
	e = shown{section: searchText, offer: r.offer(saved.Offer)}
	for in, counts := range savedCounts {
		if saved.Counts == counts {
			e.section = in
		}
	}
	return e, len(e.offer.servers) > 0
}

type savedTool struct {
	Tool string `json:"tool"`
	Used int    `json:"used"` // turn of the last use
}

// shortSum returns a short hash that differs when the definition has changed.
func (d *definition) shortSum() string { return d.canonical()[:8] }

// Save returns the session's state as a JSON object, to be restored with
// [Manager.RestoreSession]. It has the active tools, what the model was shown and
// in which order, the turn and the intent. It has no definitions, no figures and
// no cut results. It takes a few kilobytes, or with [ByProvider] a few dozen bytes
// for each tool.
func (s *Session) Save() json.RawMessage {
	s.mu.Lock()
	v := s.viewLocked()
	active := v.active
	if v.ended && !s.closed {
		active = s.active // the tools that were active when the Manager was closed
	}
	state := savedSession{
		Version: stateVersion, User: s.scope.user.id, Lists: len(s.rights), Skills: len(s.skills), Turn: s.turn, Intent: s.intent,
		Results: s.pages.last, Paged: s.pages.offered,
	}
	if s.refused.Times > 0 {
		r := s.refused
		state.Refused = &r
	}
	for _, e := range s.shown {
		state.Shown = append(state.Shown, e.save())
	}
	for _, t := range active {
		state.Active = append(state.Active, savedTool{t.name, s.used[t.name]})
	}
	s.mu.Unlock()
	for _, c := range v.catalogs {
		state.Catalog += c.fingerprint()
	}
	return json.RawMessage(text.JSON(state))
}

// RestoreSession returns a new session in a state that [Session.Save] returned,
// in this process or another one. Pass the options of the saved session: the
// state does not include them.
//
// If the catalog is the same as before, the session goes on exactly as the saved
// one would, to the byte. Otherwise it keeps the tools and skills that still
// exist, in the same order. changed names those that were active or shown and now
// are missing, not permitted or different: tools by registered name, and skills.
//
// RestoreSession fails, with a nil session, if state is malformed or of an unknown
// version, if it belongs to another user, or if the saved session had more access
// lists than opts and the Manager give the new one.
func (m *Manager) RestoreSession(state json.RawMessage, opts *SessionOptions) (s *Session, changed []string, err error) {
	return m.scope.restore(nil, nil, state, opts)
}

// RestoreChild is [Manager.RestoreSession] for a saved child of s: see
// [Session.NewChild].
func (s *Session) RestoreChild(state json.RawMessage, opts *SessionOptions) (child *Session, changed []string, err error) {
	return s.scope.restore(s.rights, s.skills, state, opts)
}

func (sc *scope) restore(inherited, skills rights, state json.RawMessage, opts *SessionOptions) (*Session, []string, error) {
	var saved savedSession
	if err := json.Unmarshal(state, &saved); err != nil {
		return nil, nil, fmt.Errorf("mcphybrid: the state of the session: %w", text.JSONError(state, err))
	}
	if saved.Version != stateVersion {
		return nil, nil, fmt.Errorf("mcphybrid: the state of the session has version %d, want %d", saved.Version, stateVersion)
	}
	if saved.User != sc.user.id { // the state may name that user's servers
		return nil, nil, errors.New("mcphybrid: the state belongs to a session of another user")
	}
	s := sc.newSession(inherited, skills, saved.Intent, opts)
	if saved.Lists > len(s.rights) {
		s.Close()
		return nil, nil, fmt.Errorf("mcphybrid: the saved session has more access lists than the new one, %d instead of %d: pass the same options, and restore a child with its parent's RestoreChild", saved.Lists, len(s.rights))
	}
	if saved.Skills > len(s.skills) {
		s.Close()
		return nil, nil, fmt.Errorf("mcphybrid: the saved session has more lists of skills than the new one, %d instead of %d: pass the same options, and restore a child with its parent's RestoreChild", saved.Skills, len(s.skills))
	}
	r := restorer{s: s, v: s.view(), named: make(map[string]bool)}
	for _, e := range saved.Shown {
		r.show(e)
	}
	var names []string
	for _, t := range saved.Active {
		if r.lookup(t.Tool) != nil {
			names = append(names, t.Tool)
		}
	}
	callable, _ := s.makeActive(names)
	for _, name := range names {
		if !slices.ContainsFunc(callable, func(t *BridgeTool) bool { return t.name == name }) {
			r.report(name) // the registry did not take it
		}
	}
	s.mu.Lock()
	s.turn, s.pages.last, s.pages.offered = max(saved.Turn, 0), max(saved.Results, 0), saved.Paged
	for _, t := range saved.Active {
		if _, ok := s.used[t.Tool]; ok {
			s.used[t.Tool] = max(0, min(t.Used, s.turn))
		}
	}
	if saved.Refused != nil {
		s.refused = *saved.Refused
	}
	s.usage.activations = 0
	s.setShown(r.list)
	s.mu.Unlock()
	if s.registrar != nil {
		s.registrar.Sync()
	}
	return s, r.changed, nil
}

// A restorer turns a saved list into the list that s may show.
type restorer struct {
	s       *Session
	v       view
	list    []shown
	named   map[string]bool // the names in the tool list
	changed []string
}

func (r *restorer) report(name string) {
	if !slices.Contains(r.changed, name) {
		r.changed = append(r.changed, name)
	}
}

func (r *restorer) lookup(name string) *BridgeTool {
	t, _ := r.v.lookup(name)
	if t == nil {
		r.report(name)
	}
	return t
}

// show appends an item to the list, unless its tool is in the tool list already.
func (r *restorer) show(saved savedShown) {
	e, ok := r.item(saved)
	if !ok {
		return
	}
	if e.place != notListed {
		name := saved.Meta
		if e.isTool() {
			name = e.tool.name
		}
		if r.named[name] {
			return
		}
		r.named[name] = true
	}
	r.list = append(r.list, e)
}

// tool returns the tool with that name, or nil. It reports a tool that is missing
// or has another definition than sum says.
func (r *restorer) tool(name, sum string) *BridgeTool {
	t := r.lookup(name)
	if t != nil && sum != t.def.shortSum() {
		r.report(name)
	}
	return t
}

// offer returns the part of o that the session may know.
func (r *restorer) offer(o *searchOffer) *told {
	kept := &told{servers: searchOffer{}}
	if o == nil {
		return kept
	}
	for _, offer := range *o {
		there, seen := false, false
		for t, p := range r.v.each() {
			if t.def.server == offer.Server {
				there, seen = true, seen || p != hidden
			}
		}
		// The model was told of a server even if it has left the catalog since.
		if seen || !there && r.v.rights.permit(anyTool(names.Alone(offer.Server, ""))) {
			kept.servers = append(kept.servers, offer)
		}
	}
	return kept
}

// fingerprint returns a hash of the catalog. Equal catalogs have the same, in any
// process.
func (c *catalog) fingerprint() string {
	c.print.once.Do(func() {
		h := sha256.New()
		for i, t := range c.tools {
			_, indexed := slices.BinarySearch(c.indexed, i)
			fmt.Fprintf(h, "%s %t %x\n", t.name, !indexed, t.def.sum)
		}
		c.print.text = hex.EncodeToString(h.Sum(nil)[:8])
	})
	return c.print.text
}
