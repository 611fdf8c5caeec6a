package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var names = []string{"openai", "anthropic"}

// each runs a test for each provider, with no key and no endpoint in the
// environment.
func each(t *testing.T, test func(t *testing.T, name string)) {
	for _, variable := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN"} {
		t.Setenv(variable, "")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { test(t, name) })
	}
}

// host serves h on loopback.
func host(t testing.TB, h http.Handler) string {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL + "/"
}

// runDemo runs the demo's conversation with an endpoint.
func runDemo(t *testing.T, name, baseURL string) (string, error) {
	var out bytes.Buffer
	args := []string{"-provider", name, "-base-url", baseURL, "-deny", strings.Join(demoAccess.Deny, ","), "-context", fmt.Sprint(demoLimit), "--"}
	err := run(t.Context(), append(args, newScript(demo).messages()...), &out, &out)
	return out.String(), err
}

func TestDemo(t *testing.T) {
	require.GreaterOrEqual(t, len(demo), 30)
	var outs []string
	each(t, func(t *testing.T, name string) {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), []string{"-provider", name}, &out, &out))
		for _, want := range []string{
			"→ mcp_tool_search ",
			"\n! mcphybrid: tool \"mcp_notes__delete_note\": not permitted\n",
			"\n! mcphybrid: bad arguments for \"mcp_units__kilograms_to_pounds\": ",
			"\n→ mcp_units__kilograms_to_pounds {\"value\":12}\n← 26.46\n",
			"\nFour days before the hike. Have a good one!\n",
		} {
			assert.Contains(t, out.String(), want)
		}
		outs = append(outs, out.String())
	})
	assert.Equal(t, outs[0], outs[1], "the providers differ")
}

