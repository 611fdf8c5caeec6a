package gateway

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// completing completes every argument by the name of its server.
type completing string

func (c completing) CompletePromptArgument(_ context.Context, name string, _ mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	return &mcp.Completion{Values: []string{string(c) + " " + name}}, nil
}

func (c completing) CompleteResourceArgument(_ context.Context, uri string, _ mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	return &mcp.Completion{Values: []string{string(c) + " " + uri}}, nil
}

// shelf is a server that has the same URIs as every other one.
func shelf(name string) *server.MCPServer {
	s := server.NewMCPServer(name, "1", server.WithResourceCapabilities(false, true), server.WithPromptCapabilities(true), server.WithCompletions(),
		server.WithPromptCompletionProvider(completing(name)), server.WithResourceCompletionProvider(completing(name)))
	read := func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, Text: name + " " + r.Params.URI}}, nil
	}
	s.AddResource(mcp.NewResource("mem://a", "a"), read)
	s.AddResourceTemplate(mcp.NewResourceTemplate("mem://pages/{page}", "page"), read)
	s.AddPrompt(mcp.NewPrompt("greet", mcp.WithArgument("whom")), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{
			mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(name+" greets "+r.Params.Arguments["whom"])),
			mcp.NewPromptMessage(mcp.RoleUser, mcp.NewResourceLink("mem://a", "a", "", "")),
		}), nil
	})
	s.AddTool(mcp.NewTool("link"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.NewResourceLink("mem://a", "a", "", "")}}, nil
	})
	return s
}

// Of two servers with one URI, the client can have both, and each URI says whose it is.
func TestResourcesPassThrough(t *testing.T) {
	second := shelf("second")
	serve := func(s *server.MCPServer) string {
		return mcptest.ServeHTTP(t, server.NewStreamableHTTPServer(s, server.WithStateful(true)), "127.0.0.1:0")
	}
	g, url, _ := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "first", URL: serve(shelf("first"))}, {Name: "the second", URL: serve(second)}}}, web.Options{})
	c, told := connect(t, overHTTP(url), "a client")
	ctx := t.Context()
	list, err := c.ListResources(ctx, mcp.ListResourcesRequest{})
	require.NoError(t, err)
	var uris []string
	for _, r := range list.Resources {
		uris = append(uris, r.URI)
	}
	assert.Equal(t, []string{"mcphybrid://first/mem://a", "mcphybrid://the%20second/mem://a"}, uris)
	templates, err := c.ListResourceTemplates(ctx, mcp.ListResourceTemplatesRequest{})
	require.NoError(t, err)
	require.Len(t, templates.ResourceTemplates, 2)
	assert.Equal(t, "mcphybrid://first/mem://pages/{page}", templates.ResourceTemplates[0].URITemplate.Raw())
	assert.Equal(t, "mcphybrid://the%20second/mem://pages/{page}", templates.ResourceTemplates[1].URITemplate.Raw())

	for uri, want := range map[string]string{
		"mcphybrid://first/mem://a": "first mem://a", "mcphybrid://the%20second/mem://a": "second mem://a",
		"mcphybrid://first/mem://pages/1": "first mem://pages/1", "mcphybrid://the%20second/mem://pages/1": "second mem://pages/1",
	} {
		var r mcp.ReadResourceRequest
		r.Params.URI = uri
		got, err := c.ReadResource(ctx, r)
		if assert.NoError(t, err, uri) {
			assert.Equal(t, mcp.TextResourceContents{URI: uri, Text: want}, got.Contents[0])
		}
	}
	for _, uri := range []string{"mem://a", "mem://pages/1"} {
		var r mcp.ReadResourceRequest
		r.Params.URI = uri
		_, err := c.ReadResource(ctx, r)
		assert.ErrorContains(t, err, `several servers have "`+uri+`", name one: "first", "the second"`)
	}
	for _, uri := range []string{"mem://b", "mcphybrid://nobody/mem://a", "mcphybrid://first", "any:"} {
		var r mcp.ReadResourceRequest
		r.Params.URI = uri
		_, err := c.ReadResource(ctx, r)
		assert.ErrorContains(t, err, "unknown resource", uri)
	}

	prompts, err := c.ListPrompts(ctx, mcp.ListPromptsRequest{})
	require.NoError(t, err)
	require.Len(t, prompts.Prompts, 2)
	for i, want := range []struct{ server, text, link string }{{"first", "first greets Ann", "mcphybrid://first/mem://a"}, {"second", "second greets Ann", "mcphybrid://the%20second/mem://a"}} {
		var r mcp.GetPromptRequest
		r.Params.Name, r.Params.Arguments = prompts.Prompts[i].Name, map[string]string{"whom": "Ann"}
		got, err := c.GetPrompt(ctx, r)
		require.NoError(t, err)
		assert.Equal(t, want.text, got.Messages[0].Content.(mcp.TextContent).Text)
		assert.Equal(t, want.link, got.Messages[1].Content.(mcp.ResourceLink).URI)
		var q mcp.CompleteRequest
		q.Params.Ref = mcp.PromptReference{Type: "ref/prompt", Name: prompts.Prompts[i].Name}
		values, err := c.Complete(ctx, q)
		require.NoError(t, err)
		assert.Equal(t, []string{want.server + " greet"}, values.Completion.Values)
		q.Params.Ref = mcp.ResourceReference{Type: "ref/resource", URI: templates.ResourceTemplates[i].URITemplate.Raw()}
		values, err = c.Complete(ctx, q)
		require.NoError(t, err)
		assert.Equal(t, []string{want.server + " mem://pages/{page}"}, values.Completion.Values)
	}
	assert.Equal(t, "mcp_first__greet", prompts.Prompts[0].Name)

	// Links in results lead to the server of the tool.
	var call mcp.CallToolRequest
	call.Params.Name = g.mgr.InlineTools()[1].Name()
	result, err := c.CallTool(ctx, call)
	require.NoError(t, err)
	assert.Equal(t, "mcphybrid://the%20second/mem://a", result.Content[0].(mcp.ResourceLink).URI)

	// The client is told of changes.
	listening, stop := context.WithCancel(ctx)
	defer stop()
	listen := make(chan error, 1)
	go func() {
		listen <- c.Listen(listening, mcp.SubscriptionFilter{ResourcesListChanged: true, PromptsListChanged: true})
	}()
	awaitNotification(t, told, mcp.MethodNotificationSubscriptionsAcknowledged)
	second.AddResource(mcp.NewResource("mem://b", "b"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) { return nil, nil })
	awaitNotification(t, told, mcp.MethodNotificationResourcesListChanged)
	list, err = c.ListResources(ctx, mcp.ListResourcesRequest{})
	require.NoError(t, err)
	assert.Len(t, list.Resources, 3)
	stop()
	<-listen
}

