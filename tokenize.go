package mcphybrid

import (
	"strings"
	"unicode"
)

// tokenize splits text into the terms of the classic ranker: lower-cased, with
// every rune that is neither a letter nor a digit taken as a space, and terms
// of a single byte dropped.
//
//	tokenize("create-github-issue") = {"create", "github", "issue"}
//
// The rule is the published reference's and is kept exactly, so that the
// classic ranker's scores can be compared. A single Han character has three
// bytes and is kept; a run of them is one term.
func tokenize(text string) []string {
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
