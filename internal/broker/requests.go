package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// declined is the code by which the protocol's examples say that the user refused.
const declined = -1

// Handle returns a handler for the requests of the server. It passes questions on
// to next, which is that of mcp-go's client, and executes them as tasks if the
// server asks for that.
//
// The context of the transport may end before a person has answered. Handle does
// not heed it: a question ends for the reasons that [ask.Hooks] names.
func (b *Broker) Handle(next transport.RequestHandler) transport.RequestHandler {
	if b == nil {
		return next
	}
	return func(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
		ctx, done, err := b.take(ctx, r.ID)
		if err != nil {
			return failed(r.ID, mcp.INTERNAL_ERROR, err), nil
		}
		defer done()
		var params struct {
			Task *struct {
				TTL *int64 `json:"ttl"`
			} `json:"task"`
			TaskID string `json:"taskId"`
			Meta   struct {
				Related struct {
					TaskID string `json:"taskId"`
				} `json:"io.modelcontextprotocol/related-task"`
			} `json:"_meta"`
		}
		raw, err := b.measured(r.Params)
		if err == nil {
			if err = json.Unmarshal(raw, &params); err != nil {
				err = fmt.Errorf("params: %w", text.JSONError(raw, err))
			}
		}
		if err != nil {
			return failed(r.ID, mcp.INVALID_PARAMS, err), nil
		}
		if id := params.Meta.Related.TaskID; id != "" {
			ctx = context.WithValue(ctx, relatedKey{}, id)
		}
		switch method := mcp.MCPMethod(r.Method); method {
		case mcp.MethodTasksGet, mcp.MethodTasksResult, mcp.MethodTasksCancel:
			return b.handleTask(ctx, r.ID, method, params.TaskID), nil
		case mcp.MethodElicitationCreate, mcp.MethodSamplingCreateMessage:
			if params.Task != nil {
				return b.begin(ctx, r, next), nil
			}
		case mcp.MethodListRoots, mcp.MethodPing:
		default:
			return failed(r.ID, mcp.METHOD_NOT_FOUND, errors.New("unknown method")), nil
		}
		return answer(ctx, r, next), nil
	}
}

// answer returns what next answers, or its error as a response. mcp-go would not
// survive a panic there.
func answer(ctx context.Context, r transport.JSONRPCRequest, next transport.RequestHandler) *transport.JSONRPCResponse {
	response, err := hostcode.Call("the client", func() (*transport.JSONRPCResponse, error) { return next(ctx, r) })
	switch {
	case errors.Is(err, ask.ErrDeclined):
		return failed(r.ID, declined, err)
	case err != nil:
		return failed(r.ID, mcp.INTERNAL_ERROR, err)
	}
	return response
}

func failed(id mcp.RequestId, code int, err error) *transport.JSONRPCResponse {
	return transport.NewJSONRPCErrorResponse(id, code, err.Error(), nil)
}

// maxOpen is how many requests of a server may wait for an answer, among them those
// for the results of tasks.
const maxOpen = 2 * maxTasks

// take notes that the server waits for the answer to a request. The context keeps
// the values of ctx but ends only with the broker or when the server withdraws the
// request.
func (b *Broker) take(ctx context.Context, id mcp.RequestId) (context.Context, func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open >= maxOpen {
		return nil, nil, fmt.Errorf("there are more requests at once than the limit of %d", maxOpen)
	}
	ctx, cancel := b.outlive(ctx)
	key := id.String()
	b.taken[key] = &cancel
	b.open++
	return ctx, func() {
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open--
		if b.taken[key] == &cancel {
			delete(b.taken, key)
		}
	}, nil
}

// outlive returns a context with the values of ctx that ends with the broker.
func (b *Broker) outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(b.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// Withdraw ends a question that the server takes back by a notification.
func (b *Broker) Withdraw(n mcp.JSONRPCNotification) {
	if b == nil {
		return
	}
	var id mcp.RequestId
	raw, err := json.Marshal(n.Params.AdditionalFields["requestId"])
	if err != nil || json.Unmarshal(raw, &id) != nil {
		return
	}
	b.mu.Lock()
	cancel := b.taken[id.String()]
	b.mu.Unlock()
	if cancel != nil {
		(*cancel)()
	}
}

var errNoTask = errors.New("there is no such task")

var errTooManyTasks = fmt.Errorf("there are more tasks than the limit of %d", maxTasks)
