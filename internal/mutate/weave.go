package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// An edit is text that is written at an offset of a file, where something may be left out.
type edit struct {
	at, skip int
	text     string
	opens    bool // it stands before what reaches to other, else behind what begins there
	other    int
	number   int // of the place: an inner one comes after the one around it
}

// weave returns the source with the switches of all places that compile. Its lines stay the lines
// of the source. The package's name ends at name, and change is the path of package change.
func weave(source []byte, name int, change string, places []*place) []byte {
	edits := []edit{{at: name, text: fmt.Sprintf("; import change_ %q", change)}}
	for i, p := range places {
		if p.broken() {
			continue
		}
		numbers := make([]any, len(p.mutants))
		for i, m := range p.mutants {
			numbers[i] = fmt.Sprint(m.id)
		}
		edits = append(edits,
			edit{at: p.from, text: fmt.Sprintf(p.before, numbers...), opens: true, other: p.to, number: i},
			edit{at: p.to, text: p.after, other: p.from, number: i})
		if p.cut[1] > p.cut[0] {
			edits = append(edits, edit{at: p.cut[0], skip: p.cut[1] - p.cut[0], text: p.instead, opens: true})
		}
	}
	slices.SortStableFunc(edits, edit.compare)
	var out bytes.Buffer
	done := 0
	for _, e := range edits {
		out.Write(source[done:e.at])
		out.WriteString(e.text)
		done = e.at + e.skip
	}
	out.Write(source[done:])
	out.WriteString("\nvar _ = change_.On\n")
	return out.Bytes()
}

// compare sorts edits by where they are: at one place, what closes first, the inner before the
// outer, then what opens, the outer before the inner.
func (e edit) compare(other edit) int {
	if c := cmp.Or(cmp.Compare(e.at, other.at), cmp.Compare(e.rank(), other.rank()), cmp.Compare(other.other, e.other)); c != 0 {
		return c
	} else if e.opens {
		return cmp.Compare(e.number, other.number)
	}
	return cmp.Compare(other.number, e.number)
}

func (e edit) rank() int {
	if e.opens {
		return 1
	}
	return 0
}
