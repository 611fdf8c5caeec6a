package mcphybrid

import (
	"strings"
	"unicode"
)

// tokenize splits text into the terms of the classic ranker. It lower-cases text,
// splits it at every rune that is neither a letter nor a digit, and drops terms of
// a single byte.
//
//	tokenize("create-github-issue") = {"create", "github", "issue"}
//
// This is exactly the rule of the published reference, so that the scores of the
// classic ranker can be compared with it. A single Han character has three bytes
// and is a term; so is a run of them.
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
