package mcphybrid

import (
	"encoding/json"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/marks"
)

// A Mark is something in a tool's definition that looks as if it was meant to
// steer the model or to hide from people. It is for people to judge: some
// servers have honest reasons, and who wants to can avoid all marks.
type Mark struct {
	Kind  MarkKind
	Place string // JSON pointer into the tools/list element, such as /description; cut after 200 characters
	Text  string // what looks so: at most 80 characters of one line, hidden ones spelled as U+200B
}

// A MarkKind says what a [Mark] looks like.
type MarkKind string

const (
	MarkHidden      MarkKind = "hidden text"              // can't be seen, reorders text, or stands far off
	MarkEncoded     MarkKind = "encoded text"             // words in base64 or hexadecimal
	MarkLeak        MarkKind = "a leak"                   // keys asked for, or an image whose address carries data
	MarkInstruction MarkKind = "instruction to the model" // against the user, the host or other tools
	MarkForeign     MarkKind = "tool of another server"   // is named
)

var markKinds = [...]MarkKind{
	marks.Hidden: MarkHidden, marks.Encoded: MarkEncoded, marks.Leak: MarkLeak, marks.Instruction: MarkInstruction, marks.Foreign: MarkForeign,
}

// marksIn returns the marks of a tools/list element. foreign reports whether a
// word is the name of a tool of another server.
func marksIn(raw json.RawMessage, foreign func(word string) bool) (list []Mark) {
	for _, m := range marks.In(raw, foreign) {
		list = append(list, Mark{markKinds[m.Kind], m.Place, m.Text})
	}
	return list
}

// ToolMarks are the marks of one tool.
type ToolMarks struct {
	Tool  *BridgeTool
	Marks []Mark
}

// Marks returns the tools of the catalog whose definitions look as if they were
// meant to steer the model, in registration order. It reads all definitions,
// which takes about 0.3 ms each. A mark is a reason for a person to look, not
// proof of anything, and nothing is done about it.
func (m *Manager) Marks() (list []ToolMarks) {
	c := m.cur.Load()
	owners := make(map[string][]string) // servers, by registered and own names of their tools
	for _, known := range m.catalogs() {
		for _, t := range known.tools {
			owners[t.name] = append(owners[t.name], t.def.server)
			owners[t.def.name] = append(owners[t.def.name], t.def.server)
		}
	}
	for _, t := range c.tools {
		foreign := func(word string) bool {
			servers := owners[word]
			return len(servers) > 0 && !slices.Contains(servers, t.def.server)
		}
		if marks := marksIn(t.def.raw, foreign); len(marks) > 0 {
			list = append(list, ToolMarks{t, marks})
		}
	}
	return list
}
