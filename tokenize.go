package mcphybrid

import (
	"strings"
	"unicode"

	"github.com/mcphybrid/mcphybrid/internal/enrich"
	"github.com/mcphybrid/mcphybrid/search"
)

// Tokenize splits a text into the terms of [RankerClassic]. It lower-cases the text,
// splits it at every rune that is neither a letter nor a digit, and drops terms of
// a single byte.
//
//	Tokenize("create-github-issue") = {"create", "github", "issue"}
//
// This is exactly the rule of the published reference, so that the scores of the
// classic ranker can be compared with it. A single Han character has three bytes
// and is a term; so is a run of them.
func Tokenize(text string) []string {
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	terms := fields[:0]
	for _, f := range fields {
		if len(f) > 1 {
			terms = append(terms, f)
		}
	}
	return terms
}

// plainText returns the text that stands for t in [RankerClassic], with its hints h or
// without.
func (t *BridgeTool) plainText(h *enrich.Known) string {
	text := strings.Join([]string{t.def.Server, t.def.Own, t.def.Description}, " ")
	if h != nil {
		text += " " + h.Words()
	}
	return text
}

// document returns the document that stands for t in the other rankers, with its hints h or
// without.
func (t *BridgeTool) document(h *enrich.Known) *search.Document {
	if h == nil {
		return t.def.Document()
	}
	return &h.Document
}
