// Package hints has notes on tools: their JSON form and limits, the lookups by which a
// host says them, and the text in which a model reads them.
package hints

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Hints are notes on one tool.
type Hints struct {
	Preconditions []string `json:"preconditions"`
	AntiPatterns  []string `json:"anti_patterns"` // not indexed
	ChainsWith    []string `json:"chains_with"`   // names of tools
	OutputShape   string   `json:"output_shape"`
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

// Parse reads hints from a JSON object. The error says where it is wrong.
func Parse(data []byte) (h Hints, err error) {
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

// Check returns an error for the first text or list of h that is too large. The
// error names its place in the JSON.
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

// Clone returns a copy that shares nothing that can be changed.
func (h Hints) Clone() Hints {
	for _, l := range h.lists() {
		*l.texts = slices.Clone(*l.texts)
	}
	return h
}

// Equal reports whether both have the same texts in the same order.
func (h Hints) Equal(other Hints) bool {
	for i, l := range h.lists() {
		if !slices.Equal(*l.texts, *other.lists()[i].texts) {
			return false
		}
	}
	return h.OutputShape == other.OutputShape
}

// Words returns the text that search indexes: all hints except the AntiPatterns.
func (h Hints) Words() string {
	var texts []string
	for _, line := range slices.Concat(h.Preconditions, h.ChainsWith, []string{h.OutputShape}) {
		if line = text.Line(line, maxLength); line != "" {
			texts = append(texts, line)
		}
	}
	return strings.Join(texts, "\n")
}
