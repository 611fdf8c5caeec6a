package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A person answers questions and remembers what was asked.
type person struct {
	name string

	mu    sync.Mutex
	asked []string
}

func (p *person) note(from ask.Asker, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, fmt.Sprintf("%s of %s: %s", from.Tool, from.Server, what))
}

// questions returns what the person was asked.
func (p *person) questions() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func (p *person) hooks() ask.Hooks {
	return ask.Hooks{
		Elicit: func(_ context.Context, from ask.Asker, q mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			p.note(from, q.Message)
			answer := &mcp.ElicitationResult{}
			answer.Action = mcp.ElicitationResponseActionAccept
			switch schema, _ := q.RequestedSchema.(map[string]any); {
			case q.Mode == mcp.ElicitationModeURL:
			case schema["properties"].(map[string]any)["interpretation"] != nil:
				answer.Content = map[string]any{"interpretation": "snake"}
			default:
				answer.Content = map[string]any{"name": p.name}
			}
			return answer, nil
		},
		Sample: func(_ context.Context, from ask.Asker, q mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			p.note(from, q.SystemPrompt)
			answer := &mcp.CreateMessageResult{Model: "a-model"}
			answer.Content = mcp.NewTextContent("said by " + p.name)
			return answer, nil
		},
		Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) {
			return []mcp.Root{{URI: (&url.URL{Scheme: "file", Path: runDir}).String(), Name: p.name}}, nil
		},
	}
}

// A personAt is a person at an MCP client.
type personAt struct{ *person }

func (p personAt) Elicit(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return p.hooks().Elicit(ctx, ask.Asker{}, r.Params)
}

func (p personAt) CreateMessage(ctx context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return p.hooks().Sample(ctx, ask.Asker{}, r.CreateMessageParams)
}

func (p personAt) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	roots, err := p.hooks().Roots(ctx, ask.Asker{})
	return &mcp.ListRootsResult{Roots: roots}, err
}

// An everythingCall is a call of a tool of server-everything.
type everythingCall struct {
	args string // as JSON; "" for none
	want string // a part of the result as JSON
}

// Calls of all tools of server-everything: of those that it always lists, and of those
// that it lists for clients that can be asked, where Ann answers.
var (
	everythingAlways = map[string]everythingCall{
		"echo":                           {`{"message":"hi"}`, `"Echo: hi"`},
		"get-annotated-message":          {`{"messageType":"error"}`, "Error: Operation failed"},
		"get-env":                        {"", "PATH"},
		"get-resource-links":             {`{"count":2}`, `"uri":"demo://resource/dynamic/text/2"`},
		"get-resource-reference":         {`{"resourceType":"Text","resourceId":1}`, "Resource 1: This is a plaintext resource"},
		"get-structured-content":         {`{"location":"Chicago"}`, `"structuredContent":{`},
		"get-sum":                        {`{"a":2,"b":40}`, "is 42"},
		"get-tiny-image":                 {"", `"data":"iVBOR`},
		"gzip-file-as-resource":          {`{"name":"a.gz","data":"data:text/plain;base64,bm90ZQ==","outputType":"resource"}`, `"blob":"H4sI`},
		"toggle-simulated-logging":       {"", "Started simulated, random-leveled logging"},
		"toggle-subscriber-updates":      {"", "Started simulated resource updated notifications"},
		"trigger-long-running-operation": {`{"duration":1,"steps":2}`, "Long running operation completed"},
		"simulate-research-query":        {`{"topic":"python","ambiguous":true}`, "Research Report: python"},
	}
	everythingAsking = map[string]everythingCall{
		"get-roots-list":                    {"", "roots"}, // of Ann, or of nobody: it asks once, at a call or 350 ms after its start
		"trigger-elicitation-request":       {"", "Name: Ann"},
		"trigger-url-elicitation":           {`{"url":"https://example.com/a"}`, "completed the URL elicitation"},
		"trigger-sampling-request":          {`{"prompt":"hi"}`, "said by Ann"},
		"trigger-sampling-request-async":    {`{"prompt":"hi"}`, "said by Ann"},
		"trigger-elicitation-request-async": {"", "Name: Ann"},
	}
)

