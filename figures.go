package mcphybrid

import "github.com/mcphybrid/mcphybrid/snapshot"

// A statsCounter computes figures of sessions. It counts only once what several of
// them share.
type statsCounter struct {
	tenant   *tenant
	sections map[*listItem]sectionCost // by the first item shown
}

// A sectionCost is what the sections of that many items cost.
type sectionCost struct{ items, tokens int }

func newStatsCounter(s *tenant) *statsCounter {
	return &statsCounter{tenant: s, sections: make(map[*listItem]sectionCost)}
}

// stats returns the figures of a session that no other goroutine uses.
func (w *statsCounter) stats(s *Session) snapshot.Stats {
	v := s.view()
	return w.weigh(s, v, s.shownLocked(v), s.usage, s.ledger)
}

// weigh returns the figures of s, given its view, the list that its model was
// shown, its usage and its ledger.
func (w *statsCounter) weigh(s *Session, v *view, list []listItem, u sessionUsage, l *ledger) snapshot.Stats {
	st := w.tenant.figuresOf(v.partition)
	st.Crowded = len(v.overflow)
	st.Inline -= st.Crowded
	st.Deferred += st.Crowded
	for t := range v.overflow {
		st.Tokens.Inline -= w.tenant.toolTokens(t)
	}
	for _, t := range v.active {
		st.Active++
		st.Deferred--
		st.Tokens.Active += w.tenant.toolTokens(t)
	}
	for _, t := range s.metaTools(v) {
		st.Tokens.Meta += w.tenant.tokens(definitionText(t))
	}
	st.Tokens.Sections = w.weighSections(s, list)
	st.Usage, st.Activations, st.Searches, st.EmptySearches = u.calls, u.activations, u.searches, u.emptySearches
	st.Tokens.Searches = u.answerTokens
	st.Measured, st.EstimatedSaved = l.figures()
	return st
}

// figuresOf returns the figures of the tools of a partition, without active ones. Each
// response is counted with them, so they are computed once.
func (s *tenant) figuresOf(p *partition) snapshot.Stats {
	p.figures.once.Do(func() { p.figures.Stats = s.weighTools(p) })
	return p.figures.Stats
}

func (s *tenant) weighTools(p *partition) (sum snapshot.Stats) {
	servers := make(map[origin]bool)
	for t, st := range p.each() {
		if st == hidden {
			continue
		}
		servers[t.origin()] = true
		tokens := s.toolTokens(t)
		sum.Tools++
		sum.Tokens.All += tokens
		if st == inline {
			sum.Inline++
			sum.Tokens.Inline += tokens
		} else {
			sum.Deferred++
		}
	}
	sum.Servers = len(servers)
	return sum
}

func (w *statsCounter) weighSections(s *Session, list []listItem) int {
	if len(list) == 0 {
		return 0
	}
	known := w.sections[&list[0]]
	if known.items != len(list) {
		known = sectionCost{len(list), w.tenant.tokens(s.sections(list, true, true))}
		w.sections[&list[0]] = known
	}
	return known.tokens
}
