package mcphybrid

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// Each session's tools are partitioned. By default, with names in registration order:
//
//	tool 1 … tool 40      inline     there is room: Options.Inline.Max
//	tool 41 …             deferred   in the index, which deferredindex.go makes
//	mcp_git__delete_*     hidden     an access list or a rule says so
//
// Pins are inline whatever the room for inline tools, within Options.List. Tools that their servers want always loaded, and the
// most used, get the room before the others.

// A standing is what a session may do with a tool.
type standing uint8

const (
	hidden     standing = iota // the session does not know of it
	inline                     // the model gets its definition from the start
	summarized                 // deferred, but listed by name and description
	deferred                   // the model must search for it
)

// Searchable reports whether a search may find the tool.
func (st standing) Searchable() bool { return st == summarized || st == deferred }

func (st standing) String() string {
	return [...]string{hidden: "hidden", inline: "inline", summarized: "summarized", deferred: "deferred"}[st]
}

// A placementReason is the reason for a standing.
type placementReason uint8

const (
	whyDenied      placementReason = iota // hidden: an access list does not permit it
	whyOverridden                         // hidden: the name is another tool's
	whyExcluded                           // hidden: a rule excludes it
	whyNotIncluded                        // hidden: rules include other tools only
	whyPin                                // inline: it is pinned
	whyServer                             // inline: its server wants it always loaded
	whyUsed                               // inline: it is among the most used
	whyFits                               // inline: there is room for it
	whyNoSearch                           // inline: the session has no search
	whyRule                               // summarized: a rule says so
	whyCount                              // deferred: the number of inline tools is used up
	whyTokens                             // deferred: the tokens of inline tools are used up
	whyListFull                           // deferred: a session's list has no room
	whyListFixed                          // deferred: it came after a session's list was fixed
	whyUndecided                          // deferred, until it is decided who gets room
)

// A verdict is the standing of a tool and the reason for it.
type verdict struct {
	standing standing
	why      placementReason
	rule     uint16 // index of the rule, if the reason is one
}

// Verdicts are those on a list of tools.
type verdicts struct {
	of   []verdict // by index of the tool
	rest verdict   // on those that follow
}

// at returns the verdict on the i-th tool.
func (all *verdicts) at(i int) verdict {
	if i < len(all.of) {
		return all.of[i]
	}
	return all.rest
}

// A partition is what sessions with equal rights and intent see of one version of
// the catalogs and the policy. They share it, and nobody may change it.
type partition struct {
	id       uint64     // unique
	catalogs []*catalog // if a name is in several, the last one wins, apart from nameOwners
	policy   *policy
	rights   rules.Rights
	intent   string
	carryOver

	verdicts        []verdicts    // by catalog
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
		Stats
	}
	servedViews    atomic.Pointer[servedViews] // see view.withServed
	unindexedTools struct {
		once sync.Once
		catalog
	}
}

var endedPartition = &partition{catalogs: []*catalog{ended}, policy: &policy{rules: new(rules.Set)}, verdicts: make([]verdicts, 1), ended: true}

// At most maxPartitions partitions are kept, fewer if they have more than maxVerdicts
// verdicts together. Each keeps at most maxPromptPrefixes first lists. At a limit, a new one
// takes the place of any other.
const (
	maxPartitions     = 1024
	maxVerdicts       = 16 << 20
	maxPromptPrefixes = 256 // and so many partitions in any case
)

