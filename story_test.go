package mcphybrid

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// A story is a script of steps in the time of a bubble, in which a day passes at once. Of each
// step its golden file has what came back, what the log and the host were told and what servers
// were asked, and then the lines of the picture that are new (+) or gone (-): of all that can be
// seen. So a person can read what follows from what, and a change anywhere is seen here.
type story struct {
	*testing.T
	begun   time.Time
	out     strings.Builder
	picture func() []string // may be nil
	last    []string
	silent  []string // servers that leave as soon as they come: what they enter may be told or not
	crowd   bool     // several servers come at once: what the log says of none of them may come in any order

	mu    sync.Mutex
	heard []heardLine // since the last step
}

// A heardLine is what the script does not see itself. Lines of one kind and about one server are
// told in their order; others may come at the same time.
type heardLine struct{ kind, server, text string }

// tellStory compares what a script does with testdata/stories/NAME.golden.
func tellStory(t *testing.T, name, about string, script func(*story)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &story{T: t, begun: time.Now()}
		s.out.WriteString(about + "\n")
		script(s)
		golden.Compare(t, "stories/"+name+".golden", s.out.String())
	})
}

// step does a step, and tells what follows from it until all are waiting.
func (s *story) step(title string, do func()) {
	s.Helper()
	fmt.Fprintf(&s.out, "\n## %s\n", title)
	do()
	synctest.Wait()
	s.mu.Lock()
	heard := s.heard
	s.heard = nil
	s.mu.Unlock()
	kinds := []string{"said", "asked", "log", "of definitions", "of servers", "of sessions"}
	slices.SortStableFunc(heard, func(a, b heardLine) int {
		c := cmp.Or(cmp.Compare(slices.Index(kinds, a.kind), slices.Index(kinds, b.kind)), strings.Compare(a.server, b.server))
		if c == 0 && s.crowd && a.kind == "log" && a.server == ofNone {
			c = strings.Compare(a.text, b.text)
		}
		return c
	})
	for _, line := range heard {
		if line.kind != "asked" && slices.Contains(s.silent, line.server) {
			continue
		}
		s.out.WriteString(line.text + "\n")
	}
	if s.picture == nil {
		return
	}
	now := s.picture()
	for _, line := range without(s.last, now) {
		s.out.WriteString("- " + line + "\n")
	}
	for _, line := range without(now, s.last) {
		s.out.WriteString("+ " + line + "\n")
	}
	s.last = now
}

// without returns the lines that others do not have as often.
func without(lines, others []string) (left []string) {
	count := make(map[string]int)
	for _, line := range others {
		count[line]++
	}
	for _, line := range lines {
		if count[line]--; count[line] < 0 {
			left = append(left, line)
		}
	}
	return left
}

func (s *story) hear(kind, server, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, heardLine{kind, server, fmt.Sprintf(format, args...)})
}

// say tells what came back.
func (s *story) say(what string, values ...any) {
	line := what + ":"
	for _, v := range values {
		line += " " + s.show(v)
	}
	s.hear("said", "", "%s", line)
}

// pass lets time pass.
func (s *story) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// options returns opts with a log and a host that tell the story.
func (s *story) options(opts Options) *Options {
	opts.Logger = slog.New(slog.NewTextHandler(storyLog{s}, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		switch {
		case a.Key == slog.TimeKey:
			return slog.Attr{}
		case a.Value.Kind() == slog.KindTime:
			return slog.String(a.Key, s.show(a.Value.Time()))
		}
		return a
	}}))
	opts.OnEvent = func(e Event) {
		if e.Kind == EventChanged {
			s.hear("of definitions", e.Server, "event %s", s.show(e))
			return
		}
		if e.Session == nil {
			s.hear("of servers", cmp.Or(e.Server, `""`), "event %s", s.show(e))
			return
		}
		s.hear("of sessions", "", "event %s", s.show(e))
	}
	return &opts
}

type storyLog struct{ *story }

// ofNone stands for the server in a line that is about none.
const ofNone = "-"

var serverOfLog = regexp.MustCompile(` server=("[^"]*"|\S*)`)

func (l storyLog) Write(line []byte) (int, error) {
	server := ofNone
	if found := serverOfLog.FindSubmatch(line); found != nil {
		server = string(found[1])
	}
	l.hear("log", server, "log %s", strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}

// manager returns a Manager that ends with the story.
func (s *story) manager(opts Options) *Manager {
	m := NewManager(s.options(opts))
	s.Cleanup(func() { _ = m.Close() })
	return m
}

// show returns a value in words: of a struct, the members that are not zero.
func (s *story) show(v any) string {
	return s.showValue(reflect.ValueOf(v), false)
}

func (s *story) showValue(v reflect.Value, within bool) string {
	if !v.IsValid() {
		return "nothing"
	}
	if v.CanInterface() {
		switch v := v.Interface().(type) {
		case nil:
			return "nothing"
		case time.Time:
			if v.IsZero() {
				return "never"
			}
			return "+" + v.Sub(s.begun).String()
		case time.Duration:
			return v.String()
		case error:
			return fmt.Sprintf("error %q", v.Error())
		case json.RawMessage:
			return string(v)
		case snapshot.Text:
			return fmt.Sprintf("%q", v.String())
		case snapshot.Definition:
			return strings.Join(strings.Fields(v.Schema(1000)), " ") + " " + s.show(v.Marks())
		case *Session:
			if v == nil {
				return "nothing"
			}
			return fmt.Sprintf("session(%s)", v.asked.label)
		case *BridgeTool:
			if v == nil {
				return "nothing"
			}
			return v.name
		case *mcp.CallToolResult:
			if v == nil {
				return "nothing"
			}
			return s.showResult(v)
		case Tool:
			return v.Name()
		case Disclosure:
			return v.String()
		case mcp.ToolAnnotation:
			data, _ := json.Marshal(v)
			return string(data)
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "nothing"
		}
		return s.showValue(v.Elem(), within)
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !v.Field(i).IsZero() && f.Type.Kind() != reflect.Func && !isNoText(v.Field(i).Interface()) {
				parts = append(parts, f.Name+"="+s.showValue(v.Field(i), true))
			}
		}
		if within {
			return "{" + strings.Join(parts, " ") + "}"
		}
		return strings.Join(parts, " ")
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			return "none"
		}
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = s.showValue(v.Index(i), true)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Map:
		if v.IsNil() {
			return "none"
		}
		var parts []string
		for _, key := range v.MapKeys() {
			parts = append(parts, s.showValue(key, true)+": "+s.showValue(v.MapIndex(key), true))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.String:
		if text := v.String(); text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"{}[],=`, r) }) {
			return fmt.Sprintf("%q", text)
		}
		return v.String()
	}
	return fmt.Sprint(v)
}

