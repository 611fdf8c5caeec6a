package mcphybrid

// Which tools of the catalogs are inline for a session, which are deferred, which are
// hidden, and why. By default, in registration order:
//
//	tool 1 … tool 40      inline     there is room: Options.Inline.Max
//	tool 41 …             deferred   in the index, which deferredindex.go makes
//	mcp_git__delete_*     hidden     an access list or a rule says so
//
// Pins are inline whatever the room for inline tools, within Options.List. Tools that their servers want always loaded, and the
// most used, get the room before the others.
//
//	screening.go    what rights, pins and rules (partitionpolicy.go) say of each tool alone: a verdict (verdicts.go)
//	partition.go    which of the others get the room (inlineroom.go)
//	view.go         one session: the partition, without what its list has no room for (listroom.go)
//
// carryover.go has what of the past decides too. partitionset.go makes partitions and shares them
// among sessions, partitionlookup.go has what one says of a name or a tool, and placementreport.go
// the reasons, for people.

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// A partition is what sessions with equal rights and intent see of one version of
// the catalogs and the policy. They share it, and nobody may change it.
type partition struct {
	id       uint64     // unique
	catalogs []*catalog // if a name is in several, the last one wins, apart from nameOwners
	policy   *policy
	rights   rules.Rights
	intent   string
	carryOver

	screenings      []*screening  // by catalog
	verdicts        []verdicts    // by catalog
	coverage        *coverage     // of the servers to search
	inlineTools     []*BridgeTool // in registration order
	searchableCount int           // number of searchable tools, summarized ones included
	applies         []bool        // which rules apply to intent
	included        bool          // one of these includes
	reads           bool          // there is a resource or a template to read
	skilled         bool          // a server has skills, listed or not
	files           bool          // a skill of a server has files to read
	ended           bool          // the Manager is closed

	maxInlineTokens int // limit of the inline definitions; fewer if tools are deferred

	summarized bool // there is a tool that is

	indexer *indexer // for the tools that no catalog has indexed

	promptPrefixes [disclosures]promptPrefixes
	serverMentions serverMentions
	figures        struct { // see tenant.figuresOf
		once sync.Once
		snapshot.Stats
	}
	servedViews    atomic.Pointer[servedViews] // see view.withServed
	unindexedTools struct {
		once sync.Once
		catalog
	}
}

var endedPartition = &partition{catalogs: []*catalog{ended}, policy: &policy{rules: new(rules.Set)}, verdicts: []verdicts{{catalog: ended}}, ended: true}

// decide sets the standing of each tool of p. First comes what decides each tool for
// itself, the strongest first: a name that is another tool's, access, rules that exclude,
// pins, rules that include or summarize. All of that but the names is in the screenings. Then the
// others fill the room for inline tools: first those that their servers want always loaded, then
// the most used, then the rest in registration order. Without the right to search, all are inline,
// whatever the room.
func (p *partition) decide(w *screener, screenings []*screening) {
	p.applies, p.included = w.applies, w.included
	p.screenings, p.verdicts = screenings, make([]verdicts, len(p.catalogs))
	seen, lines := 0, 0
	for i, c := range p.catalogs {
		x, all := screenings[i], &p.verdicts[i]
		all.catalog, all.servers = c, x.servers
		seen, lines = seen+x.seen, lines+x.summarized
		for at := range p.overriddenIn(i) {
			switch all.atPlace(at).standing {
			case summarized:
				lines--
				fallthrough
			case inline, deferred:
				seen--
			}
			all.set(at, verdict{why: whyOverridden})
		}
	}
	pol := p.policy
	r := inlineRoom{tools: pol.maxInline - p.inlineUsed.tools, tokens: pol.maxTokensWhenDeferring, list: newListRoom(pol.list)}
	if seen+p.inlineUsed.tools <= pol.allInlineUpTo {
		r.tools, r.tokens = seen, pol.maxTokens
	}
	if p.maxInlineTokens = r.tokens; r.tokens < math.MaxInt {
		r.tokens -= p.inlineUsed.tokens
	}
	if mayUse(p.rights, SearchToolName) {
		p.fillRoom(&r)
		p.summarized = lines > 0
	} else {
		p.inlineAll()
	}
	p.searchableCount = seen - len(p.inlineTools)
	p.coverage = p.newCoverage()
}

