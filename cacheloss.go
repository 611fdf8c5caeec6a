package mcphybrid

import (
	"fmt"
	"hash/maphash"
	"slices"
	"time"
)

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
