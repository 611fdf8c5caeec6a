package mcphybrid

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/meaning"
	"github.com/mcphybrid/mcphybrid/internal/storeguard"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/mcphybrid/mcphybrid/vector"
)

// searchindexes.go searches by words and by meaning; internal/meaning keeps the vectors.

// SemanticOptions make searches find tools by meaning as well as by words. Only
// Embedder is required.
type SemanticOptions struct {
	// Embedder computes the vectors of queries and, in the background, of tools.
	Embedder vector.Embedder

	// Store keeps the vectors, under Scope, and for those who look into it the
	// description and schema of each tool. If nil, a new [vector.MemoryStore].
	Store vector.Store

	// Scope is the part of Store that holds the Manager's tools. If empty,
	// "system".
	Scope string

	// Alpha is the weight of meaning against words, from 0 (only words) to 1
	// (only meaning), by [vector.Fuse]. If zero, each search finds its own weight
	// by how far the model agrees with the words, 0.35 at most: see [Answer]. If
	// negative, 0. NewManager panics if it is above 1.
	Alpha float64

	// ByRank combines words and meaning by [vector.FuseRanks].
	ByRank bool

	// Candidates is how many tools each side contributes before the two are
	// combined. With a limit per server the search takes more if it needs them.
	// If zero, [vector.DefaultCandidates]. It must not be negative. The store is
	// asked for 200 records at least, to tell how similar records are in general.
	Candidates int

	// Least is the smallest similarity that counts as a match. A good value
	// depends on the model. If zero, any positive similarity counts, so that
	// most searches find something.
	Least float64

	// Timeout bounds how long a search waits for the embedder and the store.
	// After that it returns the results by words. If zero, one second. It must
	// not be negative.
	Timeout time.Duration

	// Cache, if not nil, keeps the vectors from one run to the next, so that no
	// text is embedded twice. A vector that no tool needs any more is kept for 30
	// days. The document has at most 256 MiB; if there are more vectors, those that
	// were needed last are kept.
	Cache store.Document

	// CacheTrust is how long a start relies on the Cache for what the Store has:
	// within that time, a start with an unchanged catalog does not ask the
	// Store. If zero, [vector.DefaultTrust]. If negative, each start asks.
	CacheTrust time.Duration

	// Grace is how long the Store keeps the record of a tool that its server,
	// being connected, no longer lists, or whose server was removed by
	// [Manager.RemoveServer]. Records of other servers stay, as other processes may
	// use them. If zero, 10 minutes. If negative, none.
	Grace time.Duration

	// ServerBudget is how many texts of one server may be embedded at once. What
	// is used of it comes back within a day. Further texts wait. If zero,
	// 10,000. It must not be negative.
	ServerBudget int

	// Progress, if not nil, is called after each batch of embedded tools with
	// how many of the tools are embedded so far. It must not call [Manager.Close].
	Progress func(done, total int)
}

const (
	// defaultGrace is longer than servers and their replicas take to restart
	// with a new version.
	defaultGrace = 10 * time.Minute

	// defaultServerBudget lets the largest server be embedded at once, see
	// defaultMaxTools, and each of its tools change once a day.
	defaultServerBudget = 10_000

	defaultScope = "system"
)

// setDefaults sets the defaults. It panics if a number is out of range.
func (o *SemanticOptions) setDefaults() {
	if o.Embedder == nil {
		panic("mcphybrid: SemanticOptions.Embedder is nil")
	}
	o.Scope = cmp.Or(o.Scope, defaultScope)
	if math.IsNaN(o.Alpha) || o.Alpha > 1 {
		panic(fmt.Sprintf("mcphybrid: SemanticOptions.Alpha is %v, must be 0 to 1", o.Alpha))
	}
	o.Candidates = cmp.Or(o.Candidates, vector.DefaultCandidates)
	o.Timeout = cmp.Or(o.Timeout, time.Second)
	o.CacheTrust = max(cmp.Or(o.CacheTrust, vector.DefaultTrust), 0)
	o.Grace = max(cmp.Or(o.Grace, defaultGrace), 0)
	o.ServerBudget = cmp.Or(o.ServerBudget, defaultServerBudget)
	if o.Candidates < 0 || o.Timeout < 0 || o.ServerBudget < 0 {
		panic(fmt.Sprintf("mcphybrid: SemanticOptions.Candidates is %d, Timeout %v and ServerBudget %d, must not be negative", o.Candidates, o.Timeout, o.ServerBudget))
	}
	o.Cache = storeguard.Document(o.Cache, "SemanticOptions.Cache", 0)
}

// A semantic keeps a vector store up to date with the indexed tools of a catalog,
// and searches it.
type semantic struct {
	SemanticOptions
	*meaning.Keeper
	cur  func() *catalog
	made map[*BridgeTool]*meaning.Text // of the last catalog; only the Keeper's goroutine uses it
}

// newSemantic returns nil if there are no options. listed returns the own names of
// the tools that servers list now. system is that of a user's system, or nil.
func newSemantic(opts *SemanticOptions, log *slog.Logger, cur func() *catalog, listed func() map[string][]string, system *semantic) *semantic {
	if opts == nil {
		return nil
	}
	se := &semantic{SemanticOptions: *opts, cur: cur}
	var host *meaning.Keeper
	private, model := opts.Store == nil, "" // private if Store is our own
	if system != nil {
		host, se.Store, private, model = system.Keeper, system.Store, system.Private, system.Model
	} else if model = se.Embedder.Model(); private {
		se.Store = new(vector.MemoryStore)
	}
	se.Keeper = meaning.New(meaning.Options{
		Embedder: se.Embedder, Model: model, Store: se.Store, Scope: se.Scope, Private: private, Cache: se.Cache,
		Timeout: se.Timeout, Least: se.Least, Trust: se.CacheTrust, Grace: se.Grace, Budget: se.ServerBudget, Progress: se.SemanticOptions.Progress, Log: log,
		Current: func() ([]*meaning.Text, func() map[string][]string) { return se.texts(), listed },
	}, host)
	return se
}

// texts returns what the store should hold of the current catalog, in order.
func (se *semantic) texts() []*meaning.Text {
	c := se.cur()
	list := make([]*meaning.Text, c.indexed())
	made := make(map[*BridgeTool]*meaning.Text, len(list))
	for i, t := range c.documents() {
		if list[i] = se.made[t]; list[i] == nil {
			list[i] = se.NewText(meaning.Source{ID: t.name, Server: t.def.Server, Name: t.def.Own, Text: meaning.TextOf(t.def.Own, t.def.Description, t.def.InputSchema), Description: t.def.Description, Schema: t.def.InputSchema})
		}
		made[t] = list[i]
	}
	se.made = made
	return list
}
