package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
)

// A tasking is a server whose calls become a task: its states come one after the other, the
// last one for ever.
type tasking struct {
	config.InProcessServer
	created string   // the result of a call
	states  []string // of the task
	result  string   // of the task
	asked   []string // methods
	at      []time.Time
}

func (s *tasking) HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
	var in struct {
		ID     mcp.RequestId `json:"id"`
		Method string        `json:"method"`
	}
	_ = json.Unmarshal(message, &in)
	answer := ""
	switch mcp.MCPMethod(in.Method) {
	case mcp.MethodToolsCall:
		answer = s.created
	case mcp.MethodTasksGet:
		answer = s.states[0]
		s.states = s.states[min(1, len(s.states)-1):]
	case mcp.MethodTasksResult:
		answer = s.result
	case mcp.MethodTasksCancel:
		answer = state("cancelled", "")
	default:
		return s.InProcessServer.HandleMessage(ctx, message)
	}
	s.asked, s.at = append(s.asked, in.Method), append(s.at, time.Now())
	return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: in.ID, Result: json.RawMessage(answer)}
}

func state(status, more string) string {
	return fmt.Sprintf(`{"taskId":"t","status":%q,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null%s}`, status, more)
}

// A task is asked for less and less often, or as often as its server says, within limits; then
// for its result.
func TestTaskIsAwaited(t *testing.T) {
	const result = `{"content":[{"type":"text","text":"done"}]}`
	for name, test := range map[string]struct {
		created string
		states  []string
		waits   []time.Duration // in milliseconds, until each tasks/get
		want    string
	}{
		"at once":        {result, nil, nil, "done"},
		"over":           {`{"task":` + state("completed", "") + `}`, nil, nil, "done"},
		"asks for input": {`{"task":` + state("input_required", "") + `}`, nil, nil, "done"},
		"soon":           {`{"task":` + state("working", "") + `}`, []string{state("working", ""), state("working", ""), state("completed", "")}, []time.Duration{50, 100, 200}, "done"},
		"as it says":     {`{"task":` + state("working", `,"pollInterval":700`) + `}`, []string{state("working", `,"pollInterval":10`), state("working", `,"pollInterval":10000`), state("completed", "")}, []time.Duration{700, 50, 2000}, "done"},
		"long":           {`{"task":` + state("working", "") + `}`, []string{state("working", ""), state("working", ""), state("working", ""), state("working", ""), state("working", ""), state("working", ""), state("failed", "")}, []time.Duration{50, 100, 200, 400, 800, 1600, 2000}, "done"},
		"no result":      {`5`, nil, nil, "cannot unmarshal number"},
		"no task":        {`{"task":5,"content":[{"type":"text","text":"done"}]}`, nil, nil, "cannot unmarshal number"},
		"without an id":  {`{"task":{"status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null}}`, nil, nil, "the server began a task without an id"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &tasking{InProcessServer: mcptest.Server("s", mcptest.Echo("a", "")), created: test.created, states: test.states, result: result}
			srv := started(t, config.Server{Name: "s", InProcess: s}, config.Limits{})
			defer srv.Close()
			begun := time.Now()
			got, err := srv.Call(t.Context(), Tool{Name: "a", Task: true}, json.RawMessage("{}"))
			if test.want != "done" {
				assert.ErrorContains(t, err, test.want, name)
				return
			}
			assert.NoError(t, err, name)
			assert.Equal(t, []mcp.Content{mcp.NewTextContent("done")}, got.Content, name)
			var waits []time.Duration
			for i, method := range s.asked {
				if method == string(mcp.MethodTasksGet) {
					waits = append(waits, s.at[i].Sub(begun)/time.Millisecond)
					begun = s.at[i]
				}
			}
			assert.Equal(t, test.waits, waits, name)
		})
	}
}

// A task for which nobody waits any more is cancelled, and what fails is told.
func TestTaskThatNobodyAwaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tasking{InProcessServer: mcptest.Server("s", mcptest.Echo("a", "")), created: `{"task":` + state("working", "") + `}`, states: []string{state("working", "")}}
		srv := started(t, config.Server{Name: "s", InProcess: s}, config.Limits{})
		defer srv.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := srv.Call(ctx, Tool{Name: "a", Task: true}, json.RawMessage("{}"))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		assert.Equal(t, string(mcp.MethodTasksCancel), s.asked[len(s.asked)-1])
		s.states, s.result = []string{state("failed", "")}, `5`
		_, err = srv.Call(t.Context(), Tool{Name: "a", Task: true}, json.RawMessage("{}"))
		assert.ErrorContains(t, err, "the task is failed: ")
		s.states = []string{`5`}
		_, err = srv.Call(t.Context(), Tool{Name: "a", Task: true}, json.RawMessage("{}"))
		assert.ErrorContains(t, err, "tasks/get: ")
	})
}

// The result of a call that becomes a task is kept as it came. One that asks for input is mcp-go's.
func TestResultOfATaskIsTaken(t *testing.T) {
	t.Parallel()
	response := func(result string) *transport.JSONRPCResponse {
		return &transport.JSONRPCResponse{Result: json.RawMessage(result)}
	}
	for name, test := range map[string]struct {
		method, result string
		asTask, taken  bool
	}{
		"call":          {"tools/call", `{"task":{}}`, true, true},
		"result":        {"tasks/result", `{"content":[]}`, true, true},
		"asks":          {"tools/call", `{"resultType":"input_required"}`, true, false},
		"other request": {"tasks/get", `{}`, true, false},
		"plain call":    {"tools/call", `{}`, false, false},
	} {
		ctx, into := t.Context(), new(taken)
		if test.asTask {
			ctx = context.WithValue(ctx, takenKey{}, into)
		}
		given := response(test.result)
		got := take(ctx, transport.JSONRPCRequest{Method: test.method}, given)
		assert.Equal(t, test.result, string(given.Result), name)
		if test.taken {
			assert.Equal(t, test.result, string(into.raw), name)
			assert.Equal(t, `{"content":[]}`, string(got.Result), name)
		} else {
			assert.Nil(t, into.raw, name)
			assert.Same(t, given, got, name)
		}
	}
}

// A call as a task that the server refuses is refused.
func TestTaskIsRefused(t *testing.T) {
	t.Parallel()
	srv := started(t, inProcess("s", mcptest.Echo("a", "")), config.Limits{})
	_, err := srv.Call(t.Context(), Tool{Name: "b", Task: true}, json.RawMessage("{}"))
	assert.ErrorContains(t, err, "b")
}
