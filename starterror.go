package mcphybrid

import (
	"fmt"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A startError is why servers are not ready after a start. Its text has each cause once, with
// the servers that have it, and without what programs write around it; [Manager.Servers] has
// all of that. It wraps one error for each server, which names the server.
type startError struct {
	errs   []error
	causes []string            // what is not ready, in order
	having map[string][]string // servers, by cause
}

// add adds the error of a server that is not ready.
func (e *startError) add(server string, err error) {
	why := err.Error()
	if strings.Contains(why, "its last words: ") { // what stands around the cause is what a program wrote
		why = cause.Of(err).What
	}
	if e.having == nil {
		e.having = make(map[string][]string)
	}
	if e.having[why] == nil {
		e.causes = append(e.causes, why)
	}
	e.having[why] = append(e.having[why], server)
	e.errs = append(e.errs, prefixed(err, "server %q: ", server))
}

// orNil returns nil if all servers are ready.
func (e *startError) orNil() error {
	if e.errs == nil {
		return nil
	}
	return e
}

func (e *startError) Error() string {
	var lines []string
	for _, why := range e.causes {
		who := "server"
		if n := len(e.having[why]); n > 1 {
			who = fmt.Sprintf("%d servers", n)
		}
		lines = append(lines, fmt.Sprintf("mcphybrid: %s %s: %s", who, text.Names(e.having[why]), why))
	}
	return strings.Join(lines, "\n")
}

func (e *startError) Unwrap() []error { return e.errs }
