// Package ask has what a host says about the questions of MCP servers. A server
// may ask the user for a value or to open a page (elicitation), ask for an answer
// of a model (sampling), and ask which folders it may work in (roots).
//
// The host answers by [Hooks]. A question reaches the hooks of the session whose
// call caused it, otherwise the default ones, or it is declined:
//
//	mgr := mcphybrid.NewManager(&mcphybrid.Options{
//		Ask: ask.Options{Hooks: ask.Hooks{Elicit: ask.Decline().Elicit}}, // servers may ask a session's user
//	})
//	sess := mgr.NewSession(&mcphybrid.SessionOptions{Hooks: ask.Hooks{Elicit: askUser}})
//
// All texts in a question are the server's. Don't trust them, and show who asks.
// Nothing of a question comes into a prompt unless a hook puts it there.
package ask

import (
	"context"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// Hooks answer what servers ask. Each may be nil. They may be called concurrently.
//
// The context of a hook has the values of the context of the call that caused the
// question. It ends when the question is over: when [Options.Timeout] has passed,
// when the call has ended, when its session is closed, when the server takes the
// question back, and when the connection is lost. A hook that panics, fails or is
// late costs its question only: the server learns that there is no answer, and
// [mcphybrid.Options.Logger] why.
//
// [mcphybrid.Options.Logger]: https://pkg.go.dev/github.com/mcphybrid/mcphybrid#Options
type Hooks struct {
	// Elicit asks the user. Params has a message and, unless Mode is "url", a
	// RequestedSchema of a flat object, as a map[string]any. The content of an answer that accepts must fit that
	// schema, or the server is told that the user canceled. In mode "url", the user
	// is asked to open Params.URL, which is https, or http on this machine. Show
	// the whole host name before you open it, and never fetch it yourself.
	Elicit func(ctx context.Context, from Asker, params mcp.ElicitationParams) (*mcp.ElicitationResult, error)

	// Sample returns a model's answer to the messages in params, whose contents are
	// values of mcp-go's types, or lists of them. Show the user who
	// asks for what before you send it to the model: it costs the user's tokens.
	Sample func(ctx context.Context, from Asker, params mcp.CreateMessageParams) (*mcp.CreateMessageResult, error)

	// Roots returns the folders and files in which the server may work. Their URIs
	// begin with file://.
	Roots func(ctx context.Context, from Asker) ([]mcp.Root, error)
}

// An Asker says who asks.
type Asker struct {
	// Server is the name of the server in its configuration.
	Server string

	// User is the id of the user who owns the session whose call caused the
	// question. If there is no such session, it is the owner of the server. It is
	// "" for the system.
	User string

	// Tool is the server's name of the tool whose call caused the question. It is
	// "" if that is not known.
	Tool string
}

// The defaults of [Options].
const (
	// DefaultTimeout is long for a person who reads a question and fills in a form.
	DefaultTimeout = 5 * time.Minute

	// DefaultMaxPerCall is more than a person wants to answer for one call.
	DefaultMaxPerCall = 16

	// DefaultMaxAtOnce is more than a person can answer at once.
	DefaultMaxAtOnce = 8

	// DefaultMaxBytes is enough for a prompt of 60,000 tokens.
	DefaultMaxBytes = 256 << 10
)

// Options say who answers what servers ask, and how much they may ask.
type Options struct {
	// Hooks answer for sessions of the system that have none of their own, and
	// questions of the system's servers that no call is known to have caused. They
	// are never asked for a user's session or by a user's server.
	//
	// A server is told, when it connects, that it may ask what has a hook here. A
	// user's server is told of the user's hooks instead. So a host whose sessions
	// answer sets those of [Decline].
	Hooks Hooks

	// Timeout is how long a hook may take. Meanwhile the time limit of the call
	// stands still. It defaults to [DefaultTimeout] and must not be negative.
	Timeout time.Duration

	// MaxPerCall is how many questions a server may ask during one call. Of the
	// questions that no call is known to have caused, a server may ask as many in a
	// minute. It defaults to [DefaultMaxPerCall].
	MaxPerCall int

	// MaxAtOnce is how many questions of one server may wait for an answer of one
	// user: see [Asker]. The sessions of the system count together. Questions whose hook
	// ignores the end of its context count until it returns. It defaults to
	// [DefaultMaxAtOnce].
	MaxAtOnce int

	// SampleTools tells servers that Sample heeds the tools in its params. Otherwise a
	// question with tools is refused.
	SampleTools bool

	// MaxBytes is how many bytes a question may have, with its schema, as JSON. It
	// defaults to [DefaultMaxBytes].
	MaxBytes int
}

// Or returns h with the hooks of other in place of those that are nil.
func (h Hooks) Or(other Hooks) Hooks {
	if h.Elicit == nil {
		h.Elicit = other.Elicit
	}
	if h.Sample == nil {
		h.Sample = other.Sample
	}
	if h.Roots == nil {
		h.Roots = other.Roots
	}
	return h
}

// ErrDeclined is what a hook returns if the user does not want to answer. Any other
// error is logged as the hook's failure.
var ErrDeclined = errors.New("the user declined")

// Decline returns hooks that decline every question.
func Decline() Hooks {
	return Hooks{
		Elicit: func(context.Context, Asker, mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			return nil, ErrDeclined
		},
		Sample: func(context.Context, Asker, mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return nil, ErrDeclined
		},
		Roots: func(context.Context, Asker) ([]mcp.Root, error) { return nil, nil },
	}
}
