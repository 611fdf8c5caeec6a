package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/ask"
)

// questions returns hooks that pass on what servers ask to the client whose call caused
// it: the context of a hook is that of the call, by which mcp-go knows the client. What
// the client can't answer, and what no call caused, is declined.
func (g *gateway) questions() ask.Hooks {
	if !g.opts.ask {
		return ask.Hooks{}
	}
	return ask.Hooks{
		Elicit: func(ctx context.Context, from ask.Asker, p mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			o := openCallOf(ctx)
			can := g.answerable(ctx, o).Elicitation
			if can == nil || o != nil && p.Mode == mcp.ElicitationModeURL && can.URL == nil {
				return nil, g.declined(ctx, o)
			}
			p.Meta, p.Message = nil, from.Server+" asks: "+p.Message // to the client, the gateway is the server
			if o != nil {
				answer, err := g.opened.ask(ctx, o, mcp.NewElicitationInputRequest(p))
				return answer.Elicitation, err
			}
			return ours(g.front.RequestElicitation(ctx, mcp.ElicitationRequest{Params: p}))
		},
		Sample: func(ctx context.Context, from ask.Asker, p mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			o := openCallOf(ctx)
			if g.answerable(ctx, o).Sampling == nil {
				return nil, g.declined(ctx, o)
			}
			if o != nil {
				answer, err := g.opened.ask(ctx, o, mcp.NewSamplingInputRequest(p))
				return answer.Sampling, err
			}
			if err := g.awaitStream(ctx, from); err != nil {
				return nil, err
			}
			//lint:ignore SA1019 clients before 2026-07-28 have it
			return ours(g.front.RequestSampling(ctx, mcp.CreateMessageRequest{CreateMessageParams: p}))
		},
		Roots: func(ctx context.Context, from ask.Asker) ([]mcp.Root, error) {
			o := openCallOf(ctx)
			if g.answerable(ctx, o).Roots == nil {
				return nil, g.declined(ctx, o)
			}
			var r *mcp.ListRootsResult
			var err error
			if o != nil {
				var answer mcp.InputResponse
				answer, err = g.opened.ask(ctx, o, mcp.NewRootsInputRequest())
				r = answer.Roots
			} else if err = g.awaitStream(ctx, from); err == nil {
				r, err = ours(g.front.RequestRoots(ctx, mcp.ListRootsRequest{}))
			}
			if err != nil {
				return nil, err
			}
			return r.Roots, nil
		},
	}
}

// openCallOf returns the call that caused a question, if its client is asked by answers.
func openCallOf(ctx context.Context) *openCall {
	v, ok := ctx.Value(clientCallKey{}).(*clientCall)
	if !ok {
		return nil
	}
	return v.open
}

// declined returns the error for a question that the client can't answer. o may be nil.
func (g *gateway) declined(ctx context.Context, o *openCall) error {
	if o != nil {
		g.opened.skip(ctx, o)
	}
	return ask.ErrDeclined
}

// streamWait is how long a question waits for its client to open a stream. Clients open it with
// their session, or anew when it was cut.
const streamWait = 3 * time.Second

var errNoStream = fmt.Errorf("%w: the client keeps no stream open, on which it could be asked", ask.ErrDeclined)

// awaitStream returns an error, and logs it, if the client of a request does not open a stream:
// over HTTP, mcp-go asks for roots and for a model's answer only there.
func (g *gateway) awaitStream(ctx context.Context, from ask.Asker) error {
	ctx, enough := context.WithTimeout(ctx, streamWait)
	defer enough()
	if c := g.of(ctx); c != nil && c.AwaitStream(ctx) {
		return nil
	}
	g.opts.log.Warn("a question of a server is declined", "server", from.Server, "tool", from.Tool, "error", errNoStream)
	return errNoStream
}

// errNoAnswer says that a client gave none. Its own error may quote secrets, and errors are
// logged.
var errNoAnswer = errors.New("the client did not answer the question")

// ours returns a client's answer, or an error in our words.
func ours[T any](answer *T, err error) (*T, error) {
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(err, context.Canceled):
		return nil, context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return nil, context.DeadlineExceeded
	}
	return nil, errNoAnswer
}

// answerable returns what the client of a request can be asked. Since 2026-07-28 that is
// nothing, but about an open call.
func (g *gateway) answerable(ctx context.Context, o *openCall) mcp.ClientCapabilities {
	if o == nil && server.IsModernRequest(ctx) {
		return mcp.ClientCapabilities{}
	}
	return g.capabilities(ctx)
}

// capabilities returns what the client of a request can do. Since 2026-07-28, the request
// says it. Before, a client is asked nothing until it is ready.
func (g *gateway) capabilities(ctx context.Context) (c mcp.ClientCapabilities) {
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		if info.ClientCapabilities != nil {
			c = *info.ClientCapabilities
		}
		return c
	}
	if from := g.of(ctx); from == nil || !from.Begun() {
		return c
	}
	if s, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		c = s.GetClientCapabilities()
	}
	return c
}
