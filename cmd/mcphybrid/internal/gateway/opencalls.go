package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
)

// Since protocol 2026-07-28, a client is asked by the answer to its request, which has the
// questions and a request state. It makes the request again, with its answers and the
// state. Meanwhile the server's call stays open here, whichever way the server asks:
//
//	client ── tools/call ──▶ openCall ── Session.Call ──▶ server
//	       ◀── questions, state ──┤ ◀── question ──
//	       ── tools/call, answers, state ──▶ ── answer ──▶
//	       ◀── result ──
//
// It is open until a question ends without an answer, which [ask.Options] bounds, its
// client's token is revoked, or the gateway ends.

const (
	maxOpenCalls     = 64        // that wait for their clients: of a further one, the questions are declined
	maxOpenOfOne     = 16        // of one client: a further one ends that which has waited longest
	maxOpenArguments = 256 << 10 // bytes of a call's arguments, of its _meta, and of answers while others of the round are missing, or its questions are declined
)

// openCalls are those that clients may be asked about.
type openCalls struct {
	mu      sync.Mutex
	waiting map[string]*openCall // for their clients, by request state
	over    bool
	running sync.WaitGroup
}

// An openCall is a request of a client that goes on when it has asked the client.
type openCall struct {
	owner any               // the holder of the token or the conversation: nobody else answers
	sum   [sha256.Size]byte // of what was called
	call  *clientCall
	end   context.CancelFunc

	changed chan struct{} // capacity 1: there may be questions for the client
	done    chan struct{} // closed when there is an answer or an error
	answer  any
	err     error

	// Guarded by openCalls.mu.
	small bool               // it may wait for its client
	given mcp.InputResponses // with the first request, before any question
	asked map[string]*question
	round *broker.Round // in which the server asks, or nil
	due   int           // questions of the round that have not come here
	kept  int           // bytes of the client's answers since all questions had one
	state string        // by which the client goes on; "" while a request of the client waits
	since time.Time     // of which it waits for the client
}

// A question is one that the client has not answered.
type question struct {
	request mcp.InputRequest
	answer  chan response // capacity 1
}

type response struct {
	mcp.InputResponse
	err error
}

// What is wrong with a request that goes on with another.
var (
	errState    = errors.New("the request state is not known: it was used, its time is over, or the request is another one")
	errResponse = errors.New("an input response is wrong")
)

// converse is pass for a request of a client that can be asked. Either there is an answer,
// or the client is asked, or there is an error.
func converse[T any](ctx context.Context, g *gateway, q request, in mcp.MultiRoundTripParams, run func(context.Context, *clientCall) (T, error)) (answer T, asks *mcp.MultiRoundTripResult, err error) {
	can := g.capabilities(ctx)
	if !server.IsModernRequest(ctx) || !g.opts.ask || can.Elicitation == nil && can.Sampling == nil && can.Roots == nil {
		if in.RequestState != "" {
			g.record(ctx, q, nil, time.Now(), errState)
			return answer, nil, wire.Refuse(mcp.INVALID_PARAMS, nil, errState)
		}
		err = g.pass(ctx, q, func(ctx context.Context, c *clientCall) (err error) {
			answer, err = run(ctx, c)
			return err
		})
		return answer, nil, err
	}
	if !g.enter() {
		g.record(ctx, q, nil, time.Now(), errNotBegun)
		return answer, nil, errNotBegun
	}
	defer g.leave()
	var o *openCall
	if in.RequestState != "" {
		o, err = g.opened.resume(ctx, g.owner(ctx), q, in)
	} else {
		o, err = g.openCall(ctx, q, in.InputResponses, func(ctx context.Context, c *clientCall) (any, error) {
			return run(broker.Declare(ctx, can), c)
		})
	}
	if err != nil {
		g.record(ctx, q, nil, time.Now(), err)
		return answer, nil, err
	}
	got, asks, err := g.opened.wait(ctx, o)
	answer, _ = got.(T)
	return answer, asks, err
}

