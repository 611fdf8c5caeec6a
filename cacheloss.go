package mcphybrid

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/snapshot"
)

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
func (l *ledger) cause(miss string, h head, now time.Time) snapshot.LossCause {
	var known []snapshot.LossCause
	for _, of := range []struct {
		is    bool
		cause snapshot.LossCause
	}{
		{l.compacted, snapshot.LossCompact}, {h.tools != l.head.tools, snapshot.LossTools}, {h.sections != l.head.sections, snapshot.LossSections}, {now.Sub(l.at) > cacheLife, snapshot.LossPause},
	} {
		if of.is {
			known = append(known, of.cause)
		}
	}
	explains, otherwise := []snapshot.LossCause{}, snapshot.LossProvider // for a reason that we don't know, and for model_changed
	switch miss {
	case "tools_changed":
		explains = []snapshot.LossCause{snapshot.LossCompact, snapshot.LossTools}
	case "system_changed":
		explains = []snapshot.LossCause{snapshot.LossCompact, snapshot.LossSections}
	case "messages_changed":
		explains = []snapshot.LossCause{snapshot.LossCompact} // it is when hosts shorten conversations
	case "", "unavailable", "previous_message_not_found": // which says nothing about this request
		explains, otherwise = known, snapshot.LossUnknown
	}
	for _, c := range known {
		if slices.Contains(explains, c) {
			return c
		}
	}
	return otherwise
}
