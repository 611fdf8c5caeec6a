package main

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
)

// Resources and prompts go the way of tools: mcp-go knows a single one of each, which
// receives every request, and lists come from the client's Session.
const (
	anyURI    = "any:"
	anyPrompt = "any"
	nameKey   = "\x00name" // of the prompt that the client named, among its arguments
)

// addResources makes the front answer for resources and prompts.
func (g *gateway) addResources(hooks *server.Hooks) []server.ServerOption {
	hooks.AddAfterListResources(func(ctx context.Context, _ any, _ *mcp.ListResourcesRequest, r *mcp.ListResourcesResult) {
		r.Resources = []mcp.Resource{}
		for _, from := range g.current(ctx).Resources() {
			if to := (mcp.Resource{}); json.Unmarshal(from.Raw, &to) == nil {
				to.URI = g.uri(from.Server, from.URI)
				to.Name = from.Name
				r.Resources = append(r.Resources, to)
			}
		}
	})
	hooks.AddAfterListResourceTemplates(func(ctx context.Context, _ any, _ *mcp.ListResourceTemplatesRequest, r *mcp.ListResourceTemplatesResult) {
		r.ResourceTemplates = []mcp.ResourceTemplate{}
		for _, from := range g.current(ctx).ResourceTemplates() {
			to, template := (mcp.ResourceTemplate{}), mcp.URITemplate{}
			quoted, _ := json.Marshal(g.uri(from.Server, from.URITemplate))
			if json.Unmarshal(from.Raw, &to) == nil && json.Unmarshal(quoted, &template) == nil {
				to.URITemplate = &template
				r.ResourceTemplates = append(r.ResourceTemplates, to)
			}
		}
	})
	hooks.AddAfterListPrompts(func(ctx context.Context, _ any, _ *mcp.ListPromptsRequest, r *mcp.ListPromptsResult) {
		r.Prompts = []mcp.Prompt{}
		seen := make(map[string]bool)
		for _, from := range g.current(ctx).Prompts() {
			if to := (mcp.Prompt{}); !seen[from.Registered] && json.Unmarshal(from.Raw, &to) == nil {
				seen[from.Registered] = true
				to.Name = from.Registered
				r.Prompts = append(r.Prompts, to)
			}
		}
	})
	hooks.AddBeforeReadResource(func(_ context.Context, _ any, r *mcp.ReadResourceRequest) {
		r.Params.Arguments, r.Params.URI = map[string]any{nameKey: r.Params.URI}, anyURI
	})
	hooks.AddBeforeGetPrompt(func(_ context.Context, _ any, r *mcp.GetPromptRequest) {
		args := maps.Clone(r.Params.Arguments)
		if args == nil {
			args = make(map[string]string)
		}
		args[nameKey] = r.Params.Name
		r.Params.Arguments, r.Params.Name = args, anyPrompt
	})
	return []server.ServerOption{
		server.WithResourceCapabilities(false, true), server.WithPromptCapabilities(true), server.WithCompletions(),
		server.WithPromptCompletionProvider(completer{g}), server.WithResourceCompletionProvider(completer{g}),
	}
}

// current returns the Session of the client of a request for a list.
func (g *gateway) current(ctx context.Context) *mcphybrid.Session {
	await(ctx, g.waiting)
	return g.client(ctx).session
}

func (g *gateway) read(ctx context.Context, r mcp.ReadResourceRequest) (contents []mcp.ResourceContents, err error) {
	name, _ := r.Params.Arguments[nameKey].(string)
	err = g.pass(ctx, request{"resources/read", "", name, r.Params.Meta}, func(ctx context.Context, c *clientCall) error {
		from, uri := named(name)
		c.reaches(from)
		result, err := c.from.session.ReadResource(ctx, from, uri)
		if err == nil {
			contents = make([]mcp.ResourceContents, len(result.Contents))
			for i, has := range result.Contents {
				contents[i] = renamed(has, func(old string) string {
					if old == uri {
						return name
					}
					return g.uri(from, old)
				})
			}
		}
		return err
	})
	return contents, err
}

// promptNamed returns the prompt with that registered name.
func promptNamed(s *mcphybrid.Session, name string) (mcphybrid.Prompt, error) {
	for _, p := range s.Prompts() {
		if p.Registered == name {
			return p, nil
		}
	}
	return mcphybrid.Prompt{}, &mcphybrid.UnknownResourceError{ID: name}
}

func (g *gateway) prompt(ctx context.Context, r mcp.GetPromptRequest) (result *mcp.GetPromptResult, err error) {
	name := r.Params.Arguments[nameKey]
	delete(r.Params.Arguments, nameKey)
	err = g.pass(ctx, request{"prompts/get", name, r.Params.Arguments, r.Params.Meta}, func(ctx context.Context, c *clientCall) error {
		p, err := promptNamed(c.from.session, name)
		if err != nil {
			return err
		}
		c.reaches(p.Server)
		got, err := c.from.session.GetPrompt(ctx, p.Server, p.Name, r.Params.Arguments)
		if err != nil {
			return err
		}
		copied := *got
		copied.Messages = make([]mcp.PromptMessage, len(got.Messages))
		for i, m := range got.Messages {
			m.Content = g.relink(p.Server, []mcp.Content{m.Content})[0]
			copied.Messages[i] = m
		}
		result = &copied
		return nil
	})
	return result, err
}

