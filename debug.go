package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/erase"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"

	"github.com/mcphybrid/mcphybrid/search"
)

// A Snapshot shows a Manager to people, as one of its sessions sees it. It works
// on a copy of that session, so reading it changes nothing in the session. Each
// method reads the Manager's state at the time of the call. Package debug renders
// it as web pages.
//
// A Snapshot hides the secrets of the servers' configurations in all names,
// errors and texts.
type Snapshot struct {
	Closed bool     // the Manager is closed
	User   SafeText // the id of the [User] whose Snapshot it is, or ""

	m       *Manager
	session liveSession // a copy
	eraser  *erase.Eraser

	managers []*Manager // m, and that of the user whose session it is
}

// Snapshot returns a view of the Manager as the session with that number sees it.
// 0 is the default session. [Manager.Watch] numbers the others. Snapshot fails if
// there is no such session.
func (m *Manager) Snapshot(session int) (*Snapshot, error) {
	s, err := m.numbered(session)
	if err != nil {
		return nil, prefixed(err, "")
	}
	s.Session = s.double()
	managers := slices.Compact([]*Manager{m, s.scope.manager.(*Manager)})
	snap := &Snapshot{Closed: m.life.Err() != nil, m: m, session: s, eraser: m.eraser(), managers: managers}
	snap.User = snap.Text(m.user.id)
	return snap, nil
}

// double returns a copy of s. Reading the copy changes nothing in s.
func (s *Session) double() *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &Session{
		scope: s.scope, rights: s.rights, asked: s.asked, seen: s.seen, active: s.active, unavailable: s.unavailable, overflow: s.overflow, full: s.full,
		used: maps.Clone(s.used), turn: s.turn, shown: slices.Clip(s.shown), knownNames: s.knownNames, shownAs: s.shownAs, metas: s.metas, kept: s.kept, activations: s.activations,
		usage: s.usage, ledger: s.ledger.double(), intent: s.intent, closed: s.closed, skills: s.skills,
	}
	d.pages.offered, d.links = s.pages.offered, s.links
	d.disclosure.Store(s.disclosure.Load())
	if s.turns != nil {
		turns := *s.turns
		d.turns = &turns
	}
	return d
}

// eraser returns an eraser for the secrets of all servers: one server may repeat
// the secrets of another.
func (m *Manager) eraser() *erase.Eraser { return erase.New(m.secretValues()) }

// secretValues returns the secrets of all servers, those of users included. A user's
// Manager includes only those of its system, whose tools the user sees.
func (m *Manager) secretValues() (values []string) {
	if m.system != nil {
		values = m.system.serverSecrets()
	}
	m.mu.Lock()
	users := m.users.list()
	m.mu.Unlock()
	for _, u := range users {
		values = append(values, u.serverSecrets()...)
	}
	return append(values, m.serverSecrets()...)
}

// serverSecrets returns the secrets of m's own servers.
func (m *Manager) serverSecrets() (values []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, src := range m.sources {
		if src.server != nil {
			values = append(values, src.server.Secrets()...)
		}
	}
	return values
}

// A SafeText is a text for people that a server may have written. Its methods hide
// the secrets of all configurations and drop characters that are invisible or
// change how others look. The text may still hold anything else, such as HTML or
// lies. Line(limit) returns it as one line of at most limit characters, which ends in
// an ellipsis if it is cut, and String() as one of at most 2,000. Lines(limit) keeps
// line breaks and the spaces that begin lines, and cuts it to about limit characters
// and to 400 lines.
type SafeText = erase.Text

// Text wraps text so that it shows none of the secrets that the Snapshot hides.
func (s *Snapshot) Text(text string) SafeText { return erase.NewText(text, s.eraser) }

// Problems returns [Manager.Problems] as texts, without those of Changes.
func (s *Snapshot) Problems() (list []SafeText) {
	for _, err := range s.m.Problems() {
		if !errors.As(err, new(*ChangedError)) {
			list = append(list, s.Text(strings.TrimPrefix(err.Error(), "mcphybrid: ")))
		}
	}
	return list
}

// A ChangeSnapshot is a change without its Definition and without secrets.
type ChangeSnapshot struct {
	*ChangedError
	User SafeText // as in [ToolSnapshot]
}

