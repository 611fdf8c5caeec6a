package trust

import (
	"fmt"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Change is a definition that is not the known one.
type Change struct {
	Kind, Name, Server string
	Added              bool      // it is new, and no definition of it is known
	Since              time.Time // when the known one was first seen or accepted
	Was, Is            string    // hashes; Was is empty if none is known
}

// String returns c as one line.
func (c Change) String() string {
	line := fmt.Sprintf("%s %q of server %q ", c.Kind, text.Line(c.Name, text.MaxName), c.Server)
	switch {
	case c.Added:
		return line + fmt.Sprintf("is new, hash %.12s", c.Is)
	case c.Was == "":
		return line + fmt.Sprintf("exceeds the number of %ss remembered for a server, hash %.12s", c.Kind, c.Is)
	}
	return line + fmt.Sprintf("has changed since %s, from %.12s to %.12s", c.Since.UTC().Format(time.RFC3339), c.Was, c.Is)
}
