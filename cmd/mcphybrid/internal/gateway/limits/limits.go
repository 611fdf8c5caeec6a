// Package limits bounds what clients can make the gateway hold.
package limits

import (
	"cmp"
	"flag"
	"fmt"
	"net/http"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Limits bound what clients can make the gateway hold. Each is a flag. Zero means the
// default.
type Limits struct {
	Connections int           // open at once
	Sessions    int           // of clients over HTTP
	Idle        time.Duration // how long a session may be silent
	Message     int           // bytes of a message
	Messages    int           // bytes of all large messages that are being read or answered, and of all values in messages, decoded
	Values      int           // values in a message: members, elements, arrays and objects
	Results     int           // bytes kept of long results, of all sessions
	Read        time.Duration // for reading a message
	Write       time.Duration // for writing a piece of an answer
}

// The defaults. Arguments of a call are some kilobytes.
const (
	defaultConnections = 1000
	defaultSessions    = 1000
	defaultIdle        = 12 * time.Hour // most clients leave without notice; such a client begins another session
	DefaultMessage     = 16 << 20
	defaultMessages    = 16 << 20 // so that one large message is there at a time
	defaultValues      = 250_000  // each takes up to text.ValueSize when it is decoded
	defaultResults     = 64 << 20
	defaultRead        = 30 * time.Second
	defaultWrite       = time.Minute

	// SmallMessage is how many bytes a message may have that needs no room among the
	// large ones, and SmallDecoded how many its values may take without room among those of
	// others. So whoever sends large messages can't keep others from calling.
	SmallMessage = 16 << 10
	SmallDecoded = 64 << 10

	// MaxHeader is how many bytes the header of a request may have, 4 KiB more or less.
	MaxHeader = 32 << 10
)

// AddFlags adds a flag for each limit.
func (l *Limits) AddFlags(flags *flag.FlagSet) {
	flags.IntVar(&l.Connections, "max-connections", min(defaultConnections, descriptors()/2), "how many `connections` may be open; one more closes that which has waited longest, first those without the token, and none with a call")
	flags.IntVar(&l.Sessions, "max-sessions", defaultSessions, "how many `sessions` clients may have over HTTP; one more ends that which was silent longest, first those that never asked anything")
	flags.DurationVar(&l.Idle, "session-idle", defaultIdle, "how long a session over HTTP may be silent before it ends")
	flags.IntVar(&l.Message, "max-message", DefaultMessage, "how many `bytes` a message of a client may have")
	flags.IntVar(&l.Messages, "max-messages", defaultMessages, fmt.Sprintf("how many `bytes` all messages over %d KiB may have that are being read or answered over HTTP, and how many the decoded values of all messages may take; one client has at most half, or one message; others wait for -read-timeout", SmallMessage>>10))
	flags.IntVar(&l.Values, "max-values", defaultValues, "how many `values` a message of a client may have: members, elements, arrays and objects")
	flags.IntVar(&l.Results, "max-results", defaultResults, "how many `bytes` of long results are kept for all clients, to be read on; the oldest leave first")
	flags.DurationVar(&l.Read, "read-timeout", defaultRead, "how long a client may take to send a message over HTTP")
	flags.DurationVar(&l.Write, "write-timeout", defaultWrite, "how long a client may take to read a message over HTTP")
}

// WithDefaults returns l with the default for each that is zero.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Connections: cmp.Or(l.Connections, min(defaultConnections, descriptors()/2)),
		Sessions:    cmp.Or(l.Sessions, defaultSessions),
		Idle:        cmp.Or(l.Idle, defaultIdle),
		Message:     cmp.Or(l.Message, DefaultMessage),
		Messages:    cmp.Or(l.Messages, defaultMessages),
		Values:      cmp.Or(l.Values, defaultValues),
		Results:     cmp.Or(l.Results, defaultResults),
		Read:        cmp.Or(l.Read, defaultRead),
		Write:       cmp.Or(l.Write, defaultWrite),
	}
}

// Check returns an error that names a limit that can't be met.
func (l Limits) Check() error {
	for _, limit := range []struct {
		name string
		n    int
	}{
		{"max-connections", l.Connections}, {"max-sessions", l.Sessions}, {"max-message", l.Message}, {"max-values", l.Values}, {"max-results", l.Results},
		{"session-idle", int(l.Idle)}, {"read-timeout", int(l.Read)}, {"write-timeout", int(l.Write)},
	} {
		if limit.n <= 0 {
			return fmt.Errorf("-%s must be positive", limit.name)
		}
	}
	if l.Messages < l.Message {
		return fmt.Errorf("-max-messages %d is less than -max-message %d: such a message could never be read", l.Messages, l.Message)
	}
	return nil
}

// An Error says why a message is refused.
type Error struct {
	Status int
	Reason string
}

func (e *Error) Error() string { return e.Reason }

// CheckValues returns how many values a message has, or an error if they are too many.
func (l Limits) CheckValues(message []byte) (values int, err error) {
	if values = text.CountValues(message); values > l.Values {
		return values, &Error{http.StatusRequestEntityTooLarge, fmt.Sprintf("the message has more than %d values: see -max-values", l.Values)}
	}
	return values, nil
}
