package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"strings"
	"sync"

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
				to.URI = g.uris.offer(from.Server, from.URI)
				to.Name = from.Name
				r.Resources = append(r.Resources, to)
			}
		}
	})
	hooks.AddAfterListResourceTemplates(func(ctx context.Context, _ any, _ *mcp.ListResourceTemplatesRequest, r *mcp.ListResourceTemplatesResult) {
		r.ResourceTemplates = []mcp.ResourceTemplate{}
		for _, from := range g.current(ctx).ResourceTemplates() {
			to, renamed := (mcp.ResourceTemplate{}), mcp.URITemplate{}
			quoted, _ := json.Marshal(g.uris.offer(from.Server, from.URITemplate))
			if json.Unmarshal(from.Raw, &to) == nil && json.Unmarshal(quoted, &renamed) == nil {
				to.URITemplate = &renamed
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

var errEnding = errors.New("the gateway is shutting down")

// pass runs a request of a client, as call runs a call.
func (g *gateway) pass(ctx context.Context, meta *mcp.Meta, run func(context.Context, *mcphybrid.Session) error) error {
	if !g.enter() {
		return errEnding
	}
	defer g.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.calls, cancel)()
	await(ctx, g.waiting)
	c := g.newClientCall(ctx)
	defer c.end()
	err := run(c.context(meta), c.from.session)
	if err != nil && g.calls.Err() != nil {
		return errEnding
	}
	return err
}

func (g *gateway) read(ctx context.Context, r mcp.ReadResourceRequest) (contents []mcp.ResourceContents, err error) {
	name, _ := r.Params.Arguments[nameKey].(string)
	err = g.pass(ctx, r.Params.Meta, func(ctx context.Context, s *mcphybrid.Session) error {
		at := g.uris.at(name)
		result, err := s.ReadResource(ctx, at.server, at.uri)
		from := at.server
		if several := new(mcphybrid.UnknownResourceError); errors.As(err, &several) && len(several.Servers) > 0 {
			from = several.Servers[0] // it has no list, and the first server decides
			result, err = s.ReadResource(ctx, from, at.uri)
		}
		if err == nil {
			contents = g.uris.rename(from, at.uri, name, result.Contents)
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
	err = g.pass(ctx, r.Params.Meta, func(ctx context.Context, s *mcphybrid.Session) error {
		p, err := promptNamed(s, name)
		if err != nil {
			return err
		}
		got, err := s.GetPrompt(ctx, p.Server, p.Name, r.Params.Arguments)
		if err != nil {
			return err
		}
		copied := *got
		copied.Messages = make([]mcp.PromptMessage, len(got.Messages))
		for i, m := range got.Messages {
			m.Content = g.uris.relink(p.Server, []mcp.Content{m.Content})[0]
			copied.Messages[i] = m
		}
		result = &copied
		return nil
	})
	return result, err
}

// A completer passes on requests for completions.
type completer struct{ g *gateway }

func (c completer) complete(ctx context.Context, find func(*mcphybrid.Session) (server string, ref any, err error), argument mcp.CompleteArgument, more mcp.CompleteContext) (values *mcp.Completion, err error) {
	err = c.g.pass(ctx, nil, func(ctx context.Context, s *mcphybrid.Session) error {
		from, ref, err := find(s)
		if err == nil {
			values, err = s.Complete(ctx, from, mcp.CompleteParams{Ref: ref, Argument: argument, Context: more})
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
		at := c.g.uris.at(uri)
		return at.server, mcp.ResourceReference{URI: at.uri}, nil
	}, a, more)
}

// A place is a URI, or a template, of a server.
type place struct{ server, uri string }

// maxURIs is how many URIs stay those of the server that listed them first, and maxBytes
// how many bytes these have. Others get one that begins with wrapped.
const (
	maxURIs  = 100_000
	maxBytes = 16 << 20
)

// wrapped begins URIs that name their server: mcphybrid://SERVER/URI.
const wrapped = "mcphybrid://"

// A uriBook knows whose a URI is. Of two servers with the same one, the first that
// listed it keeps it, as long as the gateway runs.
type uriBook struct {
	mu     sync.Mutex
	owners map[string]string // server by URI
	bytes  int               // of the URIs
	alone  bool              // there is one server
}

// offer returns the URI under which a client gets what a server lists.
func (b *uriBook) offer(from, uri string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owners == nil {
		b.owners = make(map[string]string)
	}
	if _, known := b.owners[uri]; !known && len(b.owners) < maxURIs && len(uri) <= maxBytes-b.bytes && !strings.HasPrefix(uri, wrapped) {
		b.owners[uri] = from
		b.bytes += len(uri)
	}
	return b.nameLocked(from, uri, b.owners[uri] == from)
}

func (b *uriBook) nameLocked(from, uri string, own bool) string {
	if own && !strings.HasPrefix(uri, wrapped) {
		return uri
	}
	return wrapped + url.PathEscape(from) + "/" + uri
}

// at returns what a client means by a URI. The server is "" for a URI that nobody listed.
func (b *uriBook) at(uri string) place {
	if rest, ok := strings.CutPrefix(uri, wrapped); ok {
		if escaped, inner, ok := strings.Cut(rest, "/"); ok {
			if name, err := url.PathUnescape(escaped); err == nil {
				return place{name, inner}
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return place{b.owners[uri], uri}
}

// relink returns contents of a server in which each link leads to that server, but for
// addresses in the web, which clients open themselves. Others could have templates for a
// URI that nobody listed.
func (b *uriBook) relink(from string, contents []mcp.Content) []mcp.Content {
	list := make([]mcp.Content, len(contents))
	for i, c := range contents {
		switch has := c.(type) {
		case mcp.ResourceLink:
			b.mu.Lock()
			owner, known := b.owners[has.URI]
			web := strings.HasPrefix(has.URI, "https://") || strings.HasPrefix(has.URI, "http://")
			has.URI = b.nameLocked(from, has.URI, owner == from || !known && (web || b.alone))
			b.mu.Unlock()
			c = has
		case mcp.EmbeddedResource:
			has.Resource = b.rename(from, "", "", []mcp.ResourceContents{has.Resource})[0]
			c = has
		}
		list[i] = c
	}
	return list
}

// rename returns contents of a server in which no URI is another server's. uri is called
// name.
func (b *uriBook) rename(from, uri, name string, contents []mcp.ResourceContents) []mcp.ResourceContents {
	b.mu.Lock()
	defer b.mu.Unlock()
	named := func(old string) string {
		owner, known := b.owners[old]
		if old == uri {
			return name
		}
		return b.nameLocked(from, old, !known || owner == from)
	}
	list := make([]mcp.ResourceContents, len(contents))
	for i, c := range contents {
		switch has := c.(type) {
		case mcp.TextResourceContents:
			has.URI = named(has.URI)
			c = has
		case mcp.BlobResourceContents:
			has.URI = named(has.URI)
			c = has
		}
		list[i] = c
	}
	return list
}

// tellResources tells all clients that resources or prompts have changed.
func (g *gateway) tellResources(string) {
	g.front.SendNotificationToAllClients(mcp.MethodNotificationResourcesListChanged, nil)
	g.front.SendNotificationToAllClients(mcp.MethodNotificationPromptsListChanged, nil)
}
