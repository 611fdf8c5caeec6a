package upstream

import (
	"errors"
	"fmt"
	"time"
)

// A State is how far a server is.
type State string

const (
	Configured State = "configured" // not started
	Cached     State = "cached"     // not running, its tools known; a call starts it
	Connecting State = "connecting" // starting, or listing its tools
	Ready      State = "ready"      // serving
	Degraded   State = "degraded"   // serving, but its tools could not be listed again
	Down       State = "down"       // failed to start, or ended
)

// A Status tells how a server is at one moment.
type Status struct {
	State State
	Since time.Time     // when State was entered
	Took  time.Duration // from the start until it was ready or failed
	Err   error         // why it is down or degraded, else nil; without secrets

	Failures int       // attempts to connect that failed in a row
	Retry    time.Time // when the next one is made; zero if none is
}

var (
	// ErrDown means that the server can't be reached.
	ErrDown = errors.New("the server is down")

	// ErrClosed means that the server was closed: with its manager, say.
	ErrClosed = errors.New("the manager is closed")
)

// down returns [ErrDown] with what is known.
func (st Status) down() error {
	err := ErrDown
	if st.Err != nil {
		err = fmt.Errorf("%w: %w", err, st.Err)
	}
	if !st.Retry.IsZero() {
		err = fmt.Errorf("%w; the next attempt to connect is at %s", err, st.Retry.UTC().Format(time.RFC3339Nano))
	}
	return err
}
