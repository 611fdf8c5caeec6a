package mcphybrid

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/hints"
	"github.com/mcphybrid/mcphybrid/internal/login"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/storeguard"
	"github.com/mcphybrid/mcphybrid/internal/usage"
	"github.com/mcphybrid/mcphybrid/store"
)

// Defaults of [Options]. The doc of each field says its default.
const (
	// DefaultMaxInline is where the published reference design stops to put
	// tools in front of the model. Models choose worse among more than 30 to
	// 50 tools.
	DefaultMaxInline = 40

	// DefaultMaxDescription is enough for the first sentence or two, about 50
	// tokens; half of all published tools have descriptions no longer.
	DefaultMaxDescription = 200

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

	// DefaultStartTimeout leaves room: 27 published servers took 0.06 to 1.7
	// seconds to start and list their tools.
	DefaultStartTimeout = 20 * time.Second
)

// The other defaults of Options.
const (
	// defaultMaxInlineTokens is twice what 40 published tools have. Where tools are
	// deferred anyway, half of it bounds what the order of servers can cost: among 270
	// tools of eleven servers, the first 40 have 4,000 tokens or 27,000.
	defaultMaxInlineTokens = 32_000

	// defaultMaxListed leaves room for meta tools and a host's own in the 128
	// tools that OpenAI's and Gemini's models take. defaultMaxListedTokens is half
	// of a common context window.
	defaultMaxListed       = 112
	defaultMaxListedTokens = 64_000

	// defaultInlineShare is where published agents begin to defer tools.
	defaultInlineShare = 0.1

	// defaultMaxSummaryTokens is enough for about 30 servers.
	defaultMaxSummaryTokens = 400

	// defaultSearchSchemas has room for the schemas of about four tools. On the
	// queries over 411 published tools in testdata/catalog, that makes 74 of 100
	// calls of [DescribeToolName] needless, for 400 tokens in each answer.
	defaultSearchSchemas = 2000

	// defaultMaxResult is about 12,000 tokens, a tenth of a common context
	// window.
	defaultMaxResult = 48 << 10

	// defaultMaxKept has room for some thousand long results.
	defaultMaxKept = 256 << 20

	// defaultMaxState is enough for a session that has shown 10,000 published
	// tools; one that has shown 60 takes 70 KB.
	defaultMaxState = 16 << 20

	// defaultEnrichTimeout is long for looking something up, and short enough
	// for hints to be there soon when some lookups hang.
	defaultEnrichTimeout = 5 * time.Second

	// defaultCallTimeout is long for a person who waits.
	defaultCallTimeout = 60 * time.Second

	// defaultReconnect is soon enough for a person who waits, and late enough
	// for a server that ends at once not to take a processor.
	defaultReconnect = 500 * time.Millisecond

	// defaultRefresh is for servers that do not tell of changes.
	defaultRefresh = 5 * time.Minute

	// defaultMaxMessage is 16 times the longest tools/list result of 27
	// published servers.
	defaultMaxMessage = 16 << 20

	// defaultMaxValues is a result of 4 MiB with a short number in each element, which no
	// model reads.
	defaultMaxValues = 500_000
	// defaultMaxDefinition is five times the longest of 866 published tools.
	defaultMaxDefinition = 256 << 10

	// defaultMaxListing is 16 times the longest tools/list result of 27 published
	// servers, defaultMaxCatalog four times that. Definitions take up to 20 times
	// their length in memory, most of it for the search index.
	defaultMaxListing = 16 << 20
	defaultMaxCatalog = 64 << 20

	// defaultMaxTools is 50 times what the largest published server has.
	defaultMaxTools = 10_000

	// defaultMaxPages is enough for defaultMaxTools at ten to a page.
	defaultMaxPages = 1000

	// defaultMaxSubscriptions is more than people watch, and leaves a process its
	// connections.
	defaultMaxSubscriptions = 256

	// defaultMaxUnasked is a log message or a notification of progress every
	// millisecond, more than anyone reads.
	defaultMaxUnasked = 1000

	// defaultMaxTimeouts is enough to tell a slow tool from a server that hangs.
	defaultMaxTimeouts = 3
)

// NoLimit lifts a limit: of an option that is a number of tools, tokens,
// characters, bytes or turns.
const NoLimit = math.MaxInt

