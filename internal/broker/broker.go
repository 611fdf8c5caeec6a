// Package broker takes the questions that a server asks over one connection. It
// finds out whose call caused a question, has that caller's hook answer it, and
// checks both the question and the answer. It bounds how many questions there are
// and how long each may take.
package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
)

// A Config says who has a broker.
type Config struct {
	Server string
	User   string // the owner of the server, or ""
	ask.Options

	Log *slog.Logger // receives the failures of hooks

	// Counter counts the server's questions over all its connections. If nil, those over
	// this one are counted.
	Counter *Counter
}

// A Counter counts questions of a server that must be limited however often it
// connects. The zero value has none.
type Counter struct {
	mu      sync.Mutex
	waiting map[string]int // hooks that run, by the user for whom
	loose   window         // questions that no call is known to have caused
}

// A Caller is who makes calls: a session. A nil Caller calls only servers that
// can't ask.
type Caller struct {
	user  string
	hooks ask.Hooks
	life  context.Context // ends with the caller, whom it also identifies; nil for a call without a session
	end   context.CancelFunc
}

// NewCaller returns a caller with these hooks, or nil if servers are not told of any
// hook. The caller must call End.
func NewCaller(user string, hooks, told ask.Hooks) *Caller {
	if isNone(hooks.Or(told)) {
		return nil
	}
	c := &Caller{user: user, hooks: hooks}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

func isNone(h ask.Hooks) bool { return h.Elicit == nil && h.Sample == nil && h.Roots == nil }

// Hooks returns the caller's hooks.
func (c *Caller) Hooks() (h ask.Hooks) {
	if c != nil {
		h = c.hooks
	}
	return h
}

// End ends the questions that the caller's calls cause, now and later.
func (c *Caller) End() {
	if c != nil {
		c.end()
	}
}

// A Broker has the questions over one connection. A nil Broker takes none. The methods
// may be called concurrently.
type Broker struct {
	cfg  Config
	life context.Context
	end  context.CancelFunc

	mu         sync.Mutex
	calls      []*call // under way, in the order in which they began
	unanswered unanswered
	open       int                            // requests of the server that wait for an answer
	taken      map[string]*context.CancelFunc // the same by id
	tasks      []*task                        // in the order in which they began
}

// A call is a call of a tool that is under way.
type call struct {
	broker *Broker
	caller *Caller
	tool   string
	ctx    context.Context // ends with the call

	asked   int    // questions so far; guarded by Broker.mu
	round   *Round // the questions of its last result that asks for input, or nil; guarded by Broker.mu
	expects bool   // it will be executed as a task; guarded by Broker.mu
	task    string // the server's id of the task, or "" while it is not known; guarded by Broker.mu
}

type (
	callerKey  struct{}
	callKey    struct{}
	relatedKey struct{}
	requestKey struct{}
)

// New returns the broker of a connection, or nil if there are no hooks.
func New(cfg Config) *Broker {
	if isNone(cfg.Hooks) {
		return nil
	}
	if cfg.Counter == nil {
		cfg.Counter = new(Counter)
	}
	b := &Broker{cfg: cfg, taken: make(map[string]*context.CancelFunc)}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

// Close ends all questions.
func (b *Broker) Close() {
	if b != nil {
		b.end()
	}
}

// WithCaller returns a context for the calls of c.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	if c == nil {
		return ctx
	}
	return context.WithValue(ctx, callerKey{}, c)
}

// WithRequest returns a context for a request to the server over a transport whose
// questions come with the context of the request that caused them: in process, and
// over HTTP, where they stand in the stream of the answer. With any other context,
// the broker has to conclude the cause from the calls under way.
func WithRequest(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestKey{}, true)
}

