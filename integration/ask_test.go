package integration

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"

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

// With hooks, server-everything lists six tools more, and each of its tools works.
func TestEverythingAsks(t *testing.T) {
	const prefix = "mcp_everything__"
	t.Run("without hooks", func(t *testing.T) {
		assert.Equal(t, 13, startManager(t, everything()).Stats().Tools)
	})
	ann := &person{name: "Ann"}
	mgr := loadManagerThat(t, writeConfig(t, everything()), mcphybrid.Options{Ask: ask.Options{Hooks: (&person{name: "nobody"}).hooks()}})
	require.NoError(t, mgr.Start(t.Context()))
	require.Empty(t, mgr.Problems())
	s := mgr.NewSession(&mcphybrid.SessionOptions{Hooks: ann.hooks()})

	file := runDir + "/note.txt"
	require.NoError(t, os.WriteFile(file, []byte("note"), 0o600))
	want := map[string]struct {
		args any
		part string // of the text of the result
	}{
		"echo":                              {`{"message":"hi"}`, "Echo: hi"},
		"get-annotated-message":             {`{"messageType":"error"}`, "Error: Operation failed"},
		"get-env":                           {nil, "PATH"},
		"get-resource-links":                {`{"count":2}`, "2 resource links"},
		"get-resource-reference":            {`{"resourceType":"Text","resourceId":1}`, "resource"},
		"get-structured-content":            {`{"location":"Chicago"}`, "temperature"},
		"get-sum":                           {`{"a":2,"b":40}`, "is 42"},
		"get-tiny-image":                    {nil, "image"},
		"gzip-file-as-resource":             {map[string]any{"name": "a.gz", "data": "data:text/plain;base64,bm90ZQ==", "outputType": "resource"}, ""},
		"toggle-simulated-logging":          {nil, "logging"},
		"toggle-subscriber-updates":         {nil, "updates"},
		"trigger-long-running-operation":    {`{"duration":1,"steps":2}`, "completed"},
		"get-roots-list":                    {nil, "file://"},
		"trigger-elicitation-request":       {nil, "Ann"},
		"trigger-url-elicitation":           {`{"url":"https://example.com/a"}`, "completed the URL elicitation"},
		"trigger-sampling-request":          {`{"prompt":"hi"}`, "said by Ann"},
		"trigger-sampling-request-async":    {`{"prompt":"hi"}`, "[COMPLETED]"},
		"trigger-elicitation-request-async": {nil, "[COMPLETED]"},
		"simulate-research-query":           {`{"topic":"python","ambiguous":true}`, "python (snake)"},
	}
	var got []string
	for _, tool := range s.InlineTools() {
		got = append(got, tool.OriginalName())
	}
	assert.Len(t, got, 19)
	for _, name := range got {
		w, ok := want[name]
		if !assert.True(t, ok, name) {
			continue
		}
		r, err := s.Call(t.Context(), prefix+name, w.args)
		if assert.NoError(t, err, name) && assert.False(t, r.IsError, "%s: %s", name, text(r)) {
			assert.Contains(t, text(r), w.part, name)
		}
	}
	r, err := s.Call(t.Context(), prefix+"trigger-url-elicitation", `{"url":"https://example.com/b","errorPath":true}`)
	require.NoError(t, err)
	assert.Contains(t, text(r), "completed the URL elicitation")
	ann.mu.Lock()
	defer ann.mu.Unlock()
	assert.Len(t, ann.asked, 8, "%q", ann.asked)
}
