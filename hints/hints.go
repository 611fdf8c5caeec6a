// Package hints has what a host knows of tools beyond their definitions: the notes, their
// form in JSON, and how mcphybrid asks for them.
package hints

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Hints are notes of the host on a tool, beyond its definition. The model reads
// them as the host's words in Session.OverrideBlock, each cut to one line
// without invisible characters. Search indexes all of them except the
// AntiPatterns. Each list has at most 16 texts, and each text at most 500 bytes.
// The zero value has no hints. As JSON, where empty members are left out, they
// are
//
//	{"preconditions": ["…"], "anti_patterns": ["…"], "chains_with": ["…"], "output_shape": "…"}
//
// [Parse] reads this form.
type Hints struct {
	// Preconditions say what must hold before the tool is called.
	Preconditions []string `json:"preconditions,omitempty"`

	// AntiPatterns say what the tool is not for and how it is misused. They are
	// not indexed: a search for them should find another tool.
	AntiPatterns []string `json:"anti_patterns,omitempty"`

	// ChainsWith names tools that are often called after this one: registered
	// names or the host's own. It activates none of them: see Options.Needs
	// for tools that must be activated together.
	ChainsWith []string `json:"chains_with,omitempty"`

	// OutputShape says what the tool returns.
	OutputShape string `json:"output_shape,omitempty"`
}

// The limits of hints: enough for a page about a tool, too little to fill a
// context window.
const (
	maxTexts  = 16        // texts in a list
	maxLength = 500       // bytes of a text
	maxJSON   = 256 << 10 // room for all hints with every character escaped
)

// members are the names of the JSON members.
var members = []string{"preconditions", "anti_patterns", "chains_with", "output_shape"}

// Parse reads hints from a JSON object of at most 256 KiB: see [Hints] for its form. A
// missing or null member is empty. Parse fails on an unknown or repeated member, a value
// of the wrong type, and hints that exceed the limits. The error says where.
func Parse(data []byte) (Hints, error) {
	h, err := parse(data)
	if err != nil {
		return Hints{}, fmt.Errorf("mcphybrid: hints: %w", err)
	}
	return h, nil
}

func parse(data []byte) (h Hints, err error) {
	if len(data) > maxJSON {
		return h, fmt.Errorf("the document has %d bytes, more than the limit of %d", len(data), maxJSON)
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, text.JSONError(data, err)
	}
	given, err := text.Members(data)
	if err != nil {
		return h, err
	}
	seen := make(map[string]bool)
	for _, m := range given {
		name := text.Line(m.Name, text.MaxName)
		switch {
		case !slices.Contains(members, m.Name):
			return h, fmt.Errorf("%q is not a member of hints, want one of %q", name, members)
		case seen[m.Name]:
			return h, fmt.Errorf("%q is given twice", name)
		}
		seen[m.Name] = true
	}
	for _, l := range h.lists() {
		if len(*l.texts) == 0 {
			*l.texts = nil
		}
	}
	return h, h.Check()
}

// A list is one of the lists of hints.
type list struct {
	name  string // in JSON
	texts *[]string
}

func (h *Hints) lists() [3]list {
	return [3]list{{members[0], &h.Preconditions}, {members[1], &h.AntiPatterns}, {members[2], &h.ChainsWith}}
}

// Check returns an error for the first text or list of h that exceeds the limits, or nil.
// The error names its place in the JSON.
func (h Hints) Check() error {
	for _, l := range h.lists() {
		if n := len(*l.texts); n > maxTexts {
			return fmt.Errorf("%q has %d texts, more than the limit of %d", l.name, n, maxTexts)
		}
		for i, text := range *l.texts {
			if len(text) > maxLength {
				return fmt.Errorf("%q: text %d has %d bytes, more than the limit of %d", l.name, i, len(text), maxLength)
			}
		}
	}
	if n := len(h.OutputShape); n > maxLength {
		return fmt.Errorf("%q has %d bytes, more than the limit of %d", "output_shape", n, maxLength)
	}
	return nil
}
