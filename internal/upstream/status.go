package upstream

import (
	"errors"
	"fmt"
	"time"
)

// A State is the state of a server's connection.
type State string

// The states of a server.
const (
	Configured State = "configured" // not started
	Cached     State = "cached"     // not running, but its tools are known; a call starts it
	Connecting State = "connecting" // starting or listing its tools for the first time
	Ready      State = "ready"      // connected
	Degraded   State = "degraded"   // connected, but listing the tools again failed or calls have no answer
	Down       State = "down"       // failed to start, or lost

	// Unauthorized means that the server refused a request with [ErrUnauthorized].
	Unauthorized State = "unauthorized"
)

// A Status describes a server at one moment.
type Status struct {
	State State
	Since time.Time     // when State was entered; of a server that is tried again in vain, when its connection was lost, or it was first tried
	Took  time.Duration // how long the last attempt to connect took
	Err   error         // why the server is down or degraded, or was before this attempt; at a first one, why it takes long, else nil; without secrets

	Failures int       // failed attempts to connect in a row
	Retry    time.Time // when the next attempt begins, or the next call is sent; zero for none

	entered time.Time // when State was entered
}

// IsAway reports whether the server is not connected but ought to be.
func (st Status) IsAway() bool {
	return st.State == Down || st.State == Unauthorized || st.State == Connecting
}

// hasFailed reports whether Err is why the server failed, and not why an attempt takes long.
func (st Status) hasFailed() bool {
	return st.Err != nil && !errors.Is(st.Err, errQueued) && !errors.Is(st.Err, errAtWork)
}

var (
	// ErrDown means that the server can't be reached.
	ErrDown = errors.New("the server is down")

	// ErrClosed means that the server was closed, usually with its manager.
	ErrClosed = errors.New("the manager is closed")

	// ErrUnauthorized means that the server wants a login, or another one.
	ErrUnauthorized = errors.New("the user has to log in")

	errUnauthorized = fmt.Errorf("%w: the server refuses requests with status 401 or 403", ErrUnauthorized)
)

// down returns [ErrDown] with the reason and the time of the next attempt. If the
// server wants a login, that is the error.
func (st Status) down() error {
	if st.State == Unauthorized {
		return st.Err
	}
	err := ErrDown
	if st.Err != nil {
		err = fmt.Errorf("%w: %w", err, st.Err)
	}
	if !st.Retry.IsZero() {
		err = fmt.Errorf("%w; the next attempt to connect is at %s", err, st.Retry.UTC().Format(time.RFC3339Nano))
	}
	return err
}
