package mcphybrid

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/provider"
)

// MeasuredTokens are sums over the requests of a session, as the provider counted
// them. They stay 0 unless the host or its adapter calls [Session.CountUsage].
type MeasuredTokens struct {
	Requests int // calls of CountUsage
	Input    int // see [provider.Usage]
	Cached   int
	Written  int
	Output   int
	Losses   int // requests that lost the provider's cache: see [CacheLoss]
	Lost     int // input tokens that they could have read from it
}

func (m *MeasuredTokens) add(u provider.Usage) {
	for _, of := range []struct {
		sum *int
		n   int
	}{{&m.Requests, 1}, {&m.Input, u.Input}, {&m.Cached, u.Cached}, {&m.Written, u.Written}, {&m.Output, u.Output}} {
		*of.sum = plus(*of.sum, of.n)
	}
}

// plus returns a + b, or the greatest int if that is too much. b is not negative.
func plus(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// A LossCause says why a request could not read what the provider's cache had.
type LossCause string

const (
	LossCompact  LossCause = "compact"  // Compact was called, so the list of tools began anew
	LossTools    LossCause = "tools"    // the session's list of tools has grown, or a tool in it went into quarantine
	LossSections LossCause = "sections" // the session's prompt sections have grown
	LossPause    LossCause = "pause"    // the response before is more than 5 minutes ago; providers keep a cache about that long by default
	LossProvider LossCause = "provider" // the session knows of nothing that would explain CacheLoss.Miss
	LossUnknown  LossCause = "unknown"  // the host changed the conversation, or the provider evicted it
)

var lossTexts = map[LossCause]string{
	LossCompact:  "Compact was called",
	LossTools:    "the list of tools has changed",
	LossSections: "the prompt sections have changed",
	LossPause:    "the response before is more than 5 minutes ago",
	LossUnknown:  "the host changed the conversation, or the provider evicted it",
}

// A CacheLoss tells of a request that read less from the provider's cache than the
// request before it in the session had left there.
//
// The request before is taken to have left in the cache the tokens that it read and wrote
// or, once a provider that caches by itself (see [provider.Usage.Automatic]) has read any
// in this session, all of its input. A request
// that has less input can read only so much. It is a loss if more than 1,152 of these
// tokens were not read: providers cache no prompt below 1,024 tokens, and OpenAI caches
// in steps of 128. So the first request loses nothing. Nor does any request if the
// provider never reports cached tokens: it caches nothing, or does not tell.
type CacheLoss struct {
	At     time.Time // of the call of [Session.CountUsage]
	Tokens int       // that were not read though the cache had them; more than 1,152

	// Cause is what the session knows of: the first in the order of the constants
	// which the provider's reason does not rule out. The session can't know whether the
	// host used what it showed, such as the sections.
	Cause LossCause
	Miss  string // see [provider.Usage]; "" if the provider gave no reason
}

// Why says the cause, and the provider's reason, in a line for people.
func (l CacheLoss) Why() string {
	why := lossTexts[l.Cause]
	if l.Miss == "" {
		return why
	}
	if why != "" {
		why += "; "
	}
	return why + fmt.Sprintf("the provider says %q", l.Miss)
}

const (
	// lossTolerance is how much less is read without a loss, in tokens: the least
	// prompt that OpenAI and most models of Anthropic cache, and OpenAI's step.
	lossTolerance = 1_024 + 128

	// cacheLife is how long Anthropic and OpenAI keep a cache that nobody reads, by
	// default.
	cacheLife = 5 * time.Minute

	// maxLosses is how many losses a session keeps.
	maxLosses = 8
)

// A ledger has the figures of a session's requests. It belongs to the session, whose mu
// guards it, and does not grow with the number of requests.
type ledger struct {
	sums   MeasuredTokens
	saved  int         // see Stats.EstimatedSaved
	losses []CacheLoss // the last ones, newest first; at most maxLosses; replaced, never changed

	// Of the request counted last:
	left      int       // tokens that it left in the cache
	automatic bool      // left is all of its input
	at        time.Time // when it was counted
	head      head
	compacted bool // Compact was called since then
}

// A head says what a session showed, so that one can tell whether it has changed.
type head struct {
	listed   bool   // it showed a list
	tools    uint64 // hash of the tool list
	sections uint64 // hash of the items with a text in the sections
}

var headSeed = maphash.MakeSeed()

// headLocked returns what the session has shown until now. The caller holds mu.
func (s *Session) headLocked() head {
	var tools, sections maphash.Hash
	tools.SetSeed(headSeed)
	sections.SetSeed(headSeed)
	list, told := s.shown, s.transcriptCopy()
	if told.begun && s.Disclosure() != ByActivation { // what came later stands in the messages
		list = list[:min(int(told.base), len(list))]
	}
	for _, e := range list {
		name := ""
		if e.tool != nil {
			name = e.tool.name
		}
		if e.slot != notListed {
			maphash.WriteComparable(&tools, headItem{uint8(e.slot), uint8(e.meta), name})
		}
		if e.section != noSection && e.section != plainTool {
			maphash.WriteComparable(&sections, headItem{uint8(e.section), uint8(e.line), name})
		}
	}
	if s.registrar != nil && !told.begun { // the host may take its list from there
		for _, t := range s.active {
			maphash.WriteComparable(&tools, headItem{name: t.name})
		}
	}
	return head{s.shown != nil, tools.Sum64(), sections.Sum64()}
}

// A headItem is what counts of a listItem: the version of a tool stays the same.
type headItem struct {
	kind, more uint8
	name       string
}

// noticeCompact notes that Compact has dropped the list that the session showed. A nil
// ledger notes nothing. The caller holds the session's mu.
func (l *ledger) noticeCompact() {
	if l != nil && l.head.listed {
		l.compacted = true
	}
}

// double returns a copy of l that stays as it is. The caller holds the session's mu.
func (l *ledger) double() *ledger {
	if l == nil {
		return nil
	}
	d := *l
	return &d
}

// figures returns the sums, and the estimate of what was saved.
func (l *ledger) figures() (MeasuredTokens, int) {
	if l == nil {
		return MeasuredTokens{}, 0
	}
	return l.sums, l.saved
}

// CountUsage tells the session what a response took. Call it once for each response, in
// order, as soon as you have it: before the calls that the response asks for, and
// before Compact. The adapters do so by themselves. [Stats.Measured] has the sums. If the request lost the provider's
// cache, there is an [EventCacheLost], which tells why as far as the session knows.
//
// Figures that are negative, or greater than what they are a part of, count as the
// nearest that is possible. A restored session begins with no figures, so its first
// request loses nothing. A closed session counts nothing.
func (s *Session) CountUsage(u provider.Usage) {
	u = u.Bounded()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	if s.ledger == nil {
		s.ledger = new(ledger)
	}
	loss, lost := s.ledger.count(u, s.headLocked(), time.Now())
	s.mu.Unlock()

	tokens := s.Stats().Tokens // which may call the host's counter
	s.mu.Lock()
	if saved := tokens.All - tokens.Sent(); saved > 0 {
		s.ledger.saved = plus(s.ledger.saved, saved)
	} else {
		s.ledger.saved += saved
	}
	s.mu.Unlock()
	if lost {
		s.emit(Event{Kind: EventCacheLost, Loss: loss})
	}
}

// count adds a request whose head is given, and returns what of the cache it lost.
func (l *ledger) count(u provider.Usage, h head, now time.Time) (loss CacheLoss, lost bool) {
	l.sums.add(u)
	if l.automatic && l.sums.Cached == 0 {
		l.left = 0 // it caches nothing
	}
	missed := min(l.left, u.Input) - u.Cached
	if lost = missed > lossTolerance; lost {
		loss = CacheLoss{At: now, Tokens: missed, Cause: l.cause(u.Miss, h, now), Miss: u.Miss}
		l.sums.Losses, l.sums.Lost = plus(l.sums.Losses, 1), plus(l.sums.Lost, missed)
		l.losses = append([]CacheLoss{loss}, l.losses[:min(len(l.losses), maxLosses-1)]...)
	}
	l.left = u.Cached + u.Written
	if u.Automatic {
		l.left = u.Input
	} else if u.Left > 0 {
		l.left = u.Left
	}
	l.automatic, l.at, l.head, l.compacted = u.Automatic, now, h, false
	return loss, lost
}

// cause returns why a request could not read the cache.
func (l *ledger) cause(miss string, h head, now time.Time) LossCause {
	var known []LossCause
	for _, of := range []struct {
		is    bool
		cause LossCause
	}{
		{l.compacted, LossCompact}, {h.tools != l.head.tools, LossTools}, {h.sections != l.head.sections, LossSections}, {now.Sub(l.at) > cacheLife, LossPause},
	} {
		if of.is {
			known = append(known, of.cause)
		}
	}
	explains, otherwise := []LossCause{}, LossProvider // for a reason that we don't know, and for model_changed
	switch miss {
	case "tools_changed":
		explains = []LossCause{LossCompact, LossTools}
	case "system_changed":
		explains = []LossCause{LossCompact, LossSections}
	case "messages_changed":
		explains = []LossCause{LossCompact} // it is when hosts shorten conversations
	case "", "unavailable", "previous_message_not_found": // which says nothing about this request
		explains, otherwise = known, LossUnknown
	}
	for _, c := range known {
		if slices.Contains(explains, c) {
			return c
		}
	}
	return otherwise
}
