package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func request(id int, method mcp.MCPMethod, params any) transport.JSONRPCRequest {
	return transport.JSONRPCRequest{ID: mcp.NewRequestId(int64(id)), Method: string(method), Params: params}
}

// rootsOf is the handler of mcp-go's client, for roots only.
func rootsOf(d *Broker) transport.RequestHandler {
	return func(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
		roots, err := d.ListRoots(ctx, mcp.ListRootsRequest{})
		if err != nil {
			return nil, err
		}
		return result(r.ID, roots), nil
	}
}

// sent returns a response as it goes to the server.
func sent(t *testing.T, r *transport.JSONRPCResponse, err error) string {
	require.NoError(t, err)
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	return string(raw)
}

// The handler answers all that a server may send, with the code that says why not.
func TestHandle(t *testing.T) {
	d := newDesk(t, names("x"), nil)
	fail := error(nil)
	handle := d.Handle(func(_ context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
		if fail == nil {
			panic("a bug of the client")
		}
		return nil, fail
	})
	answer := func(method mcp.MCPMethod, params any) string {
		r, err := handle(t.Context(), request(1, method, params))
		return sent(t, r, err)
	}
	assert.Contains(t, answer("ping", nil), `"code":-32603,"message":"the client: panic: a bug`)
	fail = fmt.Errorf("what: %w", ask.ErrDeclined)
	assert.Contains(t, answer(mcp.MethodSamplingCreateMessage, nil), `"code":-1,"message":"what: the user declined"`)
	fail = errors.New("bad")
	assert.Contains(t, answer(mcp.MethodElicitationCreate, nil), `"code":-32603,"message":"bad"`)
	assert.Contains(t, answer("tools/list", nil), `"code":-32601`)
	assert.Contains(t, answer("ping", 5), `"code":-32602`)
	assert.Contains(t, answer("ping", map[string]any{"_meta": []any{}}), `"code":-32602`)
	assert.Contains(t, answer("ping", string(make([]byte, 1000))), "more than the limit of 1000")
	assert.Contains(t, answer(mcp.MethodTasksGet, map[string]any{"taskId": "x"}), "there is no such task")
	assert.Nil(t, (*Broker)(nil).Handle(nil))
}

// A server can have a question executed as a task, ask how it is, and cancel it.
func TestTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		d := newDesk(t, ask.Hooks{Roots: func(ctx context.Context, _ ask.Asker) ([]mcp.Root, error) {
			select {
			case <-let:
				return []mcp.Root{{URI: "file:///x"}}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}, nil)
		handle := d.Handle(rootsOf(d))
		begin := func(status ...mcp.TaskStatus) string {
			r, err := handle(t.Context(), request(1, mcp.MethodElicitationCreate, map[string]any{"task": map[string]any{"ttl": 1}}))
			require.NoError(t, err)
			var created mcp.CreateTaskResult
			require.NoError(t, json.Unmarshal(r.Result, &created))
			assert.Contains(t, status, created.Task.Status)
			return created.Task.TaskId
		}
		ask := func(method mcp.MCPMethod, id string) string {
			r, err := handle(t.Context(), request(2, method, map[string]any{"taskId": id}))
			return sent(t, r, err)
		}
		first, second := begin(mcp.TaskStatusWorking), begin(mcp.TaskStatusWorking)
		synctest.Wait()
		assert.Contains(t, ask(mcp.MethodTasksGet, first), `"status":"working"`)
		assert.Contains(t, ask(mcp.MethodTasksCancel, second), `"status":"cancelled"`)
		assert.Contains(t, ask(mcp.MethodTasksResult, second), `"message":"there is no answer"`)

		// Those who wait for a result are counted.
		got := make(chan string, maxOpen)
		for range maxOpen {
			go func() { got <- ask(mcp.MethodTasksResult, first) }()
		}
		synctest.Wait()
		assert.Contains(t, ask(mcp.MethodTasksGet, first), "more requests at once than the limit of 64")
		close(let)
		for range maxOpen {
			assert.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":%q}},"roots":[{"uri":"file:///x"}]}}`, first), <-got)
		}
		synctest.Wait()
		assert.Contains(t, ask(mcp.MethodTasksGet, first), `"status":"completed"`)

		// The oldest that has ended makes room for a new one.
		for range 32 {
			begin(mcp.TaskStatusWorking, mcp.TaskStatusCompleted) // it need not wait now
			synctest.Wait()
		}
		assert.Contains(t, ask(mcp.MethodTasksGet, first), errNoTask.Error())
		assert.Len(t, d.tasks, 32)
		let = make(chan struct{})
		for range 32 {
			begin(mcp.TaskStatusWorking)
		}
		r, err := handle(t.Context(), request(3, mcp.MethodElicitationCreate, map[string]any{"task": map[string]any{}}))
		assert.Contains(t, sent(t, r, err), errTooManyTasks.Error())
		d.Close()
		synctest.Wait()
	})
}

