package mcphybrid

// The terms of a text for the plain formula, bm25.go: the words by which RankerClassic finds a tool
// (plainText in ranker.go) and those of a query. By default a session ranks by package search, which splits
// texts in search/analyze.go and search/documentwords.go; what it reads of a tool is
// toolDocument in serverdefinition.go, with what document in ranker.go adds: hints and the server's instructions.

import (
	"strings"
	"unicode"
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
