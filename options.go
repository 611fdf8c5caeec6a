package mcphybrid

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/search"
)

// The defaults of [Options].
const (
	// DefaultMaxInline is where the published reference design stops to put
	// tools in front of the model. Models choose worse among more than 30 to
	// 50 tools.
	DefaultMaxInline = 40

	// DefaultInlineShare is where published agents begin to defer tools.
	DefaultInlineShare = 0.1

	// DefaultMaxDescription is enough for the first sentence or two, about 50
	// tokens; half of all published tools have descriptions no longer.
	DefaultMaxDescription = 200

	// DefaultMaxSummaryTokens is enough for about 30 servers.
	DefaultMaxSummaryTokens = 400

	// DefaultSearchResults is what published tool searches return: 3 to 5.
	DefaultSearchResults = 5

	// DefaultSearchLimit keeps a model from activating everything at once.
	DefaultSearchLimit = 20

	// DefaultMaxActive leaves room in the 128 tools that OpenAI's models take,
	// beside 40 inline ones, the meta tools and a host's own.
	DefaultMaxActive = 64

	// DefaultActiveTurns is long for one task: what was not used since is
	// likely of another, and can be found again.
	DefaultActiveTurns = 20

	// DefaultMaxInlineSkills and DefaultMaxSkillTokens are those of the
	// published reference design: descriptions of skills are short, so that it
	// is mostly their tokens that decide.
	DefaultMaxInlineSkills = 60
	DefaultMaxSkillTokens  = 5000

	// DefaultMaxResult is about 12,000 tokens, a tenth of a common context
	// window.
	DefaultMaxResult = 48 << 10

	// DefaultStartTimeout leaves room: 27 published servers took 0.06 to 1.7
	// seconds to start and list their tools.
	DefaultStartTimeout = 20 * time.Second

	// DefaultEnrichTimeout is long for looking something up, and short enough
	// for hints to be there soon when some lookups hang.
	DefaultEnrichTimeout = 5 * time.Second

	// DefaultCallTimeout is long for a person who waits.
	DefaultCallTimeout = 60 * time.Second

	// DefaultReconnect is soon enough for a person who waits, and late enough
	// for a server that ends at once not to take a processor.
	DefaultReconnect = 500 * time.Millisecond

	// DefaultRefresh is for servers that do not tell of changes.
	DefaultRefresh = 5 * time.Minute

	// DefaultMaxMessage is 16 times the longest tools/list result of 27
	// published servers.
	DefaultMaxMessage = 16 << 20

	// DefaultMaxDefinition is five times the longest of 866 published tools.
	DefaultMaxDefinition = 256 << 10

	// DefaultMaxTools is 50 times what the largest published server has.
	DefaultMaxTools = 10_000

	// DefaultMaxPages is enough for DefaultMaxTools at ten to a page.
	DefaultMaxPages = 1000

	// DefaultMaxUnasked is a log message or a notification of progress every
	// millisecond, more than anyone reads.
	DefaultMaxUnasked = 1000
)

// A Ranker names a way to rank deferred tools.
type Ranker string

const (
	// RankerDefault is [RankerLexical], followed by a closer look at the best.
	RankerDefault Ranker = "default"

	// RankerLexical is BM25F over all that is known of a tool, its parameters
	// included, in one pass: see [search.Index].
	RankerLexical Ranker = "lexical"

	// RankerClassic is BM25 over the server's name, the tool's own name and
	// its description, with the terms and the formula of the published
	// reference design: see [BM25Index].
	RankerClassic Ranker = "classic"
)

var rankers = []Ranker{RankerDefault, RankerLexical, RankerClassic}

