// Package enrich looks up the hints of tools in the background: each once, some at a time,
// published in batches. To it a tool is a name and a document.
package enrich

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcphybrid/mcphybrid/hints"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/search"
)

// The limits of [Lookups].
const (
	// MaxLookups is how many lookups we wait for at once.
	MaxLookups = 8

	// MaxInside is how many calls of Look may be unfinished, including those that
	// have timed out. If that many hang, we start no other until one returns.
	MaxInside = 64

	// PublishEvery is how often we publish new hints while lookups go on. Each
	// time takes a new catalog.
	PublishEvery = 500 * time.Millisecond

	// LookupsEnd is how long lookups whose context has ended are waited for when
	// Life has ended.
	LookupsEnd = time.Second

	// MaxLogged is how many failures of a batch we log one by one.
	MaxLogged = 10
)

// A Tool may have hints. Equal ones are the same tool.
type Tool interface {
	RegisteredName() string     // for logs and errors
	Document() *search.Document // to index if it has no hints
}

// A Known holds the hints of a tool and the document to index for it, which includes
// them. It is never changed.
type Known struct {
	Hints    hints.Hints
	Document search.Document
}

func newKnown(h hints.Hints, d *search.Document) *Known {
	h.Preconditions, h.AntiPatterns, h.ChainsWith = slices.Clone(h.Preconditions), slices.Clone(h.AntiPatterns), slices.Clone(h.ChainsWith)
	k := &Known{h, *d}
	k.Document.Hints += "\n" + k.Words()
	return k
}

// Words returns the text that search indexes: all hints except the AntiPatterns.
func (k *Known) Words() string {
	var texts []string
	for _, line := range slices.Concat(k.Hints.Preconditions, k.Hints.ChainsWith, []string{k.Hints.OutputShape}) {
		if line = text.Line(line, len(line)); line != "" {
			texts = append(texts, line)
		}
	}
	return strings.Join(texts, "\n")
}

// says reports whether both have the same texts in the same order, or none.
func (k *Known) says(other *Known) bool {
	if k == nil || other == nil {
		return k == other
	}
	a, b := k.Hints, other.Hints
	return slices.Equal(a.Preconditions, b.Preconditions) && slices.Equal(a.AntiPatterns, b.AntiPatterns) &&
		slices.Equal(a.ChainsWith, b.ChainsWith) && a.OutputShape == b.OutputShape
}

// Lookups keep the hints of tools that come and go. One goroutine decides everything.
// Each lookup has two more: one waits for it, and one calls Look and may hang.
//
// The exported fields must be set before first use and not changed afterwards. nil
// are the Lookups of an owner without hints.
type Lookups struct {
	Look    func(ctx context.Context, tool Tool) (h hints.Hints, ok bool, err error) // calls the host's code
	Timeout time.Duration                                                            // of Look
	Tools   func() []Tool                                                            // the current tools, none twice
	Publish func()                                                                   // called when Known has new hints
	Log     *slog.Logger

	Life  context.Context // ends all lookups
	Ended error           // error of Refresh after Life has ended
	Run   func(func())    // starts a goroutine

	known atomic.Pointer[map[Tool]*Known] // stored only by run; a map is never changed

	begun     sync.Once
	wake      chan struct{} // holds one if there are newer tools
	freed     chan struct{} // holds one if a call of Look has returned
	outcomes  chan outcome
	refreshes chan *refresh
	inside    atomic.Int32 // unfinished calls of Look

	// Only run uses the following.
	jobs     map[Tool]*job    // of all current tools
	waiting  []Tool           // to look up, in this order; none twice
	running  int              // lookups that we wait for
	found    int              // jobs with found set
	due      <-chan time.Time // when to publish them, if lookups take that long
	last     time.Time        // of the last publication
	failures int              // since last
	stuck    bool             // too many calls hang, and we have logged it
	pending  []*refresh
}

// A job is the state of a current tool.
type job struct {
	waiting bool
	running bool
	again   bool // look up once more when it has run
	found   bool // next is not yet published
	next    *Known
	awaited []*refresh // wait for the outcome
}