// isNoText reports whether v is a text for people without content.
func isNoText(v any) bool {
	text, ok := v.(snapshot.Text)
	return ok && text.String() == ""
}

func (s *story) showResult(r *mcp.CallToolResult) string {
	var parts []string
	if r.IsError {
		parts = append(parts, "refused:")
	}
	for _, c := range r.Content {
		if text, ok := c.(mcp.TextContent); ok {
			parts = append(parts, fmt.Sprintf("%q", text.Text))
			continue
		}
		data, _ := json.Marshal(c)
		parts = append(parts, string(data))
	}
	if r.StructuredContent != nil {
		data, _ := json.Marshal(r.StructuredContent)
		parts = append(parts, "structured "+string(data))
	}
	return strings.Join(parts, " ")
}

// servers returns the lines of a Manager's servers and problems.
func (s *story) servers(m *Manager) (lines []string) {
	for _, st := range m.Servers() {
		lines = append(lines, "server "+s.show(st))
	}
	for _, err := range m.Problems() {
		lines = append(lines, "problem "+err.Error())
	}
	marks := m.Marks()
	for _, name := range sortedNames(marks) {
		lines = append(lines, "marks of "+name+" "+s.show(marks[name]))
	}
	return lines
}

func sortedNames[V any](of map[string]V) (names []string) {
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// tools returns the lines of a session's tools: where each is, and why.
func (s *story) tools(as string, of *Session) (lines []string) {
	for _, p := range of.Placements() {
		lines = append(lines, fmt.Sprintf("%s: %s is %s: %s", as, p.Tool.Name(), p.Standing, p.Reason))
	}
	if active := of.ActiveTools(); len(active) > 0 {
		lines = append(lines, fmt.Sprintf("%s: active %v", as, namesOf(active)))
	}
	return lines
}

// people returns what people are shown of a Manager.
func (s *story) people(m *Manager, session int) (lines []string) {
	look, err := m.Snapshot(session)
	if err != nil {
		return []string{"snapshot " + err.Error()}
	}
	add := func(what string, v any) { lines = append(lines, what+" "+s.show(v)) }
	lines = append(lines, fmt.Sprintf("snapshot of %q, session %s", look.User(), s.show(look.Session())))
	if look.Closed() {
		lines = append(lines, "the Manager is closed")
	}
	for _, p := range look.Problems() {
		add("shown problem", p)
	}
	for _, c := range look.Changes() {
		add("shown change", c)
	}
	for _, server := range look.Servers() {
		add("shown server", server)
	}
	for _, tool := range look.Tools() {
		add("shown tool", tool)
	}
	for _, tool := range look.ActiveTools() {
		add("shown as active", tool)
	}
	for _, e := range look.Events() {
		add("shown event", e)
	}
	for _, st := range look.Stores() {
		add("shown store", st)
	}
	sessions, total := look.Sessions(0, 10)
	lines = append(lines, fmt.Sprintf("%d sessions", total))
	for _, one := range sessions {
		add("shown session", one)
	}
	return lines
}

// A storyServer is a server in this process that tells what it is asked, and can fail.
type storyServer struct {
	config.InProcessServer
	s     *story
	name  string
	mu    sync.Mutex
	fails error
	slow  time.Duration
}

func (s *story) server(name string, of config.InProcessServer) *storyServer {
	return &storyServer{InProcessServer: of, s: s, name: name}
}

// does has the server fail, or answer slowly, from now on.
func (o *storyServer) does(fails error, slow time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fails, o.slow = fails, slow
}

func (o *storyServer) HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
	var r struct {
		ID     mcp.RequestId
		Method string
		Params struct {
			Name, URI string
			Arguments json.RawMessage
			Ref       json.RawMessage
		}
	}
	_ = json.Unmarshal(message, &r)
	o.mu.Lock()
	fails, slow := o.fails, o.slow
	o.mu.Unlock()
	line := fmt.Sprintf("asked %s: %s", o.name, r.Method)
	for _, more := range []string{r.Params.Name, r.Params.URI, string(r.Params.Arguments), string(r.Params.Ref)} {
		if more != "" {
			line += " " + more
		}
	}
	if kind, _, _ := strings.Cut(r.Method, "/"); kind == "server" || kind == "initialize" || kind == "notifications" || strings.HasSuffix(r.Method, "/list") {
		o.s.hear("asked", o.name, "%s", line) // by its own goroutine
	} else {
		o.s.hear("said", "", "%s", line)
	}
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
		}
	}
	if fails != nil {
		return mcp.NewJSONRPCError(r.ID, mcp.INTERNAL_ERROR, fails.Error(), nil)
	}
	return o.InProcessServer.HandleMessage(ctx, message)
}

var errOfStory = errors.New("the disk is full")
