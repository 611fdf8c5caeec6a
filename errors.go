package mcphybrid

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/internal/login"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// prefixed returns err with a prefix that names the library and says what failed, or nil.
func prefixed(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mcphybrid: "+what+"%w", append(args, err)...)
}

// The reasons why a call, a read or a request for a prompt got no result.
var (
	// ErrUnknownTool means that the session has no tool with that name.
	ErrUnknownTool = errors.New("unknown tool")

	// ErrUnknownResource means that the session has no such resource or prompt.
	ErrUnknownResource = errors.New("unknown resource or prompt")

	// ErrNotPermitted means that the session may not use the tool, the resource or
	// the prompt.
	ErrNotPermitted = errors.New("not permitted")

	// ErrBadArguments means that the arguments are not a JSON object, or that
	// the tool's schema rejects them: see [ArgumentsError].
	ErrBadArguments = errors.New("bad arguments")

	// ErrQuarantined means that the definition of the tool, the resource or the
	// prompt has changed, or is new, and that nobody has accepted it yet: see
	// [TrustQuarantine].
	ErrQuarantined = errors.New("it is held back until it is accepted")

	// ErrChanged means that the tool's definition changed after the arguments
	// were checked, for example while a person was asked.
	ErrChanged = errors.New("the tool has changed since the call was checked")

	// ErrServerDown means that the server can't be reached, or is not called for a
	// while: see [config.Limits.MaxTimeouts].
	ErrServerDown = upstream.ErrDown

	// ErrAuthorizationRequired means that the user has to log in to the server:
	// see [AuthorizationError] and [Manager.Login].
	ErrAuthorizationRequired = upstream.ErrUnauthorized
)

// An AuthorizationError says that a server answers with status 401: it wants a login,
// or refuses the credentials in its configuration. Or it answers a call with status
// 403, since the login lacks scopes: then the next [Manager.Login] asks for them too,
// and meanwhile other calls work.
type AuthorizationError struct {
	Server string   // its name
	URL    string   // its scheme and host
	Scopes []string // that the call lacks; nil with status 401
}

func (e *AuthorizationError) Error() string {
	again := ""
	if len(e.Scopes) > 0 {
		again = " again, for " + login.Named(e.Scopes) + ","
	}
	return fmt.Sprintf("%v%s to server %q at %s: by Manager.Login, or by a valid token in its headers", ErrAuthorizationRequired, again, e.Server, e.URL)
}

// Unwrap returns [ErrAuthorizationRequired].
func (e *AuthorizationError) Unwrap() error { return ErrAuthorizationRequired }

// A tokenError is an [AuthorizationError] of a server that another token in its configuration would
// mend, and no login: it has one, or there is no login.
type tokenError struct {
	*AuthorizationError
	why error // cause.ErrToken or cause.ErrNoLogin
}

// Error names no login, which would not mend it.
func (e tokenError) Error() string {
	if e.why == cause.ErrNoLogin {
		return fmt.Sprintf("server %q at %s %v", e.Server, e.URL, e.why)
	}
	wants := ""
	if len(e.Scopes) > 0 {
		wants = ", which wants one for " + login.Named(e.Scopes)
	}
	return fmt.Sprintf("%v by server %q at %s%s", e.why, e.Server, e.URL, wants)
}

// Unwrap tells errors.Is and errors.As of both.
func (e tokenError) Unwrap() []error { return []error{e.AuthorizationError, e.why} }

// The reasons why a Manager refuses a change.
var (
	// ErrClosed means that the Manager, the User or the session was closed.
	ErrClosed = upstream.ErrClosed

	// ErrDuplicate means that a server, user, tool or skill has that name already.
	ErrDuplicate = errors.New("the name is taken")
)

// An ArgumentsError lists the mistakes in the arguments of a call, by the tool's
// input schema. The tool was not called.
type ArgumentsError struct {
	// Tool is the registered name of the tool.
	Tool string

	// Violations are the mistakes: at least one and at most 16. They are sorted
	// by pointer, name by name, and then by problem.
	Violations []Violation

	// More is how many further violations were left out.
	More int

	// Schema is the input schema of the tool. It is shared and must not be
	// changed.
	Schema json.RawMessage

	// Repeated is how many times in a row the same call was rejected before.
	Repeated int
}

