package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// resources returns what the session sees beside tools.
func (p *partition) resources(sc *tenant) *resources.View {
	v := &resources.View{Bar: func(t rules.Subject) error {
		if !p.rights.Permit(t) || p.policy.byRules(p.policy.match(t), p.applies, p.included).standing == hidden {
			return ErrNotPermitted
		}
		return nil
	}}
	v.BarURI = func(of any, t rules.Subject) error {
		if !rules.Access(sc.opts.Access).Permits(t) || !sc.manager.permits(of.(*owner), t) {
			return ErrNotPermitted
		}
		return v.Bar(t)
	}
	v.Server = func(p resources.Place) (rules.Subject, bool) {
		to, names := sc.manager.server(p.Of.(*owner), p.Server)
		return names, to != nil
	}
	for _, c := range slices.Backward(p.catalogs) { // the user's come first
		v.Shelves = append(v.Shelves, resources.Owned{Of: c.owner, Shelf: c.shelf})
		for _, s := range c.list.withMore {
			if s.unlisted {
				v.Unlisted = append(v.Unlisted, resources.Place{Of: c.owner, Server: s.server})
			}
		}
	}
	return v
}

func (s *Session) offered(kind resources.Kind) []*resources.Entry {
	return s.view().resources(s.tenant).Offered(kind)
}

// Resources returns the resources that servers list and that the session may read, in
// registration order of the servers and then as they listed them.
func (s *Session) Resources() []Resource { return s.resources(resources.Resource) }

// ResourceTemplates is [Session.Resources] for templates of resources.
func (s *Session) ResourceTemplates() []Resource { return s.resources(resources.Template) }

func (s *Session) resources(kind resources.Kind) (list []Resource) {
	for _, e := range s.offered(kind) {
		r := Resource{e.Names.Server, e.ID, "", e.Name, e.Names.Name, e.Title, e.Description, e.MIMEType, e.Size, e.Annotations, e.Raw}
		if kind == resources.Template {
			r.URI, r.URITemplate = "", e.ID
		}
		list = append(list, r)
	}
	return list
}

// Prompts is [Session.Resources] for prompts. They are for users, so that no tool of
// the model gets one.
func (s *Session) Prompts() (list []Prompt) {
	for _, e := range s.offered(resources.Prompt) {
		list = append(list, Prompt{e.Names.Server, e.ID, e.Names.Name, e.Title, e.Description, e.Arguments, e.Raw})
	}
	return list
}

// ReadResource reads a resource. server is the server's name, or "" if only one has
// the resource; one that is down, or that the session may not use, counts too. The
// session may read a resource that is listed, one that a template expands to, and one
// to which the result of a call or a prompt in this session linked, of the last 100 of
// each of the last 100 servers that linked; in each case only if the session may use
// it. A restored session knows no links. A server with [ServerConfig.UnlistedResources] is
// asked for what no server has so.
//
// For a URI that no list has, the access lists must permit both the template and the
// URI, as it is and without percent signs, dot segments and what stands behind a ? or #.
// If that is the URI of one that is listed, the session must be allowed to use it too. The
// files of servers' skills that the session may use are read so too, and only if they are
// what the server listed of them.
//
// The contents are as the server sent them, not cut. Don't trust them. The error may wrap
// [ErrUnknownResource], [ErrNotPermitted], [ErrQuarantined], [ErrServerDown],
// [context.DeadlineExceeded] after a call timeout, or an error of the server.
// [Options.Middleware] does not run.
func (s *Session) ReadResource(ctx context.Context, server, uri string) (*mcp.ReadResourceResult, error) {
	r, _, err := s.ask(ctx, resources.Resource, server, uri, func(ctx context.Context, to *upstream.Server, bar upstream.Precheck) (any, error) {
		return to.Read(ctx, bar, uri)
	})
	result, _ := r.(*mcp.ReadResourceResult)
	return result, err
}

// GetPrompt returns the messages of a prompt, with args filled in. server is as in
// [Session.ReadResource], and so is the error.
func (s *Session) GetPrompt(ctx context.Context, server, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	r, from, err := s.ask(ctx, resources.Prompt, server, name, func(ctx context.Context, to *upstream.Server, bar upstream.Precheck) (any, error) {
		return to.Prompt(ctx, bar, name, args)
	})
	result, _ := r.(*mcp.GetPromptResult)
	if result != nil {
		for _, m := range result.Messages {
			s.link(from, []mcp.Content{m.Content})
		}
	}
	return result, err
}

