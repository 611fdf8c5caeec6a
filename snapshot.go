package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/redact"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/scan"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// Snapshot returns a view of the Manager for people, as the session with that number
// sees it, without secrets. 0 is the default session. [Manager.Watch] numbers the
// others. Snapshot fails if there is no such session.
func (m *Manager) Snapshot(session int) (snapshot.Manager, error) {
	s, err := m.numbered(session)
	if err != nil {
		return nil, prefixed(err, "")
	}
	s.Session = s.double()
	managers := slices.Compact([]*Manager{m, s.tenant.manager.(*Manager)})
	return &snapshotOf{m: m, session: s, eraser: m.eraser(), managers: managers, ended: m.life.Err() != nil}, nil
}

// A snapshotOf is the [snapshot.Manager] of a Manager.
type snapshotOf struct {
	m       *Manager
	ended   bool
	session liveSession // a copy
	eraser  *redact.Redactor

	managers []*Manager // m, and that of the user whose session it is
}

// double returns a copy of s. Reading the copy changes nothing in s.
func (s *Session) double() *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &Session{
		tenant: s.tenant, rights: s.rights, asked: s.asked, seen: s.seen, active: s.active, unavailable: s.unavailable, overflow: s.overflow, full: s.full,
		lastUsed: maps.Clone(s.lastUsed), userTurn: s.userTurn, shown: slices.Clip(s.shown), knownNames: s.knownNames, shownAs: s.shownAs, metas: s.metas, restored: s.restored, activations: s.activations,
		usage: s.usage, ledger: s.ledger.double(), intent: s.intent, closed: s.closed,
	}
	d.pages.offered, d.links = s.pages.offered, s.links
	d.disclosure.Store(s.disclosure.Load())
	if s.transcript != nil {
		turns := *s.transcript
		d.transcript = &turns
	}
	return d
}

// eraser returns an eraser for the secrets of all servers: one server may repeat
// the secrets of another.
func (m *Manager) eraser() *redact.Redactor { return redact.New(m.secretValues()) }

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

func (s *snapshotOf) Closed() bool { return s.ended }

func (s *snapshotOf) User() snapshot.Text { return s.Text(s.m.user.id) }

func (s *snapshotOf) Text(text string) snapshot.Text { return snapshot.NewText(text, s.eraser) }

func (s *snapshotOf) Problems() (list []snapshot.Text) {
	for _, err := range s.m.Problems() {
		if !errors.As(err, new(*ChangedError)) {
			list = append(list, s.Text(strings.TrimPrefix(err.Error(), "mcphybrid: ")))
		}
	}
	return list
}

// A changedTool is a change and, if it is one of a tool, the new definition.
type changedTool struct {
	snapshot.Change
	def *definition
}

func (s *snapshotOf) changed() (list []changedTool) {
	for _, m := range s.managers {
		for _, err := range m.Problems() {
			if c := new(ChangedError); errors.As(err, &c) {
				server, tool := s.Text(c.Server).Line(text.MaxName), s.Text(c.Tool).Line(text.MaxName)
				list = append(list, changedTool{snapshot.Change{
					User: s.Text(m.user.id), Server: server, Tool: tool, Hidden: server != c.Server || tool != c.Tool, Kind: c.Kind,
					Name: s.Text(c.Name).Line(text.MaxName), Quarantined: c.Quarantined, Added: c.Added, Since: c.Since, Was: c.Was, Is: c.Is,
				}, c.def})
			}
		}
	}
	return list
}

func (s *snapshotOf) Changes() (list []snapshot.Change) {
	for _, c := range s.changed() {
		list = append(list, c.Change)
	}
	return list
}

func (s *snapshotOf) Servers() []snapshot.Server {
	list := s.serversOf(s.m, s.m.figures(s.m.def.double().view()))
	s.m.mu.Lock()
	users := s.m.users.list()
	s.m.mu.Unlock()
	slices.SortFunc(users, func(a, b *Manager) int { return strings.Compare(a.user.id, b.user.id) })
	for _, u := range users {
		list = append(list, s.serversOf(u, nil)...)
	}
	return list
}