// A Violation is one mistake in the arguments of a call. Both strings are single
// lines of bounded length. They may repeat the names of properties. They repeat a
// value only where the schema lists the permitted values.
type Violation struct {
	// Pointer is the JSON pointer (RFC 6901) to the value in the arguments. It
	// is "" for the arguments as a whole. For a property name that the schema
	// rejects, it leads to the object. Names in it are cut to 80 characters.
	Pointer string

	// Problem says what is wrong with the value, such as
	//
	//	is missing the required property "title"
	//	is a string, but must be an integer
	//	is "opne", but must be one of "open", "closed"
	//
	// Of arguments that are no JSON object, it is a sentence that begins with "the
	// arguments".
	Problem string
}

// sentence returns the place of the value and what is wrong with it. What is no object at all has a
// sentence of its own as its problem.
func (v Violation) sentence() string {
	if strings.HasPrefix(v.Problem, "the arguments ") {
		return v.Problem
	}
	return cmp.Or(v.Pointer, "the arguments object") + " " + v.Problem
}

// Error returns one line with the tool and the violations. It is for the host:
// the model reads the result of the call instead.
func (e *ArgumentsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mcphybrid: %v for %q: ", ErrBadArguments, e.Tool)
	for i, v := range e.Violations {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(v.sentence())
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "; and %d more", e.More)
	}
	return text.Line(b.String(), text.MaxError)
}

// Unwrap returns [ErrBadArguments].
func (e *ArgumentsError) Unwrap() error { return ErrBadArguments }

// publicViolations converts the violations of a schema to the type for hosts.
func publicViolations(found []schema.Violation) []Violation {
	list := make([]Violation, len(found))
	for i, v := range found {
		list[i] = Violation(v)
	}
	return list
}

// A permissionError says that the session may not use a tool.
type permissionError struct {
	name   string
	writes bool // it may write, as far as its hints say
}

func (e *permissionError) Error() string {
	return fmt.Sprintf("mcphybrid: tool %q: %v", e.name, ErrNotPermitted)
}

func (e *permissionError) Unwrap() error { return ErrNotPermitted }

// maxAskedName is how many bytes we read of a tool name that a model asks for.
const maxAskedName = 512

// maxNearest is how many names we suggest for an unknown one.
const maxNearest = 3

// An UnknownToolError says that the session has no tool with that name.
type UnknownToolError struct {
	Name       string
	Nearest    []string // the most similar registered names, nearest first; at most three
	Connecting string   // the server that the tool would belong to, if it is still connecting; or ""

	// Away is the server that the tool belongs to, if the session, which was restored, tells the
	// model of it and the Manager has no such server; or "".
	Away string

	// Gone is when the tool left the catalog, or zero if it never was there.
	Gone time.Time
}

func (e *UnknownToolError) Error() string {
	text := fmt.Sprintf("mcphybrid: %v: %q", ErrUnknownTool, e.Name)
	if !e.Gone.IsZero() {
		text += "; its server removed it at " + e.Gone.UTC().Format(time.RFC3339)
	}
	if e.Away != "" {
		text += fmt.Sprintf("; its server %q is not connected here", e.Away)
	}
	if e.Connecting != "" {
		text += fmt.Sprintf("; server %q is still connecting", e.Connecting)
	}
	return text
}

// Unwrap returns [ErrUnknownTool].
func (e *UnknownToolError) Unwrap() error { return ErrUnknownTool }

// A CollisionError reports a server whose tools can't have the names that they
// would have without other servers: models could take them for the tools of another
// one. The names under a prefix belong to the server that had it first, for the life
// of the Manager and beyond, with [Options.Cache] or, unless trust is off,
// [Options.TrustStore]. The later server gets a prefix with a hash.
type CollisionError struct {
	Server string // the server whose tools have other names
	Wanted string // the prefix that it would have, such as mcp_github
	Prefix string // the one that it has, such as mcp_github_0a1b2c3d
	First  string // the server that has such names; it may have been removed
}

func (e *CollisionError) Error() string {
	return fmt.Sprintf("mcphybrid: names that begin with %q belong to server %q; the names of server %q begin with %q",
		e.Wanted+"__", e.First, e.Server, e.Prefix+"__")
}
