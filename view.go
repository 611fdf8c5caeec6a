package mcphybrid

import (
	"iter"
	"slices"
	"weak"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// A view is a session at one moment: the tools that it sees, and which of them are
// active.
type view struct {
	*partition
	tenant      *tenant
	disclosure  Disclosure
	client      bool
	overflow    map[*BridgeTool]bool // inline by the partition; deferred here, since the list has no room or is fixed
	inline      []*BridgeTool        // those of the partition that are not in overflow
	active      []*BridgeTool        // searchable; must not be changed
	activations int                  // number of activations so far
	covered     *coverage            // of the session's list; may be nil
	restored    restoredTools
	viaCallTool bool    // some tools are called by CallToolName
	begun       bool    // there was a Turn
	fixed       bool    // the model can get no more tools
	noBridge    bool    // it has no tool that finds or calls others
	loads       bool    // the model loads tools by searches that the host answers
	removes     bool    // tools can be taken back
	paged       bool    // there are cut results to read on in
	linked      bool    // a result linked to a resource
	metas       metaSet // the meta tools that the model was shown, so may call

	skills      *skillSet
	skillRights rules.Rights
}

// view returns the session as it is now. It refits the session when the catalog, the
// policy or the intent has changed since it was last looked at, or nobody kept the partition
// that it had then.
func (s *Session) view() *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.viewLocked()
}

func (s *Session) viewLocked() *view {
	if s.closed {
		return &view{partition: endedPartition, tenant: s.tenant, skills: noSkills}
	}
	now := s.seen.Value()
	if !s.tenant.current(now) || now.intent != s.intent {
		if now = s.tenant.partition(s.rights, s.intent, s.carryOver); now.ended {
			return &view{partition: endedPartition, tenant: s.tenant, skills: noSkills}
		}
		s.refit(now)
		s.seen = weak.Make(now)
	}
	return s.viewOf(now)
}

// withoutOverflow returns the tools without those in overflow.
func withoutOverflow(tools []*BridgeTool, overflow map[*BridgeTool]bool) []*BridgeTool {
	if overflow == nil {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), func(t *BridgeTool) bool { return overflow[t] })
}

func (v *view) isActive(name string) bool {
	return slices.ContainsFunc(v.active, func(t *BridgeTool) bool { return t.name == name })
}

// activeSet returns the active tools as a set.
func (v *view) activeSet() map[*BridgeTool]bool { return setOf(v.active) }

func setOf(tools []*BridgeTool) map[*BridgeTool]bool {
	set := make(map[*BridgeTool]bool, len(tools))
	for _, t := range tools {
		set[t] = true
	}
	return set
}

// standingOf returns the standing of a tool, given that by the partition. It is
// another if the list has no room.
func (v *view) standingOf(t *BridgeTool, st standing) standing {
	if v.overflow[t] {
		return deferred
	}
	return st
}

// lookup, standing and each are the methods of the partition, with the standing that tools
// have here.
func (v *view) lookup(name string) (*BridgeTool, standing) {
	t, st := v.partition.lookup(name)
	return t, v.standingOf(t, st)
}

func (v *view) standing(t *BridgeTool) standing { return v.standingOf(t, v.partition.standing(t)) }

// each yields all tools and how each stands here.
func (v *view) each() iter.Seq2[*BridgeTool, standing] {
	return func(yield func(*BridgeTool, standing) bool) {
		for t, st := range v.partition.each() {
			if !yield(t, v.standingOf(t, st)) {
				return
			}
		}
	}
}

// toolsNamed returns the tools with these names that the session sees, each once.
func (v *view) toolsNamed(names []string) (tools []*BridgeTool) {
	asked := make(map[string]bool, len(names))
	for _, name := range names {
		if t, _ := v.lookup(name); t != nil && !asked[name] {
			asked[name] = true
			tools = append(tools, t)
		}
	}
	return tools
}

// searchMode reports whether the session has tools to search for, active ones
// included, and may search.
func (v *view) searchMode() bool {
	return v.searchableCount+len(v.overflow) > 0 && mayUse(v.rights, SearchToolName)
}

// seenBy returns may for the standing that tools have here.
func (v *view) seenBy(may func(*BridgeTool, standing) bool) func(*BridgeTool, standing) bool {
	return func(t *BridgeTool, st standing) bool { return may(t, v.standingOf(t, st)) }
}

// viewOf returns the session as it is with a partition to which it was fitted. The
// caller holds mu.
func (s *Session) viewOf(now *partition) *view {
	d, told := s.Disclosure(), s.transcriptCopy()
	return &view{
		partition: now, tenant: s.tenant, disclosure: d, begun: told.begun, fixed: told.fixed(d), noBridge: told.noBridge, loads: told.loads, removes: told.removes(), client: s.asked.client, overflow: s.overflow, inline: withoutOverflow(now.inlineTools, s.overflow),
		active: s.active, activations: s.activations, covered: s.covered, restored: s.restored, viaCallTool: s.full || d == ByBridge && !told.noBridge, paged: s.pages.offered, linked: s.links != nil, metas: s.metas,
		skills: s.tenant.skillsOf(now), skillRights: s.asked.skills,
	}
}
