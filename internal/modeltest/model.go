// Package modeltest plays a language model over HTTP, in the protocols of OpenAI's chat
// completions and responses and of Anthropic's messages, streamed or not. A [Script]
// compares the bytes of each request with those before, a [Prefix] refuses requests that do
// not begin with the one before, and [Caches] reports what a provider's cache has of them:
//
//	server := httptest.NewServer(&modeltest.Prefix{Next: &modeltest.Caches{Next: script.Play}})
//
// It needs no part of the library and nothing of Go's testing, so that programs can have it
// too.
package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// A Request is what a model is sent, in a form that all protocols have in common.
type Request struct {
	Protocol Protocol
	Body     json.RawMessage // as it was sent
	Stream   bool
	Usage    bool // the host asked for the tokens at the end of the stream; chat completions only
	System   string
	Tools    []json.RawMessage   // with those that messages add
	Listed   int                 // how many of Tools are in the list of the request
	Removed  []string            // the names of tools that messages remove, in their order; Anthropic's messages only
	Standing map[string]Standing // by [Call.FullName], how tools stand at the end of the request
	Messages []json.RawMessage   // without the system prompt
	Turns    []Turn              // what these say

	betas [][]string // the request needs one of each
}

// A Protocol is one of a provider's.
type Protocol string

// The protocols.
const (
	Chat      Protocol = "chat"      // OpenAI's chat completions
	Responses Protocol = "responses" // OpenAI's
	Messages  Protocol = "messages"  // Anthropic's
)

// A Turn is one side's part: the user's message, the model's answer, or the results of its
// calls.
type Turn struct {
	User, Model string
	Calls       []Call // the arguments are canonical
	Results     []Result
	Images      []string // in base64

	// Told is what the host says beside that: the text of messages of the system or the
	// developer in mid-conversation, and of the user's behind results. Texts are joined by a
	// line break.
	Told string
}

// A Call is a call by the model. Its arguments should be JSON. In OpenAI's responses, one of
// [ToolSearch] without a namespace is a tool_search_call that the host answers.
type Call struct {
	ID, Name, Arguments string
	Namespace           string // OpenAI's responses only
}

// ToolSearch is the name of OpenAI's own search as a [Call] has it.
const ToolSearch = "tool_search"

// FullName returns the name behind the namespace and a dot, if there is one.
func (c Call) FullName() string { return fullName(c.Namespace, c.Name) }

// A Result is the result of a call as the model reads it.
type Result struct {
	ID, Text string
	IsError  bool
}

// A wire is the server's side of a provider's protocol.
type wire struct {
	name   Protocol
	read   func(body []byte) (Request, error)
	write  func(Step) any               // one answer
	stream func(Request, Step) []string // server-sent events
}

// wires has the protocols by the end of their paths.
var wires = map[string]wire{
	"/chat/completions": {Chat, readChat, writeChat, streamChat},
	"/responses":        {Responses, readResponses, writeResponses, streamResponses},
	"/messages":         {Messages, readMessages, writeMessages, streamMessages},
}

// A Model answers requests. It is asked with an error if a provider would refuse the
// request whatever the model.
type Model func(Request, error) (Step, error)

// spoken returns the protocol of a request to a server.
func spoken(r *http.Request) (wire, bool) {
	for path, w := range wires {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, path) {
			return w, true
		}
	}
	return wire{}, false
}

// ServeHTTP answers a request in its protocol.
func (m Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	wire, ok := spoken(r)
	if !ok {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the host is gone
	}
	got, err := wire.read(body)
	if err == nil {
		err = got.checkBetas(r.Header.Values("anthropic-beta"))
	}
	got.Protocol, got.Body = wire.name, body
	answer, err := m(got, err)
	if err != nil {
		refuse(w, wire.name, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !got.Stream {
		_ = json.NewEncoder(w).Encode(wire.write(answer))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range wire.stream(got, answer) {
		if _, err := io.WriteString(w, event); err != nil {
			return
		}
	}
}

// refuse answers that a request is wrong.
func refuse(w http.ResponseWriter, p Protocol, err error) {
	reason := object{"type": "invalid_request_error", "message": err.Error()}
	answer := object{"type": "error", "error": reason}
	if p != Messages {
		reason["param"], reason["code"] = nil, nil
		answer = object{"error": reason}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(answer)
}

// checkBetas returns an error unless the header has what the request needs.
func (r *Request) checkBetas(header []string) error {
	has := strings.Join(header, ",")
	for _, one := range r.betas {
		if !slices.ContainsFunc(one, func(beta string) bool { return strings.Contains(has, beta) }) {
			return fmt.Errorf("the header anthropic-beta is %q, want %s in it", has, strings.Join(one, " or "))
		}
	}
	return nil
}