func (s *snapshotOf) serversOf(m *Manager, figures map[string]snapshot.Figures) []snapshot.Server {
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	list := make([]snapshot.Server, len(sources))
	for i, src := range sources {
		st := &list[i]
		if src.server != nil {
			is := m.statusOf(src)
			*st = snapshot.Server{
				State: string(is.State), Since: is.Since, Took: is.Took, Tools: is.Tools, Resources: is.Resources, Templates: is.Templates, Prompts: is.Prompts, Skills: is.Skills,
				Failures: is.Failures, Retry: is.Retry, Instructions: s.Text(is.Instructions),
			}
			if is.Err != nil {
				st.Err = s.Text(is.Err.Error()).String()
				st.Cause = causeOf(is.Err)
				st.Cause.What = s.Text(st.Cause.What).String()
			}
		}
		st.Figures = figures[src.name]
		if s.m.system == nil {
			st.User = s.Text(m.user.id)
		}
		st.Name = s.Text(src.name).Line(text.MaxName)
		st.Hidden = st.Name != src.name
	}
	return list
}

// A shownDefinition is the [snapshot.Definition] of a definition.
type shownDefinition struct {
	def    *definition
	eraser *redact.Redactor
}

func (d shownDefinition) Schema(limit int) string { return d.eraser.Schema(d.def.InputSchema, limit) }

func (d shownDefinition) Marks() []scan.Mark {
	list := scan.Definition(d.def.Raw, nil)
	for i, m := range list {
		list[i] = scan.Mark{Kind: m.Kind, Place: d.eraser.Line(m.Place, text.MaxName), Text: d.eraser.Mark(m.Text)}
	}
	return list
}

func (s *snapshotOf) tool(name string, d *definition) snapshot.Tool {
	t := snapshot.Tool{
		Original: s.Text(d.Own), Server: s.Text(d.Server), Title: s.Text(d.Title), Description: s.Text(d.Description),
		Definition: shownDefinition{d, s.eraser},
	}
	var ok bool
	t.Name, ok = s.eraser.Name(name, d.Own)
	t.Hidden = !ok
	return t
}

func (s *snapshotOf) bridgeTool(t *BridgeTool) snapshot.Tool {
	shown := s.tool(t.name, t.def)
	shown.User, shown.Tokens, shown.Used = s.Text(t.owner.user), s.m.toolTokens(t), s.session.lastUsed[t.name].turn
	return shown
}

func (s *snapshotOf) Tools() (list []snapshot.Tool) {
	var held []snapshot.Tool
	changed := make(map[string]*snapshot.Change)
	for _, c := range s.changed() {
		if c.def == nil {
			continue
		}
		t := s.tool(c.def.registered, c.def)
		t.Standing, t.Changed, t.User = "quarantined", &c.Change, c.User
		changed[c.def.registered] = &c.Change
		if c.Quarantined {
			held = append(held, t)
		}
	}
	places := s.session.Placements()
	list = make([]snapshot.Tool, 0, len(places)+len(held))
	for _, p := range places {
		t := s.bridgeTool(p.Tool)
		t.Standing, t.Reason, t.Changed = p.Standing, s.Text(p.Reason), changed[p.Tool.name]
		list = append(list, t)
	}
	return append(list, held...)
}

func (s *snapshotOf) WhyNot(name string) snapshot.Text {
	_, err := s.session.toolToCall(s.session.view(), name)
	if err == nil {
		return snapshot.Text{}
	}
	for _, m := range s.managers {
		var unlisted *source // whose tool it may be
		m.mu.Lock()
		for _, src := range m.sources {
			own, ok := src.claim.Own(name)
			t := src.subjectOf(own)
			switch t.Within = true; {
			case !ok || unlisted != nil || !errors.Is(err, ErrUnknownTool):
			case !rules.Access(src.cfg.Tools).Permits(t):
				err = fmt.Errorf("ServerConfig.Tools of server %q does not permit it%s", src.name, rules.Rights{rules.Access(src.cfg.Tools)}.Because(t))
			case !rules.Access(m.opts.Access).Permits(src.subjectOf(own)):
				err = fmt.Errorf("Options.Access does not permit it%s", rules.Rights{rules.Access(m.opts.Access)}.Because(src.subjectOf(own)))
			case src.isUnlisted():
				unlisted = src
			}
		}
		m.mu.Unlock()
		if unlisted != nil {
			err = fmt.Errorf("its server %q is %s and has not listed its tools yet", unlisted.name, unlisted.server.Status().State)
		}
	}
	return s.Text(strings.TrimPrefix(err.Error(), "mcphybrid: "))
}

func (s *snapshotOf) ActiveTools() (list []snapshot.Tool) {
	for _, t := range s.session.ActiveTools() {
		shown := s.bridgeTool(t)
		shown.Standing = "active"
		list = append(list, shown)
	}
	return list
}

