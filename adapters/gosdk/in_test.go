package gosdk_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/gosdk"
	"github.com/mcphybrid/mcphybrid/adapters/internal/adaptertest"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type greeting struct {
	Name string      `json:"name" jsonschema:"who is greeted"`
	Days json.Number `json:"days,omitempty"`
}

func greet(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{
		&mcp.TextContent{Text: "Hello, " + in.Name + in.Days.String()}, &mcp.ImageContent{MIMEType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")},
	}}, nil, nil
}

func names(m *mcphybrid.Manager) (list []string) {
	for _, t := range m.InlineTools() {
		list = append(list, t.Name())
	}
	return list
}

// Tools that were written with the SDK are called through a session of the SDK, changes of
// the list are followed, resources and prompts are there, and a server that has gone is
// reported.
func TestAddSession(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(impl, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "Greets."}, greet)
	server.AddResource(&mcp.Resource{URI: "file:///a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "file:///a", Text: "of a"}}}, nil
	})
	server.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "said"}}}}, nil
	})
	client, session := join(t, server, gosdk.Following(mcp.ClientOptions{}))
	m := mcphybrid.NewManager(nil)
	defer m.Close()
	require.NoError(t, gosdk.AddSession(t.Context(), m, mcphybrid.ServerConfig{Name: "sdk"}, client, session))
	require.Equal(t, []string{"mcp_sdk__greet"}, names(m))

	s := m.NewSession(nil)
	res, err := s.Call(t.Context(), "mcp_sdk__greet", `{"name":"Ann"}`)
	require.NoError(t, err)
	e, err := provider.ExportResult(res, provider.Anthropic)
	require.NoError(t, err)
	assert.JSONEq(t, `[{"type":"text","text":"Hello, Ann"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]`, string(e.JSON))
	_, err = s.Call(t.Context(), "mcp_sdk__greet", `{}`)
	require.Error(t, err)
	contents, err := s.ReadResource(t.Context(), "sdk", "file:///a")
	require.NoError(t, err)
	assert.Len(t, contents.Contents, 1)
	_, err = s.ReadResource(t.Context(), "sdk", "file:///none")
	require.Error(t, err)
	said, err := s.GetPrompt(t.Context(), "sdk", "p", nil)
	require.NoError(t, err)
	assert.Len(t, said.Messages, 1)

	mcp.AddTool(server, &mcp.Tool{Name: "part", Description: "Says goodbye."}, greet)
	require.Eventually(t, func() bool { return len(names(m)) == 2 }, 10*time.Second, 5*time.Millisecond)

	session.Close()
	_, err = s.Call(t.Context(), "mcp_sdk__part", `{"name":"Ann"}`)
	require.Error(t, err)
}

// A server may have no tools, and no list of them.
func TestAddSessionWithoutTools(t *testing.T) {
	t.Parallel()
	resource := func(s *mcp.Server) {
		s.AddResource(&mcp.Resource{URI: "file:///a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, nil
		})
	}
	prompt := func(s *mcp.Server) {
		s.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { return nil, nil })
	}
	for name, add := range map[string]func(*mcp.Server){"resources": resource, "prompts": prompt, "nothing": func(*mcp.Server) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mcp.NewServer(impl, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{}})
			add(server)
			server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
					if rest, ok := strings.CutSuffix(method, "/list"); ok && rest != name || method == "ping" {
						return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no such method: " + method}
					}
					return next(ctx, method, r)
				}
			})
			client, session := join(t, server, nil)
			m := mcphybrid.NewManager(nil)
			defer m.Close()
			require.NoError(t, gosdk.AddSession(t.Context(), m, mcphybrid.ServerConfig{Name: "sdk"}, client, session))
			st := m.Servers()[0]
			assert.Equal(t, mcphybrid.StateReady, st.State)
			assert.Equal(t, name == "resources", st.Resources == 1)
			assert.Equal(t, name == "prompts", st.Prompts == 1)
		})
	}
}

// The end of a call's context ends the tool of the SDK. Calls run at once.
func TestCancel(t *testing.T) {
	t.Parallel()
	running, stopped := make(chan struct{}, 2), make(chan struct{}, 2)
	server := mcp.NewServer(impl, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
		running <- struct{}{}
		<-ctx.Done()
		stopped <- struct{}{}
		return nil, nil, ctx.Err()
	})
	m := mcphybrid.NewManager(nil)
	defer m.Close()
	done, err := gosdk.AddServer(t.Context(), m, mcphybrid.ServerConfig{Name: "sdk"}, server)
	require.NoError(t, err)
	defer done()
	s := m.NewSession(nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := s.Call(ctx, "mcp_sdk__wait", `{}`)
			ended <- err
		}()
	}
	<-running
	<-running
	cancel()
	for range 2 {
		<-stopped
		require.Error(t, <-ended)
	}
}

func TestExample(t *testing.T) {
	t.Parallel()
	adaptertest.Example(t)
}
