package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/search"
)

// Hints are notes of the host on a tool, beyond its definition. The model reads
// them as the host's words in [Session.OverrideBlock], each cut to one line
// without invisible characters. Search indexes all of them except the
// AntiPatterns. Each list has at most 16 texts, and each text at most 500 bytes.
// The zero value has no hints. As JSON, where empty members are left out, they
// are
//
//	{"preconditions": ["…"], "anti_patterns": ["…"], "chains_with": ["…"], "output_shape": "…"}
//
// [ParseHints] reads this form.
type Hints struct {
	// Preconditions say what must hold before the tool is called.
	Preconditions []string `json:"preconditions,omitempty"`

	// AntiPatterns say what the tool is not for and how it is misused. They are
	// not indexed: a search for them should find another tool.
	AntiPatterns []string `json:"anti_patterns,omitempty"`

	// ChainsWith names tools that are often called after this one: registered
	// names or the host's own. It activates none of them: see [Options.Needs]
	// for tools that must be activated together.
	ChainsWith []string `json:"chains_with,omitempty"`

	// OutputShape says what the tool returns.
	OutputShape string `json:"output_shape,omitempty"`
}

// An Enricher looks up hints for tools, for example in a file, a database or a
// service. The Manager calls it in the background from several goroutines, never
// during a search or a call.
//
// The model reads the hints as the host's own words. So don't copy a server's
// texts into them unread.
type Enricher interface {
	// LookupHints returns the hints for a tool and whether there are any. It
	// must not change the tool. ctx ends after [Options.EnrichTimeout] and with
	// [Manager.Close].
	//
	// The Manager logs an error, a panic, a timeout, and hints that exceed the
	// limits. The tool then keeps its previous hints, if any, until
	// [Manager.RefreshHints].
	LookupHints(ctx context.Context, tool *BridgeTool) (hints Hints, ok bool, err error)
}

// NopEnricher is an [Enricher] without hints. It has the same effect as none.
type NopEnricher struct{}

// LookupHints returns no hints.
func (NopEnricher) LookupHints(context.Context, *BridgeTool) (Hints, bool, error) {
	return Hints{}, false, nil
}

// The limits of hints: enough for a page about a tool, too little to fill a
// context window.
const (
	maxHints      = 16        // texts in a list
	maxHintLength = 500       // bytes of a text
	maxHintsJSON  = 256 << 10 // room for all hints with every character escaped
)

// ParseHints reads hints from a JSON object of at most 256 KiB: see [Hints] for
// its form. A missing or null member is empty. ParseHints fails on an unknown or
// repeated member, a value of the wrong type, and hints that exceed the limits.
// The error says where.
func ParseHints(data []byte) (Hints, error) {
	h, err := parseHints(data)
	if err != nil {
		return Hints{}, fmt.Errorf("mcphybrid: hints: %w", err)
	}
	return h, nil
}

// hintMembers are the names of the JSON members.
var hintMembers = []string{"preconditions", "anti_patterns", "chains_with", "output_shape"}

func parseHints(data []byte) (h Hints, err error) {
	if len(data) > maxHintsJSON {
		return h, fmt.Errorf("the document has %d bytes, more than the limit of %d", len(data), maxHintsJSON)
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, text.JSONError(data, err)
	}
	members, err := text.Members(data)
	if err != nil {
		return h, err
	}
	seen := make(map[string]bool)
	for _, m := range members {
		name := text.Line(m.Name, text.MaxName)
		switch {
		case !slices.Contains(hintMembers, m.Name):
			return h, fmt.Errorf("%q is not a member of hints, want one of %q", name, hintMembers)
		case seen[m.Name]:
			return h, fmt.Errorf("%q is given twice", name)
		}
		seen[m.Name] = true
	}
	for _, list := range h.lists() {
		if len(*list.texts) == 0 {
			*list.texts = nil
		}
	}
	return h, h.validate()
}

// A hintList is one of the lists of hints.
type hintList struct {
	name  string // in JSON
	texts *[]string
}

func (h *Hints) lists() [3]hintList {
	return [3]hintList{{hintMembers[0], &h.Preconditions}, {hintMembers[1], &h.AntiPatterns}, {hintMembers[2], &h.ChainsWith}}
}

// validate returns an error for the first text or list of h that is too large. The
// error names its place in the JSON.
func (h *Hints) validate() error {
	for _, list := range h.lists() {
		if n := len(*list.texts); n > maxHints {
			return fmt.Errorf("%q has %d texts, more than the limit of %d", list.name, n, maxHints)
		}
		for i, text := range *list.texts {
			if len(text) > maxHintLength {
				return fmt.Errorf("%q: text %d has %d bytes, more than the limit of %d", list.name, i, len(text), maxHintLength)
			}
		}
	}
	if n := len(h.OutputShape); n > maxHintLength {
		return fmt.Errorf("%q has %d bytes, more than the limit of %d", "output_shape", n, maxHintLength)
	}
	return nil
}

// clone returns a copy that shares nothing that can be changed.
func (h Hints) clone() Hints {
	for _, list := range h.lists() {
		*list.texts = slices.Clone(*list.texts)
	}
	return h
}

func (h Hints) equal(other Hints) bool {
	for i, list := range h.lists() {
		if !slices.Equal(*list.texts, *other.lists()[i].texts) {
			return false
		}
	}
	return h.OutputShape == other.OutputShape
}

// words returns the text that search indexes: all hints except the AntiPatterns.
func (h Hints) words() string {
	var texts []string
	for _, line := range slices.Concat(h.Preconditions, h.ChainsWith, []string{h.OutputShape}) {
		if line = text.Line(line, maxHintLength); line != "" {
			texts = append(texts, line)
		}
	}
	return strings.Join(texts, "\n")
}

// A toolHints holds the hints of a tool and the document to index for it, which
// includes them. It is never changed. nil means no hints.
type toolHints struct {
	Hints
	document search.Document
}

func newToolHints(d *definition, h Hints) *toolHints {
	th := &toolHints{Hints: h.clone(), document: d.document}
	th.document.Hints += "\n" + h.words()
	return th
}

// documentOf returns the document to index for t, the tool of h.
func (h *toolHints) documentOf(t *BridgeTool) *search.Document {
	if h == nil {
		return &t.def.document
	}
	return &h.document
}

// knownHints are the hints known so far. A map is shared and never changed.
type knownHints map[*definition]*toolHints

// of returns the hints of t, or nil. t may be nil.
func (k knownHints) of(t *BridgeTool) *toolHints {
	if t == nil {
		return nil
	}
	return k[t.def]
}