// Options configure a [Manager]. The zero value is the default configuration.
type Options struct {
	// Servers are connected by [Manager.Start]. Their order is the
	// registration order, whichever connects first.
	Servers []ServerConfig

	// MaxInline is the largest number of tools that are all inline; of more,
	// pins aside, the first MaxInline are.
	//
	// If zero, defaults to [DefaultMaxInline]. If negative, all are deferred.
	MaxInline int

	// Pins are the tools that are inline in any case, unless a rule excludes
	// them, by registered name or a pattern of it as in [Access].
	Pins []string

	// Rules say by intent which tools there are, which are not, and which are
	// listed by name only: see [Session.SetIntent]. [Manager.SetRules] sets
	// others.
	Rules []Rule

	// MaxInlineTokens is how many tokens the definitions of the inline tools
	// have together, pins aside: the first that has too many is deferred, and
	// so are those after it. With a ContextWindow it is at most InlineShare of
	// that, from 0 to 1.
	//
	// If zero, there is no such limit; InlineShare defaults to
	// [DefaultInlineShare].
	MaxInlineTokens int
	ContextWindow   int
	InlineShare     float64

	// Access says, by registered name, which tools there are for any session.
	// If it denies [SearchToolName], no tool is deferred.
	Access Access

	// Needs says by registered name which other tools a tool needs, as one
	// that edits files needs the one that reads them. They come along with it,
	// and so does what they need, the nearest first, up to 32 in all: a search
	// has them behind its hits, and when the tool, be it inline, is activated
	// or called, they are activated too. It does its work without those
	// that are not there or not permitted.
	//
	// [ServerConfig.Needs] says so by the tools' own names, and by [NeedsKey] a
	// server of its own tools; what is said here comes first.
	// [Manager.Problems] has names that are not there, cycles, and what is
	// malformed.
	Needs map[string][]string

	// Usage, if not nil, has the tools inline that are used most, instead of
	// the first.
	Usage *UsageOptions

	// Ranker says how deferred tools are ranked. If empty, [RankerDefault].
	Ranker Ranker

	// Lexicon is what [RankerDefault] and [RankerLexical] know of words. If
	// nil, [search.DefaultLexicon].
	Lexicon *search.Lexicon

	// SearchThreshold is what a tool must score in a search, for any ranker
	// but [RankerClassic]: see [search.Options].
	//
	// If zero, defaults to [search.DefaultThreshold]. If negative, there is none.
	SearchThreshold float64

	// BM25 are the parameters of [RankerClassic]. If nil, the defaults.
	BM25 *BM25Options

	// Semantic, if not nil, lets searches find by meaning too.
	Semantic *SemanticOptions

	// JustInTime, if not nil, has tools selected for each message before the
	// model is called.
	JustInTime *JustInTimeOptions

	// Enricher, if not nil, is asked in the background for [Hints] on each tool
	// that comes into the catalog.
	//
	// EnrichTimeout is how long one lookup may take. If zero, defaults to
	// [DefaultEnrichTimeout].
	Enricher      Enricher
	EnrichTimeout time.Duration

	// SearchResults is how many tools a search returns if the model does not
	// ask for a number, SearchLimit how many it returns at most.
	//
	// If zero, they default to [DefaultSearchResults] and [DefaultSearchLimit].
	SearchResults int
	SearchLimit   int

	// ServerLimit is the largest number of tools of one server in the answer
	// to a search. If zero or negative, there is no such limit.
	ServerLimit int

	// MaxDescription is the number of characters of a tool's description in
	// the prompt section and in search results. If zero, defaults to
	// [DefaultMaxDescription]. If negative, there are no descriptions there.
	MaxDescription int

	// MaxListingTokens is how many tokens the lines of tools in the prompt
	// sections have together: if they would have more, the lines of all that is
	// listed at once have names only, and if these are too many, there is a line
	// per server with the number of its tools.
	//
	// If zero, there is no such limit.
	MaxListingTokens int

	// MaxSummaryTokens is how many tokens the prompt section has of what there
	// is to search for: the servers, how many tools they have and, if there is
	// room, what these are about.
	//
	// If zero, defaults to [DefaultMaxSummaryTokens]. If negative, there is no
	// such limit.
	MaxSummaryTokens int

	// MaxActive is how many active tools [Session.Compact] leaves at most, those
	// used in the current turn aside, and ActiveTurns after how many turns without use it gives one up.
	//
	// If zero, they default to [DefaultMaxActive] and [DefaultActiveTurns]. If
	// negative, there is no such limit.
	MaxActive   int
	ActiveTurns int

	// Skills are what [Manager.SetSkills] is given first, in the order in which
	// the model sees them. [Manager.Problems] has those that can't be used.
	Skills []Skill

	// MaxInlineSkills is the largest number of skills that the prompt section
	// lists, and MaxSkillTokens the largest number of tokens that it then has,
	// estimated as a quarter of its characters. With more of either, there is
	// [SkillSearchToolName] instead, unless [Options.Access] denies it.
	//
	// If zero, they default to [DefaultMaxInlineSkills] and
	// [DefaultMaxSkillTokens]. If negative, no skill is listed.
	MaxInlineSkills int
	MaxSkillTokens  int

	// MaxResult is how many bytes of text a result may have. Of a longer one
	// the model gets the beginning and the end, and the rest on demand.
	//
	// If zero, defaults to [DefaultMaxResult]. If negative, there is no limit.
	MaxResult int

	// Middleware wraps every call of a tool, the first outermost.
	Middleware []Middleware

	// OnEvent is called with what happens in sessions, one call after the
	// other within a goroutine but from several at once. It may be nil.
	OnEvent func(Event)

	// Tokens counts tokens. If nil, they are estimated as a quarter of the
	// bytes.
	Tokens TokenCounter

	// Registry is kept in step with the Manager's own session. If nil, it is
	// a new [ToolRegistry].
	Registry Registry

	// StartTimeout and CallTimeout hold for servers that have none of their
	// own. If zero, they default to [DefaultStartTimeout] and
	// [DefaultCallTimeout].
	StartTimeout time.Duration
	CallTimeout  time.Duration

	// Cache, if not nil, keeps the servers' tools from one run to the next: see
	// [FileStore]. [Manager.Start] then returns with the catalog of the servers
	// that it knows before any of them runs. Such a server is started by the
	// first call of one of its tools or, if they were listed longer ago than
	// Refresh, in the background; how its tools have changed since is then
	// published like any change.
	Cache Store

	// Trust says what becomes of a tool whose definition changes after it was
	// first seen. What tools are known to be is kept in TrustStore; without one
	// it is known for as long as the Manager lives. If it can't be loaded and
	// Trust is [TrustQuarantine], no server is started. It belongs to one Manager
	// at a time.
	//
	// If empty, [TrustWarn].
	Trust      TrustPolicy
	TrustStore Store

	// IdleTimeout is how long a server runs without a call before it is
	// stopped; the next call starts it again. Servers in this process are not
	// stopped. If zero, none is.
	IdleTimeout time.Duration

	// Reconnect is how long after a server was lost, or could not be started,
	// it is started again; after each further failure twice as long, up to a
	// minute. That it was lost within a minute counts as a failure, too. A call
	// of one of its tools has a server that was lost started at once and waits
	// for it, and one that could not be started no later than after Reconnect,
	// and does not.
	//
	// If zero, defaults to [DefaultReconnect]. If negative, a server that is
	// down stays down.
	Reconnect time.Duration

	// Refresh is how often the tools of a server are listed, besides whenever
	// it says that they have changed. If zero, defaults to [DefaultRefresh]. If
	// negative, only then.
	Refresh time.Duration

	// What a server may send: MaxMessage bytes in a message, a tool's result
	// for one; MaxDefinition bytes in a tool's definition; MaxTools tools, on
	// MaxPages pages. If zero, they default to [DefaultMaxMessage],
	// [DefaultMaxDefinition], [DefaultMaxTools] and [DefaultMaxPages].
	MaxMessage    int
	MaxDefinition int
	MaxTools      int
	MaxPages      int

	// MaxUnasked is how many messages a server may send within a second beside
	// its answers: notifications, requests, and what is neither. The
	// connection to one that sends more is given up, as if it was lost.
	// Servers in this process are not counted.
	//
	// If zero, defaults to [DefaultMaxUnasked].
	MaxUnasked int

	// Logger is told of problems that no caller is. If nil, no one is.
	Logger *slog.Logger
}

