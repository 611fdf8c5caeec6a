package mcphybrid

import (
	"errors"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// A State is the state of a server.
type State string

const (
	StateConfigured State = "configured" // known, not started yet
	StateCached     State = "cached"     // not running, but its tools are known; a call starts it
	StateConnecting State = "connecting" // starting, or listing its tools for the first time
	StateReady      State = "ready"      // serving
	StateDegraded   State = "degraded"   // serving, but listing its tools again failed or it left calls without an answer
	StateDown       State = "down"       // failed to start, or ended

	// StateUnauthorized means that the server refuses requests until the user
	// logs in: see [Manager.Login]. Its tools stay.
	StateUnauthorized State = "unauthorized"
)

// A ServerStatus is the status of one server.
type ServerStatus struct {
	Name  string
	State State

	// Since is when it entered State. While it is down or unauthorized, and tried again in
	// vain, it is when its connection was lost, or when it was first tried.
	Since time.Time

	Took  time.Duration // how long its last start took until it was ready or failed
	Tools int           // number of its tools

	Resources, Templates, Prompts, Skills int // numbers of these

	// Instructions are what the server says of itself and how to use it: at most 2 KiB, in
	// lines without invisible characters. They are "" without any, with
	// [config.Server.NoInstructions], and while they are held back: see [ChangedError]. Don't
	// trust them. They are "" in errors and events.
	Instructions string

	// Err is why it is down, degraded or unauthorized. While it is tried again, it is why it
	// was. At a first attempt it may be that its turn has not come, or that it is still at work:
	// see [Manager.Start]. Otherwise it is nil.
	Err error

	// Failures is how many attempts to connect have failed in a row. Retry is
	// when the next attempt is due, or zero if there will be none: see
	// [config.Limits.Reconnect]. While calls are refused, Retry is when the next
	// one is sent: see [config.Limits.MaxTimeouts].
	Failures int
	Retry    time.Time

	// Usage counts the calls of its tools in all sessions, including those of users. It is
	// zero in errors and events.
	Usage snapshot.Usage
}

// causeOf returns why a server that failed with err is not ready.
func causeOf(err error) snapshot.Cause {
	c := cause.Of(err)
	if errors.As(err, new(*AuthorizationError)) && c.Kind != cause.Token {
		return snapshot.Cause{Kind: cause.Login, What: "it wants a login"}
	}
	return snapshot.Cause(c)
}