// readable returns what the session sees beside tools, the skills among it.
func (v *view) readable() *resources.View {
	all := v.resources(v.tenant)
	all.BarSkill = func(t rules.Subject) error {
		if !mayUse(v.rights, SkillLoadToolName) || !v.skillRights.Permit(t) {
			return ErrNotPermitted
		}
		return nil
	}
	return all
}

// maxCompletions is how many values the protocol permits in a completion.
const maxCompletions = 100

// Complete returns values for an argument of a prompt or of a template, as p describes
// them. p.Ref is an [mcp.PromptReference] with the prompt's name or an
// [mcp.ResourceReference] with a template, as listed. server is as in
// [Session.ReadResource], and so is the error.
func (s *Session) Complete(ctx context.Context, server string, p mcp.CompleteParams) (*mcp.Completion, error) {
	kind, id := resources.Template, ""
	switch ref := p.Ref.(type) {
	case mcp.PromptReference:
		ref.Type = "ref/prompt"
		kind, id, p.Ref = resources.Prompt, ref.Name, ref
	case mcp.ResourceReference:
		ref.Type = "ref/resource"
		id, p.Ref = ref.URI, ref
	default:
		return nil, fmt.Errorf("mcphybrid: a completion for a %T, want an mcp.PromptReference or an mcp.ResourceReference", p.Ref)
	}
	r, _, err := s.ask(ctx, kind, server, id, func(ctx context.Context, to *upstream.Server, bar upstream.Precheck) (any, error) {
		return to.Complete(ctx, bar, p)
	})
	result, _ := r.(*mcp.CompleteResult)
	if result == nil {
		return nil, err
	}
	values := result.Completion.Values
	result.Completion.Values = values[:min(len(values), maxCompletions)]
	return &result.Completion, err
}

// ask makes a request of the server that has what is asked for. All requests for
// resources and prompts go through it.
func (s *Session) ask(ctx context.Context, kind resources.Kind, server, id string, request func(context.Context, *upstream.Server, upstream.Precheck) (any, error)) (result any, from origin, err error) {
	start := time.Now()
	connecting := slices.Contains(s.tenant.manager.connectingServers(s.rights), server) // read before the lists: a ready server has them
	v := s.view()
	s.mu.Lock()
	links := s.links
	s.mu.Unlock()
	at, err := v.readable().Locate(ctx, kind, server, id, links)
	of, _ := at.Of.(*owner)
	from = origin{of, at.Server}
	if to, _ := s.tenant.manager.server(from.of, from.server); err == nil && to != nil { // else it was removed just now
		bar := func() error { // it may be held back by now
			var err error
			if now := s.view(); now.partition != v.partition {
				_, err = now.readable().Locate(ctx, kind, from.server, id, links)
			}
			if held := new(ChangedError); errors.As(err, &held) {
				return held
			}
			return nil
		}
		if tell := s.tenant.opts.OnRequest; tell != nil {
			tell(ctx, from.server)
		}
		if result, err = request(broker.WithCaller(ctx, s.caller), to, bar); err != nil {
			err = upstream.About(err, kind.String(), id, from.server)
		} else if r, ok := result.(*mcp.ReadResourceResult); ok {
			if err = v.readable().Verify(kind, at, id, r); err != nil {
				to.ListAgain() // it may have changed the skill
				result, err = nil, upstream.About(err, kind.String(), id, from.server)
			}
		}
	} else if unknown := (&resources.Unknown{Server: server, ID: id}); err == nil || errors.As(err, &unknown) {
		err = (*UnknownResourceError)(unknown)
		if connecting {
			err = fmt.Errorf("%w; server %q is still connecting", err, server)
		}
	}
	s.emit(Event{Kind: EventRead, Server: from.server, Query: id, Took: time.Since(start), Err: err})
	return result, from, err
}

// link remembers the resources to which a result links.
func (s *Session) link(from origin, contents []mcp.Content) {
	uris := resources.Linked(contents)
	if uris == nil {
		return
	}
	if to, _ := s.tenant.manager.server(from.of, from.server); to == nil {
		return
	}
	s.mu.Lock()
	first := s.links == nil && !s.closed
	if !s.closed {
		s.links = s.links.With(resources.Place{Of: from.of, Server: from.server}, uris)
	}
	s.mu.Unlock()
	if first {
		s.syncRegistry() // registers the tool that reads
	}
}
