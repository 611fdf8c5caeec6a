package genkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/firebase/genkit/go/ai"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
)

// Options configure [Use].
type Options struct {
	// OnRequest, if not nil, is called before each request with the messages of the
	// conversation, as ai.ModelResponse.History has them. A generation that fails returns
	// nothing. To go on with it, generate with the last messages that OnRequest got,
	// in this process or another. It must not change them.
	OnRequest func(messages []*ai.Message)
}

// Use returns a middleware that adds the tools and the prompt sections of sess to each
// request of ai.Generate, as [mcphybrid.Session.TurnAt] gives them. Each request begins with
// all bytes of the one before; a session by activation adds tools at the end of the list.
// Calls go to sess, but those of the host's own tools.
//
// The host's own tools come first in the list, in the order of their names: Genkit itself
// sends tools in an order that differs from call to call. The sections stand at the
// end of the first system message, or in one of their own. What is new later stands in
// messages of the user, which the host does not get. Images in results of tools go into a
// user message behind the results, since Genkit's OpenAI plugin drops them elsewhere.
//
// Each answer that says what it took is counted by [mcphybrid.Session.CountUsage], so the host
// must not call it.
//
// A call that fails is a result, which tells the model why. An error ends the generation;
// there is one only if the context has ended.
//
// Requests fail if sess is [mcphybrid.ByProvider] or [mcphybrid.ByAddition]: Genkit has no
// mark for a tool that the model finds by itself, and no tools between messages. opts may
// be nil.
func Use(sess *mcphybrid.Session, opts *Options) ai.Middleware {
	var o Options
	if opts != nil {
		o = *opts
	}
	return ai.MiddlewareFunc(func(context.Context) (*ai.Hooks, error) {
		return &ai.Hooks{
			Tools: []ai.Tool{dispatcher(sess)},
			WrapModel: func(ctx context.Context, p *ai.ModelParams, next ai.ModelNext) (*ai.ModelResponse, error) {
				return generate(ctx, sess, o, p, next)
			},
		}, nil
	})
}

// generate makes one request.
func generate(ctx context.Context, sess *mcphybrid.Session, o Options, p *ai.ModelParams, next ai.ModelNext) (*ai.ModelResponse, error) {
	if sess.Disclosure() == mcphybrid.ByProvider {
		return nil, errors.New("genkit: a session by provider can't be used here: use another disclosure")
	}
	turn, err := sess.TurnAt(provider.OpenAIChat, "", len(p.Request.Messages))
	if err != nil {
		return nil, err
	}
	own := make(map[string]bool)
	var tools []*ai.ToolDefinition
	for _, t := range p.Request.Tools {
		if t.Name != dispatch {
			own[t.Name] = true
			tools = append(tools, t)
		}
	}
	slices.SortFunc(tools, func(a, b *ai.ToolDefinition) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range turn.Tools {
		var schema map[string]any
		if err := json.Unmarshal(t.InputSchema, &schema); err != nil {
			return nil, fmt.Errorf("genkit: tool %q: %w", t.Name, err)
		}
		tools = append(tools, &ai.ToolDefinition{Name: t.Name, Description: t.Description, InputSchema: schema})
	}

	kept := *p.Request // what the host gets back, without what is added here
	kept.Messages = realNames(p.Request.Messages)
	if o.OnRequest != nil {
		o.OnRequest(kept.Messages)
	}
	sent := kept
	sent.Tools = tools
	sent.Messages = withSections(liftMedia(withNews(kept.Messages, turn.Inserts)), turn.System)
	resp, err := next(ctx, &ai.ModelParams{Request: &sent, Callback: p.Callback})
	if err != nil {
		return nil, err
	}
	count(sess, resp.Usage)
	answer := *resp
	answer.Request = &kept
	answer.Message = dispatched(resp.Message, own)
	return &answer, nil
}

// withSections returns messages whose first is a system message that ends with sections.
func withSections(in []*ai.Message, sections string) []*ai.Message {
	if sections == "" {
		return in
	}
	if len(in) == 0 || in[0].Role != ai.RoleSystem {
		return append([]*ai.Message{ai.NewSystemTextMessage(strings.TrimLeft(sections, "\n"))}, in...)
	}
	system := *in[0]
	system.Content = append(slices.Clone(system.Content), ai.NewTextPart(sections))
	return append([]*ai.Message{&system}, in[1:]...)
}

// withNews returns messages with what the session told the model between them, and never
// between calls and their results.
func withNews(in []*ai.Message, news []mcphybrid.Insert) []*ai.Message {
	out := make([]*ai.Message, 0, len(in)+len(news))
	for i, m := range in {
		for ; len(news) > 0 && news[0].At <= i && m.Role != ai.RoleTool; news = news[1:] {
			out = append(out, ai.NewUserTextMessage(news[0].News))
		}
		out = append(out, m)
	}
	for _, n := range news {
		out = append(out, ai.NewUserTextMessage(n.News))
	}
	return out
}

// liftMedia returns messages in which no result has contents beside its output. They
// are in a user message behind it.
func liftMedia(in []*ai.Message) []*ai.Message {
	out := make([]*ai.Message, 0, len(in))
	for _, m := range in {
		var media []*ai.Part
		m = withParts(m, func(p *ai.Part) {
			if p.IsToolResponse() && len(p.ToolResponse.Content) > 0 {
				bare := *p.ToolResponse
				media, bare.Content = append(media, bare.Content...), nil
				p.ToolResponse = &bare
			}
		})
		out = append(out, m)
		if media != nil {
			out = append(out, ai.NewUserMessage(media...))
		}
	}
	return out
}

// withParts returns m with its parts changed. It does not change m.
func withParts(m *ai.Message, change func(*ai.Part)) *ai.Message {
	if m == nil {
		return nil
	}
	changed := *m
	changed.Content = slices.Clone(m.Content)
	for i, p := range changed.Content {
		if p != nil {
			part := *p
			change(&part)
			changed.Content[i] = &part
		}
	}
	return &changed
}
