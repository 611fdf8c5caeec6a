package mcphybrid

import (
	"fmt"
	"strings"
	"time"
)

const (
	// maxSamples is enough for a plot as wide as a screen.
	maxSamples = 240

	// sampleEvery is the time between the first samples. Whenever there are
	// maxSamples, every second one is dropped, and the time is doubled: so they
	// reach back to the first.
	sampleEvery = time.Second

	// maxSampled is of how many sessions, the newest, a sample is the mean.
	maxSampled = 64
)

// A sample has the tokens of tools in one request, as [TokenStats] has them, in
// the mean of sessions.
type sample struct {
	at       time.Time
	sessions int
	all      int // without deferring
	sent     int // inline, meta and active tools, sections, and answers to searches
}

func (s sample) saved() int { return max(s.all-s.sent, 0) }

// A history has samples, the oldest first.
type history struct {
	samples []sample
	every   time.Duration // zero as long as it is sampleEvery
}

func (h *history) add(s sample) {
	h.every = max(h.every, sampleEvery)
	if len(h.samples) == maxSamples {
		for i := range maxSamples / 2 {
			h.samples[i] = h.samples[2*i]
		}
		h.samples = h.samples[:maxSamples/2]
		h.every *= 2
	}
	h.samples = append(h.samples, s)
}

// run takes samples until the Manager is closed.
func (d *debugger) run() {
	for {
		s := d.sample()
		d.mu.Lock()
		d.history.add(s)
		every := d.history.every
		d.mu.Unlock()
		next := time.NewTimer(every)
		select {
		case <-next.C:
		case <-d.m.life.Done():
			next.Stop()
			return
		}
	}
}

// sample weighs the newest sessions, or the Manager's own if there is no other.
func (d *debugger) sample() sample {
	s := sample{at: time.Now()}
	defer func() {
		if p := recover(); p != nil { // the host's TokenCounter
			d.m.opts.Logger.Error("mcphybrid: the tokens could not be counted", "panic", p)
		}
	}()
	w := newWeigher(d.m)
	all, sent := 0, 0
	for _, session := range d.weighed() {
		a, b := w.weigh(session)
		all += a
		sent += b
		s.sessions++
	}
	s.all, s.sent = all/s.sessions, sent/s.sessions
	return s
}

func (d *debugger) weighed() []*Session {
	list := []*Session{d.m.session}
	if newest := d.newest(); len(newest) > 0 {
		list = list[:0]
		for _, s := range newest[:min(len(newest), maxSampled)] {
			list = append(list, s.Session)
		}
	}
	return list
}

// A weigher counts tokens once that sessions have in common.
type weigher struct {
	m     *Manager
	tools map[*selection]weight
	texts map[*shown]weight // by the first of what was shown
}

func newWeigher(m *Manager) *weigher {
	return &weigher{m: m, tools: make(map[*selection]weight), texts: make(map[*shown]weight)}
}

type weight struct {
	items  int // of which it is
	all    int
	tokens int
}

// weigh returns the tokens of all tools of s, and those in a request.
func (w *weigher) weigh(s *Session) (all, sent int) {
	s = s.double()
	v := s.view()
	tools, ok := w.tools[v.selection]
	if !ok {
		for t, st := range v.each() {
			if st == hidden {
				continue
			}
			n := w.m.toolTokens(t)
			tools.all += n
			if st == inline {
				tools.tokens += n
			}
		}
		w.tools[v.selection] = tools
	}
	sent = tools.tokens + s.usage.answerTokens
	for _, t := range v.active {
		sent += w.m.toolTokens(t)
	}
	for _, t := range s.metaTools(v) {
		sent += w.m.tokens(definitionText(t))
	}
	if list := s.shownLocked(v); len(list) > 0 { // nobody else has this s
		text := w.texts[&list[0]]
		if text.items != len(list) {
			text = weight{items: len(list), tokens: w.m.tokens(s.sections(list, true, true))}
			w.texts[&list[0]] = text
		}
		sent += text.tokens
	}
	return tools.all, sent
}

// A plot is a history drawn in a box 1000 wide and 200 high, which is stretched
// to where it is shown: text stands outside of it.
type plot struct {
	Sent, Saved string // paths of areas, the latter on top of the former
	Top         int    // tokens at the upper edge
	From, To    time.Time
	Last        sample
}

// LastSent, LastAll and LastSaved are of the newest sample.
func (p plot) LastSent() int  { return p.Last.sent }
func (p plot) LastAll() int   { return p.Last.all }
func (p plot) LastSaved() int { return p.Last.saved() }

// Share returns how much of 100 is saved.
func (p plot) Share() int { return 100 * p.Last.saved() / max(p.Last.all, 1) }

// Sessions is of how many sessions the newest sample is.
func (p plot) Sessions() int { return p.Last.sessions }

// plot draws the samples, or returns nil as long as there are not two.
func (d *debugger) plot() *plot {
	d.mu.Lock()
	samples := append([]sample(nil), d.history.samples...)
	d.mu.Unlock()
	if len(samples) < 2 {
		return nil
	}
	first, last := samples[0], samples[len(samples)-1]
	p := &plot{From: first.at, To: last.at, Last: last, Top: 1}
	for _, s := range samples {
		p.Top = max(p.Top, s.all, s.sent)
	}
	p.Top = roundUp(p.Top)
	span := max(last.at.Sub(first.at), 1)
	point := func(s sample, tokens int) string {
		x := 1000 * float64(s.at.Sub(first.at)) / float64(span)
		return fmt.Sprintf("%.1f,%.1f", x, 200-200*float64(tokens)/float64(p.Top))
	}
	var bottom, middle, top []string
	for _, s := range samples {
		bottom = append(bottom, point(s, 0))
		middle = append(middle, point(s, s.sent))
		top = append(top, point(s, s.sent+s.saved()))
	}
	p.Sent, p.Saved = area(bottom, middle), area(middle, top)
	return p
}

// area returns the path around what lies between two lines.
func area(below, above []string) string {
	var b strings.Builder
	b.WriteString("M" + above[0])
	for _, point := range above[1:] {
		b.WriteString("L" + point)
	}
	for i := len(below) - 1; i >= 0; i-- {
		b.WriteString("L" + below[i])
	}
	return b.String() + "Z"
}

// roundUp returns the next number of two digits followed by zeros.
func roundUp(n int) int {
	unit := 1
	for n > 99*unit {
		unit *= 10
	}
	return (n + unit - 1) / unit * unit
}
