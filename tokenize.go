package mcphybrid

import (
	"strings"
	"unicode"
)

// This file has the words of RankerClassic. The other rankers split texts in
// search/analyze.go.

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