// checkEverything calls each of the listed tools of server-everything: all 19 if it may
// ask, else 13.
func checkEverything(t *testing.T, c caller, listed []string, asking bool) {
	t.Helper()
	const prefix = "mcp_everything__"
	calls := maps.Clone(everythingAlways)
	if asking {
		maps.Copy(calls, everythingAsking)
		calls["simulate-research-query"] = everythingCall{`{"topic":"python","ambiguous":true}`, "Research Report: python (snake)"}
	}
	var want []string
	for name := range calls {
		want = append(want, prefix+name)
	}
	listed = slices.DeleteFunc(listed, func(name string) bool { return !strings.HasPrefix(name, prefix) })
	assert.ElementsMatch(t, want, listed)
	assert.Len(t, listed, map[bool]int{false: 13, true: 19}[asking])
	check := func(name string, with everythingCall) {
		var args any
		if with.args != "" {
			args = json.RawMessage(with.args)
		}
		r, err := c.Call(t.Context(), prefix+name, args)
		if !assert.NoError(t, err, name) || !assert.False(t, r.IsError, "%s: %s", name, text(r)) {
			return
		}
		got, err := json.Marshal(r)
		require.NoError(t, err)
		assert.Contains(t, string(got), with.want, name)
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		check(name, calls[name])
	}
	if asking { // the server answers that it needs the page, instead of asking
		check("trigger-url-elicitation", everythingCall{`{"url":"https://example.com/b","errorPath":true}`, "completed the URL elicitation"})
	}
}

// server-everything lists 13 tools for a host without hooks and 19 for one with them,
// and each works.
func TestEverythingAsks(t *testing.T) {
	t.Run("without hooks", func(t *testing.T) {
		mgr := startManager(t, everything())
		checkEverything(t, mgr, names(mgr.InlineTools()), false)
	})
	t.Run("with hooks", func(t *testing.T) {
		ann := &person{name: "Ann"}
		mgr := loadManagerThat(t, writeConfig(t, everything()), mcphybrid.Options{Ask: ask.Options{Hooks: (&person{name: "nobody"}).hooks()}})
		require.NoError(t, mgr.Start(t.Context()))
		require.Empty(t, mgr.Problems())
		s := mgr.NewSession(&mcphybrid.SessionOptions{Hooks: ann.hooks()})
		checkEverything(t, s, names(s.InlineTools()), true)
		assert.Contains(t, call(t, s, "mcp_everything__get-roots-list", nil), "Current MCP Roots (1 total)")
		assert.Len(t, ann.questions(), 8, "%q", ann.questions())
	})
}

// The same through the gateway, where a client is asked only with the flag -ask.
func TestEverythingAsksThroughTheGateway(t *testing.T) {
	for _, asking := range []bool{false, true} {
		t.Run(fmt.Sprintf("ask=%v", asking), func(t *testing.T) {
			ann := personAt{&person{name: "Ann"}}
			c := gatewayConnect(t, gatewayStdio(gatewayProgram(t), "gateway", "-wait", "1m", fmt.Sprintf("-ask=%v", asking), "-config", writeConfig(t, everything())),
				gatewayGenerations[0], client.WithElicitationHandler(ann), client.WithSamplingHandler(ann), client.WithRootsHandler(ann))
			list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
			require.NoError(t, err)
			var listed []string
			for _, tool := range list.Tools {
				listed = append(listed, tool.Name)
			}
			checkEverything(t, c, listed, asking)
			if asking {
				assert.Len(t, ann.questions(), 8, "%q", ann.questions())
			} else {
				assert.Empty(t, ann.questions())
			}
		})
	}
}
