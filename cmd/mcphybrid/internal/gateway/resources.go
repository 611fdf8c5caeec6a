package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

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
		c := g.current(ctx, mcp.MethodNotificationResourcesListChanged)
		for _, from := range c.session.Resources() {
			if !c.has(from.Server) {
				continue
			}
			more := readable(from.Raw)
			r.Resources = append(r.Resources, mcp.Resource{
				Annotated: mcp.Annotated{Annotations: from.Annotations}, Meta: more.meta, Icons: more.icons, Size: more.size,
				URI: c.uri(from.Server, from.URI), Name: from.Name, Title: from.Title, Description: from.Description, MIMEType: from.MIMEType,
			})
		}
	})
	hooks.AddAfterListResourceTemplates(func(ctx context.Context, _ any, _ *mcp.ListResourceTemplatesRequest, r *mcp.ListResourceTemplatesResult) {
		r.ResourceTemplates = []mcp.ResourceTemplate{}
		c := g.current(ctx, mcp.MethodNotificationResourcesListChanged)
		for _, from := range c.session.ResourceTemplates() {
			template := mcp.URITemplate{}
			quoted, _ := json.Marshal(c.uri(from.Server, from.URITemplate))
			if !c.has(from.Server) || json.Unmarshal(quoted, &template) != nil {
				continue
			}
			more := readable(from.Raw)
			r.ResourceTemplates = append(r.ResourceTemplates, mcp.ResourceTemplate{
				Annotated: mcp.Annotated{Annotations: from.Annotations}, Meta: more.meta, Icons: more.icons,
				URITemplate: &template, Name: from.Name, Title: from.Title, Description: from.Description, MIMEType: from.MIMEType,
			})
		}
	})
	hooks.AddAfterListPrompts(func(ctx context.Context, _ any, _ *mcp.ListPromptsRequest, r *mcp.ListPromptsResult) {
		r.Prompts = []mcp.Prompt{}
		seen := make(map[string]bool)
		c := g.current(ctx, mcp.MethodNotificationPromptsListChanged)
		for _, from := range c.session.Prompts() {
			if !c.has(from.Server) || seen[from.Registered] {
				continue
			}
			seen[from.Registered] = true
			more := readable(from.Raw)
			r.Prompts = append(r.Prompts, mcp.Prompt{
				Meta: more.meta, Icons: more.icons,
				Name: c.promptName(from), Title: from.Title, Description: from.Description, Arguments: from.Arguments,
			})
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
		server.WithResourceCapabilities(true, true), server.WithPromptCapabilities(true), server.WithCompletions(),
		server.WithPromptCompletionProvider(completer{g}), server.WithResourceCompletionProvider(completer{g}),
	}
}

// current returns the client of a request for a list, whose changes it is told of by a
// method.
func (g *gateway) current(ctx context.Context, changes string) *conversation {
	c := g.client(ctx)
	ready := c.Ask(changes)
	g.awaitListing(ctx, c)
	ready()
	return c
}

func (g *gateway) read(ctx context.Context, r mcp.ReadResourceRequest) (contents []mcp.ResourceContents, err error) {
	name, _ := r.Params.Arguments[nameKey].(string)
	err = g.pass(ctx, request{"resources/read", "", name, r.Params.Meta}, func(ctx context.Context, c *clientCall) error {
		from, uri := c.from.named(name)
		result, err := c.from.session.ReadResource(ctx, from, uri)
		if err == nil {
			contents = make([]mcp.ResourceContents, len(result.Contents))
			for i, has := range result.Contents {
				contents[i] = renamed(has, func(old string) string {
					if old == uri {
						return name
					}
					return c.from.uri(from, old)
				})
			}
		}
		return err
	})
	return contents, notFound(ctx, name, g.scope(ctx).refusal(name, err))
}

// refusal returns the error of a request, as the client gets it that asked for a URI. If
// the URI names no server, neither does a refusal: the client may not know of it.
func (s scope) refusal(uri string, err error) error {
	if from, own := s.named(uri); from == "" && errors.Is(err, mcphybrid.ErrNotPermitted) {
		return &mcphybrid.UnknownResourceError{ID: own}
	}
	return err
}

// promptName returns what a client calls a prompt.
func (s scope) promptName(p mcphybrid.Prompt) string {
	if s.server != "" {
		return p.Name
	}
	return p.Registered
}

// promptNamed returns the prompt that the client calls by that name.
func (c *conversation) promptNamed(name string) (mcphybrid.Prompt, error) {
	for _, p := range c.session.Prompts() {
		if c.has(p.Server) && c.promptName(p) == name {
			return p, nil
		}
	}
	return mcphybrid.Prompt{}, &mcphybrid.UnknownResourceError{ID: name}
}

func (g *gateway) prompt(ctx context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	args := r.Params.Arguments // not all of r, which an open call would keep
	name := args[nameKey]
	delete(args, nameKey)
	q := request{"prompts/get", name, args, r.Params.Meta}
	result, asks, err := converse(ctx, g, q, r.Params.MultiRoundTripParams, func(ctx context.Context, c *clientCall) (*mcp.GetPromptResult, error) {
		p, err := c.from.promptNamed(name)
		if err != nil {
			return nil, err
		}
		got, err := c.from.session.GetPrompt(ctx, p.Server, p.Name, args)
		if err != nil {
			return nil, err
		}
		copied := *got
		copied.Result, copied.MultiRoundTripResult = fromHere(got.Result), mcp.MultiRoundTripResult{}
		copied.Messages = make([]mcp.PromptMessage, len(got.Messages))
		for i, m := range got.Messages {
			m.Content = c.from.relink(p.Server, []mcp.Content{m.Content})[0]
			copied.Messages[i] = m
		}
		return &copied, nil
	})
	if asks != nil {
		return &mcp.GetPromptResult{Result: mcp.Result{ResultType: mcp.ResultTypeInputRequired}, MultiRoundTripResult: *asks}, nil
	}
	if refused := refusedBy(err); refused != nil {
		return nil, refused
	}
	return result, noPrompt(err)
}

// A completer passes on requests for completions.
type completer struct{ g *gateway }

func (by completer) complete(ctx context.Context, find func(*conversation) (server string, ref any, err error), argument mcp.CompleteArgument, more mcp.CompleteContext) (values *mcp.Completion, err error) {
	err = by.g.pass(ctx, request{"completion/complete", "", argument, nil}, func(ctx context.Context, c *clientCall) error {
		from, ref, err := find(c.from)
		if err != nil {
			return err
		}
		values, err = c.from.session.Complete(ctx, from, mcp.CompleteParams{Ref: ref, Argument: argument, Context: more})
		return err
	})
	return values, err
}

// CompletePromptArgument implements [server.PromptCompletionProvider].
func (c completer) CompletePromptArgument(ctx context.Context, name string, a mcp.CompleteArgument, more mcp.CompleteContext) (*mcp.Completion, error) {
	values, err := c.complete(ctx, func(of *conversation) (string, any, error) {
		p, err := of.promptNamed(name)
		return p.Server, mcp.PromptReference{Name: p.Name}, err
	}, a, more)
	return values, noPrompt(err)
}

// CompleteResourceArgument implements [server.ResourceCompletionProvider].
func (c completer) CompleteResourceArgument(ctx context.Context, uri string, a mcp.CompleteArgument, more mcp.CompleteContext) (*mcp.Completion, error) {
	values, err := c.complete(ctx, func(of *conversation) (string, any, error) {
		from, own := of.named(uri)
		return from, mcp.ResourceReference{URI: own}, nil
	}, a, more)
	return values, c.g.scope(ctx).refusal(uri, err)
}
