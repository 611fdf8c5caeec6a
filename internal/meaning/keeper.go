// Package meaning keeps a vector store in step with the texts of servers, finds texts by
// their meaning, and weighs them against those that words found. The embedder and the
// store are the host's: they may be slow, fail, panic or hang, and other processes may
// use the same store.
package meaning

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/mcphybrid/mcphybrid/vector"
)

// Options configure a [Keeper].
type Options struct {
	Embedder vector.Embedder
	Model    string // of the embedder
	Store    vector.Store
	Scope    string         // the part of the store
	Private  bool           // nobody else uses the store
	Cache    store.Document // may be nil
	Timeout  time.Duration  // how long a search waits
	Least    float64        // least similarity of a match

	Trust    time.Duration // how long a start relies on what the cache says of the store
	Grace    time.Duration // how long a record stays after its server no longer lists it
	Budget   int           // texts of one server that are embedded a day
	Progress func(done, total int)
	Log      *slog.Logger

	// Current returns the texts that the store should hold, in order, and a
	// function that returns the names that servers list now, by server. It has
	// the servers that were asked and those that the host removed. Of any other
	// server, nothing in the store is known to be gone.
	Current func() (texts []*Text, listed func() map[string][]string)
}

// A Keeper keeps a store in step with texts, and searches it. One goroutine does
// the first, while there is anything to do. The methods are safe for concurrent
// use.
type Keeper struct {
	Options
	running atomic.Bool
	wake    chan struct{} // holds one if there are newer texts
	newest  atomic.Uint64 // number of calls of Changed
	limits  *limits
	guest   bool // it takes turns, as one of many keepers that share limits

	progress atomic.Pointer[Progress]

	// Only run uses the following.
	stored  map[string]string    // sums by id, as far as known
	read    time.Time            // when stored was read from the store; zero if it is not known
	gone    map[string]time.Time // since when ids are known to be gone
	budgets map[string]*budget   // by server; missing if nothing is spent
	size    int                  // of the next batch to embed
	refused map[vector.Key]int   // the last try of texts that failed alone
	tries   int
	unsaved *vector.Cache // could not be saved; nil after a save
}

// limits are what keepers of one embedder share.
type limits struct {
	asking chan struct{} // holds one for each query under way
	turns  chan struct{} // holds one for each guest that embeds
}

const (
	// maxAsking is how many queries may be under way. If an embedder does not
	// heed its context, there are no more to wait for.
	maxAsking = 64

	// maxTurns is how many guests embed at once.
	maxTurns = 4
)

// New returns a keeper of a store. If host is not nil, the new keeper shares its
// limits.
func New(o Options, host *Keeper) *Keeper {
	k := &Keeper{
		Options: o, wake: make(chan struct{}, 1), stored: make(map[string]string),
		budgets: make(map[string]*budget), size: maxBatch, refused: make(map[vector.Key]int),
	}
	if k.guest = host != nil; k.guest {
		k.limits = host.limits
	} else {
		k.limits = &limits{asking: make(chan struct{}, maxAsking), turns: make(chan struct{}, maxTurns)}
	}
	return k
}

// Changed says that there are newer texts or lists. If the keeper is not at work,
// it calls start with the function to run in a goroutine. It never waits.
func (k *Keeper) Changed(start func(run func(context.Context))) {
	k.newest.Add(1)
	select {
	case k.wake <- struct{}{}:
	default:
	}
	if k.running.CompareAndSwap(false, true) {
		start(k.run)
	}
}

// Idle reports whether there is nothing left to do.
func (k *Keeper) Idle() bool { return !k.running.Load() }

// A Progress says how much of the texts the store holds.
type Progress struct {
	Done, Total int
	Err         error // why the rest is missing, if that is known

	of   uint64 // calls of Changed before it
	left int    // texts whose records are missing, or old in what is for readers
}

// isWhole reports whether the store holds all texts, and what is for readers.
func (p *Progress) isWhole() bool { return p.left == 0 && p.Err == nil }

// Reached returns the latest progress, or nil before the first.
func (k *Keeper) Reached() *Progress { return k.progress.Load() }

// InStep reports whether the store holds all texts, the newest too, and what is for
// readers.
func (k *Keeper) InStep() bool {
	p := k.progress.Load()
	return p != nil && p.of == k.newest.Load() && p.isWhole()
}

// The first and the longest wait after failures. Each further failure doubles the
// wait.
const (
	firstRetry = time.Second
	maxRetry   = time.Minute
)

// run works until nothing is left to do or ctx ends. After a failure, newer texts
// wait too: a service that refuses work is not helped by more of it.
func (k *Keeper) run(ctx context.Context) {
	backoff := time.Duration(0)
	for {
		select {
		case <-k.wake:
		default:
		}
		wait, err := k.sync(ctx)
		wake := k.wake
		switch {
		case ctx.Err() != nil:
			return
		case err == errNewer:
			continue // nothing has failed, and nothing shows that a failure is over
		case err != nil:
			backoff = min(max(2*backoff, firstRetry), maxRetry)
			wait, wake = backoff, nil
			k.Log.Warn("mcphybrid: embedding the tools failed, searches by meaning are incomplete", "error", err, "again", wait)
		default:
			backoff = 0
			if wait == 0 && k.rest() {
				return
			}
		}
		if !pause(ctx, wake, wait) {
			return
		}
	}
}

// rest ends the work, unless there are newer texts.
func (k *Keeper) rest() bool {
	k.running.Store(false)
	return len(k.wake) == 0 || !k.running.CompareAndSwap(false, true)
}

// pause waits for wake or, if wait is above 0, for that long. It reports whether ctx
// has not ended.
func pause(ctx context.Context, wake <-chan struct{}, wait time.Duration) bool {
	var late <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-late:
	}
	return true
}

// note publishes p.
func (k *Keeper) note(p Progress) { k.progress.Store(&p) }

// tell publishes p and tells the host.
func (k *Keeper) tell(p Progress) {
	k.note(p)
	if k.Options.Progress != nil {
		hostcode.Logged(k.Log, "SemanticOptions.Progress", func() { k.Options.Progress(p.Done, p.Total) })
	}
}
