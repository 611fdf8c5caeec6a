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
)

// InlineOptions say which tools are inline: the first, or with
// [Options.Usage] the most used, until one of these limits is reached. Pins are
// inline besides and do not count.
type InlineOptions struct {
	// Max is the largest number of tools that are all inline; of more, the first
	// Max are. It defaults to [DefaultMaxInline].
	Max int

	// MaxTokens is how many tokens the definitions of the inline tools have
	// together: the first tool that has too many is deferred, and so are those
	// after it. It defaults to [DefaultMaxInlineTokens].
	MaxTokens int

	// ContextWindow is how many tokens the model reads. If it is not zero,
	// MaxTokens is at most Share of it. Share is above 0 and up to 1; it defaults
	// to [DefaultInlineShare].
	ContextWindow int
	Share         float64
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
	// Store keeps the use of each tool from one run to the next. If nil, only
	// this run and Counts are known.
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

// setListDefaults sets what the options for inline and active tools, which are set,
// leave of a session's list.
func (o *Options) setListDefaults() {
	sum := func(a, b int) int { return a + min(b, NoLimit-a) }
	if share := int(o.Inline.Share * float64(o.Inline.ContextWindow)); o.Inline.ContextWindow > 0 {
		o.Inline.MaxTokens = min(cmp.Or(o.Inline.MaxTokens, share), share)
	}
	amount(&o.Inline.MaxTokens, DefaultMaxInlineTokens)
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
	limit     int            // the largest number of inline tools, without pins
	allUpTo   int            // up to this many tools are all inline
	maxTokens int            // of all inline tools together, without pins
	list      room.Limits    // of a session's list
	used      map[string]int // rank among the most used, from 1, by registered name

	tokens     func(*BridgeTool) int
	lineTokens func(*BridgeTool, lineForm) int

	// The limits of the sections.
	maxDescription int // characters of a description
	maxListing     int // tokens of the tools' lines
	maxSummary     int // tokens of the text on what search can find
}

// A verdict is the standing of a tool and the reason for it.
type verdict struct {
	standing standing
	reason   reason
	rule     uint16 // index of the policy's rule, if the reason is a rule
}

// verdicts are those on the tools of a catalog.
type verdicts struct {
	of   []verdict // by index in its tools
	rest verdict   // on those that follow
}

func (all *verdicts) at(i int) verdict {
	if i < len(all.of) {
		return all.of[i]
	}
	return all.rest
}

// A reason is why a tool has its standing.
type reason uint8

const (
	reasonDenied     reason = iota // hidden: an access list does not permit it
	reasonOverridden               // hidden: the name is another tool's
	reasonExcluded                 // hidden: a rule excludes it
	reasonOthers                   // hidden: rules include other tools only
	reasonPin                      // inline: it is pinned
	reasonServer                   // inline: its server wants it always loaded
	reasonUsed                     // inline: it is among the most used
	reasonFits                     // inline: there is room for it
	reasonUnsearched               // inline: the session has no search
	reasonRule                     // summarized: a rule says so
	reasonCount                    // deferred: the number of inline tools is used up
	reasonTokens                   // deferred: the tokens of inline tools are used up
	reasonList                     // deferred: a session's list has no room
	reasonWaits                    // deferred, until it is decided who gets room
)

// judge sets the standing of each tool of s. It takes these steps in order: hide
// what the session may not use and what rules exclude, make pins inline, apply
// the rules that summarize. Then it fills the room for inline tools: first with
// tools that their servers want always loaded, then with the most used, then in
// registration order.
func (s *selection) judge() {
	p := s.policy
	seen := s.judgeEach()
	r := inlineRoom{tools: p.limit - s.taken.tools, tokens: p.maxTokens, list: room.New[origin](p.list)}
	if p.maxTokens < math.MaxInt {
		r.tokens -= s.taken.tokens
	}
	if seen+s.taken.tools <= p.allUpTo {
		r.tools = seen
	}
	searchable := s.rights.mayUse(SearchToolName)
	var first []*candidate
	wanted := make(map[string]int) // by server: how many always-loaded tools it has so far
	for i, c := range s.catalogs {
		for j := range s.verdicts[i].of {
			v, t := &s.verdicts[i].of[j], c.tools[j]
			switch {
			case v.standing == hidden:
				continue
			case !searchable && v.reason != reasonPin:
				v.standing, v.reason = inline, reasonUnsearched
				continue
			case v.reason == reasonPin:
				if !r.take(t, p.tokens(t)) && searchable {
					v.standing, v.reason = deferred, reasonList
				}
				continue
			case v.standing == summarized:
				continue
			}
			v.reason = reasonWaits
			used, always := p.used[t.name], c.wants && t.def.Always && wanted[t.def.Server] < maxAlwaysLoaded
			if always {
				wanted[t.def.Server]++
			}
			if always || used > 0 {
				first = append(first, &candidate{v, t, always, used})
			}
		}
	}
	slices.SortStableFunc(first, (*candidate).compare)
	for _, w := range first {
		w.verdict.standing, w.verdict.reason = r.admit(w, p.tokens)
	}
	for i, c := range s.catalogs {
		all := &s.verdicts[i]
		for j, t := range c.tools {
			if j == len(all.of) { // all others are alike
				if why := r.over(); why != reasonWaits {
					all.rest = verdict{deferred, why, 0}
					s.deferred += len(c.tools) - j
					break
				}
				all.of = append(all.of, verdict{deferred, reasonWaits, 0})
			}
			v := &all.of[j]
			if v.reason == reasonWaits {
				v.standing, v.reason = r.admit(&candidate{tool: t}, p.tokens)
			}
			switch v.standing {
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

// maxAlwaysLoaded is how many tools a server can move before others by
// [AlwaysLoadKey].
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
	tools  int
	tokens int
	full   bool // a tool had too many tokens
	list   *room.Room[origin]
}

// take gives t room beside the tools that are admitted. It reports whether the
// list has any.
func (r *inlineRoom) take(t *BridgeTool, tokens int) bool {
	fits := r.list.Admit(t.origin(), tokens)
	if fits {
		r.tools--
		r.tokens -= tokens
	}
	return fits
}

// admit makes a tool inline if there is room. After the first tool with too many
// tokens it admits no other. Otherwise a larger budget could replace tools
// instead of adding some. A tool for which the list has no room keeps out no other.
func (r *inlineRoom) admit(w *candidate, count func(*BridgeTool) int) (standing, reason) {
	if why := r.over(); why != reasonWaits {
		return deferred, why
	}
	tokens := count(w.tool)
	switch {
	case !r.list.Fits(w.tool.origin(), tokens):
		return deferred, reasonList
	case tokens > r.tokens:
		r.full = true
		return deferred, reasonTokens
	}
	r.take(w.tool, tokens)
	switch {
	case w.always:
		return inline, reasonServer
	case w.used > 0:
		return inline, reasonUsed
	}
	return inline, reasonFits
}

// over returns why no tool is admitted any more, or reasonWaits.
func (r *inlineRoom) over() reason {
	switch {
	case r.tools <= 0:
		return reasonCount
	case r.full:
		return reasonTokens
	}
	return reasonWaits
}

// judgeEach judges each tool on its own and returns how many the session sees.
func (s *selection) judgeEach() (seen int) {
	p := s.policy
	applies := p.rules.Applying(s.intent)
	included := p.rules.Including(applies)
	s.applies, s.included = applies, included
	s.verdicts = make([]verdicts, len(s.catalogs))
	alike := len(s.rights) == 0 && len(p.pins) == 0 && len(p.used) == 0 && (p.rules == nil || len(p.rules.Rules) == 0)
	if alike && len(s.catalogs) == 1 && !s.catalogs[0].wants {
		return len(s.catalogs[0].tools)
	}
	for i, c := range s.catalogs {
		s.verdicts[i].of = make([]verdict, len(c.tools))
		for j, t := range c.tools {
			v := &s.verdicts[i].of[j]
			switch {
			case s.overridden(i, t): // first, so that find goes by it
				v.reason = reasonOverridden
			case !s.rights.permit(t.def.names()):
				v.reason = reasonDenied
			default:
				*v = p.judge(t, applies, included)
			}
			if v.standing != hidden {
				seen++
			}
		}
	}
	return seen
}

// judge returns the verdict of the pins and the applying rules on t: hidden, inline
// as a pin, summarized, or deferred until there is room. If included is set, it
// hides tools that no rule matches and that are not pinned.
func (p *policy) judge(t *BridgeTool, applies []bool, included bool) verdict {
	return p.verdict(p.matchesOf(t), applies, included)
}

// verdict is judge for what m matches.
func (p *policy) verdict(m *matched, applies []bool, included bool) verdict {
	v := verdict{standing: deferred}
	if included {
		v = verdict{hidden, reasonOthers, 0}
	}
	decided := false
	for _, rule := range m.rules {
		if !applies[rule] {
			continue
		}
		switch action := p.rules.Rules[rule].Action; {
		case action == rules.Exclude:
			return verdict{hidden, reasonExcluded, rule}
		case decided:
		case action == rules.Include:
			v, decided = verdict{deferred, reasonCount, rule}, true
		case action == rules.Summarize:
			v, decided = verdict{summarized, reasonRule, rule}, true
		}
	}
	if m.pinned {
		return verdict{inline, reasonPin, 0}
	}
	return v
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
