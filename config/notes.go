package config

import (
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// notes tell what has no effect. The zero value has none.
type notes struct {
	list []string // at most maxNotes
	more int      // number of further notes
}

// add adds a note. Nothing in it may be a secret.
func (n *notes) add(format string, args ...any) {
	if len(n.list) == maxNotes {
		n.more++
		return
	}
	n.list = append(n.list, text.Bounded(fmt.Errorf(format, args...)).Error())
}

// all returns the notes, and at the end how many more there are.
func (n *notes) all() []string {
	if n.more == 0 {
		return n.list
	}
	return append(n.list, fmt.Sprintf("there are %d more notes", n.more))
}
