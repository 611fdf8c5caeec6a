package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/internal/golden"
)

// A desk is a broker and all that can be seen of it: what a server asks, whom a hook hears of,
// what the server is answered, and what is logged.
type desk struct {
	*Broker
	t      *testing.T
	handle transport.RequestHandler

	mu   sync.Mutex
	b    strings.Builder
	last int               // request
	ids  map[string]string // names of tasks
}

func (d *desk) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(&d.b, format+"\n", args...)
}

func (d *desk) Write(line []byte) (int, error) {
	d.say("    log: %s", strings.TrimSpace(string(line)))
	return len(line), nil
}

// client is the handler of mcp-go's client.
func (d *desk) client(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	time.Sleep(time.Millisecond) // so that a task begins after the answer that there is one
	raw, err := json.Marshal(r.Params)
	require.NoError(d.t, err)
	var got any
	switch mcp.MCPMethod(r.Method) {
	case mcp.MethodElicitationCreate:
		var p mcp.ElicitationParams
		require.NoError(d.t, json.Unmarshal(raw, &p))
		got, err = d.Elicit(ctx, mcp.ElicitationRequest{Params: p})
	case mcp.MethodSamplingCreateMessage:
		var p mcp.CreateMessageParams
		require.NoError(d.t, json.Unmarshal(raw, &p))
		got, err = d.CreateMessage(ctx, mcp.CreateMessageRequest{CreateMessageParams: p})
	case mcp.MethodListRoots:
		got, err = d.ListRoots(ctx, mcp.ListRootsRequest{})
	default:
		got = struct{}{}
	}
	if err != nil {
		return nil, err
	}
	return result(r.ID, got), nil
}

// asks has the server send a request, and returns the answer.
func (d *desk) asks(ctx context.Context, method mcp.MCPMethod, params string) (answer string) {
	d.mu.Lock()
	d.last++
	r := transport.JSONRPCRequest{ID: mcp.NewRequestId(int64(d.last)), Method: string(method)}
	d.mu.Unlock()
	if params != "" {
		r.Params = json.RawMessage(params)
	}
	short := params
	if len(short) > 200 {
		short = fmt.Sprintf("%s… %d bytes", short[:60], len(short))
	}
	d.say("> %v %s %s", r.ID.Value(), method, d.named(short))
	return d.sends(ctx, r)
}

// sends does that with this request.
func (d *desk) sends(ctx context.Context, r transport.JSONRPCRequest) (answer string) {
	response, err := d.handle(ctx, r)
	require.NoError(d.t, err)
	raw, err := json.Marshal(response)
	require.NoError(d.t, err)
	var task struct {
		Result struct{ Task struct{ TaskID string } }
	}
	if json.Unmarshal(raw, &task) == nil && task.Result.Task.TaskID != "" {
		answer = task.Result.Task.TaskID
		if d.ids[answer] == "" {
			d.ids[answer] = fmt.Sprintf("<task %d>", len(d.ids)+1)
		}
	}
	d.say("  < %s", d.named(string(raw)))
	return answer
}

func (d *desk) named(text string) string {
	for _, id := range slices.Sorted(maps.Keys(d.ids)) {
		text = strings.ReplaceAll(text, id, d.ids[id])
	}
	return text
}

