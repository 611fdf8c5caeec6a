package mcphybrid

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/erase"
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
	Closed bool // the Manager is closed

	m       *Manager
	session liveSession // a copy
	eraser  *erase.Eraser
}

// Snapshot returns a view of the Manager as the session with that number sees it.
// 0 is the default session. [Manager.Watch] numbers the others. Snapshot fails if
// there is no such session.
func (m *Manager) Snapshot(session int) (*Snapshot, error) {
	s, err := m.numbered(session)
	if err != nil {
		return nil, err
	}
	s.Session = s.double()
	return &Snapshot{Closed: m.life.Err() != nil, m: m, session: s, eraser: m.eraser()}, nil
}

// double returns a copy of s. Reading the copy changes nothing in s.
func (s *Session) double() *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &Session{
		scope: s.scope, rights: s.rights, disclosure: s.disclosure, client: s.client, seen: s.seen, active: s.active, away: s.away, crowded: s.crowded, full: s.full,
		used: maps.Clone(s.used), turn: s.turn, shown: slices.Clip(s.shown), names: s.names, shownAs: s.shownAs, metas: s.metas, kept: s.kept, acts: s.acts,
		usage: s.usage, intent: s.intent, closed: s.closed, skills: s.skills,
	}
	d.pages.offered, d.links = s.pages.offered, s.links
	return d
}

// eraser returns an eraser for the secrets of all servers: one server may repeat
// the secrets of another.
func (m *Manager) eraser() *erase.Eraser { return erase.New(m.secretValues()) }

// secretValues returns the secrets of all servers. A user's Manager includes those
// of its system, whose tools the user sees.
func (m *Manager) secretValues() (values []string) {
	if m.system != nil {
		values = m.system.secretValues()
	}
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
// lies.
type SafeText struct {
	text   string
	eraser *erase.Eraser
}

// Line returns the text as one line of at most limit characters. A longer one ends
// in an ellipsis.
func (t SafeText) Line(limit int) string {
	if t.text == "" {
		return ""
	}
	return t.eraser.Line(t.text, limit)
}

// String returns the text as one line of at most 2,000 characters.
func (t SafeText) String() string { return t.Line(text.MaxError) }

// Lines returns the text with its line breaks and the spaces at the beginning of
// each line. It is cut to about limit characters and to 400 lines.
func (t SafeText) Lines(limit int) string {
	if t.text == "" {
		return ""
	}
	return t.eraser.Lines(t.text, limit)
}

// Text wraps text so that it shows none of the secrets that the Snapshot hides.
func (s *Snapshot) Text(text string) SafeText { return SafeText{text, s.eraser} }

// Problems returns [Manager.Problems] as texts.
func (s *Snapshot) Problems() (list []SafeText) {
	for _, err := range s.m.Problems() {
		list = append(list, s.Text(strings.TrimPrefix(err.Error(), "mcphybrid: ")))
	}
	return list
}

// Held returns how many tools are in quarantine.
func (s *Snapshot) Held() (n int) {
	for _, err := range s.m.Problems() {
		if errors.Is(err, ErrQuarantined) {
			n++
		}
	}
	return n
}

// A ServerSnapshot describes a server, or a group of tools of [Manager.AddTools],
// which has no State.
type ServerSnapshot struct {
	ServerStatus             // the text of Err has no secret
	Hidden       bool        // Name differs from the server's name, to hide a secret
	Figures      ServerStats // as the default session sees the tools
}

// Servers describes each server and each group of tools without a connection, in
// registration order.
func (s *Snapshot) Servers() []ServerSnapshot {
	m := s.m
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	list := make([]ServerSnapshot, len(sources))
	figures := make(map[string]*ServerStats)
	for i, src := range sources {
		st := &list[i]
		if src.server != nil {
			st.ServerStatus = m.statusOf(src)
		}
		if st.Err != nil {
			st.Err = errors.New(s.Text(st.Err.Error()).String())
		}
		st.Name = s.Text(src.name).Line(text.MaxName)
		st.Hidden = st.Name != src.name
		st.Figures.Name = st.Name
		figures[src.name] = &st.Figures
	}
	for t, p := range m.def.double().view().each() {
		if f := figures[t.def.Server]; f != nil && t.owner == m.owner {
			f.Tools++
			f.Tokens += m.toolTokens(t)
			if p == inline {
				f.Inline++
			}
		}
	}
	m.usageMu.Lock()
	defer m.usageMu.Unlock()
	for name, u := range m.usage {
		if f := figures[name]; f != nil {
			f.Usage = *u
		}
	}
	return list
}

// A ToolSnapshot describes a tool and its standing in the session.
type ToolSnapshot struct {
	Name     string // registered name
	Hidden   bool   // Name differs from the registered name, to hide a secret
	Original SafeText
	Server   SafeText
	Standing string   // as in [Placement], or "quarantined"; "" in a search result
	Reason   SafeText // the reason for Standing
	Tokens   int      // tokens of the definition; 0 in quarantine
	Used     int      // turn of the last use of an active tool

	Title, Description SafeText

	// Changed is not nil if the definition has changed. Its Definition is nil,
	// and it has no secrets.
	Changed *ChangedError

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
	shown.Tokens, shown.Used = s.m.toolTokens(t), s.session.used[t.name].turn
	return shown
}

// Schema returns the schema of the arguments as indented JSON, cut to about limit
// characters and to 400 lines.
func (t ToolSnapshot) Schema(limit int) string { return t.eraser.Schema(t.def.InputSchema, limit) }

// Marks returns the suspicious text in the definition, like [ChangedError.Marks].
// It takes about 0.3 ms.
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
	for _, err := range s.m.Problems() {
		var c *ChangedError
		if !errors.As(err, &c) || c.def == nil {
			continue
		}
		t := s.tool(c.Name, c.def)
		t.Standing = "quarantined"
		t.Changed = &ChangedError{
			Kind: c.Kind, Server: t.Server.Line(text.MaxName), Tool: t.Original.Line(text.MaxName), Name: t.Name,
			Held: c.Held, Since: c.Since, Was: c.Was, Is: c.Is,
		}
		changed[c.Name] = t.Changed
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

// Tool returns the tool with that registered name and reports whether there is
// one.
func (s *Snapshot) Tool(name string) (ToolSnapshot, bool) {
	tools := s.Tools()
	i := slices.IndexFunc(tools, func(t ToolSnapshot) bool { return t.name == name })
	if i < 0 {
		return ToolSnapshot{}, false
	}
	return tools[i], true
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
	Parts                    []search.ScorePart // the first 60
	More                     int                // number of further parts
}

// maxParts is how many parts of a score a HitSnapshot has.
const maxParts = 60

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
		h.Parts = s.session.Explain(query, hit.Tool.name).Parts
		h.More = max(len(h.Parts)-maxParts, 0)
		h.Parts = h.Parts[:len(h.Parts)-h.More]
		for i, part := range h.Parts {
			h.Parts[i].Term = s.eraser.Term(part.Term, part.Query)
			h.Parts[i].Query = s.eraser.Line(part.Query, text.MaxName)
		}
		found.Hits = append(found.Hits, h)
	}
	return found
}
