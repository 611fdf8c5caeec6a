package broker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A task is a question that the server does not wait for: it asks from time to time
// how it is.
type task struct {
	id     string
	begun  time.Time
	cancel context.CancelFunc
	done   chan struct{} // closed when the rest is set

	ended    time.Time
	status   mcp.TaskStatus
	response *transport.JSONRPCResponse
}

const (
	// maxTasks is how many tasks of a server are kept, with those that have ended.
	maxTasks = 32

	// pollInterval is how often a server should ask for the state of a task. It is
	// no longer than a person notices.
	pollInterval = 500 * time.Millisecond
)

// begin executes a question as a task and returns the answer that says so.
func (b *Broker) begin(ctx context.Context, r transport.JSONRPCRequest, next transport.RequestHandler) *transport.JSONRPCResponse {
	ctx, cancel := b.outlive(ctx)
	t := &task{id: rand.Text(), begun: time.Now(), cancel: cancel, done: make(chan struct{})}
	if !b.keep(t) {
		cancel()
		return failed(r.ID, mcp.INTERNAL_ERROR, errTooManyTasks)
	}
	go func() {
		defer cancel()
		response := answer(ctx, r, next)
		t.ended, t.status = time.Now(), mcp.TaskStatusCompleted
		switch {
		case ctx.Err() != nil:
			t.status = mcp.TaskStatusCancelled
		case response == nil || response.Error != nil:
			t.status = mcp.TaskStatusFailed
		}
		t.response = response
		close(t.done)
	}()
	return result(r.ID, map[string]any{"task": t.state()})
}

// keep adds a task to the list. It drops the oldest that has ended if the list is
// full, and reports whether there was room.
func (b *Broker) keep(t *task) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.tasks) >= maxTasks {
		oldest := slices.IndexFunc(b.tasks, (*task).over)
		if oldest < 0 {
			return false
		}
		b.tasks = slices.Delete(b.tasks, oldest, oldest+1)
	}
	b.tasks = append(b.tasks, t)
	return true
}

func (t *task) over() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// state returns the task as the protocol shows it.
func (t *task) state() mcp.Task {
	poll := pollInterval.Milliseconds()
	state := mcp.Task{
		TaskId: t.id, Status: mcp.TaskStatusWorking, PollInterval: &poll,
		CreatedAt: t.begun.UTC().Format(time.RFC3339Nano), LastUpdatedAt: t.begun.UTC().Format(time.RFC3339Nano),
	}
	if t.over() {
		state.Status, state.LastUpdatedAt = t.status, t.ended.UTC().Format(time.RFC3339Nano)
	}
	return state
}

// handleTask answers a request about a task.
func (b *Broker) handleTask(ctx context.Context, id mcp.RequestId, method mcp.MCPMethod, taskID string) *transport.JSONRPCResponse {
	b.mu.Lock()
	i := slices.IndexFunc(b.tasks, func(t *task) bool { return t.id == taskID })
	var t *task
	if i >= 0 {
		t = b.tasks[i]
	}
	b.mu.Unlock()
	switch {
	case t == nil:
		return failed(id, mcp.INVALID_PARAMS, errNoTask)
	case method == mcp.MethodTasksGet:
		return result(id, t.state())
	case method == mcp.MethodTasksCancel:
		t.cancel()
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		return failed(id, mcp.REQUEST_INTERRUPTED, ctx.Err())
	}
	if method == mcp.MethodTasksCancel {
		return result(id, t.state())
	}
	return t.answered(id)
}

// answered returns the answer of a task that has ended, marked as the task's.
func (t *task) answered(id mcp.RequestId) *transport.JSONRPCResponse {
	if t.response == nil {
		return failed(id, mcp.INTERNAL_ERROR, errNoReply)
	}
	marked := *t.response
	marked.ID = id
	var fields map[string]json.RawMessage
	if marked.Error != nil || json.Unmarshal(marked.Result, &fields) != nil {
		return &marked
	}
	fields["_meta"] = text.RawJSON(map[string]any{mcp.RelatedTaskMetaKey: mcp.RelatedTaskMeta(t.id)})
	return result(id, fields)
}

func result(id mcp.RequestId, v any) *transport.JSONRPCResponse {
	return transport.NewJSONRPCResultResponse(id, text.RawJSON(v))
}