// decide sets the standing of each tool of p. First comes what decides each tool for
// itself, the strongest first: a name that is another tool's, access, rules that exclude,
// pins, rules that include or summarize. Then the others fill the room for inline tools: first
// those that their servers want always loaded, then the most used, then the rest in
// registration order. Without the right to search, all are inline that the list has room for.
func (p *partition) decide() {
	pol := p.policy
	seen := p.decideEach()
	r := inlineRoom{tools: pol.maxInline - p.inlineUsed.tools, tokens: pol.maxTokensWhenDeferring, list: newListRoom(pol.list)}
	if seen+p.inlineUsed.tools <= pol.allInlineUpTo {
		r.tools, r.tokens = seen, pol.maxTokens
	}
	if p.maxInlineTokens = r.tokens; r.tokens < math.MaxInt {
		r.tokens -= p.inlineUsed.tokens
	}
	maySearch := mayUse(p.rights, SearchToolName)
	var first []*candidate
	wanted := make(map[origin]int) // how many always-loaded tools it has so far
	for i, c := range p.catalogs {
		for j := range p.verdicts[i].of {
			v, t := &p.verdicts[i].of[j], c.tools[j]
			switch {
			case v.standing == hidden:
				continue
			case !maySearch && v.why != whyPin:
				*v = verdict{standing: inline, why: whyNoSearch}
				continue
			case v.why == whyPin:
				if !r.tryAdd(t.origin(), pol.tokens(t)) && maySearch {
					*v = verdict{standing: deferred, why: whyListFull}
				}
				continue
			case v.standing == summarized:
				continue
			}
			v.why = whyUndecided
			used, always := pol.popularity[t.name], c.alwaysLoaded && t.def.Always && wanted[t.origin()] < maxAlwaysLoaded
			if always {
				wanted[t.origin()]++
			}
			if always || used > 0 {
				first = append(first, &candidate{v, t, always, used})
			}
		}
	}
	slices.SortStableFunc(first, (*candidate).compare)
	for _, w := range first {
		because := whyUsed
		if w.always {
			because = whyServer
		}
		*w.verdict = pol.verdictIfRoom(&r, w.tool, because)
	}
	for i, c := range p.catalogs {
		all := &p.verdicts[i]
		all.of = slices.Grow(all.of, max(0, min(r.tools, len(c.tools)-len(all.of))))
		p.inlineTools = slices.Grow(p.inlineTools, max(0, min(r.tools, len(c.tools))))
		for j, t := range c.tools {
			if j == len(all.of) { // all others are alike
				if why, full := r.isFull(); full {
					all.rest = verdict{standing: deferred, why: why}
					p.searchableCount += len(c.tools) - j
					break
				}
				all.of = append(all.of, verdict{standing: deferred, why: whyUndecided})
			}
			v := &all.of[j]
			if v.why == whyUndecided {
				*v = pol.verdictIfRoom(&r, t, whyFits)
			}
			switch v.standing {
			case inline:
				p.inlineTools = append(p.inlineTools, t)
			case summarized:
				p.summarized = true
				p.searchableCount++
			case deferred:
				p.searchableCount++
			}
		}
	}
}

// verdictIfRoom returns the verdict on a tool that becomes inline if there is room, and why
// it does.
func (p *policy) verdictIfRoom(r *inlineRoom, t *BridgeTool, because placementReason) verdict {
	if why, full := r.isFull(); full { // the tokens need not be counted
		return verdict{standing: deferred, why: why}
	}
	return r.verdictOn(t.origin(), p.tokens(t), because)
}

// maxAlwaysLoaded is how many tools a server can move before others by
// "anthropic/alwaysLoad" (see [BridgeTool]).
const maxAlwaysLoaded = 5

// A candidate is a tool that becomes inline if there is room.
type candidate struct {
	verdict *verdict
	tool    *BridgeTool
	always  bool // its server wants it inline
	used    int  // rank among the most used, from 1; 0 if it was never used
}

// compare sorts the candidates by who gets room first.
func (w *candidate) compare(other *candidate) int {
	order := func(w *candidate) int {
		switch {
		case w.always:
			return -1
		case w.used > 0:
			return w.used
		}
		return math.MaxInt
	}
	return cmp.Compare(order(w), order(other))
}

// An inlineRoom is what is left for inline tools.
type inlineRoom struct {
	tools, tokens int
	list          *listRoom // of a session's list

	full bool // a tool had too many tokens
}

