package mcphybrid

import "time"

// A State is how far a server is.
type State string

const (
	StateConfigured State = "configured" // known, not started
	StateCached     State = "cached"     // not running, its tools known; a call starts it
	StateConnecting State = "connecting" // starting, or listing its tools
	StateReady      State = "ready"      // serving
	StateDegraded   State = "degraded"   // serving, but its tools could not be listed again
	StateDown       State = "down"       // failed to start, or ended
)

// A ServerStatus tells how one server is.
type ServerStatus struct {
	Name  string
	State State
	Since time.Time     // when State was entered
	Took  time.Duration // from the start until it was ready or failed
	Tools int           // in the catalog
	Err   error         // why it is down or degraded, else nil

	// Failures is how many attempts to connect have failed in a row, and Retry
	// when the next one is made: see [Options.Reconnect]. Zero if none is.
	Failures int
	Retry    time.Time
}
