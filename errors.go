package mcphybrid

import "errors"

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
	ErrServerDown = errors.New("the server is down")
)

// Why the Manager was not changed.
var (
	// ErrClosed means that the Manager was closed.
	ErrClosed = errors.New("the manager is closed")

	// ErrDuplicate means that a server of that name is there already.
	ErrDuplicate = errors.New("the name is taken")
)
