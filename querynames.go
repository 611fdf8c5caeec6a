package mcphybrid

// The names of tools in a query, and the tools that have them.

import (
	"slices"
	"strings"
	"unicode"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// named returns the tools with these names, registered or own, that keep accepts.
// It returns each tool once, in the order of names. Tools with the same own name
// are in registration order, the user's first.
func (p *partition) named(names []string, keep func(*BridgeTool, standing) bool) (list []*BridgeTool) {
	add := func(t *BridgeTool, st standing) {
		if keep(t, st) && !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	for _, name := range names {
		if t, v := p.find(name); t != nil {
			add(t, v.standing)
			continue
		}
		for i, c := range slices.Backward(p.catalogs) {
			for _, j := range c.originals()[name] {
				add(c.tools[j], p.verdicts[i].ofTool(j).standing)
			}
		}
	}
	return list
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