// FuzzHandle sends questions of any bytes. The broker answers each, and no hook gets
// more than it may.
// A task whose question fails has failed, and its result says why.
func TestTaskThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, ask.Hooks{Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) { return nil, errors.New("no disk") }}, nil)
		handle := d.Handle(rootsOf(d))
		r, err := handle(t.Context(), request(1, mcp.MethodElicitationCreate, map[string]any{"task": map[string]any{}}))
		require.NoError(t, err)
		var created mcp.CreateTaskResult
		require.NoError(t, json.Unmarshal(r.Result, &created))
		synctest.Wait()
		r, err = handle(t.Context(), request(2, mcp.MethodTasksGet, map[string]any{"taskId": created.Task.TaskId}))
		assert.Contains(t, sent(t, r, err), `"status":"failed"`)
		r, err = handle(t.Context(), request(2, mcp.MethodTasksResult, map[string]any{"taskId": created.Task.TaskId}))
		assert.Contains(t, sent(t, r, err), `"error":`)
		d.Close()
	})
}

// A task of a client that answers nothing has failed too, and one that was cancelled says so,
// with the answer to what asked for it.
func TestTaskWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, names("x"), nil)
		handle := d.Handle(func(context.Context, transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) { return nil, nil })
		r, err := handle(t.Context(), request(1, mcp.MethodElicitationCreate, map[string]any{"task": map[string]any{}}))
		require.NoError(t, err)
		var created mcp.CreateTaskResult
		require.NoError(t, json.Unmarshal(r.Result, &created))
		synctest.Wait()
		of := map[string]any{"taskId": created.Task.TaskId}
		r, err = handle(t.Context(), request(2, mcp.MethodTasksGet, of))
		assert.Contains(t, sent(t, r, err), `"status":"failed"`)
		r, err = handle(t.Context(), request(7, mcp.MethodTasksResult, of))
		got := sent(t, r, err)
		assert.Contains(t, got, `"error":`)
		assert.Contains(t, got, `"id":7`)
		d.Close()
	})
}

// A server has at most maxTasks tasks: the oldest that has ended makes room, and while none
// has, there is none.
func TestRoomForTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{}, 1)
		d := newDesk(t, ask.Hooks{Roots: func(ctx context.Context, _ ask.Asker) ([]mcp.Root, error) {
			select {
			case <-let:
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}, nil)
		handle := d.Handle(rootsOf(d))
		begin := func() (id string, said string) {
			r, err := handle(t.Context(), request(1, mcp.MethodElicitationCreate, map[string]any{"task": map[string]any{}}))
			said = sent(t, r, err)
			synctest.Wait()
			var created mcp.CreateTaskResult
			if r.Error == nil {
				require.NoError(t, json.Unmarshal(r.Result, &created))
			}
			return created.Task.TaskId, said
		}
		var ids []string
		for range maxTasks {
			id, said := begin()
			require.NotEmpty(t, id, said)
			ids = append(ids, id)
		}
		_, said := begin()
		assert.Contains(t, said, errTooManyTasks.Error())
		get := func(id string) string {
			r, err := handle(t.Context(), request(2, mcp.MethodTasksGet, map[string]any{"taskId": id}))
			return sent(t, r, err)
		}
		_, err := handle(t.Context(), request(3, mcp.MethodTasksCancel, map[string]any{"taskId": ids[5]}))
		require.NoError(t, err)
		synctest.Wait()
		assert.Contains(t, get(ids[5]), `"status":"cancelled"`)
		id, said := begin()
		require.NotEmpty(t, id, said)
		assert.Contains(t, get(ids[5]), errNoTask.Error(), "it has made room")
		for _, other := range append(ids[:5:5], ids[6:]...) {
			assert.Contains(t, get(other), `"status":"working"`)
		}
		d.Close()
	})
}

