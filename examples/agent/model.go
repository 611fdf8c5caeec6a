package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcphybrid/mcphybrid"
)

// A model is a conversation with a provider's model. It keeps messages in the
// provider's own form and sends them back unchanged.
type model interface {
	// answer adds the message or the results of req to the conversation, sends
	// it, and adds the model's answer. It prints the answer's text piece by
	// piece. An incomplete answer is an error.
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
	id string
	mcphybrid.ExportedResult
}

// A reply is the model's answer. Without calls, the turn is over.
type reply struct {
	text   string
	calls  []call
	tokens int // tokens of the whole conversation, or 0 if the endpoint does not report them
}

// A call is a call by the model. Its arguments should be JSON.
type call struct{ id, name, arguments string }

// A provider describes an API and begins conversations with it.
type provider struct {
	format mcphybrid.Format // for its tools
	key    string           // the environment variable
	begin  func(endpoint) model
}

// An endpoint serves a provider's API. An empty URL means the provider's own,
// an empty model the default.
type endpoint struct{ key, baseURL, model string }

var providers = map[string]provider{
	"openai":    {mcphybrid.FormatOpenAIChat, "OPENAI_API_KEY", newOpenAI},
	"anthropic": {mcphybrid.FormatAnthropic, "ANTHROPIC_API_KEY", newAnthropic},
}

// errBrokeOff means that the stream ended before the answer was complete.
var errBrokeOff = errors.New("the answer broke off")

// stopped returns the error for an answer that ended for a bad reason.
func stopped(reason string) error {
	if reason == "" {
		return errBrokeOff
	}
	return fmt.Errorf("the answer is not complete: it ended with %q", reason)
}
