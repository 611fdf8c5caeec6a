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
		for _, from := range g.current(ctx, mcp.MethodNotificationResourcesListChanged).Resources() {
			if to := (mcp.Resource{}); json.Unmarshal(from.Raw, &to) == nil {
				to.URI = g.uri(from.Server, from.URI)
				to.Name = from.Name
				r.Resources = append(r.Resources, to)
			}
		}
	})
	hooks.AddAfterListResourceTemplates(func(ctx context.Context, _ any, _ *mcp.ListResourceTemplatesRequest, r *mcp.ListResourceTemplatesResult) {
		r.ResourceTemplates = []mcp.ResourceTemplate{}
		for _, from := range g.current(ctx, mcp.MethodNotificationResourcesListChanged).ResourceTemplates() {
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
		for _, from := range g.current(ctx, mcp.MethodNotificationPromptsListChanged).Prompts() {
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
		server.WithResourceCapabilities(true, true), server.WithPromptCapabilities(true), server.WithCompletions(),
		server.WithPromptCompletionProvider(completer{g}), server.WithResourceCompletionProvider(completer{g}),
	}
}

// current returns the Session of the client of a request for a list, whose changes it is
// told of by a method.
func (g *gateway) current(ctx context.Context, changes string) *mcphybrid.Session {
	c := g.client(ctx)
	ready := c.Ask(changes)
	g.awaitServers(ctx)
	ready()
	return c.session
}

func (g *gateway) read(ctx context.Context, r mcp.ReadResourceRequest) (contents []mcp.ResourceContents, err error) {
	name, _ := r.Params.Arguments[nameKey].(string)
	err = g.pass(ctx, request{"resources/read", "", name, r.Params.Meta}, func(ctx context.Context, c *clientCall) error {
		from, uri := named(name)
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
	return contents, notFound(ctx, name, refusal(name, err))
}

// refusal returns the error of a request, as the client gets it that asked for a URI. If
// the URI names no server, neither does a refusal: the client may not know of it.
func refusal(uri string, err error) error {
	if from, own := named(uri); from == "" && errors.Is(err, mcphybrid.ErrNotPermitted) {
		return &mcphybrid.UnknownResourceError{ID: own}
	}
	return err
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

func (g *gateway) prompt(ctx context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	args := r.Params.Arguments // not all of r, which an open call would keep
	name := args[nameKey]
	delete(args, nameKey)
	q := request{"prompts/get", name, args, r.Params.Meta}
	result, asks, err := converse(ctx, g, q, r.Params.MultiRoundTripParams, func(ctx context.Context, c *clientCall) (*mcp.GetPromptResult, error) {
		p, err := promptNamed(c.from.session, name)
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
			m.Content = g.relink(p.Server, []mcp.Content{m.Content})[0]
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
	return result, err
}

// A completer passes on requests for completions.
type completer struct{ g *gateway }

func (by completer) complete(ctx context.Context, find func(*mcphybrid.Session) (server string, ref any, err error), argument mcp.CompleteArgument, more mcp.CompleteContext) (values *mcp.Completion, err error) {
	err = by.g.pass(ctx, request{"completion/complete", "", argument, nil}, func(ctx context.Context, c *clientCall) error {
		from, ref, err := find(c.from.session)
		if err == nil {
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
	values, err := c.complete(ctx, func(*mcphybrid.Session) (string, any, error) {
		from, own := named(uri)
		return from, mcp.ResourceReference{URI: own}, nil
	}, a, more)
	return values, refusal(uri, err)
}