// Begin notes that a call begins, with the caller of ctx. The caller must send the
// request with the context that Begin returns and then call end, which says whether
// the server answered it.
func (b *Broker) Begin(ctx context.Context, tool string) (_ context.Context, end func(answered bool)) {
	if b == nil {
		return ctx, func(bool) {}
	}
	caller, _ := ctx.Value(callerKey{}).(*Caller)
	if caller == nil { // a call without a session
		caller = &Caller{user: b.cfg.User, hooks: b.cfg.Hooks}
	}
	c := &call{broker: b, caller: caller, tool: tool}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, callKey{}, c))
	c.ctx = ctx
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, c)
	return ctx, func(answered bool) {
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calls = slices.DeleteFunc(b.calls, func(other *call) bool { return other == c })
		if !answered {
			b.unanswered.add(caller.life)
		}
	}
}

// SetTask notes that the call of ctx is executed as a task of the server. The caller
// must first say so with "" for the id, before it sends the request: the server may
// ask before its answer with the id was read.
func (b *Broker) SetTask(ctx context.Context, id string) {
	if c, _ := ctx.Value(callKey{}).(*call); c != nil && c.broker == b {
		b.mu.Lock()
		defer b.mu.Unlock()
		c.expects, c.task = true, id
	}
}

// unanswered knows the callers of calls that the server never answered. It may still
// work on these, so a question may be theirs.
type unanswered struct {
	any, several bool
	only         context.Context // the caller, unless there are several
}

func (l *unanswered) add(caller context.Context) {
	l.several = l.several || l.any && l.only != caller
	l.any, l.only = true, caller
}

// mayBeOfOther reports whether a question may be of another caller than this one.
func (l *unanswered) mayBeOfOther(caller context.Context) bool {
	return l.several || l.any && l.only != caller
}

var (
	errEnded   = errors.New("the call that asks has ended")
	errNobody  = fmt.Errorf("%w: there is nobody to ask", ask.ErrDeclined)
	errNoReply = errors.New("there is no answer")
)

// causesLocked returns the calls under way of the one caller to whom a question
// belongs; one of them caused it. It returns none if it can't be known whose
// question it is: better nobody answers than the wrong person.
func (b *Broker) causesLocked(ctx context.Context) ([]*call, error) {
	if c, _ := ctx.Value(callKey{}).(*call); c != nil && c.broker == b {
		if !slices.Contains(b.calls, c) {
			return nil, errEnded
		}
		return []*call{c}, nil
	}
	if id, _ := ctx.Value(relatedKey{}).(string); id != "" {
		var expecting []*call
		for _, c := range b.calls {
			if c.task == id {
				return []*call{c}, nil
			}
			if c.expects && c.task == "" {
				expecting = append(expecting, c)
			}
		}
		if len(expecting) == 0 {
			return nil, errEnded
		}
		return b.ofOneLocked(expecting), nil
	}
	if ctx.Value(requestKey{}) != nil || len(b.calls) == 0 {
		return nil, nil
	}
	return b.ofOneLocked(slices.Clone(b.calls)), nil
}

// ofOneLocked returns calls, of which there is at least one, if a question that one
// of them caused is surely of the one caller. Otherwise it returns none.
func (b *Broker) ofOneLocked(calls []*call) []*call {
	caller := calls[0].caller
	for _, c := range calls {
		if c.caller.life != caller.life {
			return nil
		}
	}
	if b.unanswered.mayBeOfOther(caller.life) {
		return nil
	}
	return calls
}

// A question is one that may be asked.
type question struct {
	from  ask.Asker
	hooks ask.Hooks
	life  context.Context // of the caller, or nil
	calls []*call
}

