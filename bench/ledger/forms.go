package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid"
)

// A form is a way of sending the tools of a world.
type form struct {
	name    string
	formats []mcphybrid.Format // nil is all that a rule has
	open    func(w *world, f mcphybrid.Format) (host, error)
}

func (f form) fits(format mcphybrid.Format) bool {
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

var anthropic = []mcphybrid.Format{mcphybrid.FormatAnthropic}

// forms has raw first, which the others are compared with.
var forms = []form{
	{"raw", nil, openRaw},
	{"native", []mcphybrid.Format{mcphybrid.FormatAnthropic, mcphybrid.FormatOpenAIResponses}, openNative},
	{"default", nil, openDefault},
	{"activation", nil, by(mcphybrid.ByActivation, false)},
	{"activation-none", nil, by(mcphybrid.ByActivation, true)},
	{"bridge", nil, by(mcphybrid.ByBridge, false)},
	{"bridge-none", nil, by(mcphybrid.ByBridge, true)},
	{"addition", anthropic, adding(false)},
	{"addition-none", anthropic, adding(true)},
	{"provider", anthropic, by(mcphybrid.ByProvider, false)},
	{"provider-none", anthropic, by(mcphybrid.ByProvider, true)},
}

// openDefault opens what a host gets that chooses nothing.
//
// It is the only place that says what that is. A host that asks the session for a whole
// turn puts what is to be appended into own, and returns the body that the turn makes.
func openDefault(w *world, f mcphybrid.Format) (host, error) {
	return &session{w.deferring.NewSession(nil), f}, nil
}

func by(d mcphybrid.Disclosure, nothingInline bool) func(*world, mcphybrid.Format) (host, error) {
	return func(w *world, f mcphybrid.Format) (host, error) {
		m := w.deferring
		if nothingInline {
			m = w.nothing
		}
		return &session{m.NewSession(&mcphybrid.SessionOptions{Disclosure: d}), f}, nil
	}
}

// A session sends what Export and PromptSections return, in each request anew.
type session struct {
	*mcphybrid.Session
	format mcphybrid.Format
}

func (s *session) request(messages []json.RawMessage) (map[string]any, []json.RawMessage, error) {
	list, err := s.Export(s.format)
	if err != nil {
		return nil, nil, err
	}
	return bodyOf(s.format, jsonOf(list), s.PromptSections(mcphybrid.PromptFull), messages), nil, nil
}

func jsonOf(list []mcphybrid.ExportedTool) []json.RawMessage {
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
	exported, err := mcphybrid.ExportResult(res, s.format)
	if err != nil {
		return nil, "", err
	}
	messages, err := called(s.format, c, res)
	return messages, exported.Text, err
}

func adding(nothingInline bool) func(*world, mcphybrid.Format) (host, error) {
	open := by(mcphybrid.ByActivation, nothingInline)
	return func(w *world, f mcphybrid.Format) (host, error) {
		h, err := open(w, f)
		return &additions{session: h.(*session), added: make(map[string]bool)}, err
	}
}

// additions keeps the list of the first request and adds later tools by blocks of messages, as
// adapters/anthropic does with the beta for it.
type additions struct {
	*session
	listed []json.RawMessage // nil before the first request
	added  map[string]bool   // by name: in the list or in a message
}

func (a *additions) request(messages []json.RawMessage) (map[string]any, []json.RawMessage, error) {
	list, err := a.Export(a.format)
	if err != nil {
		return nil, nil, err
	}
	var blocks []object
	for _, t := range list {
		if !a.added[t.Name] && a.listed != nil {
			blocks = append(blocks, object{"type": "tool_addition", "tool": object{"type": "tool_definition", "definition": t.JSON}})
		}
		a.added[t.Name] = true
	}
	if a.listed == nil {
		a.listed = jsonOf(list)
	}
	var own []json.RawMessage
	if blocks != nil {
		own = []json.RawMessage{raw(object{"role": "system", "content": blocks})}
	}
	return bodyOf(a.format, a.listed, a.PromptSections(mcphybrid.PromptFull), append(slices.Clip(messages), own...)), own, nil
}
