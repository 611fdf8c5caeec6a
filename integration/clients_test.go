package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An office is a server in this process, with 60 tools. The schemas of the first one are such that clients
// refuse lists with it. The second one has a long answer that it promises to structure. The last two are the only ones that do something: one reads, the other writes.
type office struct {
	url string

	mu    sync.Mutex
	calls []string
}

const (
	weighTool, stampTool = "weigh_parcel", "stamp_letter"
	inventoryTool        = "boxes" // the first by name, so that it is inline
	inventoryItems       = 10_000
	weighed, stamped     = "the parcel weighs 4711 grams", "the letter has stamp 0815"
)

func startOffice(t *testing.T) *office {
	t.Helper()
	s := mcpserver.NewMCPServer("office", "1", mcpserver.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool(inventoryTool, mcp.WithDescription("Lists what is in the office"), mcp.WithReadOnlyHintAnnotation(true),
		mcp.WithRawOutputSchema(json.RawMessage(`{"type":"object","properties":{"items":{"type":"array","items":{"type":"string"}}},"required":["items"]}`))),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultStructuredOnly(map[string]any{"items": slices.Repeat([]string{"a box of envelopes"}, inventoryItems)}), nil
		})
	s.AddTool(mcp.NewToolWithRawSchema("awkward", "Has schemas that few can read", json.RawMessage(`{"type":"object","properties":{"any":true},"required":null}`)), nil)
	for i := range 56 {
		s.AddTool(mcp.NewTool(fmt.Sprintf("drawer_%02d", i), mcp.WithDescription(fmt.Sprintf("Opens drawer number %d", i)), mcp.WithReadOnlyHintAnnotation(true)),
			func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("it is empty"), nil
			})
	}
	o := &office{}
	note := func(answer string) mcpserver.ToolHandlerFunc {
		return func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.calls = append(o.calls, r.Params.Name+" "+jsonText(r.GetArguments()))
			return mcp.NewToolResultText(answer), nil
		}
	}
	s.AddTool(mcp.NewTool(weighTool, mcp.WithDescription("Weighs a parcel"), mcp.WithString("parcel", mcp.Required()), mcp.WithReadOnlyHintAnnotation(true),
		mcp.WithDestructiveHintAnnotation(false)), note(weighed))
	s.AddTool(mcp.NewTool(stampTool, mcp.WithDescription("Stamps a letter, which can't be undone"), mcp.WithString("letter", mcp.Required()),
		mcp.WithNumber("copies")), note(stamped))
	web := httptest.NewServer(mcpserver.NewStreamableHTTPServer(s))
	t.Cleanup(web.Close)
	o.url = web.URL + "/mcp"
	return o
}

func (o *office) called() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.calls)
}

// gatewayCommand is the command of a gateway over standard input and output that has
// nothing in its cache.
func gatewayCommand(t *testing.T, config string, flags ...string) []string {
	t.Helper()
	return append([]string{gatewayProgram(t), "gateway", "-config", config, "-cache", filepath.Join(t.TempDir(), "cache.json")}, flags...)
}

// call returns the call of the tool whose name ends so, if the model can.
func (now turn) call(end string, args map[string]any) (deed, bool) {
	bridge := -1
	for i, t := range now.tools {
		if strings.HasSuffix(t.name, end) {
			return deed{tool: t, args: args}, true
		}
		if t.name == "tool_call" {
			bridge = i
		}
	}
	// Qwen Code defers the tools of all servers. The model reads their names.
	name := regexp.MustCompile(`mcp__\w+__` + end + `\b`).FindString(strings.Join(now.texts, "\n"))
	if bridge < 0 || name == "" {
		return deed{}, false
	}
	return deed{tool: now.tools[bridge], args: map[string]any{"name": name, "arguments": args}}, true
}

// clerk is the script of the model: it searches for a tool, calls it in the way
// that there is, does so for another, and says what they answered.
func clerk(now turn) deed {
	use := func(bridge, target string, args map[string]any) deed {
		if do, ok := now.call(target, args); ok {
			return do
		}
		found := regexp.MustCompile(`mcp_\w+__` + target).FindString(strings.Join(now.results, "\n"))
		do, ok := now.call(bridge, map[string]any{"name": found, "arguments": args})
		if found == "" || !ok {
			return deed{say: fmt.Sprintf("there is no %s", target)}
		}
		return do
	}
	switch len(now.results) {
	case 0, 2:
		query := []string{"weigh a parcel", "stamp a letter"}[len(now.results)/2]
		if do, ok := now.call("mcp_tool_search", map[string]any{"query": query}); ok {
			return do
		}
		return deed{say: "there is no search"}
	case 1:
		return use("mcp_tool_call_readonly", weighTool, map[string]any{"parcel": "p1"})
	case 3:
		return use("mcp_tool_call", stampTool, map[string]any{"letter": "l1", "copies": 2})
	}
	return deed{say: "I got: " + now.results[1] + "; " + now.results[3]}
}

// follower is the script of a model that has only the search, and calls the tool that
// it found once that is in the list. It searches again until then, in other words: some
// agents stop a model that repeats itself.
func follower(now turn) deed {
	if slices.ContainsFunc(now.results, func(r string) bool { return strings.Contains(r, weighed) }) {
		return deed{say: "I got: " + weighed}
	}
	if do, ok := now.call(weighTool, map[string]any{"parcel": "p1"}); ok {
		return do
	}
	do, ok := now.call("mcp_tool_search", map[string]any{"query": fmt.Sprintf("weigh %d parcels", len(now.results)+1)})
	if !ok || len(now.results) == maxSearches {
		return deed{say: "there is no " + weighTool}
	}
	return do
}