// Options configure a [Manager]. The zero value is the default configuration.
//
// In all its numbers and durations, and those of the structs in it, zero means the
// default, a negative value means none, and [NoLimit] means no limit, unless the doc of
// a field says otherwise. [NewManager] panics if a value is impossible, such as a search
// of no results.
type Options struct {
	// Servers are connected by [Manager.Start]. Their order is the
	// registration order, whichever connects first.
	Servers []ServerConfig

	// Access says which tools exist for any session. If it denies
	// [SearchToolName], no tool is deferred. [Manager.Problems] reports entries
	// that match no tool, here and in Pins and Rules.
	Access Access

	// Pins are always inline, even beyond the limits of Inline, unless Access denies
	// them, a rule excludes them, or List is full: names and patterns as in [Access].
	Pins []string

	// Rules say by intent which tools there are, which are not, and which are
	// listed with one line only: see [Session.SetIntent]. [Manager.SetRules] sets
	// others.
	Rules []Rule

	// Needs says which other tools a tool needs, by registered name, as one that
	// edits files needs the one that reads them. A key may be a pattern as in
	// [Access]; then each tool that it matches needs the others. They come along
	// with it, and so does what they need, the nearest first, up to 32 in all: a
	// search lists them behind its hits, and when the tool is activated or called, they are
	// activated too, even if the tool itself is inline. The tool does its work
	// without those that are not there or not permitted.
	//
	// [ServerConfig.Needs] says so by the tools' own names, and by "mcphybrid/needs" a
	// server of its own tools (see [BridgeTool]); what is said here comes first.
	// [Manager.Problems] reports keys that match nothing, names that are not there,
	// cycles, and what is malformed.
	Needs map[string][]string

	// Inline says how many tools are inline, and what they may cost.
	Inline InlineOptions

	// List bounds the tool list of a session, whatever servers do.
	List ListOptions

	// Usage, if not nil, has the tools inline that are used most, instead of
	// the first.
	Usage *UsageOptions

	// Search says how deferred tools are ranked, and how many a search finds.
	Search RankingOptions

	// Learn, if not nil, has searches prefer tools that were used before.
	Learn *LearnOptions

	// Semantic, if not nil, lets searches find by meaning too.
	Semantic *SemanticOptions

	// JustInTime, if not nil, has tools selected for each message before the
	// model is called.
	JustInTime *JustInTimeOptions

	// Prompt bounds the prompt sections.
	Prompt PromptOptions

	// Active bounds the active tools.
	Active ActiveOptions

	// Ask says who answers what servers ask during their work. If it has no hooks,
	// servers are told that they can't ask.
	Ask ask.Options

	// Extensions are the extensions of MCP that the host supports, with what it says
	// of each, as JSON. Servers are told of them, and always of
	// "io.modelcontextprotocol/skills". For a host that shows apps:
	//
	//	{"io.modelcontextprotocol/ui": map[string]any{"mimeTypes": []string{"text/html;profile=mcp-app"}}}
	Extensions map[string]any

	// Enricher, if not nil, is asked in the background for hints on each tool
	// that comes into the catalog. EnrichTimeout is how long one lookup may take;
	// it defaults to 5 seconds.
	Enricher      hints.Enricher
	EnrichTimeout time.Duration

	// Skills are what [Manager.SetSkills] is given first, in the order in which
	// the model sees them. [Manager.Problems] reports those that can't be used.
	// SkillListing says up to when the prompt lists them.
	Skills       []Skill
	SkillListing SkillListingOptions

	// MaxResult is how many bytes the texts of a result may have, its structured
	// content, and its links and the like. Of longer texts the model gets the
	// beginning and the end, and the rest on demand. Structured content that is
	// longer is cut as a text. A result has at most one content for each 64 bytes
	// of MaxResult, or 16: the texts of all others become one text, and a note
	// tells how many images, links and the like are left out. It defaults to
	// 48 KiB and must not be negative.
	MaxResult int

	// Select has the model take a part of a long result by an expression, such as those
	// of the package jq: [PageToolName] then takes one. Of a result above MaxResult from
	// which parts can be selected, the model sees 4 KiB and what it consists of. If nil,
	// the model only reads on.
	Select ResultSelector

	// MaxKept is how many bytes of long results all sessions together keep, so that
	// models can read the rest. Of these, each session keeps at most the newest 8,
	// and 16 MiB. Beyond it, the oldest is dropped, of whatever session, but never the
	// newest. It defaults to 256 MiB and must not be negative.
	MaxKept int

	// MaxMedia is how many bytes the images, sounds and files of a result may have
	// together, in base64. The model gets a note in place of one that does not fit.
	// It defaults to 64 times MaxResult, which is 3 MiB: providers take pictures of
	// up to 5 MB. It also bounds the structured content that an MCP client counts on: see
	// [SessionOptions.Client].
	MaxMedia int

	// MaxState is how many bytes [Session.Save] returns at most, and how many
	// [Manager.RestoreSession] accepts, with what is in StateParts. A database may reformat a state: spaces
	// between tokens and escapes in strings don't count, up to four times MaxState.
	// What a state always has takes some hundred bytes, and what the intent and the
	// user's id take. It defaults to 16 MiB and must not be negative.
	MaxState int

	// StateParts keeps what states have in common, so that they are small: see
	// [Session.Save] and [store.FileParts]. All processes that restore a state must share
	// it. If nil, each state has all itself. Users share it.
	StateParts store.Parts

	// StateVersion is the version of the form in which [Session.Save] writes states. During an
	// upgrade, while processes of an older version restore them too, it is the one that
	// docs/versioning.md names for that version. [Manager.RestoreSession] reads all versions
	// up to the newest, 5. Version 4 refers to no StateParts, keeps no cut results, and takes
	// as many bytes in a store as what Save returns. If 0, it is 5. It must be 0, 4 or 5.
	StateVersion int

	// Middleware wraps every call of a tool, the first outermost.
	Middleware []Middleware

	// OnEvent is called with what happens in sessions and to servers. Several goroutines may
	// call it concurrently. It may be nil.
	OnEvent func(Event)

	// OnRequest is called before a session asks a server for a resource, a subscription to
	// one, a prompt or a completion, with the context that the session got. Calls of tools pass Middleware.
	OnRequest func(ctx context.Context, server string)

	// OnResources is called after the resources, templates or prompts of servers have
	// changed, or the tools that are for apps only, so that a host can list them again: what no
	// [Registry] has. user is "" for the system's
	// servers, and else the id of the user of whose servers they are. For one
	// of these, one call follows the other, and one may tell of several changes.
	OnResources func(user string)

	// Tokens counts tokens. If nil, they are estimated as a quarter of the
	// bytes.
	Tokens TokenCounter

	// Registry is kept in step with the Manager's default session. If nil, it is
	// a new [ToolRegistry].
	Registry Registry

	// Cache, if not nil, keeps the servers' tools from one run to the next, in a store of
	// its own. [Manager.Start] then returns with the catalog of the servers
	// that it knows before any of them runs. Such a server is started by the
	// first call of one of its tools or, if they were listed longer ago than
	// [config.Limits.Refresh], in the background; how its tools have changed since
	// is then published like any change. Changes are saved within a second, in the
	// background, and by [Manager.Close]. If it is [store.Parts] too, a save writes
	// about what has changed, else what all servers list. Several Managers may share a
	// [store.Shared]: it has the names and servers of all, and of each server the newest
	// lists. [Manager.Refresh] takes them. What nobody lists for 30 days is removed. A list
	// that its server calls private is kept for the same environment and headers only.
	Cache store.Document

	// Trust says what becomes of a tool whose definition changes after it was
	// first seen. TrustStore keeps what tools are known to be; without one it is
	// known for as long as the Manager lives. Several Managers may share one: what
	// a person accepted last counts, else what one of them saw first. Let them have the
	// same Trust: what one has to hold back waits there, also if one with a milder Trust
	// knows it already, and [Manager.Problems] says so. Unless it is a [store.Shared], what
	// they save in the same moment may be lost, until the one that saved it saves again. If
	// TrustStore can't be loaded, it is never written, and if Trust holds tools back, no
	// server is started.
	//
	// If Trust is empty, it is [TrustWarn].
	Trust      TrustPolicy
	TrustStore store.Document

	// TokenStore keeps the tokens of logins: see [store.FileTokens]. If nil, they are
	// known for as long as the Manager lives. Users share it; each has keys of its
	// own.
	TokenStore store.Tokens

	// OpenURL shows the user a page for [Manager.Login], which fails without it. It
	// may return the address to which the page sent the browser in the end, with
	// all parameters. If it returns "", Login waits until the browser comes to a
	// port of this machine. ctx ends with the login.
	OpenURL func(ctx context.Context, page LoginPage) (redirected string, err error)

	// Limits bound what servers may take and send.
	Limits config.Limits

	// Logger is told of problems that no caller is. If nil, no one is. Its handler
	// may use the Manager, but not call [Manager.Close].
	Logger *slog.Logger
}