// A completer passes on requests for completions.
type completer struct{ g *gateway }

func (by completer) complete(ctx context.Context, find func(*mcphybrid.Session) (server string, ref any, err error), argument mcp.CompleteArgument, more mcp.CompleteContext) (values *mcp.Completion, err error) {
	err = by.g.pass(ctx, request{"completion/complete", "", argument, nil}, func(ctx context.Context, c *clientCall) error {
		from, ref, err := find(c.from.session)
		if err == nil {
			c.reaches(from)
			values, err = c.from.session.Complete(ctx, from, mcp.CompleteParams{Ref: ref, Argument: argument, Context: more})
		}
		return err
	})
	return values, err
}

// CompletePromptArgument implements [server.PromptCompletionProvider].
func (c completer) CompletePromptArgument(ctx context.Context, name string, a mcp.CompleteArgument, more mcp.CompleteContext) (*mcp.Completion, error) {
	return c.complete(ctx, func(s *mcphybrid.Session) (string, any, error) {
		p, err := promptNamed(s, name)
		return p.Server, mcp.PromptReference{Name: p.Name}, err
	}, a, more)
}

// CompleteResourceArgument implements [server.ResourceCompletionProvider].
func (c completer) CompleteResourceArgument(ctx context.Context, uri string, a mcp.CompleteArgument, more mcp.CompleteContext) (*mcp.Completion, error) {
	return c.complete(ctx, func(*mcphybrid.Session) (string, any, error) {
		from, uri := named(uri)
		return from, mcp.ResourceReference{URI: uri}, nil
	}, a, more)
}

// wrapped begins URIs that name their server: mcphybrid://SERVER/URI. Like the names of
// tools and prompts, they mean the same whatever other servers list, and after a restart.
const wrapped = "mcphybrid://"

// uri returns what a client calls a URI, or a template of URIs, of a server. A single
// server's are as they are.
func (g *gateway) uri(from, uri string) string {
	if len(g.opts.servers) == 1 && !strings.HasPrefix(uri, wrapped) {
		return uri
	}
	return wrapped + url.PathEscape(from) + "/" + uri
}

// named returns what a client means by a URI. The server is "" if the URI names none:
// then only one server may have it.
func named(uri string) (from, own string) {
	if rest, ok := strings.CutPrefix(uri, wrapped); ok {
		if escaped, own, ok := strings.Cut(rest, "/"); ok {
			if from, err := url.PathUnescape(escaped); err == nil {
				return from, own
			}
		}
	}
	return "", uri
}

// A read is what a model's call reads, by the tool for that or by one that calls it.
type read struct {
	from string          // the server, if the call names one
	args json.RawMessage // of the call, with the server's own URI
}

// readBy returns the read that a call makes, or nil if it is another call.
func readBy(name string, args json.RawMessage) *read {
	var in struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Server    string          `json:"server"`
		URI       string          `json:"uri"`
	}
	if json.Unmarshal(args, &in) != nil {
		return nil
	}
	var changed any
	r := &read{from: in.Server, args: args}
	switch {
	case name == mcphybrid.ResourceReadToolName:
		from, own := named(in.URI)
		if from == "" {
			return r
		}
		r.from, changed = from, map[string]string{"server": from, "uri": own}
	case (name == mcphybrid.CallToolName || name == mcphybrid.ReadOnlyCallToolName) && in.Name == mcphybrid.ResourceReadToolName:
		inner := readBy(in.Name, in.Arguments)
		if inner == nil {
			return r
		}
		r.from, changed = inner.from, map[string]any{"name": in.Name, "arguments": inner.args}
	default:
		return nil
	}
	if own, err := json.Marshal(changed); err == nil {
		r.args = own
	}
	return r
}

// Clients open or show these themselves, so that results have them as they are.
var clientSchemes = []string{"https://", "http://", "ui://"}

// relink returns contents of a server in which each URI that clients read names that
// server.
func (g *gateway) relink(from string, contents []mcp.Content) []mcp.Content {
	rename := func(uri string) string {
		if slices.ContainsFunc(clientSchemes, func(s string) bool { return strings.HasPrefix(uri, s) }) {
			return uri
		}
		return g.uri(from, uri)
	}
	list := make([]mcp.Content, len(contents))
	for i, c := range contents {
		switch has := c.(type) {
		case mcp.ResourceLink:
			has.URI = rename(has.URI)
			c = has
		case mcp.EmbeddedResource:
			has.Resource = renamed(has.Resource, rename)
			c = has
		}
		list[i] = c
	}
	return list
}

// renamed returns contents with another URI.
func renamed(c mcp.ResourceContents, rename func(string) string) mcp.ResourceContents {
	switch has := c.(type) {
	case mcp.TextResourceContents:
		has.URI = rename(has.URI)
		return has
	case mcp.BlobResourceContents:
		has.URI = rename(has.URI)
		return has
	}
	return c
}

// tellResources tells all clients that resources or prompts have changed.
func (g *gateway) tellResources(string) {
	g.front.SendNotificationToAllClients(mcp.MethodNotificationResourcesListChanged, nil)
	g.front.SendNotificationToAllClients(mcp.MethodNotificationPromptsListChanged, nil)
}