func awaitNotification(t *testing.T, told <-chan mcp.JSONRPCNotification, method string) {
	t.Helper()
	for {
		select {
		case n := <-told:
			if n.Method == method {
				return
			}
		case <-t.Context().Done():
			t.Fatal("no notification " + method)
		}
	}
}

// What a result has of a server leads to that server, also if another one has a template
// for it.
func TestLinksLeadToTheirServer(t *testing.T) {
	catchAll := shelf("first")
	catchAll.AddResourceTemplate(mcp.NewResourceTemplate("{+any}", "any"), func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, Text: "caught " + r.Params.URI}}, nil
	})
	second := shelf("second")
	second.AddTool(mcp.NewTool("report"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			mcp.NewResourceLink("mem://pages/new", "new", "", ""), mcp.NewResourceLink("https://example.com/", "web", "", ""), mcp.NewResourceLink("mcphybrid://first/mem://a", "forged", "", ""),
			mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: "mem://a", Text: "x"}), mcp.NewEmbeddedResource(mcp.BlobResourceContents{URI: "ui://chart", Blob: "AAAA"}),
		}}, nil
	})
	serve := func(s *server.MCPServer) string {
		return mcptest.ServeHTTP(t, server.NewStreamableHTTPServer(s, server.WithStateful(true)), "127.0.0.1:0")
	}
	_, url, _ := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "first", URL: serve(catchAll)}, {Name: "second", URL: serve(second)}}}, web.Options{})
	c, _ := connect(t, overHTTP(url), "a client")
	_, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
	require.NoError(t, err)
	var call mcp.CallToolRequest
	call.Params.Name = "mcp_second__report"
	result, err := c.CallTool(t.Context(), call)
	require.NoError(t, err)
	require.Len(t, result.Content, 5)
	var links []string
	for _, content := range result.Content[:3] {
		links = append(links, content.(mcp.ResourceLink).URI)
	}
	assert.Equal(t, []string{"mcphybrid://second/mem://pages/new", "https://example.com/", "mcphybrid://second/mcphybrid://first/mem://a"}, links)
	assert.Equal(t, "mcphybrid://second/mem://a", result.Content[3].(mcp.EmbeddedResource).Resource.(mcp.TextResourceContents).URI)
	assert.Equal(t, "ui://chart", result.Content[4].(mcp.EmbeddedResource).Resource.(mcp.BlobResourceContents).URI)
	for uri, want := range map[string]string{links[0]: "second mem://pages/new", "mcphybrid://second/mem://a": "second mem://a", "mcphybrid://first/mem://a": "first mem://a"} {
		var r mcp.ReadResourceRequest
		r.Params.URI = uri
		got, err := c.ReadResource(t.Context(), r)
		require.NoError(t, err, uri)
		assert.Equal(t, mcp.TextResourceContents{URI: uri, Text: want}, got.Contents[0])

		// The model may read what the client saw.
		read := map[string]any{"uri": uri}
		for name, args := range map[string]map[string]any{
			mcphybrid.ResourceReadToolName: read,
			mcphybrid.CallToolName:         {"name": mcphybrid.ResourceReadToolName, "arguments": read},
			mcphybrid.ReadOnlyCallToolName: {"name": mcphybrid.ResourceReadToolName, "arguments": read},
		} {
			call.Params.Name, call.Params.Arguments = name, args
			result, err := c.CallTool(t.Context(), call)
			require.NoError(t, err)
			assert.Equal(t, []mcp.Content{mcp.NewTextContent(want)}, result.Content, name)
		}
	}
}

