// Package exit ends commands: it says what went wrong, and with which status.
package exit

import (
	"errors"
	"flag"
	"os"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/terminal"
)

// An unusable is an error of the flags, or of a file that a command can't check.
type unusable struct{ error }

func (e unusable) Unwrap() error { return e.error }

// Unusable marks an error of the flags, or of a file that a command can't check.
func Unusable(err error) error { return unusable{err} }

// ErrFound means that a command has found something to do, and said so.
var ErrFound = errors.New("there is something to do")

// Status returns the exit status after err: 2 if it is [Unusable], else 1, and 0 if there
// is none or help was asked for.
func Status(err error) int {
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, new(unusable)):
		return 2
	}
	return 1
}

// With says on errs what went wrong in a command, unless that was said, and returns the
// exit status.
func With(err error, command string, errs *os.File) int {
	if err != nil && !errors.Is(err, flag.ErrHelp) && !errors.Is(err, ErrFound) {
		terminal.NewSheet(errs).Block(command + ": " + own(err))
	}
	return Status(err)
}

// own returns the text of an error whose lines don't begin with the library's name.
func own(err error) string {
	return strings.ReplaceAll("\n"+err.Error(), "\nmcphybrid: ", "\n")[1:]
}