// An outcome is that of one lookup. known is nil if there are no hints.
type outcome struct {
	tool  Tool
	job   *job
	known *Known
	err   error
}

// A refresh is one call of Refresh.
type refresh struct {
	left   int // tools without an outcome so far
	failed int
	least  string        // first name, by the alphabet, among the failed tools
	err    error         // the error of that tool
	done   chan struct{} // closed when none is left and everything is published
}

// Known returns the hints known so far. The map is shared and never changed.
func (l *Lookups) Known() map[Tool]*Known {
	if l == nil || l.known.Load() == nil {
		return nil
	}
	return *l.known.Load()
}

// Changed says that there are newer tools. The first call starts the lookups. Life
// must not have ended.
func (l *Lookups) Changed() {
	if l == nil {
		return
	}
	l.begun.Do(func() {
		l.wake, l.freed = make(chan struct{}, 1), make(chan struct{}, 1)
		l.outcomes, l.refreshes = make(chan outcome), make(chan *refresh)
		l.Run(l.run)
	})
	nudge(l.wake)
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Refresh looks up the hints of all current tools again, after a call of Changed. It
// returns when they are published. The error is that of ctx, or says how many lookups
// failed and why one did.
func (l *Lookups) Refresh(ctx context.Context) error {
	r := &refresh{done: make(chan struct{})}
	select {
	case l.refreshes <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.Life.Done():
		return l.Ended
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.Life.Done():
		return l.Ended
	}
	if r.failed > 0 {
		return fmt.Errorf("looking up those of %s failed: tool %q: %w", text.Counted(r.failed, "tool"), r.least, r.err)
	}
	return nil
}

// run looks up hints until Life ends.
func (l *Lookups) run() {
	for {
		select {
		case <-l.Life.Done():
			for range l.running {
				<-l.outcomes
			}
			return
		case <-l.wake:
			l.enlist()
		case <-l.freed:
		case r := <-l.refreshes:
			l.enlist()
			l.again(r)
		case o := <-l.outcomes:
			l.note(o)
		case <-l.due:
			l.publish()
		}
		l.begin()
		switch {
		case l.found == 0 && l.failures == 0:
		case l.awaited(), l.running == 0 && time.Since(l.last) >= PublishEvery:
			l.publish()
		case l.due == nil:
			l.due = time.After(PublishEvery)
		}
		l.finish()
	}
}

// enlist queues the tools that are new and forgets those that have left.
func (l *Lookups) enlist() {
	old := l.jobs
	l.jobs = make(map[Tool]*job, len(old))
	for _, t := range l.Tools() {
		if j := old[t]; j != nil {
			l.jobs[t] = j
			delete(old, t)
			continue
		}
		l.jobs[t] = new(job)
		l.queue(t)
	}
	for _, j := range old {
		for _, r := range j.awaited {
			r.left--
		}
		if j.found {
			l.found--
		}
	}
	if len(old) > 0 {
		l.waiting = slices.DeleteFunc(l.waiting, func(t Tool) bool { return l.jobs[t] == nil })
		l.renew()
	}
}

// queue queues a tool for a lookup, unless it is queued already.
func (l *Lookups) queue(t Tool) {
	if j := l.jobs[t]; !j.waiting {
		j.waiting = true
		l.waiting = append(l.waiting, t)
	}
}

// again has all tools looked up for r.
func (l *Lookups) again(r *refresh) {
	for _, t := range l.Tools() {
		j := l.jobs[t]
		if j == nil { // it has come since
			continue
		}
		j.awaited = append(j.awaited, r)
		r.left++
		if j.running {
			j.again = true
		} else {
			l.queue(t)
		}
	}
	l.pending = append(l.pending, r)
}

// begin starts as many lookups as the limits permit.
func (l *Lookups) begin() {
	for l.Life.Err() == nil && len(l.waiting) > 0 && l.running < MaxLookups {
		if l.inside.Load() >= MaxInside {
			if l.running == 0 && !l.stuck {
				l.stuck = true
				l.Log.Warn("mcphybrid: too many lookups of hints hang: none is started until one returns", "hanging", MaxInside, "waiting", len(l.waiting))
			}
			return
		}
		l.stuck = false
		t := l.waiting[0]
		l.waiting = l.waiting[1:]
		j := l.jobs[t]
		j.waiting, j.running = false, true
		l.running++
		l.inside.Add(1)
		go func() {
			known, err := l.lookup(t)
			l.outcomes <- outcome{t, j, known, err}
		}()
	}
}

// lookup asks for the hints of t and waits for at most the timeout. When Life has
// ended, it waits LookupsEnd for a host that heeds its context.
func (l *Lookups) lookup(t Tool) (*Known, error) {
	type answer struct {
		known *Known
		err   error
	}
	ctx, cancel := context.WithTimeout(l.Life, l.Timeout)
	defer cancel()
	done := make(chan answer, 1)
	go func() {
		known, err := hostcode.Call("the enricher", func() (*Known, error) {
			h, ok, err := l.Look(ctx, t)
			if err == nil && ok {
				err = h.Check()
			}
			if err != nil || !ok {
				return nil, err
			}
			return newKnown(h, t.Document()), nil
		})
		l.inside.Add(-1) // who gets the answer may begin another one
		done <- answer{known, text.Bounded(err)}
		nudge(l.freed)
	}()
	select {
	case a := <-done:
		return a.known, a.err
	case <-ctx.Done():
	}
	if l.Life.Err() != nil {
		select {
		case <-done:
		case <-time.After(LookupsEnd):
		}
	}
	return nil, fmt.Errorf("no answer within %v: %w", l.Timeout, context.DeadlineExceeded)
}

// note records the outcome of a lookup.
func (l *Lookups) note(o outcome) {
	l.running--
	j := o.job
	j.running = false
	if l.jobs[o.tool] != j { // the tool has left
		return
	}
	if j.again {
		j.again = false
		l.queue(o.tool)
	} else {
		for _, r := range j.awaited {
			r.note(o)
		}
		j.awaited = nil
	}
	if o.err != nil {
		if l.failures++; l.failures <= MaxLogged {
			l.Log.Warn("mcphybrid: looking up the hints of a tool failed", "tool", o.tool.RegisteredName(), "error", o.err)
		}
		return
	}
	had := j.next
	if !j.found {
		had = l.Known()[o.tool]
	}
	if !had.says(o.known) {
		if !j.found {
			l.found++
		}
		j.found, j.next = true, o.known
	}
}

func (r *refresh) note(o outcome) {
	r.left--
	if o.err == nil {
		return
	}
	if r.failed++; r.failed == 1 || o.tool.RegisteredName() < r.least {
		r.least, r.err = o.tool.RegisteredName(), o.err
	}
}

// renew updates the known hints with what was found.
func (l *Lookups) renew() {
	old := l.Known()
	known := make(map[Tool]*Known, len(old)+l.found)
	for t, j := range l.jobs {
		k := old[t]
		if j.found {
			k = j.next
		}
		if k != nil {
			known[t] = k
		}
	}
	l.known.Store(&known)
}

// publish publishes all that was found at once.
func (l *Lookups) publish() {
	if more := l.failures - MaxLogged; more > 0 {
		l.Log.Warn("mcphybrid: looking up the hints of more tools failed", "tools", more)
	}
	l.failures, l.due, l.last = 0, nil, time.Now()
	if l.found == 0 {
		return
	}
	l.renew()
	l.Publish()
	for _, j := range l.jobs {
		j.found, j.next = false, nil
	}
	l.found = 0
}

// awaited reports whether a refresh waits only for what was found to be published.
func (l *Lookups) awaited() bool {
	return slices.ContainsFunc(l.pending, func(r *refresh) bool { return r.left == 0 })
}

// finish ends the refreshes whose results are all published.
func (l *Lookups) finish() {
	l.pending = slices.DeleteFunc(l.pending, func(r *refresh) bool {
		done := r.left == 0 && l.found == 0
		if done {
			close(r.done)
		}
		return done
	})
}