// Changes returns what has changed and was not accepted: those of [Manager.Problems],
// and of the user whose session it is.
func (s *Snapshot) Changes() (list []ChangeSnapshot) {
	for _, m := range s.managers {
		for _, err := range m.Problems() {
			if c := new(ChangedError); errors.As(err, &c) {
				safe := *c
				safe.Definition, safe.hide, safe.Name = nil, nil, s.Text(c.Name).Line(text.MaxName)
				safe.Server, safe.Tool = s.Text(c.Server).Line(text.MaxName), s.Text(c.Tool).Line(text.MaxName)
				list = append(list, ChangeSnapshot{&safe, s.Text(m.user.id)})
			}
		}
	}
	return list
}

// A ServerSnapshot describes a server, or a group of tools of [Manager.AddTools],
// which has no State.
type ServerSnapshot struct {
	ServerStatus             // the text of Err has no secret
	Hidden       bool        // Name differs from the server's name, to hide a secret
	User         SafeText    // the id of the [User] whose server it is, or ""
	Figures      ServerStats // as the default session sees the tools; none of a user's server
}

// Servers describes each server and each group of tools without a connection, in
// registration order. Those of users follow, in the order of their ids.
func (s *Snapshot) Servers() []ServerSnapshot {
	list := s.serversOf(s.m, s.m.serverStats(s.m.def.double().view()))
	s.m.mu.Lock()
	users := s.m.users.list()
	s.m.mu.Unlock()
	slices.SortFunc(users, func(a, b *Manager) int { return strings.Compare(a.user.id, b.user.id) })
	for _, u := range users {
		list = append(list, s.serversOf(u, nil)...)
	}
	return list
}

func (s *Snapshot) serversOf(m *Manager, figures []ServerStats) []ServerSnapshot {
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	list := make([]ServerSnapshot, len(sources))
	for i, src := range sources {
		st := &list[i]
		if src.server != nil {
			st.ServerStatus = m.statusOf(src)
		}
		if at := slices.IndexFunc(figures, func(f ServerStats) bool { return f.Name == src.name }); at >= 0 {
			st.Figures = figures[at]
		}
		if s.m.system == nil {
			st.User = s.Text(m.user.id)
		}
		if st.Err != nil {
			st.Err = errors.New(s.Text(st.Err.Error()).String())
		}
		st.Name = s.Text(src.name).Line(text.MaxName)
		st.Hidden = st.Name != src.name
		st.Figures.Name = st.Name
	}
	return list
}

// A ToolSnapshot describes a tool and its standing in the session.
type ToolSnapshot struct {
	Name     string // registered name
	Hidden   bool   // Name differs from the registered name, to hide a secret
	Original SafeText
	Server   SafeText
	User     SafeText // the id of the [User] whose tool it is, or ""
	Standing string   // as in [Placement], or "quarantined"; "" in a search result
	Reason   SafeText // the reason for Standing
	Tokens   int      // tokens of the definition; 0 in quarantine
	Used     int      // turn of the last use of an active tool

	Title, Description SafeText

	Changed *ChangedError // not nil if the definition has changed: see [ChangeSnapshot]

	name   string // registered
	def    *definition
	eraser *erase.Eraser
}

func (s *Snapshot) tool(name string, d *definition) ToolSnapshot {
	t := ToolSnapshot{
		Original: s.Text(d.Own), Server: s.Text(d.Server), Title: s.Text(d.Title), Description: s.Text(d.Description),
		name: name, def: d, eraser: s.eraser,
	}
	var ok bool
	t.Name, ok = s.eraser.Name(name, d.Own)
	t.Hidden = !ok
	return t
}

func (s *Snapshot) bridgeTool(t *BridgeTool) ToolSnapshot {
	shown := s.tool(t.name, t.def)
	shown.User, shown.Tokens, shown.Used = s.Text(t.owner.user), s.m.toolTokens(t), s.session.used[t.name].turn
	return shown
}

// Schema returns the schema of the arguments as its server wrote it, as indented JSON,
// cut to about limit characters and to 400 lines.
func (t ToolSnapshot) Schema(limit int) string { return t.eraser.Schema(t.def.InputSchema, limit) }

// Marks returns the suspicious text in the definition, like [ChangedError.Marks].
// [Manager.Marks] says how long a byte takes.
func (t ToolSnapshot) Marks() (list []Mark) {
	for _, m := range marksIn(t.def.Raw, func(string) bool { return false }) {
		list = append(list, Mark{m.Kind, t.eraser.Line(m.Place, text.MaxName), t.eraser.Mark(m.Text)})
	}
	return list
}