func (s *snapshotOf) Events() (list []snapshot.Event) {
	r := s.m.recorder.Load()
	if r == nil {
		return nil
	}
	all := append(r.events.All(), r.ofServers.All()...)
	slices.SortStableFunc(all, func(a, b snapshot.Event) int { return b.At.Compare(a.At) })
	for _, e := range all {
		if s.m.concerns(e) {
			e.Tools = slices.Clone(e.Tools)
			hideIn(&e, s.eraser.Line)
			list = append(list, e)
		}
	}
	return list
}

func (s *snapshotOf) Session() snapshot.Session {
	return s.sessionOf(s.session, newStatsCounter(s.m.tenant))
}

func (s *snapshotOf) Sessions(from, to int) (list []snapshot.Session, total int) {
	all := append([]liveSession{{Session: s.m.def}}, s.m.newest()...)
	to = max(min(to, len(all)), 0)
	w := newStatsCounter(s.m.tenant)
	for _, live := range all[max(min(from, to), 0):to] {
		live.Session = live.double()
		list = append(list, s.sessionOf(live, w))
	}
	return list, len(all)
}

// sessionOf describes a copy of a session.
func (s *snapshotOf) sessionOf(of liveSession, w *statsCounter) snapshot.Session {
	snap := snapshot.Session{
		Number: of.number, Began: of.began, Label: s.Text(of.asked.label), User: s.Text(of.tenant.user.id), Intent: s.Text(of.intent), Turn: of.userTurn,
		Disclosure: of.Disclosure().String(), Stats: w.stats(of.Session),
	}
	if told := of.transcriptCopy(); told.begun {
		snap.Why = told.why.String()
	}
	if of.ledger != nil {
		for _, l := range of.ledger.losses {
			l.Miss = s.eraser.Line(l.Miss, text.MaxError)
			snap.Losses = append(snap.Losses, l)
		}
	}
	return snap
}

func (s *snapshotOf) Samples() []snapshot.Sample {
	if samples := s.m.samples.Load(); samples != nil {
		return samples.All()
	}
	return nil
}

func (s *snapshotOf) Explain(query, name string) search.Explanation {
	e := s.session.explainDeferred(query, name)
	for i := range e.Parts {
		part := &e.Parts[i]
		part.Term, part.Query = s.eraser.Term(part.Term, part.Query), s.eraser.Line(part.Query, text.MaxName)
	}
	for i, word := range e.Missing {
		e.Missing[i] = s.eraser.Line(word, text.MaxName)
	}
	return e
}

func (s *snapshotOf) Search(ctx context.Context, q snapshot.Query) snapshot.Search {
	opts := SearchOptions{Limit: q.Limit, Servers: q.Servers, ServerLimit: q.ServerLimit, DeferredOnly: !q.All} // as the model's
	if q.ByWords {
		opts.By = ByWords
	}
	query := q.Text[:min(len(q.Text), maxQueryBytes)]
	start := time.Now()
	answer := s.session.Find(ctx, query, opts)
	found := snapshot.Search{Took: time.Since(start), Words: answer.Words, Meaning: answer.Meaning}
	if answer.Err != nil {
		found.Err = s.Text(answer.Err.Error())
	}
	for _, hit := range answer.Hits {
		h := snapshot.Hit{Tool: s.bridgeTool(hit.Tool), Score: hit.Score, Words: hit.Words, Similarity: hit.Similarity}
		if hit.NeededBy != nil {
			h.NeededBy, _ = s.eraser.Name(hit.NeededBy.name, hit.NeededBy.def.Own)
		}
		h.Explained = s.Explain(query, hit.Tool.name)
		found.Hits = append(found.Hits, h)
	}
	return found
}

// figures returns those of each server and group of tools, by name: of the tools that v sees,
// and of all calls.
func (m *Manager) figures(v *view) map[string]snapshot.Figures {
	of := make(map[string]snapshot.Figures)
	for t, st := range v.each() {
		if st == hidden || t.owner != v.own().owner { // the latter belongs to the user's system
			continue
		}
		f := of[t.def.Server]
		f.Tools++
		f.Tokens += m.toolTokens(t)
		if st == inline {
			f.Inline++
		}
		of[t.def.Server] = f
	}
	m.usageMu.Lock()
	defer m.usageMu.Unlock()
	for name, u := range m.serverUsage {
		f := of[name]
		f.Usage = *u
		of[name] = f
	}
	return of
}
