package mcphybrid

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
)

// A picture writes what a host, a model and people see of a Manager, step by step, for a reader to
// check from top to bottom. What a step leaves as it was is not written again.
type picture struct {
	*testing.T
	text strings.Builder
	m    *Manager
	log  mcptest.Log
	seen map[string]string // the parts, as they were written last
	read int               // so much of the log is written

	mu     sync.Mutex
	events []Event
}

// inPicture runs draw in a bubble, so that times are the same each time, and compares what it has
// written with the golden file of the test. about says what that shows.
func inPicture(t *testing.T, about string, draw func(p *picture)) {
	t.Parallel()
	var text string
	synctest.Test(t, func(t *testing.T) {
		p := &picture{T: t, seen: make(map[string]string)}
		p.text.WriteString(about + "\n")
		draw(p)
		text = p.text.String()
	})
	golden.Compare(t, "pictures/"+strings.TrimPrefix(t.Name(), "TestPictureOf")+".golden", text)
}

// start starts the Manager of the picture. Its events and its log are in the picture.
func (p *picture) start(title string, opts Options) *Manager {
	p.Helper()
	opts.OnEvent = func(e Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events = append(p.events, e)
	}
	opts.Logger = slog.New(slog.NewTextHandler(&p.log, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	p.seen = make(map[string]string)
	p.m, _ = newTestManager(p.T, &opts)
	p.step(title)
	return p.m
}

// heading begins a step.
func (p *picture) heading(title string) { p.text.WriteString("\n=== " + title + "\n") }

// line writes one line.
func (p *picture) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// block writes a text under a title, its lines behind a bar.
func (p *picture) block(title, text string) {
	if text == "" {
		return
	}
	p.line("%s\n  | %s", title, strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  | "))
}

// part writes a block if it is not as it was written last. What was only appended to is written from there on.
func (p *picture) part(title, text string) {
	was := p.seen[title]
	p.seen[title] = text
	switch {
	case text == was:
	case text == "":
		p.line("%s: nothing any more", title)
	case was != "" && strings.HasPrefix(text, was):
		p.block(title+", appended", text[len(was):])
	default:
		p.block(title, text)
	}
}

// step writes what happened and what is new since the step before.
func (p *picture) step(title string, sessions ...*Session) {
	p.Helper()
	settle()
	if title != "" {
		p.heading(title)
	}
	p.happened()
	for _, s := range sessions {
		p.session("", s)
	}
}

// settle waits until nothing goes on: what a server announces soon after another change is listed some time later.
func settle() {
	time.Sleep(10 * time.Second)
	synctest.Wait()
}

// happened writes what is new of the Manager.
func (p *picture) happened() {
	p.mu.Lock()
	events := p.events
	p.events = nil
	p.mu.Unlock()
	var ofServers []string
	for _, e := range events {
		if e.Session == nil {
			ofServers = append(ofServers, fieldsOf(e))
		} else {
			p.line("event %s", fieldsOf(e))
		}
	}
	slices.Sort(ofServers) // servers are ready in any order
	for _, line := range ofServers {
		p.line("event %s", line)
	}
	all := p.log.String()
	lines := strings.Split(strings.TrimSuffix(all[p.read:], "\n"), "\n")
	p.read = len(all)
	slices.Sort(lines)
	for _, line := range lines {
		if line != "" {
			p.line("log %s", line)
		}
	}
	var problems []string
	for _, err := range p.m.Problems() {
		problems = append(problems, err.Error())
	}
	p.part("problems", strings.Join(problems, "\n"))
}

// session writes what is new of a session.
func (p *picture) session(name string, s *Session) {
	var placements []string
	last := ""
	for _, place := range s.Placements() {
		why := place.Standing + ", " + place.Reason + ":"
		if place.Rule != "" {
			why = place.Standing + " [" + place.Rule + "], " + place.Reason + ":"
		}
		if why != last {
			placements = append(placements, why)
		}
		last = why
		placements[len(placements)-1] += " " + strings.TrimPrefix(place.Tool.name, "mcp_")
	}
	p.part(strings.TrimSpace(name+" placements"), strings.Join(placements, "\n"))
	var problems []string
	for _, err := range s.Problems() {
		problems = append(problems, err.Error())
	}
	p.part(strings.TrimSpace(name+" idle"), strings.Join(problems, "\n"))
	p.part(strings.TrimSpace(name+" stats"), fieldsOf(s.Stats()))
	p.part(strings.TrimSpace(name+" notes"), s.OverrideBlock())
}

// shown writes what is new of what a host sends that builds its own requests.
func (p *picture) shown(s *Session) {
	p.part("sections", s.PromptSections(PromptFull))
	var tools []string
	for _, t := range s.Tools() {
		tools = append(tools, definitionText(t))
	}
	p.part("tools", strings.Join(tools, "\n"))
}

// called writes what a call of the model's is answered.
func (p *picture) called(s *Session, tool, args string) {
	r, err := s.Call(p.Context(), tool, json.RawMessage(args))
	p.heading(fmt.Sprintf("%s(%s)", tool, args))
	if err != nil {
		p.line("error %v", err)
	}
	if r != nil {
		kind := "answer"
		if r.IsError {
			kind = "refusal"
		}
		for _, c := range r.Content {
			p.block(kind, indented(mcp.GetTextFromContent(c)))
		}
	}
	synctest.Wait()
	p.happened()
}

// indented returns a JSON text with line breaks, and another text as it is.
func indented(text string) string {
	var v any
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	data, err := json.MarshalIndent(json.RawMessage(text), "", " ")
	if err != nil {
		return text
	}
	return string(data)
}

// fieldsOf returns the exported fields of a struct that are not zero, one behind the other.
func fieldsOf(v any) string {
	var list []string
	of := reflect.ValueOf(v)
	for i := range of.NumField() {
		f := of.Type().Field(i)
		if !f.IsExported() || of.Field(i).IsZero() {
			continue
		}
		switch x := of.Field(i).Interface().(type) {
		case *Session:
		case *BridgeTool:
			list = append(list, f.Name+"="+x.name)
		case error:
			list = append(list, fmt.Sprintf("%s=%q", f.Name, x.Error()))
		case fmt.Stringer:
			list = append(list, f.Name+"="+x.String())
		case json.RawMessage:
			list = append(list, f.Name+"="+string(x))
		case string:
			list = append(list, fmt.Sprintf("%s=%q", f.Name, x))
		default:
			if of.Field(i).Kind() == reflect.Struct {
				list = append(list, f.Name+"={"+fieldsOf(x)+"}")
			} else {
				list = append(list, fmt.Sprintf("%s=%v", f.Name, x))
			}
		}
	}
	return strings.Join(list, " ")
}
