package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Some tools are executed as tasks only: the server answers the call at once with
// the id of a task, and the client asks for its state until it can have the result.
const (
	// However often the server wants to be asked, and however seldom. If it does not
	// say, the time doubles from the first to the second.
	minPoll = 50 * time.Millisecond
	maxPoll = 2 * time.Second

	cancelTimeout = 5 * time.Second // for telling the server that nobody waits any more
)

// A taken is the raw result of a request, for which mcp-go's client has no type or
// one that loses something, or that is large.
type taken struct {
	least int // bytes of results that are taken
	raw   json.RawMessage
}

type takenKey struct{}

// take moves the result of a call, or of a task that executes one, to the taken in ctx. mcp-go gets an empty one in its place.
func take(ctx context.Context, r transport.JSONRPCRequest, response *transport.JSONRPCResponse) *transport.JSONRPCResponse {
	t, _ := ctx.Value(takenKey{}).(*taken)
	if t == nil || len(response.Result) < t.least || r.Method != string(mcp.MethodToolsCall) && r.Method != string(mcp.MethodTasksResult) {
		return response
	}
	var asks struct {
		Type mcp.ResultType `json:"resultType"`
	}
	if _ = json.Unmarshal(response.Result, &asks); asks.Type == mcp.ResultTypeInputRequired {
		cutContent(response.Result) // it is no result yet
		return response             // mcp-go asks the hooks and sends the request again
	}
	t.raw = response.Result
	empty := *response
	empty.Result = json.RawMessage(`{"content":[]}`)
	return &empty
}

// callTask calls a tool as a task and waits for its result. If ctx ends first, it
// cancels the task.
func (c *conn) callTask(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	r.Params.Task = new(mcp.TaskParams)
	c.broker.SetTask(ctx, "")
	first := new(taken)
	if _, err := c.client.CallTool(context.WithValue(ctx, takenKey{}, first), r); err != nil {
		return nil, err
	}
	var created struct {
		Task *mcp.Task `json:"task"`
	}
	if err := json.Unmarshal(first.raw, &created); err != nil {
		return nil, fmt.Errorf("tools/call result: %w", text.JSONError(first.raw, err))
	}
	if created.Task == nil { // the server executed the call at once
		return parseResult(first.raw)
	}
	if created.Task.TaskId == "" {
		return nil, errors.New("the server began a task without an id")
	}
	c.broker.SetTask(ctx, created.Task.TaskId)
	result, err := c.awaitTask(ctx, *created.Task)
	if err != nil && ctx.Err() != nil {
		// Nobody waits for the answer.
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
			defer cancel()
			var r mcp.CancelTaskRequest
			r.Params.TaskId = created.Task.TaskId
			_, _ = c.client.CancelTask(ctx, r)
		}()
	}
	return result, err
}

// awaitTask returns the result of a task. A task that needs input asks while the
// client waits for the result.
func (c *conn) awaitTask(ctx context.Context, t mcp.Task) (*mcp.CallToolResult, error) {
	for step := minPoll; !t.Status.IsTerminal() && t.Status != mcp.TaskStatusInputRequired; step = min(2*step, maxPoll) {
		wait := step
		if ms := t.PollInterval; ms != nil {
			wait = time.Duration(min(max(*ms, minPoll.Milliseconds()), maxPoll.Milliseconds())) * time.Millisecond
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		var r mcp.GetTaskRequest
		r.Params.TaskId = t.TaskId
		now, err := c.client.GetTask(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("tasks/get: %w", err)
		}
		t.Status, t.PollInterval = now.Status, now.PollInterval
	}
	last := new(taken)
	var r mcp.TaskResultRequest
	r.Params.TaskId = t.TaskId
	_, err := c.client.TaskResult(context.WithValue(ctx, takenKey{}, last), r)
	var result *mcp.CallToolResult
	if err == nil {
		result, err = parseResult(last.raw)
	}
	if err != nil {
		return nil, fmt.Errorf("the task is %s: %w", t.Status, err)
	}
	return result, nil
}
