package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A call over HTTP whose stream announces other tools before the result returns when they
// are listed.
func TestCallWaitsForWhatItEnables(t *testing.T) {
	t.Parallel()
	s := goSDK(refusesAsJSON)
	var called atomic.Int32
	url := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		var in struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(body, &in)
		w.Header().Set("Content-Type", "text/event-stream")
		switch in.Method {
		case "tools/call":
			called.Add(1)
			fmt.Fprint(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
			fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", in.ID, greeting)
		case "tools/list":
			tools := `{"name":"greet","inputSchema":{"type":"object"}}`
			for i := range called.Load() {
				tools += fmt.Sprintf(`,{"name":"enabled_%d","inputSchema":{"type":"object"}}`, i)
			}
			fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"tools\":[%s]}}\n\n", in.ID, tools)
		default:
			s.ServeHTTP(w, r)
		}
	}), "127.0.0.1:0")
	srv := started(t, config.Server{Name: "web", URL: url}, Limits{})
	for i := range 5 {
		_, err := srv.call(t.Context(), "greet")
		require.NoError(t, err)
		tools, _ := srv.listed()
		assert.Len(t, tools, 2+i)
	}
}

// What a server lists beside tools is asked for by its URI or name, and what bars it comes
// before the request.
func TestReadPromptAndComplete(t *testing.T) {
	t.Parallel()
	s := mcptest.Server("s", mcptest.Echo("a", ""))
	asked := 0
	s.AddResource(mcp.NewResource("mem://a", "a"), func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		asked++
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, Text: "read"}}, nil
	})
	s.AddPrompt(mcp.NewPrompt("p", mcp.WithArgument("x")), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		asked++
		return mcp.NewGetPromptResult(r.Params.Name+" "+r.Params.Arguments["x"], nil), nil
	})
	srv := started(t, config.Server{Name: "s", InProcess: s}, Limits{})
	read, err := srv.Read(t.Context(), nil, "mem://a")
	require.NoError(t, err)
	assert.Equal(t, []mcp.ResourceContents{mcp.TextResourceContents{URI: "mem://a", Text: "read"}}, read.Contents)
	prompt, err := srv.Prompt(t.Context(), nil, "p", map[string]string{"x": "y"})
	require.NoError(t, err)
	assert.Equal(t, "p y", prompt.Description)
	_, err = srv.Read(t.Context(), nil, "mem://b")
	assert.Error(t, err)
	barred := errors.New("barred")
	bar := func() error { return barred }
	before := asked
	_, err = srv.Read(t.Context(), bar, "mem://a")
	assert.ErrorIs(t, err, barred)
	_, err = srv.Prompt(t.Context(), bar, "p", nil)
	assert.ErrorIs(t, err, barred)
	_, err = srv.Complete(t.Context(), bar, mcp.CompleteParams{})
	assert.ErrorIs(t, err, barred)
	_, err = srv.Call(t.Context(), Tool{Name: "a", Bar: bar}, nil)
	assert.ErrorIs(t, err, barred)
	assert.Equal(t, before, asked)
}