// Tools returns all tools in registration order, followed by those in quarantine.
func (s *Snapshot) Tools() (list []ToolSnapshot) {
	var held []ToolSnapshot
	changed := make(map[string]*ChangedError)
	for _, c := range s.Changes() {
		if c.def == nil {
			continue
		}
		t := s.tool(c.def.registered, c.def)
		t.Standing, t.Changed, t.User = "quarantined", c.ChangedError, c.User
		changed[c.def.registered] = c.ChangedError
		if c.Held {
			held = append(held, t)
		}
	}
	places := s.session.Placements()
	list = make([]ToolSnapshot, 0, len(places)+len(held))
	for _, p := range places {
		t := s.bridgeTool(p.Tool)
		t.Standing, t.Reason, t.Changed = p.Standing, s.Text(p.Reason), changed[p.Tool.name]
		list = append(list, t)
	}
	return append(list, held...)
}

// Refusal says why the session can't call a tool of that registered name, or "" if it
// can. It tells more than a caller is told: what the configuration leaves out.
func (s *Snapshot) Refusal(name string) SafeText {
	_, err := s.session.find(s.session.view(), name)
	if err == nil {
		return SafeText{}
	}
	for _, m := range s.managers {
		m.mu.Lock()
		for _, src := range m.sources {
			own, ok := src.claim.Own(name)
			t := src.subjectOf(own)
			switch t.Within = true; {
			case !ok || !errors.Is(err, ErrUnknownTool):
			case !src.cfg.Tools.permits(t):
				err = fmt.Errorf("ServerConfig.Tools of server %q does not permit it%s", src.name, rules.Rights{rules.Access(src.cfg.Tools)}.Because(t))
			case !m.opts.Access.permits(src.subjectOf(own)):
				err = fmt.Errorf("Options.Access does not permit it%s", rules.Rights{rules.Access(m.opts.Access)}.Because(src.subjectOf(own)))
			case src.server != nil && src.listedAt.IsZero():
				err = fmt.Errorf("its server %q is %s and has not listed its tools yet", src.name, src.server.Status().State)
			}
		}
		m.mu.Unlock()
	}
	return s.Text(strings.TrimPrefix(err.Error(), "mcphybrid: "))
}

// ActiveTools returns the session's active tools in the order of their
// activation.
func (s *Snapshot) ActiveTools() (list []ToolSnapshot) {
	for _, t := range s.session.ActiveTools() {
		shown := s.bridgeTool(t)
		shown.Standing = "active"
		list = append(list, shown)
	}
	return list
}

// A SearchSnapshot is an [Answer] with the parts of its scores.
type SearchSnapshot struct {
	Took           time.Duration // duration of the search, without computing the parts
	Words, Meaning int
	Err            SafeText
	Hits           []HitSnapshot
}

// A HitSnapshot is a [Hit] with the parts of its score by words.
type HitSnapshot struct {
	Tool                     ToolSnapshot
	Score, Words, Similarity float64
	NeededBy                 string             // name of the hit that needs it, or ""
	Explained                search.Explanation // see [Session.Explain]
}

// Explain is [Session.Explain] in the session.
func (s *Snapshot) Explain(query, name string) search.Explanation {
	e := s.session.Explain(query, name)
	for i := range e.Parts {
		part := &e.Parts[i]
		part.Term, part.Query = s.eraser.Term(part.Term, part.Query), s.eraser.Line(part.Query, text.MaxName)
	}
	for i, word := range e.Missing {
		e.Missing[i] = s.eraser.Line(word, text.MaxName)
	}
	return e
}

// Search searches as [Session.Find] does in the session, and changes nothing in
// the session.
func (s *Snapshot) Search(ctx context.Context, query string, opts SearchOptions) SearchSnapshot {
	query = query[:min(len(query), maxQueryBytes)]
	begun := time.Now()
	answer := s.session.Find(ctx, query, opts)
	found := SearchSnapshot{Took: time.Since(begun), Words: answer.Words, Meaning: answer.Meaning}
	if answer.Err != nil {
		found.Err = s.Text(answer.Err.Error())
	}
	for _, hit := range answer.Hits {
		h := HitSnapshot{Tool: s.bridgeTool(hit.Tool), Score: hit.Score, Words: hit.Words, Similarity: hit.Similarity}
		if hit.NeededBy != nil {
			h.NeededBy, _ = s.eraser.Name(hit.NeededBy.name, hit.NeededBy.def.Own)
		}
		h.Explained = s.Explain(query, hit.Tool.name)
		found.Hits = append(found.Hits, h)
	}
	return found
}
