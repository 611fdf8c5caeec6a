package adaptertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A script is a server that plays the model. It refuses a wrong request with the reason.
type script struct {
	Runtime
	steps []step

	mu      sync.Mutex
	next    int          // in steps
	last    conversation // with the request before
	settled conversation // when a run ended last
	err     error        // the first request that was wrong
}

// A conversation is a request and what the model answered.
type conversation struct {
	sent
	said []turn // those of sent, and the answer
}

// sent is a request in a form that all protocols have in common.
type sent struct {
	stream   bool
	system   string
	tools    []json.RawMessage // with those that messages add
	listed   int               // how many of these no message adds, if any may
	messages []json.RawMessage // without the system prompt
	turns    []turn            // what these say
}

// A turn is one side's part: the user's message, the model's answer, or the results of its
// calls.
type turn struct {
	user, model string
	calls       []call // the arguments are canonical
	results     []told
	images      []string // in base64
}

// A told is a result as the model reads it.
type told struct {
	id, text string
	isError  bool
}

// A wire is the server's side of a provider's protocol.
type wire struct {
	read   func(body []byte) (sent, error)
	write  func(step) any      // one answer
	stream func(step) []string // server-sent events
}

// wires has the protocols by the end of their paths.
var wires = map[string]wire{
	"/chat/completions": {readChat, writeChat, streamChat},
	"/responses":        {readResponses, writeResponses, streamResponses},
	"/messages":         {readMessages, writeMessages, streamMessages},
}

// serve serves a model on loopback. play returns its answer to a request.
func serve(t *testing.T, streams bool, play func(spoken wire, body []byte) (step, error)) (url string) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var spoken wire
		for path, wire := range wires {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, path) {
				spoken = wire
			}
		}
		if spoken.read == nil {
			http.NotFound(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the host is gone
		}
		answer, err := play(spoken, body)
		reply(w, spoken, streams, answer, err)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// reply writes an answer, or an error, in a protocol.
func reply(w http.ResponseWriter, spoken wire, streams bool, answer step, err error) {
	if err == nil && answer.away {
		err = errors.New(away)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(object{"type": "error", "error": object{"type": "invalid_request_error", "message": err.Error()}})
		return
	}
	if !streams {
		_ = json.NewEncoder(w).Encode(spoken.write(answer))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range spoken.stream(answer) {
		if _, err := io.WriteString(w, event); err != nil {
			return
		}
	}
}

// answerTo returns the last answer of the run that begins with a message.
func (s *script) answerTo(user string) string {
	i := slices.IndexFunc(s.steps, func(st step) bool { return st.user == user })
	for len(s.steps[i].calls) > 0 || s.steps[i].broken {
		i++
	}
	return s.steps[i].say
}

// wrong returns the error of the first wrong request.
func (s *script) wrong() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// end returns an error if the script is not at its end.
func (s *script) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.next < len(s.steps) {
		return fmt.Errorf("the script is at step %d of %d", s.next, len(s.steps))
	}
	return s.err
}

// play returns the current step if body is its request.
func (s *script) play(spoken wire, body []byte) (step, error) {
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
	got, err := spoken.read(body)
	if err == nil && s.Quotes {
		err = unquote(got.turns)
	}
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
	answer := turn{model: st.say}
	for _, c := range st.calls {
		answer.calls = append(answer.calls, call{c.id, c.name, canonical(c.arguments)})
	}
	s.last = conversation{got, append(slices.Clone(got.turns), answer)}
	if len(st.calls) == 0 && !st.broken {
		s.settled = s.last
	}
	return st, nil
}

// check returns what is wrong with a request.
func (s *script) check(st step, got sent) error {
	switch {
	case got.stream != s.Streams:
		return fmt.Errorf("stream is %t, want %t", got.stream, s.Streams)
	case s.next == 0 && (!strings.HasPrefix(got.system, System) || !strings.Contains(got.system, "mcp_tool_search")):
		return fmt.Errorf("the system prompt is %q, want %q and the sections", got.system, System)
	case s.next > 0 && got.system != s.last.system:
		return fmt.Errorf("the system prompt is not what it was: %q, then %q", s.last.system, got.system)
	}
	if s.Fixed && s.next > 0 && got.listed != s.last.listed {
		return fmt.Errorf("there are %d tools outside of messages, want the same %d as before", got.listed, s.last.listed)
	}
	if err := checkTools(s.last.tools, got.tools, st.tools); err != nil {
		return err
	}
	if st.again {
		if len(got.messages) != len(s.last.messages) {
			return fmt.Errorf("there are %d messages, want the same %d again", len(got.messages), len(s.last.messages))
		}
		return grown("message", s.last.messages, got.messages)
	}
	base := s.last
	if st.back {
		base = s.settled
	}
	if err := grown("message", base.messages, got.messages); err != nil {
		return err
	}
	n := len(base.said)
	if len(got.turns) != n+1 {
		return fmt.Errorf("the conversation has %d turns, want %d: %+v", len(got.turns), n+1, got.turns)
	}
	for i, was := range base.said {
		if is := got.turns[i]; !reflect.DeepEqual(is, was) {
			return fmt.Errorf("turn %d is not what it was: %+v, then %+v", i+1, was, is)
		}
	}
	var asked []call
	if n > 0 {
		asked = base.said[n-1].calls
	}
	return s.checkNew(st, got.turns[n], asked)
}

// checkNew returns what is wrong with the last turn of a request, which follows these calls.
func (s *script) checkNew(st step, last turn, asked []call) error {
	if last.model != "" || last.user != st.user {
		return fmt.Errorf("the user's message is %q, want %q", last.user, st.user)
	}
	if len(last.results) != len(asked) || len(st.results) != len(asked) {
		return fmt.Errorf("there are %d results, and %d in the script, for %d calls", len(last.results), len(st.results), len(asked))
	}
	for i, r := range last.results {
		want, isError := strings.CutPrefix(st.results[i], "!")
		switch {
		case r.id != asked[i].id:
			return fmt.Errorf("result %d is for %q, want %q", i+1, r.id, asked[i].id)
		case r.isError != isError && !s.NoErrors:
			return fmt.Errorf("result %d is marked as an error: %t, want %t: %q", i+1, r.isError, isError, r.text)
		case !strings.Contains(r.text, want):
			return fmt.Errorf("result %d is %q, want %q in it", i+1, r.text, want)
		}
	}
	var images []string
	if st.image && !s.NoImages {
		images = []string{photo}
	}
	if !slices.Equal(images, last.images) {
		return fmt.Errorf("there are the images %q, want %q", last.images, images)
	}
	return nil
}

// grown returns an error unless is begins with was, byte for byte.
func grown(what string, was, is []json.RawMessage) error {
	if len(is) < len(was) {
		return fmt.Errorf("of %d, a %s is gone: there are %d", len(was), what, len(is))
	}
	for i := range was {
		if string(is[i]) != string(was[i]) {
			return fmt.Errorf("%s %d is not what it was: %s, then %s", what, i+1, was[i], is[i])
		}
	}
	return nil
}

// checkTools returns an error unless is has the tools of was, byte for byte, followed by
// those with the names in more.
func checkTools(was, is []json.RawMessage, more []string) error {
	if err := grown("tool", was, is); err != nil {
		return err
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
