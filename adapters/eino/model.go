package eino

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
)

// Model returns chat with the tools and the prompt sections of sess, as
// [mcphybrid.Session.TurnAt] gives them. Each request begins with all bytes of the one
// before; a session by activation adds tools at the end of the list.
//
// The tools that an agent binds, the host's own, come first in the list. Those of the
// session follow. The sections stand at the end of the first system message, or in one
// of their own. What is new later stands in messages of the user, which the agent does not
// have.
//
// Images in results of tools go into a user message behind the results, as providers
// want them that take only texts in a result.
//
// Each answer that says what it took is counted by [mcphybrid.Session.CountUsage], so the host
// must not call it.
//
// Requests fail if sess is [mcphybrid.ByProvider] or [mcphybrid.ByAddition]: Eino has no
// mark for a tool that the model finds by itself, and no tools between messages.
func Model(sess *mcphybrid.Session, chat model.ToolCallingChatModel) model.ToolCallingChatModel {
	return &hybrid{sess: sess, chat: chat}
}

// A hybrid is a model with the tools of a session. It never changes.
type hybrid struct {
	sess  *mcphybrid.Session
	chat  model.ToolCallingChatModel
	bound []*schema.ToolInfo // those of the agent's node
}

// WithTools returns the model with other tools of the agent.
func (h *hybrid) WithTools(tools []*schema.ToolInfo) (model.ToolCallingChatModel, error) {
	return &hybrid{h.sess, h.chat, tools}, nil
}

// Generate implements [model.BaseChatModel].
func (h *hybrid) Generate(ctx context.Context, in []*schema.Message, opts ...model.Option) (*schema.Message, error) {
	r, err := h.request(in, opts)
	if err != nil {
		return nil, err
	}
	out, err := h.chat.Generate(ctx, r.messages, r.options...)
	if err != nil {
		return nil, err
	}
	var took usage
	took.hear(out)
	took.count(h.sess)
	return r.listed.answer()(out)
}

// Stream implements [model.BaseChatModel].
func (h *hybrid) Stream(ctx context.Context, in []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	r, err := h.request(in, opts)
	if err != nil {
		return nil, err
	}
	out, err := h.chat.Stream(ctx, r.messages, r.options...)
	if err != nil {
		return nil, err
	}
	var took usage
	convert := r.listed.answer()
	return schema.StreamReaderWithConvert(out, func(m *schema.Message) (*schema.Message, error) {
		took.hear(m)
		return convert(m)
	}, schema.WithOnEOF(func() (any, error) {
		took.count(h.sess)
		return nil, io.EOF
	})), nil
}

var errByProvider = errors.New("eino: a session by provider can't be used here: use another disclosure")

// A request is what the model gets.
type request struct {
	messages []*schema.Message
	options  []model.Option
	listed   names // of the tools that the agent's node has
}

// request adds what the session has at this moment.
func (h *hybrid) request(in []*schema.Message, opts []model.Option) (request, error) {
	if h.sess.Disclosure() == mcphybrid.ByProvider {
		return request{}, errByProvider
	}
	turn, err := h.sess.TurnAt(provider.OpenAIChat, "", len(in))
	if err != nil {
		return request{}, err
	}
	bound := model.GetCommonOptions(&model.Options{Tools: h.bound}, opts...).Tools
	var tools []*schema.ToolInfo
	for _, t := range bound {
		if t == nil || t.Extra[mark] == nil {
			tools = append(tools, t)
		}
	}
	for _, t := range turn.Tools {
		info, err := infoOf(t)
		if err != nil {
			return request{}, err
		}
		tools = append(tools, info)
	}
	return request{
		messages: withSections(liftMedia(withNews(inOrder(realNames(in)), turn.Inserts)), turn.System),
		options:  append(slices.Clone(opts), model.WithTools(tools)),
		listed:   namesOf(bound),
	}, nil
}

// withSections returns messages whose first is a system message that ends with sections.
func withSections(in []*schema.Message, sections string) []*schema.Message {
	if sections == "" {
		return in
	}
	if len(in) == 0 || in[0].Role != schema.System {
		return append([]*schema.Message{schema.SystemMessage(strings.TrimLeft(sections, "\n"))}, in...)
	}
	system := *in[0]
	if len(system.UserInputMultiContent) > 0 { // parts
		system.UserInputMultiContent = append(slices.Clone(system.UserInputMultiContent),
			schema.MessageInputPart{Type: schema.ChatMessagePartTypeText, Text: sections})
	} else {
		system.Content += sections
	}
	return append([]*schema.Message{&system}, in[1:]...)
}

// withNews returns messages with what the session told the model between them. The results
// of one answer stay together.
func withNews(in []*schema.Message, news []mcphybrid.Insert) []*schema.Message {
	out := make([]*schema.Message, 0, len(in)+len(news))
	for i, m := range in {
		for ; len(news) > 0 && news[0].At <= i && m.Role != schema.Tool; news = news[1:] {
			out = append(out, schema.UserMessage(news[0].News))
		}
		out = append(out, m)
	}
	for _, n := range news {
		out = append(out, schema.UserMessage(n.News))
	}
	return out
}

// inOrder puts the results behind each answer into the order of its calls. Eino tells a
// host of results as they come, and a history in that order would not begin with what
// the provider has in its cache. It changes the slice.
func inOrder(messages []*schema.Message) []*schema.Message {
	for from := range messages {
		place := make(map[string]int)
		for i, c := range messages[from].ToolCalls {
			place[c.ID] = i
		}
		to := from + 1
		for to < len(messages) && messages[to].Role == schema.Tool {
			to++
		}
		if len(place) > 1 {
			slices.SortStableFunc(messages[from+1:to], func(a, b *schema.Message) int { return place[a.ToolCallID] - place[b.ToolCallID] })
		}
	}
	return messages
}

// liftMedia returns messages in which each tool message is a text. What else it had is
// in a user message behind the tool messages that belong together.
func liftMedia(in []*schema.Message) []*schema.Message {
	out := make([]*schema.Message, 0, len(in))
	var media []schema.MessageInputPart
	flush := func() {
		if media != nil {
			out = append(out, &schema.Message{Role: schema.User, UserInputMultiContent: media})
			media = nil
		}
	}
	for _, m := range in {
		if m.Role != schema.Tool {
			flush()
			out = append(out, m)
			continue
		}
		if len(m.UserInputMultiContent) > 0 {
			text := *m
			text.UserInputMultiContent = nil
			for _, p := range m.UserInputMultiContent {
				if p.Type == schema.ChatMessagePartTypeText {
					text.Content += p.Text
					continue
				}
				if name, ok := p.Extra[mark].(string); ok {
					media = append(media, schema.MessageInputPart{Type: schema.ChatMessagePartTypeText, Text: name})
				}
				media = append(media, p)
			}
			m = &text
		}
		out = append(out, m)
	}
	flush()
	return out
}

// GetType and IsCallbacksEnabled let Eino's callbacks see the model that is wrapped.
func (h *hybrid) GetType() string {
	name, _ := components.GetType(h.chat)
	return name
}

// IsCallbacksEnabled reports whether the wrapped model calls back by itself.
func (h *hybrid) IsCallbacksEnabled() bool { return components.IsCallbacksEnabled(h.chat) }
