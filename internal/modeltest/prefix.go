package modeltest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// A Prefix is a server that passes on the requests of one conversation, each of which must
// begin with the one before, byte for byte: with its system prompt, its list of tools, which
// must not even grow, and its messages. It refuses others as Anthropic does where an earlier
// thinking has lost what it was about, and compares the next one with the last that it
// passed on. It looks at JSON alone and needs no thinking to be there.
//
// Breakpoints of Anthropic's cache may move, since cache_control is not compared. A message
// that gets or loses one may be a string in one request and a list with that text in another.
type Prefix struct {
	Next http.Handler

	// Script may be nil. Its steps then say when a conversation begins anew and when a run
	// is taken back.
	Script *Script

	mu       sync.Mutex
	back     bool
	passed   []start // those that stay in the conversation, in their order
	requests int
	refused  []error
}

// A start is what the requests behind one must begin with.
type start struct {
	protocol Protocol
	tools    []piece
	system   piece // in chat completions the first message
	messages []piece
}

// A piece is JSON of a request and where it stands.
type piece struct {
	at  string
	raw json.RawMessage
}

// Anew says that the next request begins a conversation anew, as after Session.Compact: it
// may have another system prompt, other tools and other messages.
func (p *Prefix) Anew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed, p.back = nil, false
}

// Back says that a run is taken back. The system prompt and the tools of the next request
// stay, but it may begin with the messages of any earlier request that ended a run, which is
// one to which the answer has no calls, or be the first message of the user alone. What the
// request does not begin with is then forgotten.
func (p *Prefix) Back() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.back = true
}

// Requests returns how many there were, with those refused.
func (p *Prefix) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// Refused returns why requests were refused.
func (p *Prefix) Refused() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// Wrong returns the error of the first request that was refused.
func (p *Prefix) Wrong() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) == 0 {
		return nil
	}
	return p.refused[0]
}

// ServeHTTP passes a request on if it begins as it must. It passes on what is no request to
// a model too.
func (p *Prefix) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	wire, ok := spoken(r)
	if !ok {
		p.Next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the host is gone
	}
	if p.Script != nil {
		switch st := p.Script.coming(); {
		case st.Anew:
			p.Anew()
		case st.Back:
			p.Back()
		}
	}
	if err := p.check(wire.name, body); err != nil {
		refuse(w, wire.name, err)
		return
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.Next.ServeHTTP(w, r)
}

