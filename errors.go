package mcphybrid

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// Why a call did not get a result from a tool.
var (
	// ErrUnknownTool means that the session has no tool of that name.
	ErrUnknownTool = errors.New("unknown tool")

	// ErrNotPermitted means that the session may not use the tool.
	ErrNotPermitted = errors.New("not permitted")

	// ErrBadArguments means that the arguments are not a JSON object, or one
	// that the tool's schema refuses: see [ArgumentsError].
	ErrBadArguments = errors.New("bad arguments")

	// ErrQuarantined means that the tool has changed, and that nobody has
	// accepted it yet: see [TrustQuarantine].
	ErrQuarantined = errors.New("it is held back until it is accepted")

	// ErrServerDown means that the tool's server can't be reached.
	ErrServerDown = upstream.ErrDown
)

// Why the Manager was not changed.
var (
	// ErrClosed means that the Manager was closed.
	ErrClosed = upstream.ErrClosed

	// ErrDuplicate means that a server of that name is there already.
	ErrDuplicate = errors.New("the name is taken")
)

// An ArgumentsError says what in the arguments of a call the input schema of
// the tool refuses. The tool was not called.
type ArgumentsError struct {
	// Tool is the registered name of the tool.
	Tool string

	// Violations are what is wrong: at least one and at most 16, in the order
	// of their pointers, name by name, and then of their problems.
	Violations []Violation

	// More is how many further violations were left out.
	More int

	// Schema is the input schema of the tool. It is shared and must not be
	// changed.
	Schema json.RawMessage

	// Repeated is how many times in a row this very call was refused before.
	Repeated int
}

// A Violation is one thing that a schema refuses. Both strings are one line
// of bounded length. Of the arguments they repeat names of properties, and
// values only where the schema lists what may stand there.
type Violation struct {
	// Pointer is the JSON pointer (RFC 6901) to the value in the arguments,
	// and "" for the arguments themselves. Names in it are cut to 80
	// characters. Of a property name that the schema refuses, it is "".
	Pointer string

	// Problem says what is wrong with the value, such as
	//
	//	is missing the property "title"
	//	is a string, want integer
	//	is "opne", want one of "open", "closed"
	Problem string
}

// Error returns a line with the tool and the violations. It is for the host;
// what the model reads is the result of the call.
func (e *ArgumentsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mcphybrid: %v for %q: ", ErrBadArguments, e.Tool)
	for i, v := range e.Violations {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s %s", cmp.Or(v.Pointer, "the object"), v.Problem)
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "; and %d more", e.More)
	}
	return text.Line(b.String(), text.MaxError)
}

// Unwrap returns [ErrBadArguments].
func (e *ArgumentsError) Unwrap() error { return ErrBadArguments }

// publicViolations returns what the schema of a tool refuses, as hosts see it.
func publicViolations(found []schema.Violation) []Violation {
	list := make([]Violation, len(found))
	for i, v := range found {
		list[i] = Violation(v)
	}
	return list
}

// A permissionError tells that the session may not use a tool.
type permissionError struct{ name string }

func (e *permissionError) Error() string {
	return fmt.Sprintf("mcphybrid: tool %q: %v", e.name, ErrNotPermitted)
}
func (e *permissionError) Unwrap() error { return ErrNotPermitted }

// maxAskedName is how many bytes of a name that a model asks for are looked at.
const maxAskedName = 512

// maxNearest is how many names are told instead of an unknown one.
const maxNearest = 3

// An UnknownToolError tells that the session has no tool of a name.
type UnknownToolError struct {
	Name       string
	Nearest    []string // the registered names most like it, nearest first; at most three
	Connecting string   // the server, still being connected, that the tool would be of; or ""

	// Gone is since when the tool, which was there, is not; or zero.
	Gone time.Time
}

func (e *UnknownToolError) Error() string {
	text := fmt.Sprintf("mcphybrid: %v: %q", ErrUnknownTool, e.Name)
	if !e.Gone.IsZero() {
		text += "; it is gone since " + e.Gone.UTC().Format(time.RFC3339)
	}
	if e.Connecting != "" {
		text += fmt.Sprintf("; server %q is still connecting", e.Connecting)
	}
	return text
}

// Unwrap returns [ErrUnknownTool].
func (e *UnknownToolError) Unwrap() error { return ErrUnknownTool }
