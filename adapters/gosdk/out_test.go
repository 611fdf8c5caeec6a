package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/gosdk"
	"github.com/mcphybrid/mcphybrid/adapters/internal/adaptertest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var impl = &mcp.Implementation{Name: "test", Version: "1"}

// join connects a client of the SDK to a server.
func join(t *testing.T, server *mcp.Server, opts *mcp.ClientOptions) (*mcp.Client, *mcp.ClientSession) {
	here, there := mcp.NewInMemoryTransports()
	_, err := server.Connect(t.Context(), there, nil)
	require.NoError(t, err)
	client := mcp.NewClient(impl, opts)
	session, err := client.Connect(t.Context(), here, nil)
	require.NoError(t, err)
	t.Cleanup(func() { session.Close() })
	return client, session
}

// A client is an MCP client with a model: it knows the SDK only, and lists the tools before
// each request, as clients do that were told of a change.
type client struct {
	url      string
	session  *mcp.ClientSession
	system   string
	messages []any
}

type object = map[string]any

func (c *client) Run(ctx context.Context, message string) (answer string, err error) {
	begun := c.messages
	defer func() {
		if ctx.Err() != nil {
			c.messages = begun
		}
	}()
	c.messages = c.messages[:len(c.messages):len(c.messages)]
	if message != "" {
		c.messages = append(c.messages, object{"role": "user", "content": message})
	}
	for {
		reply, err := c.ask(ctx)
		if err != nil {
			return "", err
		}
		c.messages = append(c.messages, reply.raw)
		if reply.ToolCalls == nil {
			return reply.Content, nil
		}
		results := make([]*mcp.CallToolResult, len(reply.ToolCalls))
		var wg sync.WaitGroup
		for i, call := range reply.ToolCalls {
			wg.Go(func() {
				var failed error
				results[i], failed = c.session.CallTool(ctx, &mcp.CallToolParams{Name: call.Function.Name, Arguments: json.RawMessage(call.Function.Arguments)})
				if failed != nil {
					results[i] = &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: failed.Error()}}}
				}
			})
		}
		wg.Wait()
		if err := ctx.Err(); err != nil {
			return "", err
		}
		var media []any
		for i, call := range reply.ToolCalls {
			text, images := read(results[i])
			c.messages = append(c.messages, object{"role": "tool", "tool_call_id": call.ID, "content": text})
			media = append(media, images...)
		}
		if media != nil {
			c.messages = append(c.messages, object{"role": "user", "content": media})
		}
	}
}

// read returns a result as chat completions take it.
func read(r *mcp.CallToolResult) (text string, images []any) {
	if r.IsError {
		text = "Error: "
	}
	for _, c := range r.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			text += c.Text
		case *mcp.ImageContent:
			data, _ := json.Marshal(c.Data) // in base64
			images = append(images, object{"type": "image_url", "image_url": object{"url": "data:" + c.MIMEType + ";base64," + strings.Trim(string(data), `"`)}})
		}
	}
	return text, images
}

type reply struct {
	raw       json.RawMessage
	Content   string
	ToolCalls []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func (c *client) ask(ctx context.Context) (reply, error) {
	list, err := c.session.ListTools(ctx, nil)
	if err != nil {
		return reply{}, err
	}
	var tools []any
	for _, tool := range list.Tools {
		tools = append(tools, object{"type": "function", "function": object{"name": tool.Name, "description": tool.Description, "parameters": tool.InputSchema}})
	}
	messages := append([]any{object{"role": "system", "content": c.system}}, c.messages...)
	body, err := json.Marshal(object{"model": "m", "tools": tools, "messages": messages})
	if err != nil {
		return reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, err
	}
	if res.StatusCode != http.StatusOK {
		return reply{}, errors.New(string(data))
	}
	var out struct {
		Choices []struct{ Message json.RawMessage }
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return reply{}, err
	}
	r := reply{raw: out.Choices[0].Message}
	return r, json.Unmarshal(r.raw, &r)
}

// A client of the SDK goes through the whole conversation with a session as its server, whose
// list grows also if the session is left to choose.
func TestConversation(t *testing.T) {
	t.Parallel()
	for _, by := range []mcphybrid.Disclosure{mcphybrid.Automatic, mcphybrid.ByActivation} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			adaptertest.Run(t, adaptertest.Runtime{Disclosure: by, Begin: func(t *testing.T, url string, s *mcphybrid.Session, before adaptertest.Host) adaptertest.Host {
				server, err := gosdk.NewServer(s, impl, nil)
				require.NoError(t, err)
				_, session := join(t, server, nil)
				c := &client{url: url, session: session, system: adaptertest.System + session.InitializeResult().Instructions}
				if before != nil {
					c.messages = before.(*client).messages
				}
				return c
			}})
		})
	}
}