// JustInTimeOptions have tools selected for each message of the user before the
// model is called: see [Session.SelectFor].
type JustInTimeOptions struct {
	// Threshold is the largest number of tools that are all inline. Of more,
	// only the pins are. It takes the place of [Options.MaxInline].
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

// SelectFor activates the tools that message, such as the user's, most likely
// needs, and what these need, and returns them: [JustInTimeOptions.Results], or
// without [Options.JustInTime] [Options.SearchResults]. A host calls it before
// it calls the model, and again with what [SearchDirectives] finds in the
// model's answer. It finds by meaning within ctx and the timeout, and otherwise
// by words. Like every activation it appends to what was sent.
func (s *Session) SelectFor(ctx context.Context, message string) []*BridgeTool {
	n := s.scope.opts.SearchResults
	if s.scope.opts.JustInTime != nil {
		n = s.scope.opts.JustInTime.Results
	}
	var names []string
	for _, h := range s.Find(ctx, message, SearchOptions{Limit: n}).Hits {
		names = append(names, h.Tool.name)
	}
	return s.activate(names)
}

func (o *Options) setDefaults() {
	number := func(name string, n *int, standard int) {
		if *n == 0 {
			*n = standard
		}
		if *n < 0 {
			panic(fmt.Sprintf("mcphybrid: Options.%s is %d, must not be negative", name, *n))
		}
	}
	period := func(name string, d *time.Duration, standard time.Duration) {
		if *d == 0 {
			*d = standard
		}
		if *d < 0 {
			panic(fmt.Sprintf("mcphybrid: Options.%s is %v, must not be negative", name, *d))
		}
	}
	o.MaxInline = max(cmp.Or(o.MaxInline, DefaultMaxInline), 0)
	o.MaxDescription = max(cmp.Or(o.MaxDescription, DefaultMaxDescription), 0)
	o.MaxInlineSkills = max(cmp.Or(o.MaxInlineSkills, DefaultMaxInlineSkills), 0)
	o.MaxSkillTokens = max(cmp.Or(o.MaxSkillTokens, DefaultMaxSkillTokens), 0)
	number("SearchResults", &o.SearchResults, DefaultSearchResults)
	number("SearchLimit", &o.SearchLimit, max(DefaultSearchLimit, o.SearchResults))
	if math.IsNaN(o.SearchThreshold) || math.IsInf(o.SearchThreshold, 0) {
		panic(fmt.Sprintf("mcphybrid: Options.SearchThreshold is %v", o.SearchThreshold))
	}
	limit := func(n *int, standard int) {
		if *n = cmp.Or(*n, standard); *n < 0 {
			*n = math.MaxInt
		}
	}
	limit(&o.MaxActive, DefaultMaxActive)
	limit(&o.MaxSummaryTokens, DefaultMaxSummaryTokens)
	limit(&o.ActiveTurns, DefaultActiveTurns)
	limit(&o.MaxResult, DefaultMaxResult)
	if o.Tokens == nil {
		o.Tokens = quarterBytes{}
	}
	number("MaxInlineTokens", &o.MaxInlineTokens, 0)
	number("ContextWindow", &o.ContextWindow, 0)
	number("MaxListingTokens", &o.MaxListingTokens, math.MaxInt)
	if o.InlineShare = cmp.Or(o.InlineShare, DefaultInlineShare); !(o.InlineShare > 0 && o.InlineShare <= 1) {
		panic(fmt.Sprintf("mcphybrid: Options.InlineShare is %v, must be 0 to 1", o.InlineShare))
	}
	number("MaxMessage", &o.MaxMessage, DefaultMaxMessage)
	number("MaxDefinition", &o.MaxDefinition, DefaultMaxDefinition)
	number("MaxTools", &o.MaxTools, DefaultMaxTools)
	number("MaxPages", &o.MaxPages, DefaultMaxPages)
	number("MaxUnasked", &o.MaxUnasked, DefaultMaxUnasked)
	period("StartTimeout", &o.StartTimeout, DefaultStartTimeout)
	period("EnrichTimeout", &o.EnrichTimeout, DefaultEnrichTimeout)
	period("CallTimeout", &o.CallTimeout, DefaultCallTimeout)
	period("IdleTimeout", &o.IdleTimeout, 0)
	o.Reconnect = cmp.Or(o.Reconnect, DefaultReconnect)
	o.Refresh = cmp.Or(o.Refresh, DefaultRefresh)
	o.Ranker = cmp.Or(o.Ranker, RankerDefault)
	if !slices.Contains(rankers, o.Ranker) {
		panic(fmt.Sprintf("mcphybrid: Options.Ranker is %q, must be one of %q", o.Ranker, rankers))
	}
	if o.Semantic != nil {
		so := *o.Semantic
		so.setDefaults()
		o.Semantic = &so
	}
	if o.JustInTime != nil {
		jit := *o.JustInTime
		jit.setDefaults()
		o.JustInTime = &jit
	}
	o.Trust = cmp.Or(o.Trust, TrustWarn)
	if !slices.Contains(trustPolicies, o.Trust) {
		panic(fmt.Sprintf("mcphybrid: Options.Trust is %q, must be one of %q", o.Trust, trustPolicies))
	}
	if o.BM25 != nil {
		o.BM25.validate()
		p := *o.BM25
		o.BM25 = &p
	}
	if o.Registry == nil {
		o.Registry = NewRegistry()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Servers, o.Pins, o.Access = slices.Clone(o.Servers), slices.Clone(o.Pins), o.Access.clone()
	o.Rules = slices.Clone(o.Rules)
	o.Middleware, o.Needs = slices.Clone(o.Middleware), cloneNeeds(o.Needs)
}
