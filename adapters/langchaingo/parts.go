package langchaingo

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/tmc/langchaingo/llms"
)

var errEmpty = errors.New("langchaingo: the model's answer is empty")

var errByProvider = errors.New("langchaingo: a session by provider can't be used here: use another disclosure")

// Request returns what the next request of a conversation needs, as
// [mcphybrid.Session.TurnAt] gives it: messages with the prompt sections of sess at the end of
// the first system message, or in one of their own, and the list of tools. What is new since
// the conversation began stands between the messages, in messages of the user. Each request
// begins with all of the one before; a session by activation adds tools at the end of the list.
//
// messages are those of the conversation, without what Request has added. They are not
// changed. The schemas are maps, as some models of LangChainGo want them, so the order of
// their members is that of the names.
//
// Request fails if sess is [mcphybrid.ByProvider] or [mcphybrid.ByAddition]: LangChainGo has
// no mark for a tool that the model finds by itself, and no tools between messages.
func Request(sess *mcphybrid.Session, messages []llms.MessageContent) ([]llms.MessageContent, []llms.Tool, error) {
	if sess.Disclosure() == mcphybrid.ByProvider {
		return nil, nil, errByProvider
	}
	turn, err := sess.TurnAt(provider.OpenAIChat, "", len(messages))
	if err != nil {
		return nil, nil, err
	}
	tools, err := toolsOf(turn.Tools)
	return withSections(withNews(messages, turn.Inserts), turn.System), tools, err
}

// Tools returns the tools of sess at this moment, for a request with the messages of [System].
// Together they are for hosts that want no messages between their own, and cost more than
// [Request]. With them alone an [mcphybrid.Automatic] session is by activation: the list
// grows at its end with all that a search finds, and what comes late changes the system
// message. Each time the provider reads the whole conversation anew.
//
// It fails if sess is [mcphybrid.ByProvider].
func Tools(sess *mcphybrid.Session) ([]llms.Tool, error) {
	if sess.Disclosure() == mcphybrid.ByProvider {
		return nil, errByProvider
	}
	list, err := sess.Export(provider.OpenAIChat)
	if err != nil {
		return nil, err
	}
	return toolsOf(list)
}

func toolsOf(list []provider.Tool) ([]llms.Tool, error) {
	tools := make([]llms.Tool, len(list))
	for i, t := range list {
		var schema map[string]any
		d := json.NewDecoder(bytes.NewReader(t.InputSchema))
		d.UseNumber() // keeps the digits
		if err := d.Decode(&schema); err != nil {
			return nil, fmt.Errorf("langchaingo: tool %q: %w", t.Name, err)
		}
		tools[i] = llms.Tool{Type: "function", Function: &llms.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: schema}}
	}
	return tools, nil
}

// System returns messages whose first is a system message that ends with the prompt
// sections of sess at this moment: see [Tools]. messages is not changed.
func System(sess *mcphybrid.Session, messages []llms.MessageContent) []llms.MessageContent {
	return withSections(messages, sess.PromptSections(mcphybrid.PromptFull))
}

// withSections returns messages whose first is a system message that ends with sections.
func withSections(messages []llms.MessageContent, sections string) []llms.MessageContent {
	if sections == "" {
		return messages
	}
	base := ""
	if len(messages) > 0 && messages[0].Role == llms.ChatMessageTypeSystem {
		for _, p := range messages[0].Parts {
			if text, ok := p.(llms.TextContent); ok {
				base += text.Text
			}
		}
		messages = messages[1:]
	}
	if base == "" {
		sections = strings.TrimLeft(sections, "\n")
	}
	return append([]llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, base+sections)}, messages...)
}