// The script decides whether the loop is right, so it must refuse wrong
// requests.
func TestScriptRefuses(t *testing.T) {
	tool := func(name string) []byte { return []byte(`{"name":"` + name + `"}`) }
	right := func() sent {
		return sent{system: "be good", turns: []turn{
			{user: "hello"},
			{calls: []call{{"call_1_1", "a", `{"x":1}`}, {"call_1_2", "b", `{}`}}},
			{results: []told{{"call_1_1", "one", false}, {"call_1_2", "not so", true}}},
		}, tools: toRaw(tool("a"), tool("b"), tool("c"))}
	}
	tests := []struct {
		name, want string
		change     func(*sent)
	}{
		{"right", "", func(*sent) {}},
		{"system", "the system prompt is not what it was", func(s *sent) { s.system += " " }},
		{"tool lost", "has lost 1", func(s *sent) { s.tools = s.tools[:1] }},
		{"tool changed", "tool 2 is not what it was", func(s *sent) { s.tools[1] = []byte(`{"name": "b"}`) }},
		{"tool before", "tool 1 is not what it was", func(s *sent) { s.tools = slices.Insert(s.tools, 0, s.tools[2]) }},
		{"no new tool", "has grown by []", func(s *sent) { s.tools = s.tools[:2] }},
		{"one more tool", `has grown by ["c" "c"]`, func(s *sent) { s.tools = append(s.tools, s.tools[2]) }},
		{"question changed", "turn 1 is not what it was", func(s *sent) { s.turns[0].user = "Hello" }},
		{"arguments changed", "turn 2 is not what it was", func(s *sent) { s.turns[1].calls[0].arguments = `{"x":2}` }},
		{"turn lost", "has 2 turns, want 3", func(s *sent) { s.turns = s.turns[1:] }},
		{"result lost", "1 results, and 2 in the script, for 2 calls", func(s *sent) { s.turns[2].results = s.turns[2].results[:1] }},
		{"results crossed", `result 1 is for "call_1_2", want "call_1_1"`, func(s *sent) { slices.Reverse(s.turns[2].results) }},
		{"error not marked", "result 2 is marked as an error: false, want true", func(s *sent) { s.turns[2].results[1].isError = false }},
		{"result marked", "result 1 is marked as an error: true, want false", func(s *sent) { s.turns[2].results[0].isError = true }},
		{"result changed", `want "one" in it`, func(s *sent) { s.turns[2].results[0].text = "two" }},
		{"message", `the user's message is "and", want ""`, func(s *sent) { s.turns[2].user = "and" }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			was := right()
			s := newScript(nil)
			s.next, s.said, s.last = 1, was.turns[:2], sent{system: was.system, tools: was.tools[:2]}
			got := right()
			test.change(&got)
			err := s.check(step{results: []string{"one", "!not"}, tools: []string{"c"}}, got)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
}

func toRaw(tools ...[]byte) (list []json.RawMessage) {
	for _, t := range tools {
		list = append(list, t)
	}
	return list
}

// The script refuses what a provider would refuse.
func TestReadRefuses(t *testing.T) {
	tests := []struct{ path, body, want string }{
		{"/chat/completions", `{"model":"m","messages":[{"role":"system","content":"s"}]}`, "a stream"},
		{"/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"s"}]}`, "a system prompt first"},
		{"/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"system","content":"s"},{"role":"tool","tool_call_id":"1"}]}`, `"1", which is not asked for`},
		{"/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"system","content":"s"},{"role":"assistant","tool_calls":[{"id":"1","type":"function"}]},{"role":"user","content":"x"}]}`, "calls without a result: map[1:true]"},
		{"/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"system","content":"s"},{"role":"assistant","tool_calls":[{"id":"1","type":"function"}]}]}`, "calls without a result"},
		{"/v1/messages", `{"model":"m","stream":true,"system":[{"text":"s"}]}`, "max_tokens"},
		{"/v1/messages", `{"model":"m","stream":true,"max_tokens":1,"system":[{"text":"s"}],"messages":[{"role":"assistant","content":[{"type":"text"}]}]}`, "not the other side's"},
		{"/v1/messages", `{"model":"m","stream":true,"max_tokens":1,"system":[{"text":"s"}],"messages":[{"role":"user","content":[{"type":"text"}]},{"role":"assistant","content":[{"type":"tool_use","id":"1","input":{}}]},{"role":"user","content":[{"type":"text"}]}]}`, "results for [], want [1]"},
		{"/v1/messages", `{"model":"m","stream":true,"max_tokens":1,"system":[{"text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]}`, "is not one text"},
	}
	for _, test := range tests {
		_, err := wires["POST "+test.path].read([]byte(test.body))
		assert.ErrorContains(t, err, test.want, test.body)
	}
}

// A run that skips a part of the script fails.
func TestScriptEnd(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		s := newScript(demo)
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), []string{"-provider", name, "-base-url", host(t, s), "-deny", demoAccess.Deny[0], newScript(demo).messages()[0]}, &out, &out))
		assert.EqualError(t, s.end(), fmt.Sprintf("the script is at step 3 of %d", len(demo)))

		s = newScript(demo)
		require.ErrorContains(t, run(t.Context(), []string{"-provider", name, "-base-url", host(t, s), "-deny", demoAccess.Deny[0], "something else"}, &out, &out), "step 1: the user's message is")
		assert.ErrorContains(t, s.end(), "step 1: the user's message is")
	})
}

func TestFlags(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		tests := []struct {
			args []string
			want string
		}{
			{[]string{"-provider", "none"}, `there is no provider "none"`},
			{[]string{"-provider", name, "hello"}, providers[name].key + " is not set"},
			{[]string{"-provider", name, "-config", "mcp.json"}, providers[name].key + " is not set"},
			{[]string{"-provider", name, "-base-url", "http://127.0.0.1:1"}, "what is the message?"},
			{[]string{"-provider", name, "-base-url", "http://127.0.0.1:1", "-config", "nowhere.json", "hello"}, "nowhere.json"},
		}
		for _, test := range tests {
			var out bytes.Buffer
			assert.ErrorContains(t, run(t.Context(), test.args, &out, &out), test.want)
		}
	})
}

