package mcphybrid

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/room"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/usage"
	"github.com/mcphybrid/mcphybrid/internal/verdict"
)

// InlineOptions say which tools are inline: the first, or with
// [Options.Usage] the most used, until one of these limits is reached. Pins
// come first and take from both limits, but are inline even beyond them.
type InlineOptions struct {
	// Max is the largest number of tools that are all inline; of more, the first
	// Max are. It defaults to [DefaultMaxInline].
	Max int

	// MaxTokens is how many tokens the definitions of the inline tools have
	// together: the first tool that has too many is deferred, and so are those
	// after it. It defaults to [DefaultMaxInlineTokens] if all tools can be inline, and to
	// half of that if there are more than Max.
	MaxTokens int

	// ContextWindow is how many tokens the model reads. If it is not zero,
	// MaxTokens is at most Share of it. Share is above 0 and up to 1; it defaults
	// to [DefaultInlineShare].
	ContextWindow int
	Share         float64

	fewer int // tokens if there are more than Max tools
}

// ListOptions bound the tools of servers in a session's list: those that are
// inline or active, pins among them, and those that have left the catalog since
// they were shown. They count until [Session.Compact]. A tool that does not fit is
// deferred. The model then calls it by [CallToolName], and [DescribeToolName] says
// what it takes. [Stats.Crowded] and [EventFull] tell the host.
//
// A session that may not search lists all its tools from the start. These limits
// then bound what is added later.
type ListOptions struct {
	// Max is the largest number of tools. It defaults to [DefaultMaxListed], or to
	// [InlineOptions.Max] and [ActiveOptions.Max] together, if that is more.
	Max int

	// MaxTokens is how many tokens their definitions have together. It defaults to
	// [DefaultMaxListedTokens], or to twice [InlineOptions.MaxTokens], if that is
	// more.
	MaxTokens int

	// ServerMax and ServerTokens are the same for the tools of one server.
	// ServerMax defaults to three quarters of Max or to [InlineOptions.Max],
	// whichever is more, ServerTokens to half of MaxTokens. ServerMax also bounds
	// lines of summarized tools, and deferred tools in a list [ByProvider], unless
	// the server has more of them at once.
	ServerMax    int
	ServerTokens int
}

// JustInTimeOptions have tools selected for each message of the user before the
// model is called: see [Session.SelectFor].
type JustInTimeOptions struct {
	// Threshold is the largest number of tools that are all inline. Of more,
	// only the pins are. It takes the place of [InlineOptions.Max].
	//
	// If zero, defaults to [DefaultJustInTime]. If negative, none but the pins
	// are inline.
	Threshold int

	// Results is how many tools are selected for a message. If zero, 3.
	Results int
}

// DefaultJustInTime is that of the published design.
const DefaultJustInTime = 15

func (o *JustInTimeOptions) setDefaults() {
	o.Threshold = max(cmp.Or(o.Threshold, DefaultJustInTime), 0)
	o.Results = cmp.Or(o.Results, 3)
	if o.Results < 0 {
		panic(fmt.Sprintf("mcphybrid: JustInTimeOptions.Results is %d, must not be negative", o.Results))
	}
}

// UsageOptions make the most used tools inline, instead of the first ones: see
// [Manager.Reorder].
type UsageOptions struct {
	// Store keeps the use of each tool from one run to the next. Managers may share a
	// [SharedStore]: the uses of all count. If nil, only this run and Counts are known.
	Store Store

	// Counts is the use of tools that the host knows of: numbers of calls by
	// registered name. It is added to the stored use. Only finite positive
	// numbers count.
	Counts map[string]float64

	// HalfLife is the time after which a call counts half. If zero,
	// [DefaultHalfLife]. It must not be negative.
	HalfLife time.Duration
}

// DefaultHalfLife lets tools that nobody used for a few months fall behind.
const DefaultHalfLife = 30 * 24 * time.Hour

// record returns the record of use, or nil without options.
func (o *UsageOptions) record() *usage.Record {
	if o == nil {
		return nil
	}
	if o.HalfLife < 0 {
		panic(fmt.Sprintf("mcphybrid: UsageOptions.HalfLife is %v, must not be negative", o.HalfLife))
	}
	return usage.New(o.Store, o.Counts, cmp.Or(o.HalfLife, DefaultHalfLife))
}