// A client is told when a search adds a tool.
func TestClientIsTold(t *testing.T) {
	t.Parallel()
	m := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 1}})
	defer m.Close()
	out := mcp.NewServer(impl, nil)
	for i := range 3 {
		mcp.AddTool(out, &mcp.Tool{Name: fmt.Sprintf("paint_%d", i), Description: fmt.Sprintf("Paints the wall number %d.", i)}, greet)
	}
	done, err := gosdk.AddServer(t.Context(), m, mcphybrid.ServerConfig{Name: "walls"}, out)
	require.NoError(t, err)
	defer done()

	offered, err := gosdk.NewServer(m.NewSession(nil), impl, nil)
	require.NoError(t, err)
	told := make(chan struct{}, 10)
	_, session := join(t, offered, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { told <- struct{}{} }})
	list := func() (names []string) {
		all, err := session.ListTools(t.Context(), nil)
		require.NoError(t, err)
		for _, tool := range all.Tools {
			names = append(names, tool.Name)
		}
		return names
	}
	first := list()
	require.Equal(t, []string{"mcp_walls__paint_0", "mcp_tool_search"}, first)
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "mcp_tool_search", Arguments: map[string]any{"query": "paint wall 2", "max_results": 1}})
	require.NoError(t, err)
	select {
	case <-told:
	case <-t.Context().Done():
	}
	assert.Equal(t, append(first, "mcp_walls__paint_2"), list())

	require.NoError(t, m.AddTools("late", server.ServerTool{Tool: mcpgo.NewTool("do")}))
	_, again := join(t, offered, nil)
	assert.Equal(t, session.InitializeResult().Instructions, again.InitializeResult().Instructions, "they stay as they were")
}

// After Compact, a list that has other tools is told of, also if it is as long as before.
func TestToldAfterCompact(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 1}})
		defer m.Close()
		handler := func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			return mcpgo.NewToolResultText("done"), nil
		}
		for _, name := range []string{"alpha", "beta", "gamma"} {
			require.NoError(t, m.AddTools(name, server.ServerTool{Tool: mcpgo.NewTool("do"), Handler: handler}))
		}
		sess := m.NewSession(nil)
		server, err := gosdk.NewServer(sess, impl, nil)
		require.NoError(t, err)
		told := 0
		_, session := join(t, server, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { told++ }})
		wait := func() int {
			time.Sleep(time.Minute) // of the bubble: notifications are sent together
			synctest.Wait()
			return told
		}
		call := func(name string) {
			_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
			require.NoError(t, err)
		}
		call("mcp_gamma__do")
		before := wait()
		require.NotZero(t, before)
		call("mcp_gamma__do")
		require.Equal(t, before, wait())
		for range 100 {
			sess.NextTurn()
		}
		require.Len(t, sess.Compact(), 1)
		call("mcp_beta__do") // in gamma's place
		require.Equal(t, before+1, wait())
		require.NoError(t, session.Close())
	})
}

// A server of a session without tools lists none, and tells of the first.
func TestFirstTool(t *testing.T) {
	t.Parallel()
	m := mcphybrid.NewManager(nil)
	defer m.Close()
	server, err := gosdk.NewServer(m.NewSession(nil), impl, nil)
	require.NoError(t, err)
	_, session := join(t, server, nil)
	require.True(t, session.InitializeResult().Capabilities.Tools.ListChanged)
	for _, want := range []int{0, 1} {
		all, err := session.ListTools(t.Context(), nil)
		require.NoError(t, err)
		require.NotNil(t, all.Tools)
		require.Len(t, all.Tools, want)
		if want == 0 {
			done, err := gosdk.AddServer(t.Context(), m, mcphybrid.ServerConfig{Name: "a"}, oneTool())
			require.NoError(t, err)
			t.Cleanup(func() { done() })
		}
	}
}

func oneTool() *mcp.Server {
	s := mcp.NewServer(impl, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "greet"}, greet)
	return s
}

func TestNoServerOfByProvider(t *testing.T) {
	t.Parallel()
	m := mcphybrid.NewManager(nil)
	defer m.Close()
	_, err := gosdk.NewServer(m.NewSession(&mcphybrid.SessionOptions{Disclosure: mcphybrid.ByProvider}), impl, nil)
	require.ErrorContains(t, err, "ByProvider")
}