// The endpoint gets the key, the model, and the tools with their members in
// order.
func TestEndpoint(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		s := newScript([]step{{user: "hello", say: "hi"}})
		var key, body string
		url := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			key = r.Header.Get("Authorization") + r.Header.Get("X-Api-Key")
			data, _ := io.ReadAll(r.Body)
			body = string(data)
			r.Body = io.NopCloser(bytes.NewReader(data))
			s.ServeHTTP(w, r)
		}))
		m := providers[name].begin(endpoint{"secret", url, "some-model"})
		tool := `{"name":"a","input_schema":{"type":"object","properties":{"z":{"maximum":1.50,"description":"é"},"a":{}}}}`
		s.steps[0].tools = []string{"a"}
		got, err := m.answer(t.Context(), request{system: "s", message: "hello", tools: []mcphybrid.ExportedTool{{JSON: []byte(tool)}}}, func(string) {})
		require.NoError(t, err)
		assert.Equal(t, "hi", got.text)
		assert.Contains(t, body, `"tools":[`+tool+`]`)
		assert.Contains(t, []string{"Bearer secret", "secret"}, key)
		assert.Contains(t, body, `"model":"some-model"`)
	})
}

// The calls of one answer run concurrently, and their results keep the order of
// the calls.
func TestParallelCalls(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		here := map[string]chan struct{}{"left": make(chan struct{}), "right": make(chan struct{})}
		meet := func(me, other string) server.ServerTool {
			return server.ServerTool{Tool: mcp.NewTool(me), Handler: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				close(here[me])
				select {
				case <-here[other]:
					return mcp.NewToolResultText(me + " has met " + other), nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}}
		}
		mgr := mcphybrid.NewManager(nil)
		defer mgr.Close()
		require.NoError(t, mgr.AddTools("t", meet("left", "right"), meet("right", "left")))
		s := newScript([]step{
			{user: "meet", tools: []string{"mcp_t__left", "mcp_t__right"}, calls: []call{{name: "mcp_t__right", arguments: "{}"}, {name: "mcp_t__left", arguments: "{}"}}},
			{results: []string{"right has met left", "left has met right"}, say: "done"},
		})
		a, _ := newAgent(mgr, name, host(t, s))
		require.NoError(t, a.converse(t.Context(), []string{"meet"}))
		require.NoError(t, s.end())
	})
}

func newAgent(mgr *mcphybrid.Manager, name, baseURL string) (*agent, *bytes.Buffer) {
	out := new(bytes.Buffer)
	p := providers[name]
	return &agent{
		sess:   mgr.NewSession(nil),
		format: p.format,
		begin:  func() model { return p.begin(endpoint{"key", baseURL, ""}) },
		limit:  1 << 30,
		out:    out,
	}, out
}

// The agent stops a model that calls tools for ever.
func TestMaxRequests(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		requests := 0
		url := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			serveStep(w, r, step{calls: []call{{fmt.Sprint("id", requests), "mcp_nothing", "{}"}}})
		}))
		mgr := mcphybrid.NewManager(nil)
		defer mgr.Close()
		a, _ := newAgent(mgr, name, url)
		require.ErrorContains(t, a.converse(t.Context(), []string{"go"}), "50 times in a row")
		assert.Equal(t, maxRequests, requests)
	})
}

// serveStep answers every request as the step says.
func serveStep(w http.ResponseWriter, r *http.Request, st step) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range wires[r.Method+" "+r.URL.Path].write(st) {
		_, _ = w.Write([]byte(e))
	}
}

func TestPrint(t *testing.T) {
	var out bytes.Buffer
	(&agent{out: &out}).print("a\x1b[2J\tb\r\nc\u009b\x7f é水")
	assert.Equal(t, "a[2J\tb\nc é水", out.String())
}