func newGolden(t *testing.T, change func(*Config)) *desk {
	d := &desk{t: t, ids: make(map[string]string)}
	cfg := Config{Server: "srv", User: "owner", Log: slog.New(slog.NewTextHandler(d, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), Options: ask.Options{Timeout: time.Minute, MaxPerCall: 100, MaxAtOnce: 3, MaxBytes: 500}}
	heard := func(ctx context.Context, from ask.Asker, what string, params any) {
		raw, err := json.Marshal(params)
		require.NoError(t, err)
		left := "no time limit"
		if end, ok := ctx.Deadline(); ok {
			left = time.Until(end).String()
		}
		in, ok := InputOf(ctx)
		d.say("    %s hears of %+v, with %s: %s%s", what, from, left, raw, map[bool]string{true: ", as input " + in.Name}[ok])
	}
	cfg.Hooks = ask.Hooks{
		Elicit: func(ctx context.Context, from ask.Asker, p mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			heard(ctx, from, "Elicit", p)
			switch p.Message {
			case "decline":
				return nil, fmt.Errorf("not now: %w", ask.ErrDeclined)
			case "fail":
				return nil, errors.New("no terminal")
			case "nothing":
				return nil, nil
			case "panic":
				panic("oops")
			case "wait":
				<-ctx.Done()
				return nil, ctx.Err()
			case "slow":
				time.Sleep(10 * time.Second)
			}
			var answer *mcp.ElicitationResult
			_ = json.Unmarshal([]byte(p.Message), &answer)
			if answer == nil {
				answer = elicited(mcp.ElicitationResponseActionAccept, map[string]any{"a": "x"})
			}
			return answer, nil
		},
		Sample: func(ctx context.Context, from ask.Asker, p mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			heard(ctx, from, "Sample", p)
			switch p.SystemPrompt {
			case "nothing":
				return nil, nil
			case "empty":
				return &mcp.CreateMessageResult{Model: "m"}, nil
			case "decline":
				return nil, ask.ErrDeclined
			}
			r := &mcp.CreateMessageResult{Model: "m", StopReason: "endTurn"}
			r.Content = mcp.NewTextContent("hi")
			if p.SystemPrompt == "user" {
				r.Role = mcp.RoleUser
			}
			return r, nil
		},
		Roots: func(ctx context.Context, from ask.Asker) ([]mcp.Root, error) {
			heard(ctx, from, "Roots", nil)
			return []mcp.Root{{URI: "file:///project", Name: "project"}}, nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	d.Broker = New(cfg)
	d.handle = d.Handle(d.client)
	t.Cleanup(d.Close)
	return d
}

// What a server may ask, who hears of it, and what it is answered.
func TestGoldenQuestions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newGolden(t, nil)
		d.say("What a server asks stands after >, and what it is answered after <; in between, what the hooks hear.")
		ctx := t.Context()
		can, err := json.Marshal(d.Capabilities())
		require.NoError(t, err)
		d.say("it can %s", can)
		form := func(message string) string {
			return fmt.Sprintf(`{"message":%q,"requestedSchema":{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer","minimum":1}},"required":["a"]}}`, message)
		}
		for _, message := range []string{
			"", "decline", "fail", "nothing", "panic", "wait", "slow", `{"action":"decline","content":{"a":"x"}}`, `{"action":"cancel"}`, `{"action":"other\n"}`, `{"action":"accept"}`,
			`{"action":"accept","content":{"a":"x","n":1}}`, `{"action":"accept","content":{"a":"x","n":0}}`, `{"action":"accept","content":{"n":1}}`, `{"action":"accept","content":5}`,
		} {
			d.asks(ctx, mcp.MethodElicitationCreate, form(message))
		}
		for _, params := range []string{
			"", "null", "5", "{", `{"message":"no form"}`, `{"mode":"url","message":"","url":"https://h.example/a"}`, `{"mode":"url","message":"decline","url":"https://h.example/a"}`, `{"mode":"url","message":"","url":"http://h.example/a"}`,
			`{"mode":"url","message":"","url":"http://127.0.0.1:1/a"}`, `{"mode":"url","message":"","url":"https://ann@h.example"}`, `{"mode":"url","message":"{\"action\":\"accept\",\"content\":{\"a\":1}}","url":"https://h.example"}`,
			`{"message":"` + strings.Repeat("x", 500-14) + `"}`, `{"message":"` + strings.Repeat("x", 500-13) + `"}`,
		} {
			if json.Valid([]byte(params)) || params == "" {
				d.asks(ctx, mcp.MethodElicitationCreate, params)
			}
		}
		message := func(system, more string) string {
			return fmt.Sprintf(`{"systemPrompt":%q,"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"q"}}]%s}`, system, more)
		}
		for _, params := range []string{
			message("", ""), message("user", ""), message("nothing", ""), message("empty", ""), message("decline", ""), message("", `,"tools":[{"name":"t","inputSchema":{"type":"object"}}]`), message("", `,"toolChoice":{"mode":"auto"}`),
			`{"messages":[{"role":"user","content":{"type":"odd"}}]}`, `{"messages":[]}`,
		} {
			d.asks(ctx, mcp.MethodSamplingCreateMessage, params)
		}
		d.asks(ctx, mcp.MethodListRoots, "")
		d.asks(ctx, mcp.MethodPing, "")
		d.asks(ctx, "tools/list", "")
		d.asks(ctx, mcp.MethodTasksGet, `{"taskId":"none"}`)
		d.asks(ctx, mcp.MethodListRoots, `{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"gone"}}}`)

		d.say("a call is under way, which is held while somebody is asked")
		call, end := d.Begin(ctx, "tool-1")
		d.asks(ctx, mcp.MethodElicitationCreate, form(""))
		d.asks(call, mcp.MethodElicitationCreate, form(""))
		SetInputs(call, mcp.InputRequests{
			"second": {Method: mcp.MethodListRoots}, "first": {Method: mcp.MethodListRoots},
			"form": {Method: mcp.MethodElicitationCreate, Elicitation: &mcp.ElicitationParams{Message: "decline", Mode: mcp.ElicitationModeURL, URL: "https://h.example"}},
		})
		for range 3 {
			d.asks(call, mcp.MethodListRoots, "")
		}
		d.asks(call, mcp.MethodElicitationCreate, `{"mode":"url","message":"decline","url":"https://h.example"}`)
		end(false)
		d.asks(call, mcp.MethodListRoots, "")
		d.asks(ctx, mcp.MethodListRoots, "")

		d.say("as tasks")
		task := func(message string) string {
			return strings.TrimSuffix(form(message), "}") + `,"task":{"ttl":1000}}`
		}
		one := d.asks(ctx, mcp.MethodElicitationCreate, task("slow"))
		d.asks(ctx, mcp.MethodTasksGet, fmt.Sprintf(`{"taskId":%q}`, one))
		d.asks(ctx, mcp.MethodTasksResult, fmt.Sprintf(`{"taskId":%q}`, one))
		d.asks(ctx, mcp.MethodTasksGet, fmt.Sprintf(`{"taskId":%q}`, one))
		d.asks(ctx, mcp.MethodTasksCancel, fmt.Sprintf(`{"taskId":%q}`, one))
		two := d.asks(ctx, mcp.MethodElicitationCreate, task("wait"))
		time.Sleep(time.Second)
		d.asks(ctx, mcp.MethodTasksCancel, fmt.Sprintf(`{"taskId":%q}`, two))
		d.asks(ctx, mcp.MethodTasksResult, fmt.Sprintf(`{"taskId":%q}`, two))
		three := d.asks(ctx, mcp.MethodElicitationCreate, task("fail"))
		time.Sleep(time.Second)
		d.asks(ctx, mcp.MethodTasksGet, fmt.Sprintf(`{"taskId":%q}`, three))
		d.asks(ctx, mcp.MethodTasksResult, fmt.Sprintf(`{"taskId":%q}`, three))
		four := d.asks(ctx, mcp.MethodSamplingCreateMessage, message("decline", `,"task":{}`))
		time.Sleep(time.Second)
		d.asks(ctx, mcp.MethodTasksResult, fmt.Sprintf(`{"taskId":%q}`, four))
		d.asks(ctx, mcp.MethodListRoots, `{"task":{}}`)

		d.say("withdrawn, and closed")
		begun := time.Now()
		withdraw := func(id any) {
			d.Withdraw(mcp.JSONRPCNotification{Notification: mcp.Notification{Params: mcp.NotificationParams{AdditionalFields: map[string]any{"requestId": id}}}})
		}
		next := d.last + 1
		go func() { time.Sleep(time.Second); withdraw("none"); withdraw(nil); withdraw(next) }()
		d.asks(ctx, mcp.MethodElicitationCreate, form("wait"))
		five := d.asks(ctx, mcp.MethodElicitationCreate, task("wait"))
		waits := d.last + 1
		go func() { time.Sleep(time.Second); withdraw(waits) }()
		d.asks(ctx, mcp.MethodTasksResult, fmt.Sprintf(`{"taskId":%q}`, five))
		d.asks(ctx, mcp.MethodTasksGet, fmt.Sprintf(`{"taskId":%q}`, five))
		d.asks(ctx, mcp.MethodTasksCancel, fmt.Sprintf(`{"taskId":%q}`, five))
		go func() { time.Sleep(time.Second); withdraw(map[string]any{}); time.Sleep(time.Second); withdraw(nil) }()
		d.sends(ctx, transport.JSONRPCRequest{Method: string(mcp.MethodElicitationCreate), Params: json.RawMessage(form("wait"))})
		d.say("  after %v", time.Since(begun))
		go func() { time.Sleep(time.Second); d.Close() }()
		d.asks(ctx, mcp.MethodElicitationCreate, form("wait"))
		d.asks(ctx, mcp.MethodListRoots, "")
		golden.Compare(t, "questions.golden", d.b.String())
	})
}