// check returns an error unless a request may follow those that were passed on, to which it
// belongs then.
func (p *Prefix) check(protocol Protocol, body []byte) error {
	is, err := newStart(protocol, body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	stay := len(p.passed)
	if err == nil {
		stay, err = p.stay(is)
	}
	if err != nil {
		err = fmt.Errorf("the conversation before the last request has changed: %w", err)
		p.refused = append(p.refused, err)
		return err
	}
	p.passed, p.back = append(p.passed[:stay], is), false
	return nil
}

// stay returns how many of the requests stay in the conversation that a new one goes on with.
func (p *Prefix) stay(is start) (int, error) {
	n := len(p.passed)
	if n == 0 {
		return 0, nil
	}
	last := p.passed[n-1]
	if err := last.fixed(is); err != nil {
		return 0, err
	}
	err := begins(last.messages, is.messages)
	if err == nil || !p.back {
		return n, err
	}
	for i := n - 2; i >= 0; i-- {
		if was := p.passed[i].messages; begins(was, is.messages) == nil && settled(is.messages[len(was):]) {
			return i + 1, nil
		}
	}
	if !slices.ContainsFunc(is.messages, answered) {
		return 0, nil
	}
	return 0, fmt.Errorf("the run is taken back, but no earlier run ends there: %w", err)
}

// newStart returns what the requests behind one must begin with.
func newStart(protocol Protocol, body []byte) (start, error) {
	var in struct {
		System, Instructions json.RawMessage
		Tools                []json.RawMessage
		Messages             []json.RawMessage
		Input                json.RawMessage
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return start{}, err
	}
	s := start{protocol: protocol}
	name, messages := "messages", in.Messages
	switch protocol {
	case Messages:
		s.system = piece{"system", in.System}
	case Responses:
		s.system = piece{"instructions", in.Instructions}
		name, messages = "input", split(in.Input)
	}
	if len(messages) == 0 {
		return start{}, fmt.Errorf("there are no %s", name)
	}
	s.tools, s.messages = listed("tools", in.Tools), listed(name, messages)
	if role := roleOf(messages[0]); protocol == Chat && (role == "system" || role == "developer") {
		s.system, s.messages = s.messages[0], s.messages[1:]
	}
	return s, nil
}

func listed(name string, raws []json.RawMessage) []piece {
	list := make([]piece, len(raws))
	for i, raw := range raws {
		list[i] = piece{fmt.Sprintf("%s.%d", name, i), raw}
	}
	return list
}

// fixed returns an error unless all before the messages is as it was.
func (s start) fixed(is start) error {
	if s.protocol != is.protocol {
		return fmt.Errorf("the protocol was %s, and is %s", s.protocol, is.protocol)
	}
	if err := begins(s.tools, is.tools); err != nil {
		return err
	}
	if n := len(s.tools); n < len(is.tools) {
		return fmt.Errorf("%s is new: %s", is.tools[n].at, short(is.tools[n].raw))
	}
	return s.system.same(is.system)
}

// begins returns an error unless is begins with was.
func begins(was, is []piece) error {
	for i, m := range was {
		if i == len(is) {
			return fmt.Errorf("%s is gone: %s", m.at, short(m.raw))
		}
		if err := m.same(is[i]); err != nil {
			return err
		}
	}
	return nil
}

// same returns an error that tells what differs.
func (p piece) same(is piece) error {
	if bytes.Equal(p.raw, is.raw) {
		return nil
	}
	a, err := bare(p.raw)
	b, wrong := bare(is.raw)
	if err := errors.Join(err, wrong); err != nil {
		return fmt.Errorf("%s: %w", is.at, err)
	}
	if bytes.Equal(a, b) {
		return nil
	}
	if len(a) != len(p.raw) || len(b) != len(is.raw) { // there was a breakpoint
		spelledA, _, _ := plain(a, true)
		spelledB, _, _ := plain(b, true)
		if bytes.Equal(spelledA, spelledB) {
			return nil
		}
	}
	was, now := differ(string(a), string(b))
	return fmt.Errorf("%s is not what it was: %s, then %s", cmp.Or(is.at, p.at), was, now)
}

// bare returns a piece without breakpoints.
func bare(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || raw[0] != '[' { // the system prompt may be a list
		text, _, err := unmarked(raw)
		return text, err
	}
	list := split(raw)
	marked := false
	for i := range list {
		text, _, err := unmarked(list[i])
		if err != nil {
			return nil, err
		}
		marked = marked || len(text) != len(list[i])
		list[i] = text
	}
	if !marked {
		return raw, nil
	}
	return slices.Concat([]byte{'['}, bytes.Join(raws(list), []byte{','}), []byte{']'}), nil
}

// A spoke is what one must know of a message or an item to see whose it is.
type spoke struct {
	Role, Type, Execution string
	Content               json.RawMessage
	ToolCalls             []json.RawMessage `json:"tool_calls"`
}

// answered reports whether a message is the model's.
func answered(m piece) bool {
	var in spoke
	_ = json.Unmarshal(m.raw, &in)
	return in.Role == "assistant" || in.Role == "" && in.Type != "" && !strings.HasSuffix(in.Type, "_output")
}

// settled reports whether messages begin with a whole answer that has no calls.
func settled(messages []piece) bool {
	n := 0
	for ; n < len(messages) && answered(messages[n]); n++ {
		var in spoke
		_ = json.Unmarshal(messages[n].raw, &in)
		if len(in.ToolCalls) > 0 || strings.HasSuffix(in.Type, "_call") && in.Execution != "server" {
			return false
		}
		for _, raw := range split(in.Content) {
			var b struct{ Type string }
			if json.Unmarshal(raw, &b) == nil && b.Type == "tool_use" {
				return false
			}
		}
	}
	return n > 0
}

// differ returns two texts around the first byte in which they differ.
func differ(a, b string) (string, string) {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	return around(a, at), around(b, at)
}

// around returns the text around a byte, quoted so that white space shows.
func around(s string, at int) string {
	if s == "" {
		return "nothing"
	}
	from, to := max(0, at-20), min(len(s), at+60)
	cut := strings.ToValidUTF8(s[from:to], "")
	if from > 0 {
		cut = "…" + cut
	}
	if to < len(s) {
		cut += "…"
	}
	return "«" + cut + "»"
}

func short(raw json.RawMessage) string { return around(string(raw), 0) }
