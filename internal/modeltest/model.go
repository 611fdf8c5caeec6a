// Package modeltest plays a language model over HTTP, in the protocols of OpenAI's chat
// completions and responses and of Anthropic's messages, streamed or not. A [Script]
// compares the bytes of each request with those before. It needs no part of the library and
// nothing of Go's testing, so that programs can have it too.
package modeltest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// A Request is what a model is sent, in a form that all protocols have in common.
type Request struct {
	Stream   bool
	Usage    bool // the host asked for the tokens at the end of the stream; chat completions only
	System   string
	Tools    []json.RawMessage // with those that messages add
	Listed   int               // how many of Tools are in the list of the request; Anthropic's messages only
	Messages []json.RawMessage // without the system prompt
	Turns    []Turn            // what these say
}

// A Turn is one side's part: the user's message, the model's answer, or the results of its
// calls.
type Turn struct {
	User, Model string
	Calls       []Call // the arguments are canonical
	Results     []Result
	Images      []string // in base64
}

// A Call is a call by the model. Its arguments should be JSON.
type Call struct{ ID, Name, Arguments string }

// A Result is the result of a call as the model reads it.
type Result struct {
	ID, Text string
	IsError  bool
}

// A wire is the server's side of a provider's protocol.
type wire struct {
	read   func(body []byte) (Request, error)
	write  func(Step) any               // one answer
	stream func(Request, Step) []string // server-sent events
}

// wires has the protocols by the end of their paths.
var wires = map[string]wire{
	"/chat/completions": {readChat, writeChat, streamChat},
	"/responses":        {readResponses, writeResponses, streamResponses},
	"/messages":         {readMessages, writeMessages, streamMessages},
}

// A Model answers requests. It is asked with an error if a provider would refuse the
// request whatever the model.
type Model func(Request, error) (Step, error)

// ServeHTTP answers a request in its protocol.
func (m Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	got, err := spoken.read(body)
	answer, err := m(got, err)
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(object{"type": "error", "error": object{"type": "invalid_request_error", "message": err.Error()}})
		return
	}
	if !got.Stream {
		_ = json.NewEncoder(w).Encode(spoken.write(answer))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range spoken.stream(got, answer) {
		if _, err := io.WriteString(w, event); err != nil {
			return
		}
	}
}
