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

// Hints are what a host knows of a tool beyond its definition. They are plain
// text in the host's name: the model reads them, cleaned, in
// [Session.OverrideBlock], and all but the AntiPatterns are words to find the
// tool by. Of each list there are at most 16 texts, and a text has at most 500
// bytes. The zero value has none. In JSON it is
//
//	{"preconditions": ["…"], "anti_patterns": ["…"], "chains_with": ["…"], "output_shape": "…"}
//
// without the members that are empty. To read it, see [ParseHints].
type Hints struct {
	// Preconditions are what must be so before the tool is called.
	Preconditions []string `json:"preconditions,omitempty"`

	// AntiPatterns are what the tool is not for, and how it is misused. They
	// are not indexed: who searches for that wants another tool.
	AntiPatterns []string `json:"anti_patterns,omitempty"`

	// ChainsWith are the names of tools, registered or a host's own, that are
	// often called after this one. That they are named activates none of them:
	// for what must come along with a tool there is [Options.Needs].
	ChainsWith []string `json:"chains_with,omitempty"`

	// OutputShape says what the tool returns.
	OutputShape string `json:"output_shape,omitempty"`
}

// An Enricher looks up what a host knows of tools: in a file, a database, a
// service. It is called from several goroutines at once, and never on the way
// of a search or a call.
//
// What it returns, the model reads as the host's own words. What a tool's
// server says is not to be repeated in it unread.
type Enricher interface {
	// LookupHints returns the hints for a tool and whether there are any. The
	// tool must not be changed. ctx ends after [Options.EnrichTimeout], and with
	// [Manager.Close]. An error, a panic, hints beyond the limits and no answer
	// in time are logged: the tool then has the hints that it had before, if
	// any, until [Manager.RefreshHints].
	LookupHints(ctx context.Context, tool *BridgeTool) (hints Hints, ok bool, err error)
}

// NopEnricher is an [Enricher] that knows of no hints. It is as good as none.
type NopEnricher struct{}

// LookupHints returns no hints.
func (NopEnricher) LookupHints(context.Context, *BridgeTool) (Hints, bool, error) {
	return Hints{}, false, nil
}

// What hints may have, here and from an [Enricher]: enough for a page about a
// tool, and too little to fill a context with.
const (
	maxHints      = 16        // texts in a list
	maxHintLength = 500       // bytes of a text
	maxHintsJSON  = 256 << 10 // holds all of it with every character escaped
)

// ParseHints returns the hints in a JSON object of at most 256 KiB: see [Hints].
// A member that is missing or null is empty; any other, a repeated one, and
// what is too large is an error that says where.
func ParseHints(data []byte) (Hints, error) {
	h, err := parseHints(data)
	if err != nil {
		return Hints{}, fmt.Errorf("mcphybrid: hints: %w", err)
	}
	return h, nil
}

// hintMembers are the JSON names, as they must be written.
var hintMembers = []string{"preconditions", "anti_patterns", "chains_with", "output_shape"}

func parseHints(data []byte) (h Hints, err error) {
	if len(data) > maxHintsJSON {
		return h, fmt.Errorf("has %d bytes, more than the limit of %d", len(data), maxHintsJSON)
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
			return h, fmt.Errorf("%q is no member of hints, want one of %q", name, hintMembers)
		case seen[m.Name]:
			return h, fmt.Errorf("%q is there twice", name)
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

// validate returns what is too large in h, by its place in JSON.
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

// words returns what a tool is found by: all but what it is not for.
func (h Hints) words() string {
	var texts []string
	for _, line := range slices.Concat(h.Preconditions, h.ChainsWith, []string{h.OutputShape}) {
		if line = text.Line(line, maxHintLength); line != "" {
			texts = append(texts, line)
		}
	}
	return strings.Join(texts, "\n")
}

// A toolHints is the hints of a tool and the document that it is found by with
// them, instead of its definition's. It is never changed; nil stands for none.
type toolHints struct {
	Hints
	document search.Document
}

func newToolHints(d *definition, h Hints) *toolHints {
	th := &toolHints{Hints: h.clone(), document: d.document}
	th.document.Hints += "\n" + h.words()
	return th
}

// documentOf returns what t, the tool of h, is indexed by.
func (h *toolHints) documentOf(t *BridgeTool) *search.Document {
	if h == nil {
		return &t.def.document
	}
	return &h.document
}

// knownHints are those that are known. It is shared and never changed.
type knownHints map[*definition]*toolHints

// of returns the hints of t, or nil. t may be nil.
func (k knownHints) of(t *BridgeTool) *toolHints {
	if t == nil {
		return nil
	}
	return k[t.def]
}
