package broker

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
)

// Since protocol 2026-07-28 a server asks by a result that names its questions and tells the
// client to call again with the answers. mcp-go's client has the broker answer each, and
// does not say which is which.

// An Input is a question of such a result.
type Input struct {
	Name  string // by which the server knows the answer
	Round *Round
}

// A Round has the questions of one result.
type Round struct {
	Questions int // how many there are
	left      []named
}

// named is a question that has not been answered yet.
type named struct {
	name   string
	method mcp.MCPMethod
	params string // as JSON of mcp-go's type
}

type inputKey struct{}

// InputOf returns the question that a hook answers, by the context of the hook. There is
// none if the server asked in the middle of the call.
func InputOf(ctx context.Context) (Input, bool) {
	in, ok := ctx.Value(inputKey{}).(Input)
	return in, ok
}

// SetInputs notes the questions of a result that asks for input, with the context of its
// request. It must be called before any of them is answered.
func SetInputs(ctx context.Context, requests mcp.InputRequests) {
	c, _ := ctx.Value(callKey{}).(*call)
	if c == nil {
		return
	}
	round := &Round{Questions: len(requests)}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		var params any
		r := requests[name]
		switch r.Method {
		case mcp.MethodElicitationCreate:
			params = r.Elicitation
		case mcp.MethodSamplingCreateMessage:
			params = r.Sampling
		}
		if raw, err := json.Marshal(params); err == nil {
			round.left = append(round.left, named{name, r.Method, string(raw)})
		}
	}
	c.broker.mu.Lock()
	defer c.broker.mu.Unlock()
	c.round = round
}

// withInput returns ctx with the question of its call's result that has these parameters.
// Of equal ones it is the first that has no answer.
func withInput(ctx context.Context, method mcp.MCPMethod, params any) context.Context {
	c, _ := ctx.Value(callKey{}).(*call)
	if c == nil {
		return ctx
	}
	raw, _ := json.Marshal(params) // what is no JSON is none of them
	c.broker.mu.Lock()
	defer c.broker.mu.Unlock()
	if c.round == nil {
		return ctx
	}
	i := slices.IndexFunc(c.round.left, func(n named) bool {
		return n.method == method && n.params == string(raw)
	})
	if i < 0 {
		return ctx
	}
	in := Input{Name: c.round.left[i].name, Round: c.round}
	c.round.left = slices.Delete(c.round.left, i, i+1)
	return context.WithValue(ctx, inputKey{}, in)
}

type declaredKey struct{}

// Declare returns a context for calls of a caller that can answer no more than these
// capabilities say. A server of protocol 2026-07-28 is told so with each request.
func Declare(ctx context.Context, can mcp.ClientCapabilities) context.Context {
	return context.WithValue(ctx, declaredKey{}, can)
}

// Declared returns what the caller of a request with this context can answer, if that was
// declared.
func Declared(ctx context.Context) (can mcp.ClientCapabilities, ok bool) {
	can, ok = ctx.Value(declaredKey{}).(mcp.ClientCapabilities)
	return can, ok
}

// Both returns what a client with these capabilities can answer for a caller with those.
func Both(has, can mcp.ClientCapabilities) mcp.ClientCapabilities {
	switch {
	case can.Elicitation == nil:
		has.Elicitation = nil
	case has.Elicitation != nil && can.Elicitation.URL == nil:
		has.Elicitation = &mcp.ElicitationCapability{Form: has.Elicitation.Form}
	}
	if can.Sampling == nil {
		has.Sampling = nil
	}
	if can.Roots == nil {
		has.Roots = nil
	}
	if has.Tasks != nil && has.Tasks.Requests != nil {
		tasks, requests := *has.Tasks, *has.Tasks.Requests
		if has.Elicitation == nil {
			requests.Elicitation = nil
		}
		if has.Sampling == nil {
			requests.Sampling = nil
		}
		tasks.Requests, has.Tasks = &requests, &tasks
		if requests.Elicitation == nil && requests.Sampling == nil {
			has.Tasks = nil
		}
	}
	return has
}