// A LoginPage is a page of an authorization server.
type LoginPage struct {
	User   string // the id of the [User] who logs in, or "" for the system
	Server string // the name of the server
	URL    string // of the page; it holds no secret

	// Issuer is the host of the authorization server, and TokenHost the one that gets
	// the code with which the page answers, each with its port if the address has one.
	// The MCP server names both, unless [config.OAuth] does: a host that does not
	// trust one returns an error instead of showing the page. Issuer is "" if only
	// OAuth.AuthorizationURL and OAuth.TokenURL say where to log in.
	Issuer, TokenHost string
}

// PromptOptions bound what the prompt sections have of tools.
type PromptOptions struct {
	// MaxDescription is the number of characters of a tool's description in
	// the prompt section and in search results. It defaults to
	// 200 ([DefaultMaxDescription]).
	MaxDescription int

	// ListInline lists the inline tools in the prompt sections too, each by a line
	// with its name and description, as the published design does. The model then
	// reads these twice, since the request has their definitions.
	ListInline bool

	// MaxListingTokens is how many tokens the lines of tools in the prompt
	// sections have together: of summarized tools and, with ListInline, of inline
	// ones. If they would have more, the lines of all that is listed at once have
	// names only; if these are too many, there is one line for each server, with
	// the number of its tools. By default there is no such limit.
	MaxListingTokens int

	// MaxSummaryTokens is how many tokens the prompt section has of what there
	// is to search for: the servers, how many tools they have and, if there is
	// room, what these are about, and a line with what the server says of itself. It
	// defaults to 400.
	MaxSummaryTokens int
}

