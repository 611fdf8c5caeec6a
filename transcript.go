package mcphybrid

import (
	"math"
	"slices"
	"weak"

	"github.com/mcphybrid/mcphybrid/internal/request"
)

// A transcript is what a session has told its model by [Session.Turn].
type transcript struct {
	form *request.Form
	base int32 // how many of the items shown are the beginning
	told int32 // how many items the conversation has, those of the beginning included

	inserts []insert // of the Turns that had news, if the host keeps the conversation elsewhere
	waiting []string // names that waited at the last Turn

	begun    bool // there was a Turn since the last Compact: the beginning is fixed
	noBridge bool // ByBridge without tools that search and call: nothing was deferred
	adds     bool // the conversation can add tools
	loads    bool // the model loads tools by searches that the host answers: see AnswerToolSearch
	why      disclosureReason
}

// transcriptCopy returns what the model was told by Turn so far. The caller holds mu.
func (s *Session) transcriptCopy() transcript {
	if s.transcript == nil {
		return transcript{}
	}
	return *s.transcript
}

// An insert is where in the host's conversation the model was told of items, up to told.
type insert struct{ told, at int32 }

// fixed reports whether neither the list of tools nor the conversation can have more tools.
func (t transcript) fixed(d Disclosure) bool {
	return t.begun && (d == ByBridge || d == ByProvider && !t.adds)
}

// removes reports whether the conversation can take tools back.
func (t transcript) removes() bool { return t.begun && t.adds && t.form != nil && t.form.Removes() }

// takenBack returns the names of the tools that items take back, if the provider can. A tool
// that the same items offer was never told of.
func takenBack(items []listItem, form *request.Form) (names []string) {
	for i, e := range items {
		offered := func(before listItem) bool { return before.isTool() && before.tool == e.tool }
		if e.slot == asRemoved && form.Removes() && !slices.ContainsFunc(items[:i], offered) {
			names = append(names, e.tool.name)
		}
	}
	return names
}

// untell has the next Turn tell the same again.
func (s *Session) untell(taken takenTurn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.transcript != taken.turns || s.closed {
		return // another Turn failed too, or Compact was called
	}
	s.transcript.told, s.transcript.inserts = min(s.transcript.told, int32(taken.from)), taken.inserts
	if taken.first {
		s.transcript = nil
		s.disclosure.Store(int32(s.asked.disclosure))
		s.setShown(taken.was, taken.wasPrefix)
		s.full, s.seen = taken.wasFull, weak.Pointer[partition]{}
	}
}

// forgetUntold drops the tools that came and were taken back before the model was told of
// them: they can come again. The caller holds mu.
func (s *Session) forgetUntold() {
	told := min(int(s.transcript.told), len(s.shown))
	var left []listItem
	var names []knownName
	for _, e := range s.shown[told:] {
		if e.slot == asRemoved {
			offered := func(before listItem) bool { return before.slot == asTool && before.tool == e.tool }
			if i := slices.IndexFunc(left, offered); i >= 0 {
				left = slices.Delete(left, i, i+1)
				names = append(names, knownName{e.tool.def.subject(), e.tool.owner})
				continue
			}
		}
		left = append(left, e)
	}
	if names == nil {
		return
	}
	s.setShown(slices.Concat(s.shown[:told], left), s.prefix)
	s.remember(names)
}

// TakeBack tells the session that the host has taken messages back: of the conversation,
// what was there up to the Turn with that [Turn.Place] is left. The next Turn gives again
// what was appended since. A conversation without any Turn's messages has the place 0.
func (s *Session) TakeBack(place int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.transcript == nil {
		return
	}
	t := s.transcript
	t.told = max(t.base, min(t.told, int32(max(0, min(place, math.MaxInt32)))))
	for n := len(t.inserts); n > 0 && t.inserts[n-1].told > t.told; n-- {
		t.inserts = t.inserts[: n-1 : n-1]
	}
}

// goBack forgets what was inserted behind more messages than there are.
func (t *transcript) goBack(messages int) {
	n := len(t.inserts)
	for n > 0 && int(t.inserts[n-1].at) > messages {
		n--
	}
	if n == len(t.inserts) {
		return
	}
	t.inserts, t.told = slices.Clip(t.inserts[:n]), t.base
	if n > 0 {
		t.told = t.inserts[n-1].told
	}
}

// remaining returns list without the tools that it takes back. A tool may be offered
// again behind the place where it was.
func remaining(list []listItem) []listItem {
	last := make(map[*BridgeTool]int) // where it was taken back
	for i, e := range list {
		if e.slot == asRemoved {
			last[e.tool] = i
		}
	}
	if len(last) == 0 {
		return list
	}
	var left []listItem
	for i, e := range list {
		if at, ok := last[e.tool]; e.slot != asRemoved && !(ok && i < at && e.isTool()) {
			left = append(left, e)
		}
	}
	return left
}
