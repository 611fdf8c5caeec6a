package mcphybrid

import (
	"cmp"
	"fmt"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/usage"
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
	list      listLimits     // of a session's list
	used      map[string]int // rank among the most used, from 1, by registered name

	tokens     func(*BridgeTool) int
	lineTokens func(*BridgeTool, lineForm) int

	// The limits of the sections.
	listInline bool // inline tools have lines
	maxListing int  // tokens of the tools' lines
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

// newPolicy returns the policy for opts. tokens and lineTokens are called with locks
// held.
func newPolicy(opts *Options, tokens func(*BridgeTool) int, lineTokens func(*BridgeTool, lineForm) int) *policy {
	set, err := newRuleSet(opts.Rules)
	if err != nil { // the rules may be there to keep a tool from models: so they get none
		set, _ = rules.NewSet([]rules.Rule{{Name: "malformed rules", Patterns: []string{"*"}, Action: rules.Exclude}})
		err = fmt.Errorf("mcphybrid: Options.Rules: %w", err)
	}
	p := &policy{
		pins: opts.Pins, rules: set, invalid: err, tokens: tokens,
		limit: opts.Inline.Max, allUpTo: opts.Inline.Max, maxTokens: opts.Inline.MaxTokens, fewer: opts.Inline.fewer,
		lineTokens: lineTokens, listInline: opts.Prompt.ListInline, maxListing: opts.Prompt.MaxListingTokens,
		list: listLimits{items: opts.List.Max, tokens: opts.List.MaxTokens, itemsEach: opts.List.ServerMax, tokensEach: opts.List.ServerTokens},
	}
	if jit := opts.JustInTime; jit != nil {
		p.limit, p.allUpTo = 0, jit.Threshold
	}
	return p
}
