package main

import (
	"bytes"
	"context"
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
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
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
func runDemo(t *testing.T, name, baseURL string, flags ...string) (string, error) {
	var out bytes.Buffer
	args := append(flags, "-provider", name, "-base-url", baseURL, "-deny", strings.Join(demoAccess.Deny, ","), "-context", fmt.Sprint(demoLimit), "--")
	err := run(t.Context(), append(args, demoMessages()...), &out, &out)
	return out.String(), err
}

// sorted returns the lines of a text in their order: those of calls at once come as they may.
func sorted(text string) []string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return lines
}

func TestDemo(t *testing.T) {
	require.GreaterOrEqual(t, len(demo), 30)
	each(t, func(t *testing.T, name string) {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), []string{"-provider", name}, &out, &out))
		for _, want := range []string{
			"\nI'll write that down.\n→ mcp_notes__put_note ",
			"\n! mcphybrid: tool \"mcp_notes__delete_note\": not permitted\n",
			"\n! mcphybrid: bad arguments for \"mcp_units__kilograms_to_pounds\": ",
			" 26.46\n26.46 pounds.\n\n> ",
			"\n(1001 tokens: the conversation is summarized)\nA hike of 14 km ",
			"\nFour days before the hike. Have a good one!\n",
		} {
			assert.Contains(t, out.String(), want)
		}
	})
}

// A model that takes no tools in the conversation calls them by one that is always there.
func TestOldModel(t *testing.T) {
	s := newScript(bridged(demo)...)
	out, err := runDemo(t, "anthropic", host(t, s), "-model", "claude-opus-4-1")
	require.NoError(t, s.End())
	require.NoError(t, err)
	assert.Contains(t, out, `→ mcp_tool_call {"name":"mcp_calendar__day_of_week",`)
}

// A run that skips a part of the script fails.
func TestScriptEnd(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		s := newScript(demoOf(name)...)
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), []string{"-provider", name, "-base-url", host(t, s), "-deny", demoAccess.Deny[0], demoMessages()[0]}, &out, &out))
		assert.EqualError(t, s.End(), fmt.Sprintf("the script is at step 3 of %d", len(demo)))

		s = newScript(demoOf(name)...)
		require.ErrorContains(t, run(t.Context(), []string{"-provider", name, "-base-url", host(t, s), "-deny", demoAccess.Deny[0], "something else"}, &out, &out), "step 1: the user's message is")
		assert.ErrorContains(t, s.End(), "step 1: the user's message is")
	})
}

func TestFlags(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		tests := []struct {
			args []string
			want string
		}{
			{[]string{"-provider", "none"}, `there is no provider "none"`},
			{[]string{"-provider", name, "hello"}, providers[name].variables + "_API_KEY is not set"},
			{[]string{"-provider", name, "-config", "mcp.json"}, providers[name].variables + "_API_KEY is not set"},
			{[]string{"-provider", name, "-base-url", "http://127.0.0.1:1"}, "what is the message?"},
			{[]string{"-provider", name, "-base-url", "http://127.0.0.1:1", "-config", "nowhere.json", "hello"}, "nowhere.json"},
		}
		for _, test := range tests {
			var out bytes.Buffer
			assert.ErrorContains(t, run(t.Context(), test.args, &out, &out), test.want)
		}
		set, err := parse([]string{"-provider", name, "-base-url", "http://127.0.0.1:1", "-deny", "a, b_* ,", "hello"}, io.Discard)
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b_*"}, set.access.Deny)
	})
}

// The endpoint gets the key, the model, and the tools with their members in
// order.
func TestEndpoint(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		tools := []string{"mcp_t__a", mcphybrid.PageToolName}
		s := newScript(modeltest.Step{User: "hello", Tools: tools, Say: "hi"})
		var key, body string
		url := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			key = r.Header.Get("Authorization") + r.Header.Get("X-Api-Key")
			data, _ := io.ReadAll(r.Body)
			body = string(data)
			r.Body = io.NopCloser(bytes.NewReader(data))
			s.ServeHTTP(w, r)
		}))
		schema := `{"type":"object","properties":{"z":{"type":"number","maximum":1.50,"description":"é"},"a":{"type":"string"}}}`
		a, out := newAgent(t, name, url, server.ServerTool{Tool: mcp.NewToolWithRawSchema("a", "", []byte(schema))})
		a.begin = func() conversation { return providers[name].begin(a, endpoint{"secret", url, "some-model"}) }
		require.NoError(t, a.converse(t.Context(), []string{"hello"}))
		assert.Equal(t, "\n> hello\nhi\n", out.String())
		assert.Contains(t, body, schema)
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
		s := newScript(
			modeltest.Step{User: "meet", Tools: listed(name, "mcp_t__left", "mcp_t__right"), Calls: []modeltest.Call{{Name: "mcp_t__right", Arguments: "{}"}, {Name: "mcp_t__left", Arguments: "{}"}}},
			modeltest.Step{Results: []string{"right has met left", "left has met right"}, Say: "done"},
		)
		a, _ := newAgent(t, name, host(t, s), meet("left", "right"), meet("right", "left"))
		require.NoError(t, a.converse(t.Context(), []string{"meet"}))
		require.NoError(t, s.End())
	})
}

func newAgent(t testing.TB, name, baseURL string, tools ...server.ServerTool) (*agent, *bytes.Buffer) {
	mgr := mcphybrid.NewManager(nil)
	t.Cleanup(func() { mgr.Close() })
	if tools != nil {
		require.NoError(t, mgr.AddTools("t", tools...))
	}
	out := new(bytes.Buffer)
	a := &agent{sess: mgr.NewSession(nil), limit: 1 << 30, out: out}
	a.begin = func() conversation { return providers[name].begin(a, endpoint{url: baseURL}) }
	return a, out
}

// answers returns a model that gives these answers, and then the last one again and again.
func answers(list ...modeltest.Step) modeltest.Model {
	return func(_ modeltest.Request, err error) (modeltest.Step, error) {
		answer := list[0]
		if len(list) > 1 {
			list = list[1:]
		}
		return answer, err
	}
}

// The agent stops a model that calls tools for ever.
func TestMaxRequests(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		requests := 0
		a, _ := newAgent(t, name, host(t, modeltest.Model(func(_ modeltest.Request, err error) (modeltest.Step, error) {
			requests++
			return modeltest.Step{Calls: []modeltest.Call{{ID: fmt.Sprint("id", requests), Name: "mcp_nothing", Arguments: "{}"}}}, err
		})))
		want := map[string]string{"openai": "called tools in 50 requests in a row", "anthropic": `it ended with "tool_use"`}[name]
		require.ErrorContains(t, a.converse(t.Context(), []string{"go"}), want)
		assert.Equal(t, maxRequests, requests)
	})
}

func TestPrintable(t *testing.T) {
	var out bytes.Buffer
	a := &agent{out: &out}
	a.say("a\x1b[2J\tb\r\nc\u009b\x7f é水")
	a.line("\x1b→")
	assert.Equal(t, "a[2J\tb\nc é水\n→\n", out.String())
}

// listed returns what the list of tools has if the session has only these: a model that takes
// no tools in the conversation gets the one that reads on from the start.
func listed(provider string, tools ...string) []string {
	if provider == "openai" {
		tools = append(tools, mcphybrid.PageToolName)
	}
	return tools
}
