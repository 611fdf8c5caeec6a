package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A step of a script is one request of the agent: what must be new in it, and
// the model's answer.
type step struct {
	// A request has a message of the user, or a result for each call of the
	// step before, in order. Each must contain the text given here. A "!"
	// before the text means that the result must be marked as an error.
	user    string
	results []string

	// tools are the names that must be new in the list of tools since the step
	// before.
	tools []string

	// anew says that the conversation and the list of tools begin anew, with
	// the answer of the step before.
	anew bool

	// own says that the agent wrote the user's message.
	own bool

	say    string
	calls  []call // the script gives them ids
	tokens int    // the length of the conversation that the answer reports
}

// A script is a server that plays the model in both providers' protocols. It
// compares each request with its step and with what was sent before, and
// refuses a wrong request with the reason.
type script struct {
	steps []step

	mu   sync.Mutex
	next int    // in steps
	said []turn // the conversation so far
	last sent
	err  error // the first request that was wrong
}

// sent is a request in a form common to both protocols.
type sent struct {
	system string
	tools  []json.RawMessage
	turns  []turn
}

// A turn is one side's part: the user's message, the model's answer, or the
// results of its calls.
type turn struct {
	user, model string
	calls       []call
	results     []told
}

// A told is a result as the model reads it.
type told struct {
	id, text string
	isError  bool
}

func newScript(steps []step) *script { return &script{steps: steps} }

// messages returns the user's messages in the script.
func (s *script) messages() []string {
	var list []string
	for _, st := range s.steps {
		if st.user != "" && !st.own {
			list = append(list, st.user)
		}
	}
	return list
}

// serve serves the script on loopback, at the endpoint that it fills in, until
// stop is called.
func (s *script) serve(e *endpoint) (stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	srv := &http.Server{Handler: s}
	go srv.Serve(l)
	e.baseURL = "http://" + l.Addr().String() + "/"
	return func() { srv.Close() }, nil
}

// end returns the error of the first wrong request, or an error if the script
// is not at its end.
func (s *script) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.next < len(s.steps) {
		return fmt.Errorf("the script is at step %d of %d", s.next, len(s.steps))
	}
	return s.err
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	wire, ok := wires[r.Method+" "+r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the agent is gone
	}
	answer, err := s.play(wire, body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": err.Error()}})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range wire.write(answer) {
		if _, err := io.WriteString(w, event); err != nil {
			return
		}
	}
}

// play returns the current step if body is its request.
func (s *script) play(wire wire, body []byte) (step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == len(s.steps) {
		return step{}, errors.New("the script is at its end")
	}
	st := s.steps[s.next]
	st.calls = slices.Clone(st.calls)
	for i := range st.calls {
		st.calls[i].id = fmt.Sprintf("call_%d_%d", s.next+1, i+1)
	}
	got, err := wire.read(body)
	if err == nil {
		err = s.check(st, got)
	}
	if err != nil {
		err = fmt.Errorf("step %d: %w", s.next+1, err)
		if s.err == nil {
			s.err = err
		}
		return step{}, err
	}
	s.next++
	s.said = append(got.turns, turn{model: st.say, calls: st.calls})
	s.last = got
	return st, nil
}

// check returns what is wrong with a request.
func (s *script) check(st step, got sent) error {
	if st.anew {
		s.said, s.last.tools = nil, nil
	}
	if s.next > 0 && got.system != s.last.system {
		return fmt.Errorf("the system prompt is not what it was: %q, then %q", s.last.system, got.system)
	}
	if err := checkTools(s.last.tools, got.tools, st.tools); err != nil {
		return err
	}

	n := len(s.said)
	if len(got.turns) != n+1 {
		return fmt.Errorf("the conversation has %d turns, want %d", len(got.turns), n+1)
	}
	for i, was := range s.said {
		if is := got.turns[i]; !reflect.DeepEqual(is, was) {
			return fmt.Errorf("turn %d is not what it was: %+v, then %+v", i+1, was, is)
		}
	}
	last := got.turns[n]
	if st.anew && !strings.Contains(last.user, s.steps[s.next-1].say) {
		return fmt.Errorf("the user's message is %q, want the summary in it", last.user)
	}
	if last.model != "" || !strings.Contains(last.user, st.user) || (last.user == "") != (st.user == "") {
		return fmt.Errorf("the user's message is %q, want %q", last.user, st.user)
	}
	var calls []call
	if n > 0 {
		calls = s.said[n-1].calls
	}
	if len(last.results) != len(calls) || len(st.results) != len(calls) {
		return fmt.Errorf("there are %d results, and %d in the script, for %d calls", len(last.results), len(st.results), len(calls))
	}
	for i, r := range last.results {
		want, isError := strings.CutPrefix(st.results[i], "!")
		switch {
		case r.id != calls[i].id:
			return fmt.Errorf("result %d is for %q, want %q", i+1, r.id, calls[i].id)
		case r.isError != isError:
			return fmt.Errorf("result %d is marked as an error: %t, want %t: %q", i+1, r.isError, isError, r.text)
		case !strings.Contains(r.text, want):
			return fmt.Errorf("result %d is %q, want %q in it", i+1, r.text, want)
		}
	}
	return nil
}

// checkTools returns an error unless is has the tools of was, byte for byte,
// followed by those with the names in more.
func checkTools(was, is []json.RawMessage, more []string) error {
	if len(is) < len(was) {
		return fmt.Errorf("the list of tools has lost %d", len(was)-len(is))
	}
	for i, tool := range was {
		if string(is[i]) != string(tool) {
			return fmt.Errorf("tool %d is not what it was: %s, then %s", i+1, tool, is[i])
		}
	}
	var names []string
	for _, tool := range is[len(was):] {
		var t struct {
			Name     string
			Function struct{ Name string }
		}
		if err := json.Unmarshal(tool, &t); err != nil {
			return err
		}
		names = append(names, t.Name+t.Function.Name) // one of the two, by protocol
	}
	if !slices.Equal(names, more) {
		return fmt.Errorf("the list of tools has grown by %q, want %q", names, more)
	}
	return nil
}
