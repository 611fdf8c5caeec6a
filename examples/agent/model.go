package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcphybrid/mcphybrid"
)

// A model is a conversation with a provider's model. It keeps what was said in
// the provider's own form, so that all of it is sent back as it came.
type model interface {
	// answer adds the message or the results of req to the conversation, sends
	// it, and adds what the model answers, whose text it prints piece by piece
	// as it comes. An answer that is not complete is an error.
	answer(ctx context.Context, req request, print func(text string)) (reply, error)
}

// A request has either the user's message or the results of the calls of the
// last reply, in their order.
type request struct {
	system  string
	tools   []mcphybrid.ExportedTool
	message string
	results []result
}

// A result answers the call of the same id.
type result struct {
	id, text string
	isError  bool
}

// A reply is what the model answered. Without calls the turn is over.
type reply struct {
	text   string
	calls  []call
	tokens int // in the whole conversation, or 0 if the endpoint does not tell
}

// A call is one that the model makes. Its arguments are JSON, or meant to be.
type call struct{ id, name, arguments string }

// A provider is what there is to know of an API to begin conversations.
type provider struct {
	format mcphybrid.Format // of its tools
	key    string           // the environment variable
	begin  func(endpoint) model
}

// An endpoint is where a provider's API is spoken. An empty URL is the
// provider's own, an empty model the default.
type endpoint struct{ key, baseURL, model string }

var providers = map[string]provider{
	"openai":    {mcphybrid.FormatOpenAIChat, "OPENAI_API_KEY", newOpenAI},
	"anthropic": {mcphybrid.FormatAnthropic, "ANTHROPIC_API_KEY", newAnthropic},
}

// errBrokeOff means that the stream of an answer ended before the answer did.
var errBrokeOff = errors.New("the answer broke off")

// stopped returns the error for an answer that ended for a reason that is not
// one for which answers end well.
func stopped(reason string) error {
	if reason == "" {
		return errBrokeOff
	}
	return fmt.Errorf("the answer is not complete: it ended with %q", reason)
}