// maxSearches is how often the follower searches. A client may need a moment to list
// the tools again.
const maxSearches = 25

// What an agent is found to do.
type habits struct {
	tools        int    // of the gateway that the model is offered at first
	name         string // under which the model knows mcp_tool_search
	instructions string // how much of the gateway's instructions reaches the model
	follows      string // what comes of tools/list_changed
	unasked      string // which tools run if nobody is asked and nothing was permitted
}

// row is the beginning of the agent's row in the README.
func (h habits) row(name, version string) string {
	tools := fmt.Sprint(h.tools)
	if h.tools == 0 {
		tools = "none"
	}
	return "| " + strings.Join([]string{name, version, "yes", "yes", tools, "`" + h.name + "`", h.instructions, h.follows, h.unasked}, " | ") + " |"
}

// Each agent searches and calls a deferred tool over stdio and HTTP. The README says
// what else it does.
func TestClients(t *testing.T) {
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			folder := a.install(t)
			var h habits
			t.Run("stdio", func(t *testing.T) { h.works(t, a, folder, "stdio") })
			t.Run("http", func(t *testing.T) { h.works(t, a, folder, "http") })
			if t.Failed() {
				return
			}
			t.Run("following", func(t *testing.T) {
				o, _, err := a.visit(t, agentRun{folder: folder, permitted: true}, follower, "-follow", "*")
				require.NoError(t, err)
				h.follows = []string{"no", "yes"}[len(o.called())]
			})
			t.Run("unasked", func(t *testing.T) {
				// An error says no more than what was called.
				o, _, _ := a.visit(t, agentRun{folder: folder}, clerk)
				h.unasked = []string{"none", "those that only read", "all"}[len(o.called())]
			})
			if row := h.row(a.name, a.version(t)); !strings.Contains(read("README.md"), row) {
				t.Errorf("the README must have the row\n%s", row)
			}
		})
	}
}

// runs runs the agent, and waits until what it has started has ended: Codex leaves a shell
// behind for a moment.
func (a agent) runs(t *testing.T, r agentRun) (output string, err error) {
	t.Helper()
	before := processes()
	output, err = a.run(t, r)
	assert.Eventually(t, func() bool {
		return !slices.ContainsFunc(processes(), func(p process) bool {
			return !slices.ContainsFunc(before, func(other process) bool { return other.pid == p.pid })
		})
	}, 30*time.Second, 50*time.Millisecond, "processes left by the agent")
	return output, err
}

// visit runs an agent with a gateway over stdio, an office and a script.
func (a agent) visit(t *testing.T, r agentRun, script func(turn) deed, flags ...string) (*office, *model, error) {
	t.Helper()
	o, m := startOffice(t), startModel(t, script)
	r.model, r.stdio = m.URL, gatewayCommand(t, writeConfig(t, server{name: "office", URL: o.url}), flags...)
	_, err := a.runs(t, r)
	return o, m, err
}

// works has the agent work as a clerk, and notes what its model sees.
func (h *habits) works(t *testing.T, a agent, folder, kind string) {
	t.Helper()
	o, m := startOffice(t), startModel(t, clerk)
	r := agentRun{folder: folder, model: m.URL, permitted: true}
	config := writeConfig(t, server{name: "office", URL: o.url})
	instructions := ""
	if kind == "http" {
		r.url = startGateway(t, config)
		hello := gatewayConnect(t, gatewayHTTP(t, r.url), gatewayGenerations[0])
		_, err := hello.ListTools(t.Context(), mcp.ListToolsRequest{}) // when all has started
		require.NoError(t, err)
		instructions = gatewayConnect(t, gatewayHTTP(t, r.url), gatewayGenerations[0]).instructions
		require.Contains(t, instructions, "mcp_tool_search")
	} else {
		r.stdio = gatewayCommand(t, config)
	}
	output, err := a.runs(t, r)
	require.NoError(t, err)
	assert.Equal(t, []string{weighTool + ` {"parcel":"p1"}`, stampTool + ` {"copies":2,"letter":"l1"}`}, o.called())
	assert.Contains(t, output, weighed)
	assert.Contains(t, output, stamped)
	assert.NotContains(t, output, "resultType", "what the server says to the gateway alone")
	turns := m.asked()
	require.GreaterOrEqual(t, len(turns), 5)
	h.see(t, turns[0])
	if kind == "http" {
		h.instructions = reached(instructions, turns[0])
	}
	t.Logf("hosts that it asked for, which were refused: %q", m.refused())
}

// see notes what the first turn offers.
func (h *habits) see(t *testing.T, now turn) {
	t.Helper()
	h.tools = 0
	for _, tool := range now.tools {
		if strings.Contains(tool.name, "mcp_office__") || strings.Contains(tool.name, "mcp_tool_") {
			h.tools++
		}
	}
	do, ok := now.call("mcp_tool_search", nil)
	require.True(t, ok)
	h.name = strings.TrimPrefix(do.tool.space+"."+do.tool.name, ".")
	if h.tools == 0 {
		h.name = do.args["name"].(string)
	}
}

// reached tells whether the model sees a text to its end.
func reached(text string, now turn) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	sees := strings.Join(now.texts, "\n")
	switch {
	case strings.Contains(sees, lines[len(lines)-1]):
		return "yes"
	case strings.Contains(sees, lines[0]):
		return "cut"
	}
	return "no"
}