// withNews returns messages with what the session told the model between them. The results
// of one answer stay together.
func withNews(messages []llms.MessageContent, news []mcphybrid.Insert) []llms.MessageContent {
	out := make([]llms.MessageContent, 0, len(messages)+len(news))
	for i, m := range messages {
		for ; len(news) > 0 && news[0].At <= i && m.Role != llms.ChatMessageTypeTool; news = news[1:] {
			out = append(out, llms.TextParts(llms.ChatMessageTypeHuman, news[0].News))
		}
		out = append(out, m)
	}
	for _, n := range news {
		out = append(out, llms.TextParts(llms.ChatMessageTypeHuman, n.News))
	}
	return out
}

// Images says how a model of LangChainGo takes images.
type Images int

const (
	ImagesByURL  Images = iota // data URLs, as OpenAI
	ImagesBinary               // as Anthropic, Google and Ollama
	NoImages                   // not at all: the model reads that there was one
)

// Answer returns the messages that follow from choice: the model's, and those with the
// results of its calls, which it makes concurrently. Images stand in a message of the
// user behind the results. Sounds and files have only a line in the result.
//
// What the model says that choice took is counted by [mcphybrid.Session.CountUsage], so the
// host must not call it.
//
// A call that fails is a result, which tells the model why. Answer fails if ctx has ended,
// and if choice is empty. It makes no call if one of them is of no function.
func Answer(ctx context.Context, sess *mcphybrid.Session, choice *llms.ContentChoice, images Images) ([]llms.MessageContent, error) {
	count(sess, choice.GenerationInfo)
	if choice.Content == "" && len(choice.ToolCalls) == 0 {
		return nil, errEmpty // providers refuse to get it back
	}
	for _, c := range choice.ToolCalls {
		if c.FunctionCall == nil {
			return nil, fmt.Errorf("langchaingo: call %q is of no function", c.ID)
		}
	}
	model := llms.MessageContent{Role: llms.ChatMessageTypeAI}
	if choice.Content != "" {
		model.Parts = append(model.Parts, llms.TextPart(choice.Content))
	}
	results := make([]provider.Result, len(choice.ToolCalls))
	problems := make([]error, len(choice.ToolCalls))
	var wg sync.WaitGroup
	for i, c := range choice.ToolCalls {
		if c.Type == "" { // some endpoints leave it out
			c.Type = "function"
		}
		model.Parts = append(model.Parts, c)
		wg.Go(func() {
			res, _ := sess.Call(ctx, c.FunctionCall.Name, c.FunctionCall.Arguments) // res tells the model of an error
			results[i], problems[i] = provider.ExportResult(res, provider.OpenAIChat)
		})
	}
	wg.Wait()
	if err := errors.Join(append(problems, ctx.Err())...); err != nil {
		return nil, err
	}
	messages := []llms.MessageContent{model}
	var seen []llms.ContentPart
	for i, r := range results {
		c := choice.ToolCalls[i]
		response := llms.ToolCallResponse{ToolCallID: c.ID, Name: c.FunctionCall.Name, Content: r.Text}
		messages = append(messages, llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{response}})
		seen = slices.Concat(seen, imagesOf(r.Media, images))
	}
	if seen != nil {
		messages = append(messages, llms.MessageContent{Role: llms.ChatMessageTypeHuman, Parts: seen})
	}
	return messages, nil
}

// imagesOf returns the images among media, each behind its name.
func imagesOf(media []json.RawMessage, as Images) (parts []llms.ContentPart) {
	if as == NoImages {
		return nil
	}
	var name string
	for _, raw := range media {
		var m struct {
			Text  string
			Image struct{ URL string } `json:"image_url"`
		}
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		if m.Image.URL == "" {
			name = m.Text
			continue
		}
		part := llms.ContentPart(llms.ImageURLPart(m.Image.URL))
		if as == ImagesBinary {
			mime, data, _ := strings.Cut(strings.TrimPrefix(m.Image.URL, "data:"), ";base64,")
			decoded, err := base64.StdEncoding.DecodeString(data)
			if err != nil {
				continue
			}
			part = llms.BinaryPart(mime, decoded)
		}
		parts = append(parts, llms.TextPart(name), part)
	}
	return parts
}