// admit decides who is asked, and whether there may be another question. Unless it
// returns an error, the caller must call leave.
func (b *Broker) admit(ctx context.Context) (question, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := question{from: ask.Asker{Server: b.cfg.Server, User: b.cfg.User}, hooks: b.cfg.Hooks}
	calls, err := b.causesLocked(ctx)
	if err != nil {
		return q, err
	}
	tally := b.cfg.Counter
	tally.mu.Lock()
	defer tally.mu.Unlock()
	asked := 0
	if q.calls = calls; len(calls) > 0 {
		caller := calls[0].caller
		q.hooks, q.life, q.from.User = caller.hooks, caller.life, caller.user
		if len(calls) == 1 {
			q.from.Tool = calls[0].tool
		}
		for _, c := range calls {
			asked = max(asked, c.asked)
			c.asked++
		}
	} else {
		asked = tally.loose.add(time.Now())
	}
	if ctx.Err() != nil || b.life.Err() != nil || q.life != nil && q.life.Err() != nil {
		return q, errEnded // nobody waits for an answer, or there is nobody left to ask
	}
	if asked >= b.cfg.MaxPerCall {
		return q, fmt.Errorf("there are more questions than the limit of %d for a call", b.cfg.MaxPerCall)
	}
	if tally.waiting[q.from.User] >= b.cfg.MaxAtOnce {
		return q, fmt.Errorf("there are more questions at once than the limit of %d", b.cfg.MaxAtOnce)
	}
	if tally.waiting == nil {
		tally.waiting = make(map[string]int)
	}
	tally.waiting[q.from.User]++
	return q, nil
}

// leave ends a question for that user.
func (b *Broker) leave(user string) {
	tally := b.cfg.Counter
	tally.mu.Lock()
	defer tally.mu.Unlock()
	if tally.waiting[user]--; tally.waiting[user] == 0 {
		delete(tally.waiting, user)
	}
}

// A window counts what happens within a minute.
type window struct {
	begun time.Time
	n     int
}

// add counts one more and returns how many there were before.
func (w *window) add(now time.Time) int {
	if now.Sub(w.begun) >= time.Minute {
		w.begun, w.n = now, 0
	}
	w.n++
	return w.n - 1
}

// consult has a hook answer a question of the server. choose returns the hook, or
// nil if there is none. The error wraps [ask.ErrDeclined] if the user declined or
// nobody can be asked; otherwise it is for the server to read and has nothing of
// the host.
func consult[T any](b *Broker, ctx context.Context, what string, choose func(ask.Hooks) func(context.Context, ask.Asker) (T, error)) (answer T, err error) {
	q, err := b.admit(ctx)
	if err != nil {
		return answer, err
	}
	hook := choose(q.hooks)
	if hook == nil {
		b.leave(q.from.User)
		return answer, errNobody
	}
	asking, cancel := b.during(ctx, q)
	defer cancel()
	if in, ok := InputOf(ctx); ok {
		asking = context.WithValue(asking, inputKey{}, in)
	}
	for _, c := range q.calls {
		defer hostcode.Hold(c.ctx)()
	}
	answer, err = hostcode.Detached(asking, "ask.Hooks."+what, func() (T, error) {
		defer b.leave(q.from.User)
		return hook(asking, q.from)
	})
	if err == nil || errors.Is(err, ask.ErrDeclined) {
		return answer, err
	}
	b.cfg.Log.Warn("mcphybrid: a question of a server has no answer", "server", b.cfg.Server, "tool", q.from.Tool, "error", err)
	return answer, errNoReply
}

// during returns the context of a hook. It has the values of the call's and ends
// when the question is over.
func (b *Broker) during(ctx context.Context, q question) (context.Context, context.CancelFunc) {
	values := ctx
	if len(q.calls) > 0 {
		values = q.calls[0].ctx
	}
	asking, cancel := context.WithTimeout(context.WithoutCancel(values), b.cfg.Timeout)
	stops := []func() bool{context.AfterFunc(ctx, cancel), context.AfterFunc(b.life, cancel)}
	if q.life != nil {
		stops = append(stops, context.AfterFunc(q.life, cancel))
	}
	left := new(atomic.Int64)
	left.Store(int64(len(q.calls)))
	for _, c := range q.calls {
		stops = append(stops, context.AfterFunc(c.ctx, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		}))
	}
	return asking, func() {
		cancel()
		for _, stop := range stops {
			stop()
		}
	}
}
