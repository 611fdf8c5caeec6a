package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
)

// A form is a way of sending the tools of a world.
type form struct {
	name    string
	formats []provider.Format // nil is all that a rule has
	open    func(w *world, f provider.Format, model string) (host, error)
}

func (f form) fits(format provider.Format) bool {
	return f.formats == nil || slices.Contains(f.formats, format)
}

// A host sends one conversation.
type host interface {
	// request returns the next request of a conversation with these messages, and the messages
	// that it adds to them. These are in the request too.
	request(messages []json.RawMessage) (body map[string]any, own []json.RawMessage, err error)

	// answer returns the messages of a call and its result, and what the result says to the
	// model.
	answer(ctx context.Context, c call) (messages []json.RawMessage, text string, err error)
}

var (
	adding = []provider.Format{provider.Anthropic, provider.OpenAIResponses}
)

// forms has raw first, which the others are compared with.
var forms = []form{
	{"raw", nil, openRaw},
	{"native", []provider.Format{provider.Anthropic, provider.OpenAIResponses}, openNative},
	{"default", nil, turning(mcphybrid.Automatic, false)}, // what a host gets that chooses nothing
	{"activation", nil, by(mcphybrid.ByActivation, false)},
	{"activation-none", nil, by(mcphybrid.ByActivation, true)},
	{"bridge", nil, turning(mcphybrid.ByBridge, false)},
	{"bridge-none", nil, turning(mcphybrid.ByBridge, true)},
	{"addition", adding, turning(mcphybrid.ByAddition, false)},
	{"addition-none", adding, turning(mcphybrid.ByAddition, true)},
	{"provider", adding, hiding(false)},
	{"provider-none", adding, hiding(true)},
	{"code", nil, openCode},
}

func (w *world) of(nothingInline bool) *mcphybrid.Manager {
	if nothingInline {
		return w.nothing
	}
	return w.deferring
}

// turning returns a form in which the host asks the session for each whole request. A
// disclosure that is asked for is billed under the rules of all models, also of those that
// refuse it.
func turning(d mcphybrid.Disclosure, nothingInline bool) func(*world, provider.Format, string) (host, error) {
	return func(w *world, f provider.Format, model string) (host, error) {
		if d != mcphybrid.Automatic {
			model = ""
		}
		return &turns{session{w.of(nothingInline).NewSession(&mcphybrid.SessionOptions{Disclosure: d}), f}, model}, nil
	}
}

type turns struct {
	session
	model string
}

func (t *turns) request(messages []json.RawMessage) (map[string]any, []json.RawMessage, error) {
	turn, err := t.Turn(t.format, t.model)
	if err != nil {
		return nil, nil, err
	}
	return turn.Body(hostPrompt, append(messages, turn.Append...)), turn.Append, nil
}

// hiding returns a form in which the provider defers the tools, and we search.
func hiding(nothingInline bool) func(*world, provider.Format, string) (host, error) {
	return func(w *world, f provider.Format, model string) (host, error) {
		if f == provider.OpenAIResponses {
			return turning(mcphybrid.ByProvider, nothingInline)(w, f, model)
		}
		return by(mcphybrid.ByProvider, nothingInline)(w, f, model)
	}
}

// by returns a form in which the host sends the session's list and sections as they are at
// each request.
func by(d mcphybrid.Disclosure, nothingInline bool) func(*world, provider.Format, string) (host, error) {
	return func(w *world, f provider.Format, _ string) (host, error) {
		return &session{w.of(nothingInline).NewSession(&mcphybrid.SessionOptions{Disclosure: d}), f}, nil
	}
}

func (t *turns) answer(ctx context.Context, c call) ([]json.RawMessage, string, error) {
	if c.name != openAISearch {
		return t.session.answer(ctx, c)
	}
	search := raw(object{"type": "tool_search_call", "execution": "client", "call_id": c.id, "arguments": c.args})
	found, err := t.AnswerToolSearch(ctx, search)
	return []json.RawMessage{said(t.format, false, c.say), search, found}, "", err
}

// A session sends what Export and PromptSections return, in each request anew.
type session struct {
	*mcphybrid.Session
	format provider.Format
}

func (s *session) request(messages []json.RawMessage) (map[string]any, []json.RawMessage, error) {
	list, err := s.Export(s.format)
	if err != nil {
		return nil, nil, err
	}
	return bodyOf(s.format, jsonOf(list), s.PromptSections(mcphybrid.PromptFull), messages), nil, nil
}

func jsonOf(list []provider.Tool) []json.RawMessage {
	tools := make([]json.RawMessage, len(list))
	for i, t := range list {
		tools[i] = t.JSON
	}
	return tools
}

func (s *session) answer(ctx context.Context, c call) ([]json.RawMessage, string, error) {
	res, err := s.Call(ctx, c.name, c.args)
	if err == nil && res.IsError {
		err = fmt.Errorf("%s %s is an error", c.name, c.args)
	}
	if err != nil {
		return nil, "", err
	}
	exported, err := provider.ExportResult(res, s.format)
	if err != nil {
		return nil, "", err
	}
	messages, err := called(s.format, c, res)
	return messages, exported.Text, err
}
