package mcphybrid

import (
	"time"
)

// A TokenCounter counts the tokens of a text as a model does. It is called
// concurrently, also with locks held: it must not call a Manager or a session.
type TokenCounter interface {
	CountTokens(text string) int
}

// quarterBytes estimates tokens as a quarter of the bytes, rounded up: over 866
// published tools that is 7 % more than the tokens of OpenAI's o200k in sum,
// and within 36 % for each.
type quarterBytes struct{}

func (quarterBytes) CountTokens(text string) int { return (len(text) + 3) / 4 }

// Stats counts what a session sees, what it costs, and what was done in it.
type Stats struct {
	Servers  int // that have tools
	Tools    int // inline, deferred and active
	Inline   int
	Deferred int // not active
	Active   int
	Tokens   TokenStats

	Usage         Usage
	Activations   int
	Searches      int // by the model
	EmptySearches int // of them, those that found nothing
}

// TokenStats are tokens by [Options.Tokens]. Those of tools are of the catalog
// as it is now, which may be less than what the model was shown.
type TokenStats struct {
	All      int // the definitions of all tools: what a request costs without deferring
	Inline   int // those of the inline tools
	Meta     int // those of the meta tools that are offered
	Active   int // those of the active tools
	Sections int // the prompt sections
	Searches int // the answers to searches and of descriptions, so far
}

// Sent returns what a request costs: all but what is deferred.
func (t TokenStats) Sent() int { return t.Inline + t.Meta + t.Active + t.Sections + t.Searches }

// Usage counts calls of tools.
type Usage struct {
	Calls   int
	Errors  int           // refused, failed, or answered by the tool with an error
	Latency time.Duration // of all together
}

func (u *Usage) count(took time.Duration, failed bool) {
	u.Calls++
	u.Latency += took
	if failed {
		u.Errors++
	}
}

// A sessionUsage is what was done in a session.
type sessionUsage struct {
	calls         Usage
	activations   int
	searches      int
	emptySearches int
	answerTokens  int
}

// Stats returns the session's figures.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	v := s.viewLocked()
	list := s.shownLocked(v)
	u := s.usage
	s.mu.Unlock()
	return newWeigher(s.m).weigh(s, v, list, u)
}

// A weigher counts once what sessions have in common.
type weigher struct {
	m          *Manager
	selections map[*selection]Stats // of sessions without active tools
	sections   map[*shown]weight    // by the first of what was shown
}

// A weight is what the sections of items, which begin with the same, cost.
type weight struct{ items, tokens int }

func newWeigher(m *Manager) *weigher {
	return &weigher{m: m, selections: make(map[*selection]Stats), sections: make(map[*shown]weight)}
}

// stats returns the figures of a session that nobody else has.
func (w *weigher) stats(s *Session) Stats {
	v := s.view()
	return w.weigh(s, v, s.shownLocked(v), s.usage)
}

// weigh returns the figures of s as v sees it, that was shown list and used as
// u tells.
func (w *weigher) weigh(s *Session, v view, list []shown, u sessionUsage) Stats {
	st, ok := w.selections[v.selection]
	if !ok {
		st = w.weighTools(v.selection)
		w.selections[v.selection] = st
	}
	for _, t := range v.active {
		st.Active++
		st.Deferred--
		st.Tokens.Active += w.m.toolTokens(t)
	}
	for _, t := range s.metaTools(v) {
		st.Tokens.Meta += w.m.tokens(definitionText(t))
	}
	st.Tokens.Sections = w.weighSections(s, list)
	st.Usage, st.Activations, st.Searches, st.EmptySearches = u.calls, u.activations, u.searches, u.emptySearches
	st.Tokens.Searches = u.answerTokens
	return st
}

func (w *weigher) weighTools(sel *selection) (st Stats) {
	type server struct {
		of   *Manager
		name string
	}
	servers := make(map[server]bool)
	for t, p := range sel.each() {
		if p == hidden {
			continue
		}
		servers[server{t.m, t.def.server}] = true
		tokens := w.m.toolTokens(t)
		st.Tools++
		st.Tokens.All += tokens
		if p == inline {
			st.Inline++
			st.Tokens.Inline += tokens
		} else {
			st.Deferred++
		}
	}
	st.Servers = len(servers)
	return st
}

func (w *weigher) weighSections(s *Session, list []shown) int {
	if len(list) == 0 {
		return w.m.tokens(s.sections(list, true, true))
	}
	known := w.sections[&list[0]]
	if known.items != len(list) {
		known = weight{len(list), w.m.tokens(s.sections(list, true, true))}
		w.sections[&list[0]] = known
	}
	return known.tokens
}

// ServerStats counts what one server has, and the calls of it in all sessions,
// those of users included.
type ServerStats struct {
	Name   string
	Tools  int
	Inline int
	Tokens int // of the definitions
	Usage  Usage
}

// ServerStats returns the figures of each server that has tools, in
// registration order.
func (m *Manager) ServerStats() []ServerStats {
	var list []ServerStats
	at := make(map[string]int)
	v := m.def.view()
	for t, p := range v.each() {
		if v.own().tool(t.name) != t { // of a user's system
			continue
		}
		i, ok := at[t.def.server]
		if !ok {
			i = len(list)
			at[t.def.server] = i
			list = append(list, ServerStats{Name: t.def.server})
		}
		list[i].Tools++
		list[i].Tokens += m.toolTokens(t)
		if p == inline {
			list[i].Inline++
		}
	}
	m.usageMu.Lock()
	defer m.usageMu.Unlock()
	for i := range list {
		if u := m.usage[list[i].Name]; u != nil {
			list[i].Usage = *u
		}
	}
	return list
}

// count notes a call of t, nil if it is unknown.
func (s *Session) count(t *BridgeTool, took time.Duration, failed bool) {
	s.mu.Lock()
	s.usage.calls.count(took, failed)
	s.mu.Unlock()
	if t == nil {
		return
	}
	m := t.m
	if m.uses != nil && !failed {
		m.uses.note(t.name, time.Now())
	}
	m.usageMu.Lock()
	defer m.usageMu.Unlock()
	u := m.usage[t.def.server]
	if u == nil {
		u = new(Usage)
		m.usage[t.def.server] = u
	}
	u.count(took, failed)
}

// countAnswer counts the tokens of a meta tool's answer.
func (s *Session) countAnswer(text string) {
	n := s.m.tokens(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage.answerTokens += n
}

func (s *Session) countSearch(found int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage.searches++
	if found == 0 {
		s.usage.emptySearches++
	}
}

func (m *Manager) tokens(text string) int { return m.opts.Tokens.CountTokens(text) }

// toolTokens counts the definition of t once.
func (m *Manager) toolTokens(t *BridgeTool) int {
	if n := t.tokens.Load(); n > 0 {
		return int(n)
	}
	n := m.tokens(definitionText(t))
	t.tokens.Store(int64(n))
	return n
}

// definitionText returns t as it stands in a list of tools.
func definitionText(t Tool) string {
	return `{"name":"` + t.Name() + `","description":"` + t.Description() + `","inputSchema":` + string(t.InputSchema()) + `},`
}