// A question that says of which task it is reaches the caller of that task.
func TestQuestionOfATask(t *testing.T) {
	t.Parallel()
	d := newDesk(t, names("default"), nil)
	var calls []context.Context
	for _, user := range []string{"ann", "bob"} {
		c := NewCaller(user, names(user), d.cfg.Hooks)
		t.Cleanup(c.End)
		ctx, end := d.Begin(WithCaller(t.Context(), c), "t")
		defer end(true)
		d.SetTask(ctx, user+"'s task")
		calls = append(calls, ctx)
	}
	require.Len(t, calls, 2)
	for _, user := range []string{"ann", "bob"} {
		r, err := d.Handle(rootsOf(d))(t.Context(), request(1, mcp.MethodListRoots, map[string]any{"_meta": map[string]any{mcp.RelatedTaskMetaKey: map[string]any{"taskId": user + "'s task"}}}))
		assert.Contains(t, sent(t, r, err), "file:///"+user)
	}
	r, err := d.Handle(rootsOf(d))(t.Context(), request(1, mcp.MethodListRoots, nil))
	assert.Contains(t, sent(t, r, err), "file:///default")
}

func FuzzHandle(f *testing.F) {
	for _, params := range []string{
		`{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`,
		`{"mode":"url","url":"https://example.com","elicitationId":"1"}`, `{"task":{"ttl":1},"messages":[{"role":"user","content":{"type":"text","text":"x"}}]}`,
		`{"taskId":"x"}`, `{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}`, `5`, `[]`, `null`,
		`{"requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#"}}},"$ref":"#"}}`,
	} {
		f.Add(byte(0), []byte(params))
		f.Add(byte(1), []byte(params))
	}
	methods := []mcp.MCPMethod{mcp.MethodElicitationCreate, mcp.MethodSamplingCreateMessage, mcp.MethodListRoots, mcp.MethodTasksGet, mcp.MethodTasksCancel, "other"}
	f.Fuzz(func(t *testing.T, method byte, params []byte) {
		d := newDesk(t, ask.Hooks{Elicit: func(_ context.Context, _ ask.Asker, p mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			raw, err := json.Marshal(p)
			require.NoError(t, err)
			require.LessOrEqual(t, len(raw), 1000)
			return elicited(mcp.ElicitationResponseActionAccept, map[string]any{"a": "b"}), nil
		}}, nil)
		defer d.Close()
		handle := d.Handle(func(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
			var in mcp.ElicitationRequest
			raw, err := json.Marshal(r.Params)
			if err == nil {
				err = json.Unmarshal(raw, &in.Params)
			}
			if err != nil {
				return nil, err
			}
			answer, err := d.Elicit(ctx, in)
			if err != nil {
				return nil, err
			}
			return result(r.ID, answer), nil
		})
		var decoded any
		_ = json.Unmarshal(params, &decoded)
		r, err := handle(t.Context(), request(1, methods[int(method)%len(methods)], decoded))
		require.NoError(t, err)
		require.NotNil(t, r)
		require.True(t, r.Result != nil || r.Error != nil)
	})
}
