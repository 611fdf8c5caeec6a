package mcpopenai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
)

// A toolset is a session as one of the APIs takes its tools.
type toolset struct {
	session *mcphybrid.Session
	format  provider.Format
}

// DefaultMaxRequests is how many requests a run makes at most.
const DefaultMaxRequests = 50

// within returns an error if n requests are as many as a run may make.
func within(n, limit int) error {
	if limit = cmp.Or(limit, DefaultMaxRequests); limit < 0 || n < limit {
		return nil
	}
	return fmt.Errorf("mcpopenai: the model has called tools in %d requests in a row without an answer: see MaxRequests", n)
}

// A CallFunc makes a call of the model. args is JSON as the model wrote it. The result is for
// the model, even if there is an error, and must not be nil.
type CallFunc func(ctx context.Context, name string, args any) (*mcp.CallToolResult, error)

type call struct{ id, name, arguments string }

// next returns what the next request needs of the session. The first one of a run notes where
// the conversation was before.
func (r *run) next(t toolset, model string) (mcphybrid.Turn, error) {
	turn, err := t.session.Turn(t.format, model)
	if err == nil && !r.asked {
		r.asked, r.place = true, turn.Before
	}
	return turn, err
}

// A run is a Run at work.
type run struct {
	asked bool // there was a request
	place int  // of the conversation before the first one
}

// takeBack has the session tell again what it told in a run that is taken out of the
// conversation.
func (r *run) takeBack(t toolset) {
	if r.asked {
		t.session.TakeBack(r.place)
	}
}

// count tells the session what an answer took, if its usage says so.
func (t toolset) count(usage string) {
	if u, err := provider.ParseUsage(t.format, json.RawMessage(usage)); err == nil {
		t.session.CountUsage(u)
	}
}

// results makes calls by run, at once, and returns their results in the same order. It fails
// if ctx ends, or if a result can't be written.
func (t toolset) results(ctx context.Context, calls []call, run CallFunc) ([]provider.Result, error) {
	results := make([]provider.Result, len(calls))
	problems := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() {
			res, _ := run(ctx, c.name, c.arguments) // res tells the model of an error
			results[i], problems[i] = provider.ExportResult(res, t.format)
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, err := range problems {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}