// amount sets an option whose zero means standard and whose negative values mean 0.
func amount(n *int, standard int) {
	if *n == 0 {
		*n = standard
	}
	*n = max(*n, 0)
}

// number sets an option whose zero means standard and that must not be negative.
func number[N int | time.Duration](name string, n *N, standard N) {
	if *n == 0 {
		*n = standard
	}
	if *n < 0 {
		panic(fmt.Sprintf("mcphybrid: Options.%s is %v, must not be negative", name, *n))
	}
}

func (o *Options) setDefaults() {
	amount(&o.Inline.Max, DefaultMaxInline)
	amount(&o.Inline.ContextWindow, 0)
	amount(&o.Prompt.MaxDescription, DefaultMaxDescription)
	amount(&o.Prompt.MaxListingTokens, NoLimit)
	amount(&o.Prompt.MaxSummaryTokens, defaultMaxSummaryTokens)
	amount(&o.Active.Max, DefaultMaxActive)
	amount(&o.Active.Turns, DefaultActiveTurns)
	amount(&o.SkillListing.Max, DefaultMaxInlineSkills)
	amount(&o.SkillListing.MaxTokens, DefaultMaxSkillTokens)
	number("MaxResult", &o.MaxResult, defaultMaxResult)
	number("MaxKept", &o.MaxKept, defaultMaxKept)
	amount(&o.MaxMedia, 64*min(o.MaxResult, NoLimit/64))
	number("MaxState", &o.MaxState, defaultMaxState)
	if o.StateVersion = cmp.Or(o.StateVersion, saved.Newest); o.StateVersion < saved.Oldest || o.StateVersion > saved.Newest {
		panic(fmt.Sprintf("mcphybrid: Options.StateVersion is %d, must be %d to %d", o.StateVersion, saved.Oldest, saved.Newest))
	}
	number("Search.Results", &o.Search.Results, DefaultSearchResults)
	number("Search.Limit", &o.Search.Limit, max(DefaultSearchLimit, o.Search.Results))
	if math.IsNaN(o.Search.Threshold) || math.IsInf(o.Search.Threshold, 0) {
		panic(fmt.Sprintf("mcphybrid: Options.Search.Threshold is %v", o.Search.Threshold))
	}
	if o.Inline.Share = cmp.Or(o.Inline.Share, defaultInlineShare); !(o.Inline.Share > 0 && o.Inline.Share <= 1) {
		panic(fmt.Sprintf("mcphybrid: Options.Inline.Share is %v, must be 0 to 1", o.Inline.Share))
	}
	o.Inline.setTokens()
	amount(&o.Ask.MaxPerCall, ask.DefaultMaxPerCall)
	amount(&o.Ask.MaxAtOnce, ask.DefaultMaxAtOnce)
	amount(&o.Ask.MaxBytes, ask.DefaultMaxBytes)
	number("Ask.Timeout", &o.Ask.Timeout, ask.DefaultTimeout)
	o.setListDefaults()
	number("Limits.MaxMessage", &o.Limits.MaxMessage, defaultMaxMessage)
	number("Limits.MaxValues", &o.Limits.MaxValues, defaultMaxValues)
	number("Limits.MaxDefinition", &o.Limits.MaxDefinition, defaultMaxDefinition)
	number("Limits.MaxTools", &o.Limits.MaxTools, defaultMaxTools)
	number("Limits.MaxPages", &o.Limits.MaxPages, defaultMaxPages)
	number("Limits.MaxListing", &o.Limits.MaxListing, defaultMaxListing)
	number("Limits.MaxCatalog", &o.Limits.MaxCatalog, defaultMaxCatalog)
	amount(&o.Search.Schemas, defaultSearchSchemas)
	amount(&o.Limits.MaxTimeouts, defaultMaxTimeouts)
	number("Limits.MaxSubscriptions", &o.Limits.MaxSubscriptions, defaultMaxSubscriptions)
	number("Limits.MaxUnasked", &o.Limits.MaxUnasked, defaultMaxUnasked)
	number("Limits.StartTimeout", &o.Limits.StartTimeout, DefaultStartTimeout)
	number("EnrichTimeout", &o.EnrichTimeout, defaultEnrichTimeout)
	number("Limits.CallTimeout", &o.Limits.CallTimeout, defaultCallTimeout)
	o.Limits.IdleTimeout = max(o.Limits.IdleTimeout, 0)
	o.Limits.Reconnect = cmp.Or(o.Limits.Reconnect, defaultReconnect)
	o.Limits.Refresh = cmp.Or(o.Limits.Refresh, defaultRefresh)
	o.Search.Ranker = cmp.Or(o.Search.Ranker, RankerDefault)
	if !slices.Contains(rankers, o.Search.Ranker) {
		panic(fmt.Sprintf("mcphybrid: Options.Search.Ranker is %q, must be one of %q", o.Search.Ranker, rankers))
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
	if o.Search.BM25 != nil {
		NewBM25Index(nil, o.Search.BM25) // panics if a parameter is out of range
		p := *o.Search.BM25
		o.Search.BM25 = &p
	}
	if o.Registry == nil {
		o.Registry = NewRegistry()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.TokenStore == nil {
		o.TokenStore = new(login.Memory)
	}
	o.TokenStore = storeguard.Tokens(o.TokenStore, "Options.TokenStore")
	if o.Tokens == nil {
		o.Tokens = quarterBytes{}
	}
	o.Servers, o.Pins, o.Access = slices.Clone(o.Servers), slices.Clone(o.Pins), o.Access.Clone()
	o.Rules = slices.Clone(o.Rules)
	o.Middleware, o.Needs = slices.Clone(o.Middleware), cloneNeeds(o.Needs)
	o.Extensions = cloneExtensions(o.Extensions)
}

// cloneExtensions returns a copy. It panics if one is not JSON.
func cloneExtensions(extensions map[string]any) map[string]any {
	if extensions == nil {
		return nil
	}
	data, err := json.Marshal(extensions)
	if err != nil {
		panic(fmt.Sprintf("mcphybrid: Options.Extensions: %v", err))
	}
	clone := make(map[string]any)
	_ = json.Unmarshal(data, &clone) // Marshal wrote it
	return clone
}

// InlineOptions say which tools are inline: the first, or with
// [Options.Usage] the most used, until one of these limits is reached. Pins
// come first and take from both limits, but are inline even beyond them, within
// [ListOptions].
type InlineOptions struct {
	// Max is the largest number of tools that are all inline; of more, the first
	// Max are. It defaults to 40 ([DefaultMaxInline]).
	Max int

	// MaxTokens is how many tokens the definitions of the inline tools have
	// together: the first tool that has too many is deferred, and so are those
	// after it. It defaults to 32,000 if all tools can be inline, and to
	// 16,000 if there are more than Max.
	MaxTokens int

	// ContextWindow is how many tokens the model reads. If it is not zero,
	// MaxTokens is at most Share of it. Share is above 0 and up to 1; it defaults
	// to 0.1.
	ContextWindow int
	Share         float64

	deferring int // tokens if there are more than Max tools
}

// ListOptions bound the tools of servers in a session's list: those that are
// inline or active, pins among them, and those that have left the catalog since
// they were shown. They count until [Session.Compact]. A tool that does not fit is
// deferred. The model then calls it by [CallToolName], and [DescribeToolName] says
// what it takes. [snapshot.Stats.Crowded] and [EventFull] tell the host.
//
// A session that may not search lists all its tools from the start. These limits
// then bound what is added later.
type ListOptions struct {
	// Max is the largest number of tools. It defaults to 112, or to
	// [InlineOptions.Max] and [ActiveOptions.Max] together, if that is more.
	Max int

	// MaxTokens is how many tokens their definitions have together. It defaults to
	// 64,000, or to twice [InlineOptions.MaxTokens], if that is
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

// UsageOptions make the most used tools inline, instead of the first ones: see
// [Manager.Reorder].
type UsageOptions struct {
	// Store keeps the use of each tool from one run to the next. Managers may share a
	// [store.Shared]: the uses of all count. If nil, only this run and Counts are known.
	Store store.Document

	// Counts is the use of tools that the host knows of: numbers of calls by
	// registered name. It is added to the stored use. Only finite positive
	// numbers count.
	Counts map[string]float64

	// HalfLife is the time after which a call counts half. If zero,
	// 30 days. It must not be negative.
	HalfLife time.Duration
}

// These bound how many tools a record of use has. 1,000 are more than one user works with.
const (
	maxUsed    = 10_000
	maxLearned = 1000
)

// defaultHalfLife lets tools that nobody used for a few months fall behind.
const defaultHalfLife = 30 * 24 * time.Hour

// record returns the record of use, or nil without options.
func (o *UsageOptions) record() *usage.Record {
	if o == nil {
		return nil
	}
	if o.HalfLife < 0 {
		panic(fmt.Sprintf("mcphybrid: UsageOptions.HalfLife is %v, must not be negative", o.HalfLife))
	}
	return usage.New(o.Store, o.Counts, cmp.Or(o.HalfLife, defaultHalfLife), maxUsed)
}

// LearnOptions have searches prefer tools that were used before. A tool counts once for each
// session that called it with success: its name, and nothing of the arguments. From the second
// such session on, it comes sooner among the best 20 hits of a search, though never before the
// first. Nothing is found that the words or the meaning don't find.
//
// What a [User]'s sessions use is known in the searches of this user alone, whosever tools they
// are. All sessions of the system learn together.
type LearnOptions struct {
	// Store keeps what the system's sessions learned from one run to the next: 1,000
	// tools, the most used. [Manager.Start] reads it; [Manager.Refresh] and
	// [Manager.Close] add to it. Managers may share a [store.Shared]: the uses of all
	// count. If nil, only this run is known. A user's is [UserOptions.LearnStore].
	Store store.Document

	// HalfLife is the time after which a session counts half. If zero, 30 days. It must
	// not be negative.
	HalfLife time.Duration
}

// record returns the record of what is learned, or nil without options.
func (o *LearnOptions) record() *usage.Record {
	if o == nil {
		return nil
	}
	if o.HalfLife < 0 {
		panic(fmt.Sprintf("mcphybrid: LearnOptions.HalfLife is %v, must not be negative", o.HalfLife))
	}
	return usage.New(o.Store, nil, cmp.Or(o.HalfLife, defaultHalfLife), maxLearned)
}

// setTokens settles MaxTokens by the context window. Share is set.
func (o *InlineOptions) setTokens() {
	if o.ContextWindow > 0 {
		share := int(max(1, min(o.Share*float64(o.ContextWindow), NoLimit/2))) // 0 would mean the default, and more may be no int
		o.MaxTokens = min(cmp.Or(o.MaxTokens, share), share)
	}
	o.deferring = o.MaxTokens
	if o.MaxTokens == 0 {
		o.deferring = defaultMaxInlineTokens / 2
	}
	amount(&o.MaxTokens, defaultMaxInlineTokens)
	amount(&o.deferring, defaultMaxInlineTokens)
}

// sum returns a + b, neither of which is negative, or NoLimit if that is less.
func sum(a, b int) int { return a + min(b, NoLimit-a) }

// setListDefaults sets what the options for inline and active tools, which are set,
// leave of a session's list.
func (o *Options) setListDefaults() {
	most := o.Inline.Max
	if o.JustInTime != nil {
		most = max(most, o.JustInTime.Threshold)
	}
	amount(&o.List.Max, max(defaultMaxListed, sum(most, o.Active.Max)))
	amount(&o.List.MaxTokens, max(defaultMaxListedTokens, sum(o.Inline.MaxTokens, o.Inline.MaxTokens)))
	amount(&o.List.ServerMax, max(o.List.Max-o.List.Max/4, most))
	amount(&o.List.ServerTokens, o.List.MaxTokens-o.List.MaxTokens/2)
}