// inlineAll makes all tools inline that are not hidden.
func (p *partition) inlineAll() {
	for i, c := range p.catalogs {
		for k, tools := range c.byIndex() {
			for j, t := range tools {
				at := toolPlace{int32(k), int32(j)}
				v := p.verdicts[i].atPlace(at)
				if v.standing == hidden {
					continue
				}
				p.inlineTools = append(p.inlineTools, t)
				if v.why != whyPin {
					p.verdicts[i].set(at, verdict{standing: inline, why: whyNoSearch})
				}
			}
		}
	}
}

// fillRoom decides who is inline. It looks at servers with tools that get room before others, and then at
// the first ones until there is no more room.
func (p *partition) fillRoom(r *inlineRoom) {
	pol := p.policy
	var first []*candidate
	wanted := make(map[origin]int) // how many always-loaded tools it has so far
	for i, c := range p.catalogs {
		for _, k := range p.screenings[i].singled {
			all := p.verdicts[i].server(k)
			for j, t := range c.toolsAt(k) {
				switch v := all.at(j); {
				case v.why == whyPin:
					if !r.tryAdd(t.origin(), pol.tokens(t)) {
						p.verdicts[i].set(toolPlace{int32(k), int32(j)}, verdict{standing: deferred, why: whyListFull})
					}
				case v.why == whyUndecided:
					used, always := pol.popularity[t.name], t.def.Always && wanted[t.origin()] < maxAlwaysLoaded
					if always {
						wanted[t.origin()]++
					}
					if always || used > 0 {
						first = append(first, &candidate{i, toolPlace{int32(k), int32(j)}, t, always, used})
					}
				}
			}
		}
	}
	slices.SortStableFunc(first, (*candidate).compare)
	for _, w := range first {
		because := whyUsed
		if w.always {
			because = whyServer
		}
		if v := pol.verdictIfRoom(r, w.tool, because); v.why != whyUndecided {
			p.verdicts[w.catalog].set(w.place, v)
		}
	}
	for i, c := range p.catalogs {
		all := &p.verdicts[i]
		for k, tools := range c.byIndex() {
			if why, full := r.isFull(); full { // all others are alike
				all.rest = why
				break
			}
			of := all.server(k)
			for j, t := range tools {
				if of.at(j).why != whyUndecided {
					continue
				}
				v := pol.verdictIfRoom(r, t, whyFits)
				if v.why == whyUndecided {
					break
				}
				all.set(toolPlace{int32(k), int32(j)}, v)
			}
		}
		if why, full := r.isFull(); full {
			all.rest = why
		}
		touched := slices.AppendSeq(slices.Clone(p.screenings[i].singled), maps.Keys(all.own))
		slices.Sort(touched)
		for _, k := range slices.Compact(touched) {
			of := all.server(k)
			for j, t := range c.toolsAt(k) {
				if of.at(j).standing == inline {
					p.inlineTools = append(p.inlineTools, t)
				}
			}
		}
	}
}

// verdictIfRoom returns the verdict on a tool that becomes inline if there is room, and why
// it does. Once there is no more room, the tool stays undecided.
func (p *policy) verdictIfRoom(r *inlineRoom, t *BridgeTool, because placementReason) verdict {
	if _, full := r.isFull(); full { // the tokens need not be counted
		return undecided
	}
	return r.verdictOn(t.origin(), p.tokens(t), because)
}

// maxAlwaysLoaded is how many tools a server can move before others by
// "anthropic/alwaysLoad" (see [BridgeTool]).
const maxAlwaysLoaded = 5

// A candidate is a tool that becomes inline if there is room.
type candidate struct {
	catalog int       // index of its catalog
	place   toolPlace // there
	tool    *BridgeTool
	always  bool // its server wants it inline
	used    int  // rank among the most used, from 1; 0 if it was never used
}

// compare sorts the candidates by who gets room first.
func (w *candidate) compare(other *candidate) int {
	order := func(w *candidate) int {
		switch {
		case w.always:
			return 0
		case w.used > 0:
			return w.used
		}
		return math.MaxInt
	}
	return cmp.Compare(order(w), order(other))
}