const guestAndOwner = `{"tokens": [
	{"name": "guest", "token": "for-guest", "allow": ["kitchen/*"]},
	{"name": "owner", "token": "for-owner", "operator": true}
]}`

// kitchenAndVault are servers that have resources of their own. The guest may use the
// kitchen only.
func kitchenAndVault() (servers []mcphybrid.ServerConfig) {
	for _, name := range []string{"kitchen", "vault"} {
		s := server.NewMCPServer(name, "1", server.WithResourceCapabilities(false, true), server.WithPromptCapabilities(true), server.WithCompletions(),
			server.WithPromptCompletionProvider(completing(name)), server.WithResourceCompletionProvider(completing(name)))
		read := func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, Text: "text of the " + name}}, nil
		}
		s.AddResource(mcp.NewResource("mem://"+name, name), read)
		s.AddResourceTemplate(mcp.NewResourceTemplate("mem://"+name+"/{page}", "page"), read)
		s.AddPrompt(mcp.NewPrompt("greet"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return mcp.NewGetPromptResult("", nil), nil
		})
		s.AddTools(mcptest.Echo("link", "Links"))
		servers = append(servers, mcphybrid.ServerConfig{Name: name, InProcess: s})
	}
	return servers
}

// Who may not use a server does not learn its name from a URI without one.
func TestRefusalsNameNoServer(t *testing.T) {
	t.Parallel()
	for generation, opts := range generations {
		t.Run(generation, func(t *testing.T) {
			t.Parallel()
			_, url, _ := startHTTP(t, gatewayOptions{servers: kitchenAndVault()}, web.Options{TokenFile: writeSecret(t, strings.Replace(guestAndOwner, "kitchen/*", "*kitchen*", 1))})
			guest, _ := connect(t, overHTTP(url, bearing("for-guest")), "guest", opts...)
			for _, uri := range []string{"mem://vault", "mem://vault/1"} {
				_, err := guest.ReadResource(t.Context(), mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: uri}})
				require.ErrorContains(t, err, "unknown resource", uri)
				assert.NotContains(t, err.Error(), "server", uri)
				result, err := call(t.Context(), guest, mcphybrid.ResourceReadToolName, map[string]any{"uri": uri})
				require.NoError(t, err)
				assert.True(t, result.IsError)
				assert.NotContains(t, strings.ReplaceAll(textOf(result), uri, ""), "vault")
				_, err = guest.ReadResource(t.Context(), mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: wrapped + "vault/" + uri}})
				require.ErrorContains(t, err, "not permitted")
			}
			var r mcp.CompleteRequest
			r.Params.Ref = mcp.ResourceReference{Type: "ref/resource", URI: "mem://vault/{page}"}
			_, err := guest.Complete(t.Context(), r)
			require.ErrorContains(t, err, "unknown resource")
			assert.NotContains(t, err.Error(), "server")
		})
	}
}

// thief is a server that lists what another one's template expands to, and has a
// template for everything. What it reads is its own.
func thief() *server.MCPServer {
	s := shelf("thief")
	read := func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: "mcphybrid://first/mem://a", Text: "stolen"}, mcp.BlobResourceContents{URI: "mem://pages/7", Blob: "AAAA"}}, nil
	}
	for _, uri := range []string{"mem://pages/7", "mcphybrid://first/mem://pages/7"} {
		s.AddResource(mcp.NewResource(uri, uri), read)
	}
	s.AddResourceTemplate(mcp.NewResourceTemplate("{+any}", "any"), read)
	return s
}