// setTokens settles MaxTokens by the context window. Share is set.
func (o *InlineOptions) setTokens() {
	if o.ContextWindow > 0 {
		share := int(max(1, min(o.Share*float64(o.ContextWindow), NoLimit/2))) // 0 would mean the default, and more may be no int
		o.MaxTokens = min(cmp.Or(o.MaxTokens, share), share)
	}
	o.fewer = o.MaxTokens
	if o.MaxTokens == 0 {
		o.fewer = DefaultMaxInlineTokens / 2
	}
	amount(&o.MaxTokens, DefaultMaxInlineTokens)
	amount(&o.fewer, DefaultMaxInlineTokens)
}

// setListDefaults sets what the options for inline and active tools, which are set,
// leave of a session's list.
func (o *Options) setListDefaults() {
	sum := func(a, b int) int { return a + min(b, NoLimit-a) }
	most := o.Inline.Max
	if o.JustInTime != nil {
		most = max(most, o.JustInTime.Threshold)
	}
	amount(&o.List.Max, max(DefaultMaxListed, sum(most, o.Active.Max)))
	amount(&o.List.MaxTokens, max(DefaultMaxListedTokens, sum(o.Inline.MaxTokens, o.Inline.MaxTokens)))
	amount(&o.List.ServerMax, max(o.List.Max-o.List.Max/4, most))
	amount(&o.List.ServerTokens, o.List.MaxTokens-o.List.MaxTokens/2)
}

// A policy decides the standing of tools: which are inline, summarized, deferred
// or hidden. It is not changed once it is in use.
type policy struct {
	pins      []string
	rules     *rules.Set
	invalid   error          // of the rules in the options, in the place of which rules excludes all; or nil
	limit     int            // the largest number of inline tools; pins count, and may exceed it
	allUpTo   int            // up to this many tools are all inline
	maxTokens int            // of all inline tools together, if there are not more than allUpTo; likewise
	fewer     int            // the same if there are more
	list      room.Limits    // of a session's list
	used      map[string]int // rank among the most used, from 1, by registered name

	tokens     func(*BridgeTool) int
	lineTokens func(*BridgeTool, lineForm) int

	// The limits of the sections.
	listInline bool // inline tools have lines
	maxListing int  // tokens of the tools' lines
}