// openCall runs a request until it ends, whether or not the one of ctx has.
func (g *gateway) openCall(ctx context.Context, q request, given mcp.InputResponses, run func(context.Context, *clientCall) (any, error)) (*openCall, error) {
	if !g.opened.enter() {
		return nil, errNotBegun
	}
	o := &openCall{
		owner: g.owner(ctx), given: given, asked: make(map[string]*question),
		changed: make(chan struct{}, 1), done: make(chan struct{}),
	}
	o.sum, o.small = sumOf(web.ServerOf(ctx), q)
	life, release := tokens.With(g.callerOnly(ctx), tokens.HolderOf(ctx))
	life, o.end = context.WithCancel(life)
	began := time.Now()
	o.call = g.newClientCall(ctx, q.meta)
	o.call.open = o
	go func() {
		defer g.opened.running.Done()
		defer release()
		defer o.end()
		defer close(o.done)
		of, cancel := context.WithCancel(life)
		defer cancel()
		defer context.AfterFunc(g.calls, cancel)()
		g.awaitServers(of)
		_, o.err = hostcode.Call("the gateway", func() (struct{}, error) { // here, a panic would end it
			return struct{}{}, g.serve(o.call.with(of, q.meta), o.call, func(ctx context.Context, c *clientCall) (err error) {
				o.answer, err = run(ctx, c)
				return err
			})
		})
		if o.err != nil && g.calls.Err() != nil {
			o.err = errStopped
		}
		g.opened.forget(o)
		o.call.end()
		g.record(life, q, o.call, began, o.err)
	}()
	return o, nil
}

// callerOnly returns a context that has nothing of ctx but the caller and what it can do.
// The rest holds the whole request and its answer.
func (g *gateway) callerOnly(ctx context.Context) context.Context {
	only := server.WithRequestProtocolInfo(context.Background(), server.RequestProtocolInfoFromContext(ctx))
	if s := server.ClientSessionFromContext(ctx); s != nil {
		only = g.front.WithContext(only, s)
	}
	return only
}

// owner returns who may go on with the requests of the client of ctx.
func (g *gateway) owner(ctx context.Context) any {
	if c := g.of(ctx); c != nil {
		return c
	}
	return tokens.HolderOf(ctx)
}

// sumOf returns the sum of what a request asks for at the endpoint of a server, or of all,
// however its arguments are written, and whether they and its _meta are few.
func sumOf(server string, q request) (sum [sha256.Size]byte, small bool) {
	raw, err := json.Marshal(q.args)
	if err != nil || len(raw) > maxOpenArguments {
		return sum, false
	}
	var args any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&args) != nil {
		return sum, false
	}
	if object, ok := args.(map[string]any); ok && len(object) == 0 {
		args = nil // as without
	}
	if raw, err = json.Marshal([]any{server, q.method, q.name, args}); err != nil {
		return sum, false
	}
	sum = sha256.Sum256(raw)
	raw, err = json.Marshal(q.meta)
	return sum, err == nil && len(raw) <= maxOpenArguments
}

// enter counts a call that begins, unless the gateway is ending.
func (c *openCalls) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.running.Add(1)
	}
	return !c.over
}

// close ends the calls that wait for clients, now and later.
func (c *openCalls) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for _, o := range c.waiting {
		c.endLocked(o)
	}
}

func (c *openCalls) forget(o *openCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, o.state)
}

// endLocked ends a call that waits for its client.
func (c *openCalls) endLocked(o *openCall) {
	delete(c.waiting, o.state)
	o.end()
}

