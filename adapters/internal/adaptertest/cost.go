package adaptertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The task: one call of a tool that is not inline.
const (
	task          = "How clean is the air in Lyon?"
	taskQuery     = "air quality in a city"
	taskTool      = "mcp_skycast__get_air_quality"
	taskNamespace = "mcp_skycast"
	taskArgument  = `{"location":"Lyon"}`
	taskResult    = `{"aqi":38,"dominant":"pm25"}`
)

// Cost logs what one task costs in a runtime with the tools of ten servers, and tests that
// docs/runtimes.md says the same: a row of a table for each disclosure, and one for a session that may not search, whose tools are all
// inline. The first figure is the first request, the second the sum of all; both in tokens
// of 4 bytes, of what the model reads. The third is the number of requests.
func Cost(t *testing.T, name string, r Runtime, disclosures ...mcphybrid.Disclosure) {
	servers := corpus(t)
	all := spend(t, r, servers, &mcphybrid.SessionOptions{Access: mcphybrid.Access{Deny: []string{mcphybrid.SearchToolName}}})
	rows := row(name, "none", all)
	for _, d := range disclosures {
		c := spend(t, r, servers, &mcphybrid.SessionOptions{Disclosure: d})
		require.Less(t, c.first, all.first)
		rows += row(name, disclosureName(d), c)
	}
	t.Log("\n" + rows)
	assert.Equal(t, documented(t, name), rows, "docs/runtimes.md has other figures")
}

func disclosureName(d mcphybrid.Disclosure) string {
	name := d.String()
	return "`By" + strings.ToUpper(name[:1]) + name[1:] + "`"
}

type cost struct{ first, sum, requests int }

func row(name, disclosure string, c cost) string {
	return fmt.Sprintf("| %s | %s | %d | %d | %d |\n", name, disclosure, c.first, c.sum, c.requests)
}

// corpusTools is how many tools the servers of corpus have.
const corpusTools = 121

// corpus returns the first servers of the repository's corpus of tools.
func corpus(t *testing.T) (list []mcphybrid.ServerConfig) {
	text, err := os.ReadFile("../../testdata/corpus/tools.jsonl")
	require.NoError(t, err)
	servers, tools := make(map[string]*server.MCPServer), 0
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var in struct {
			Server, Name, Description string
			InputSchema               json.RawMessage `json:"input_schema"`
		}
		require.NoError(t, d.Decode(&in))
		s := servers[in.Server]
		if s == nil {
			if len(servers) == 10 {
				require.Equal(t, corpusTools, tools)
				return list
			}
			s = server.NewMCPServer(in.Server, "1.0.0")
			servers[in.Server] = s
			list = append(list, mcphybrid.ServerConfig{Name: in.Server, InProcess: s})
		}
		tools++
		s.AddTool(mcp.NewToolWithRawSchema(in.Name, in.Description, in.InputSchema), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(taskResult), nil
		})
	}
	return list
}

// spend has a runtime do the task.
func spend(t *testing.T, r Runtime, servers []mcphybrid.ServerConfig, opts *mcphybrid.SessionOptions) cost {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: servers})
	defer mgr.Close()
	require.NoError(t, mgr.Start(ctx))
	m := &meter{Streams: r.Streams, loaded: make(map[string]bool)}
	sess := mgr.NewSession(opts)
	require.NotContains(t, toolNames(sess), taskTool+" ", "the task has a tool of the first %d", mcphybrid.DefaultMaxInline)
	answer, err := r.Begin(t, serve(t, modeltest.Model(m.play)), sess, nil).Run(ctx, task)
	require.NoError(t, err)
	require.Equal(t, "It is clean.", answer)
	return m.cost
}

func toolNames(s *mcphybrid.Session) string {
	var b strings.Builder
	if s.IsSearchMode() {
		for _, tool := range s.Tools() {
			b.WriteString(tool.Name() + " ")
		}
	}
	return b.String()
}

// A meter is a model that does the task as a session's tools allow it, and counts.
type meter struct {
	Streams bool
	cost
	loaded map[string]bool // deferred tools of the request that a search has loaded
}

// play answers a request.
func (m *meter) play(got modeltest.Request, err error) (modeltest.Step, error) {
	if err != nil {
		return modeltest.Step{}, err
	}
	if got.Stream != m.Streams {
		return modeltest.Step{}, fmt.Errorf("stream is %t, want %t", got.Stream, m.Streams)
	}
	last := got.Turns[len(got.Turns)-1]
	var names []string
	bytes := len(got.System)
	for _, raw := range got.Messages {
		bytes += len(raw)
		if strings.Contains(string(raw), `"tool_reference"`) {
			m.loaded[taskTool] = strings.Contains(string(raw), taskTool)
		}
	}
	for i, raw := range got.Tools {
		var tool struct {
			Type     string
			Name     string
			Function struct{ Name string }
			Deferred bool `json:"defer_loading"`
		}
		if err := json.Unmarshal(raw, &tool); err != nil {
			return modeltest.Step{}, err
		}
		name := tool.Name + tool.Function.Name
		if tool.Type == modeltest.ToolSearch {
			name = tool.Type
		}
		if !tool.Deferred || m.loaded[name] {
			names = append(names, name)
			if i < got.Listed { // others are in messages
				bytes += len(raw)
			}
		}
	}
	m.requests++
	m.sum += bytes / 4
	if m.requests == 1 {
		m.first = bytes / 4
	}
	st := modeltest.Step{Calls: []modeltest.Call{{ID: fmt.Sprintf("call_%d", m.requests), Name: taskTool, Arguments: taskArgument}}}
	switch {
	case m.requests == 1 && slices.Contains(names, mcphybrid.SearchToolName):
		st.Calls[0].Name, st.Calls[0].Arguments = mcphybrid.SearchToolName, fmt.Sprintf(`{"query":%q}`, taskQuery)
	case m.requests == 1 && slices.Contains(names, modeltest.ToolSearch):
		st.Calls[0].Name, st.Calls[0].Arguments = modeltest.ToolSearch, fmt.Sprintf(`{"query":%q}`, taskQuery)
	case got.Standing[taskNamespace+"."+taskTool] == modeltest.Offered && len(last.Results) > 0 && !strings.Contains(last.Results[0].Text, "pm25"):
		st.Calls[0].Namespace = taskNamespace
	case len(last.Results) > 0 && strings.Contains(last.Results[0].Text, "pm25"):
		st = modeltest.Step{Say: "It is clean."}
	case slices.Contains(names, mcphybrid.CallToolName):
		st.Calls[0].Name, st.Calls[0].Arguments = mcphybrid.CallToolName, fmt.Sprintf(`{"name":%q,"arguments":%s}`, taskTool, taskArgument)
	case !slices.Contains(names, taskTool) || m.requests > 2:
		return modeltest.Step{}, fmt.Errorf("request %d has no tool for the task: %+v", m.requests, last)
	}
	return st, nil
}