// judge sets the standing of each tool of s. It takes these steps in order: hide
// what the session may not use and what rules exclude, make pins inline, apply
// the rules that summarize. Then it fills the room for inline tools: first with
// tools that their servers want always loaded, then with the most used, then in
// registration order.
func (s *selection) judge() {
	p := s.policy
	seen := s.judgeEach()
	r := verdict.Room[origin]{Tools: p.limit - s.taken.tools, Tokens: p.fewer, List: room.New[origin](p.list)}
	if seen+s.taken.tools <= p.allUpTo {
		r.Tools, r.Tokens = seen, p.maxTokens
	}
	if r.Tokens < math.MaxInt {
		r.Tokens -= s.taken.tokens
	}
	searchable := mayUse(s.rights, SearchToolName)
	var first []*candidate
	wanted := make(map[origin]int) // how many always-loaded tools it has so far
	for i, c := range s.catalogs {
		for j := range s.verdicts[i].Of {
			v, t := &s.verdicts[i].Of[j], c.tools[j]
			switch {
			case v.Standing == hidden:
				continue
			case !searchable && v.Reason != verdict.Pin:
				*v = verdict.Verdict{Standing: inline, Reason: verdict.Unsearched}
				continue
			case v.Reason == verdict.Pin:
				if !r.Take(t.origin(), p.tokens(t)) && searchable {
					*v = verdict.Verdict{Standing: deferred, Reason: verdict.List}
				}
				continue
			case v.Standing == summarized:
				continue
			}
			v.Reason = verdict.Waits
			used, always := p.used[t.name], c.wants && t.def.Always && wanted[t.origin()] < maxAlwaysLoaded
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
		why := verdict.Used
		if w.always {
			why = verdict.Server
		}
		*w.verdict = p.admit(&r, w.tool, why)
	}
	for i, c := range s.catalogs {
		all := &s.verdicts[i]
		all.Of = slices.Grow(all.Of, max(0, min(r.Tools, len(c.tools)-len(all.Of))))
		s.inline = slices.Grow(s.inline, max(0, min(r.Tools, len(c.tools))))
		for j, t := range c.tools {
			if j == len(all.Of) { // all others are alike
				if why := r.Over(); why != verdict.Waits {
					all.Rest = verdict.Verdict{Standing: deferred, Reason: why}
					s.deferred += len(c.tools) - j
					break
				}
				all.Of = append(all.Of, verdict.Verdict{Standing: deferred, Reason: verdict.Waits})
			}
			v := &all.Of[j]
			if v.Reason == verdict.Waits {
				*v = p.admit(&r, t, verdict.Fits)
			}
			switch v.Standing {
			case inline:
				s.inline = append(s.inline, t)
			case summarized:
				s.summarized = true
				s.deferred++
			case deferred:
				s.deferred++
			}
		}
	}
}

// admit returns the verdict on a tool that becomes inline if there is room, and why it
// does.
func (p *policy) admit(r *verdict.Room[origin], t *BridgeTool, why verdict.Reason) verdict.Verdict {
	if over := r.Over(); over != verdict.Waits { // the tokens need not be counted
		return verdict.Verdict{Standing: deferred, Reason: over}
	}
	return r.Admit(t.origin(), p.tokens(t), why)
}

// maxAlwaysLoaded is how many tools a server can move before others by
// [AlwaysLoadKey].
const maxAlwaysLoaded = 5

// A candidate is a tool that becomes inline if there is room.
type candidate struct {
	verdict *verdict.Verdict
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

// judgeEach judges each tool on its own and returns how many the session sees.
func (s *selection) judgeEach() (seen int) {
	p := s.policy
	applies := p.rules.Applying(s.intent)
	included := p.rules.Including(applies)
	s.applies, s.included = applies, included
	s.verdicts = make([]verdict.All, len(s.catalogs))
	alike := len(s.rights) == 0 && len(p.pins) == 0 && len(p.used) == 0 && (p.rules == nil || len(p.rules.Rules) == 0)
	if alike && len(s.catalogs) == 1 && !s.catalogs[0].wants {
		return len(s.catalogs[0].tools)
	}
	for i, c := range s.catalogs {
		s.verdicts[i].Of = make([]verdict.Verdict, len(c.tools))
		for j, t := range c.tools {
			v := &s.verdicts[i].Of[j]
			switch {
			case s.overridden(i, t): // first, so that find goes by it
				v.Reason = verdict.Overridden
			case !s.rights.Permit(t.def.names()):
				v.Reason = verdict.Denied
			default:
				*v = p.verdict(p.matchesOf(t), applies, included)
			}
			if v.Standing != hidden {
				seen++
			}
		}
	}
	return seen
}

// verdict returns the verdict of the pins and the applying rules on what m matches.
func (p *policy) verdict(m *matched, applies []bool, included bool) verdict.Verdict {
	return verdict.ByRules(p.rules, m.rules, m.pinned, applies, included)
}

// matchesOf returns the rules and pins that match t. It caches them in t.
func (p *policy) matchesOf(t *BridgeTool) *matched {
	if m := t.matched.Load(); m != nil && m.policy == any(p) {
		return m
	}
	m := p.match(t.def.names())
	t.matched.Store(m)
	return m
}

func (p *policy) match(names rules.Tool) *matched {
	m := &matched{p, nil, names.MatchesAny(p.pins)}
	if p.rules != nil && len(p.rules.Rules) > 0 {
		m.rules = p.rules.Matches(names)
	}
	return m
}

// overridden reports whether the name of t, a tool of the i-th catalog, means another
// tool.
func (s *selection) overridden(i int, t *BridgeTool) bool {
	if whose := s.meant[t.name]; whose != nil {
		return whose != t.owner
	}
	return slices.ContainsFunc(s.catalogs[i+1:], func(c *catalog) bool { return c.overrides(t.name, t.def.Server) })
}