// ask returns the client's answer to a question.
func (c *openCalls) ask(ctx context.Context, o *openCall, r mcp.InputRequest) (answer mcp.InputResponse, err error) {
	q := &question{request: r, answer: make(chan response, 1)}
	name, given := c.put(ctx, o, q)
	o.change()
	if given != nil {
		return *given, nil
	}
	select {
	case got := <-q.answer:
		return got.InputResponse, got.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.asked[name] == q { // else it was answered, and another may have its name
		delete(o.asked, name)
		if o.state != "" {
			c.endLocked(o) // the client did not come back
		}
	}
	return answer, ctx.Err()
}

// skip notes a question that the client is not asked.
func (c *openCalls) skip(ctx context.Context, o *openCall) {
	in, _ := broker.InputOf(ctx)
	c.mu.Lock()
	o.comesLocked(in.Round)
	c.mu.Unlock()
	o.change()
}

// put adds a question under the server's name for it, or another one. If the client has
// given an answer beforehand, it returns that.
func (c *openCalls) put(ctx context.Context, o *openCall, q *question) (name string, given *mcp.InputResponse) {
	in, _ := broker.InputOf(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	o.comesLocked(in.Round)
	if answer, ok := o.given[in.Name]; ok && in.Name != "" {
		delete(o.given, in.Name)
		if decode(&answer, q.request.Method) == nil {
			return in.Name, &answer
		}
	}
	name = in.Name
	for i := 1; name == "" || o.asked[name] != nil; i++ {
		name = fmt.Sprintf("question-%d", i)
	}
	o.asked[name] = q
	return name, nil
}

// comesLocked notes a question of a round. A server that asks in the middle of the call has
// none.
func (o *openCall) comesLocked(round *broker.Round) {
	if round != o.round {
		o.round, o.due = round, 0
		if round != nil {
			o.due = round.Questions
		}
	}
	o.due = max(0, o.due-1)
}

func (o *openCall) change() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// wait returns when there is an answer or the client must be asked. If ctx ends before,
// so does the call.
func (c *openCalls) wait(ctx context.Context, o *openCall) (answer any, asks *mcp.MultiRoundTripResult, err error) {
	for {
		select {
		case <-o.done:
			return o.answer, nil, o.err
		case <-ctx.Done():
			o.end()
			<-o.done
			return o.answer, nil, o.err
		case <-o.changed:
			if asks := c.hold(o); asks != nil {
				o.call.pause()
				return nil, asks, nil
			}
		}
	}
}

// hold makes a call wait for its client if all questions of a round are there, and returns
// them. Those that can't wait are declined.
func (c *openCalls) hold(o *openCall) *mcp.MultiRoundTripResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-o.done:
		return nil
	default:
	}
	if o.due > 0 || len(o.asked) == 0 {
		return nil
	}
	if !c.makeRoomLocked(o) {
		for name, q := range o.asked {
			q.answer <- response{err: ask.ErrDeclined}
			delete(o.asked, name)
		}
		return nil
	}
	o.given, o.state, o.since = nil, rand.Text(), time.Now()
	c.waiting[o.state] = o
	asks := &mcp.MultiRoundTripResult{RequestState: o.state, InputRequests: make(mcp.InputRequests)}
	for name, q := range o.asked {
		asks.InputRequests[name] = q.request
	}
	return asks
}

func (c *openCalls) makeRoomLocked(o *openCall) bool {
	if c.over || !o.small {
		return false
	}
	var oldest *openCall
	of := 0
	for _, other := range c.waiting {
		if other.owner != o.owner {
			continue
		}
		if of++; oldest == nil || other.since.Before(oldest.since) {
			oldest = other
		}
	}
	if of >= maxOpenOfOne {
		c.endLocked(oldest)
	}
	return len(c.waiting) < maxOpenCalls
}

// resume gives a call the answers of its client, who waits for it again.
func (c *openCalls) resume(ctx context.Context, owner any, q request, in mcp.MultiRoundTripParams) (*openCall, error) {
	sum, small := sumOf(web.ServerOf(ctx), q)
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.waiting[in.RequestState]
	if o == nil || o.owner != owner || o.sum != sum {
		return nil, wire.Refuse(mcp.INVALID_PARAMS, nil, errState)
	}
	answers := make(mcp.InputResponses)
	for name, q := range o.asked {
		answer, ok := in.InputResponses[name]
		if !ok {
			continue
		}
		if err := decode(&answer, q.request.Method); err != nil {
			return nil, wire.Refuse(mcp.INVALID_PARAMS, nil, fmt.Errorf("%w: %q is not one to %s", errResponse, name, q.request.Method))
		}
		answers[name] = answer
	}
	delete(c.waiting, o.state)
	o.state = ""
	for name, answer := range answers {
		raw, _ := json.Marshal(answer) // what was read from JSON can be written
		o.kept += len(raw)
		o.asked[name].answer <- response{InputResponse: answer}
		delete(o.asked, name)
	}
	if len(o.asked) == 0 { // the server gets them
		o.kept = 0
	}
	o.small = o.small && small && o.kept <= maxOpenArguments
	o.call.resume(ctx, q.meta)
	o.change() // what has no answer is asked again
	return o, nil
}

// decode reads a client's answer to a question of that method.
func decode(answer *mcp.InputResponse, method mcp.MCPMethod) error {
	if err := answer.DecodeFor(method); err != nil {
		return err
	}
	switch {
	case answer.Elicitation != nil:
		switch answer.Elicitation.Action {
		case mcp.ElicitationResponseActionAccept, mcp.ElicitationResponseActionDecline, mcp.ElicitationResponseActionCancel:
			return nil
		}
	case answer.Sampling != nil && answer.Sampling.Content != nil, answer.Roots != nil && answer.Roots.Roots != nil:
		return nil
	}
	return errNoAnswer
}