// tryAdd adds a tool if the list has room, whatever the room for inline tools. It reports
// whether it did.
func (r *inlineRoom) tryAdd(of origin, tokens int) bool {
	fits := r.list.tryAdd(of, tokens)
	if fits {
		r.tools--
		r.tokens -= tokens
	}
	return fits
}

// verdictOn makes a tool inline, for this reason, if there is room. After the first tool
// with too many tokens there is room for no other. Otherwise a larger budget could replace
// tools instead of adding some. A tool for which the list has no room keeps out no
// other.
func (r *inlineRoom) verdictOn(of origin, tokens int, because placementReason) verdict {
	if why, full := r.isFull(); full {
		return verdict{deferred, why, 0}
	}
	switch {
	case !r.list.fits(of, tokens):
		return verdict{deferred, whyListFull, 0}
	case tokens > r.tokens:
		r.full = true
		return verdict{deferred, whyTokens, 0}
	}
	r.tryAdd(of, tokens)
	return verdict{inline, because, 0}
}

// isFull reports whether there is room for no further tool, and why.
func (r *inlineRoom) isFull() (why placementReason, full bool) {
	switch {
	case r.tools <= 0:
		return whyCount, true
	case r.full:
		return whyTokens, true
	}
	return 0, false
}

// decideEach decides each tool on its own and returns how many the session sees.
func (p *partition) decideEach() (seen int) {
	pol := p.policy
	applies := pol.rules.Applying(p.intent)
	included := pol.rules.Including(applies)
	p.applies, p.included = applies, included
	p.verdicts = make([]verdicts, len(p.catalogs))
	alike := len(p.rights) == 0 && len(pol.pins) == 0 && len(pol.popularity) == 0 && (pol.rules == nil || len(pol.rules.Rules) == 0)
	if alike && len(p.catalogs) == 1 && !p.catalogs[0].alwaysLoaded {
		return len(p.catalogs[0].tools)
	}
	for i, c := range p.catalogs {
		p.verdicts[i].of = make([]verdict, len(c.tools))
		for j, t := range c.tools {
			v := &p.verdicts[i].of[j]
			switch {
			case p.overridden(i, t): // first, so that placeOf goes by it
				v.why = whyOverridden
			case !p.rights.Permit(t.def.subject()):
				v.why = whyDenied
			default:
				*v = pol.byRules(pol.matchesOf(t), applies, included)
			}
			if v.standing != hidden {
				seen++
			}
		}
	}
	return seen
}

// byRules returns the verdict of the pins and of the applying rules on what m matches:
// hidden, inline as a pin, summarized, or deferred until there is room. If included is set,
// it hides a tool that no rule matches and that is not pinned.
func (p *policy) byRules(m *matched, applies []bool, included bool) verdict {
	v := verdict{standing: deferred}
	if included {
		v = verdict{hidden, whyNotIncluded, 0}
	}
	decided := false
	for _, rule := range m.rules {
		if !applies[rule] {
			continue
		}
		switch action := p.rules.Rules[rule].Action; {
		case action == rules.Exclude:
			return verdict{hidden, whyExcluded, rule}
		case decided:
		case action == rules.Include:
			v, decided = verdict{deferred, whyUndecided, rule}, true
		case action == rules.Summarize:
			v, decided = verdict{summarized, whyRule, rule}, true
		}
	}
	if m.pinned {
		return verdict{inline, whyPin, 0}
	}
	return v
}

// overridden reports whether the name of t, a tool of the i-th catalog, means another
// tool.
func (p *partition) overridden(i int, t *BridgeTool) bool {
	if whose := p.nameOwners[t.name]; whose != nil {
		return whose != t.owner
	}
	return slices.ContainsFunc(p.catalogs[i+1:], func(c *catalog) bool { return c.overrides(t.name, t.def.Server) })
}
