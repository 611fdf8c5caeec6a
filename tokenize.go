package mcphybrid

import (
	"strings"
	"unicode"

	"github.com/mcphybrid/mcphybrid/internal/enrich"
	"github.com/mcphybrid/mcphybrid/internal/text"
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
// without, and with the words of its server's instructions.
func (t *BridgeTool) document(h *enrich.Known) *search.Document {
	if h == nil {
		return t.instructed.document(t.def.Document())
	}
	return t.instructed.document(&h.Document)
}

// queryNames returns the words of query that may be names of tools. only reports
// that the query starts with "select:" and so has nothing else.
func queryNames(query string) (list []string, only bool) {
	query = strings.TrimSpace(query)
	split := func(r rune) bool { return r == ',' || r == '`' || r == '"' || r == '\'' || unicode.IsSpace(r) }
	if len(query) > len(selectPrefix) && strings.EqualFold(query[:len(selectPrefix)], selectPrefix) {
		return strings.FieldsFunc(query[len(selectPrefix):], split), true
	}
	words := strings.FieldsFunc(query, split)
	if len(words) == 1 {
		return words, false
	}
	for _, w := range words {
		if isIdentifier(w) {
			list = append(list, w)
		}
	}
	return list, false
}

const selectPrefix = "select:"

// isIdentifier reports whether w looks like an identifier, not like a word of
// ordinary text. So it does not split w: "HTTPServer" is two words and may be prose,
// and so is "user's".
func isIdentifier(w string) bool {
	for i := 1; i < len(w)-1; i++ {
		if strings.IndexByte("_-./:", w[i]) >= 0 || text.IsLower(w[i-1]) && text.IsUpper(w[i]) {
			return true
		}
	}
	return false
}