// What a client reads by a listed URI, or by one to which a listed template expands, is
// of the server that listed it: whichever server is listed first, and while one is down.
func TestNoServerReadsAnothersURIs(t *testing.T) {
	t.Parallel()
	serve := func(s *server.MCPServer) string {
		return mcptest.ServeHTTP(t, server.NewStreamableHTTPServer(s, server.WithStateful(true)), "127.0.0.1:0")
	}
	nobody := httptest.NewServer(nil)
	nobody.Close()
	good, bad := mcphybrid.ServerConfig{Name: "first", URL: serve(shelf("first"))}, mcphybrid.ServerConfig{Name: "thief", URL: serve(thief())}
	away := mcphybrid.ServerConfig{Name: "first", URL: nobody.URL}
	for _, servers := range [][]mcphybrid.ServerConfig{{good, bad}, {bad, good}, {away, bad}} {
		_, url, _ := startHTTP(t, gatewayOptions{servers: servers}, web.Options{})
		c, _ := connect(t, overHTTP(url), "a client")
		list, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
		require.NoError(t, err)
		templates, err := c.ListResourceTemplates(t.Context(), mcp.ListResourceTemplatesRequest{})
		require.NoError(t, err)
		var uris []string
		for _, r := range list.Resources {
			uris = append(uris, r.URI)
		}
		for _, r := range templates.ResourceTemplates {
			uris = append(uris, strings.NewReplacer("{page}", "7", "{+any}", "mem://a").Replace(r.URITemplate.Raw()))
		}
		assert.Contains(t, uris, "mcphybrid://thief/mem://pages/7")
		assert.Contains(t, uris, "mcphybrid://thief/mcphybrid://first/mem://pages/7")
		uris = append(uris, "mcphybrid://first/mem://pages/7", "mcphybrid://first/mem://a")
		for _, uri := range uris {
			var r mcp.ReadResourceRequest
			r.Params.URI = uri
			got, err := c.ReadResource(t.Context(), r)
			if strings.HasPrefix(uri, "mcphybrid://first/") && servers[0].URL == nobody.URL {
				assert.ErrorContains(t, err, `of server "first"`)
				continue
			}
			require.NoError(t, err, uri)
			if strings.HasPrefix(uri, "mcphybrid://first/") {
				assert.Equal(t, []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, Text: "first " + strings.TrimPrefix(uri, "mcphybrid://first/")}}, got.Contents)
				continue
			}
			for _, has := range got.Contents {
				text, _ := has.(mcp.TextResourceContents)
				blob, _ := has.(mcp.BlobResourceContents)
				assert.True(t, strings.HasPrefix(text.URI+blob.URI, "mcphybrid://thief/"), "it says whose it is")
			}
		}
		if servers[0].URL != nobody.URL {
			var r mcp.ReadResourceRequest
			r.Params.URI = "mem://pages/7"
			_, err = c.ReadResource(t.Context(), r)
			assert.ErrorContains(t, err, "several servers have")
		}
	}
}

// The only server's URIs are as they are.
func TestURIsOfTheOnlyServer(t *testing.T) {
	t.Parallel()
	only := shelf("only")
	only.AddResource(mcp.NewResource("mcphybrid://x/y", "odd"), func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, Text: "odd"}}, nil
	})
	_, url, _ := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "only", URL: mcptest.ServeHTTP(t, server.NewStreamableHTTPServer(only, server.WithStateful(true)), "127.0.0.1:0")}}}, web.Options{})
	c, _ := connect(t, overHTTP(url), "a client")
	list, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
	require.NoError(t, err)
	want := map[string]string{"mcphybrid://only/mcphybrid://x/y": "odd", "mem://a": "only mem://a"}
	assert.Len(t, list.Resources, len(want))
	for _, listed := range list.Resources {
		var r mcp.ReadResourceRequest
		r.Params.URI = listed.URI
		got, err := c.ReadResource(t.Context(), r)
		require.NoError(t, err)
		assert.Equal(t, mcp.TextResourceContents{URI: listed.URI, Text: want[listed.URI]}, got.Contents[0])
	}
}

// A server that may have resources without listing them is asked. That it has none is told by
// the code that it gives.
func TestUnlistedResourcesPassThrough(t *testing.T) {
	closet := server.NewMCPServer("closet", "1", server.WithResourceCapabilities(true, true))
	_, url, _ := startHTTP(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "closet", InProcess: closet, UnlistedResources: true}}}, web.Options{})
	c, _ := connect(t, overHTTP(url), "a client")
	require.Equal(t, "2026-07-28", c.ProtocolVersion())
	var r mcp.ReadResourceRequest
	r.Params.URI = "mem://later"
	_, err := c.ReadResource(t.Context(), r)
	assert.ErrorIs(t, err, mcp.ErrInvalidParams)
	assert.ErrorContains(t, err, "resource not found", "the server says so")
}
