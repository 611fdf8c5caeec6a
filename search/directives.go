package search

import "strings"

// Directive begins the line by which a model asks for a search in its answer.
const Directive = "SEARCH_TOOLS:"

const (
	maxDirectives = 5    // in one answer
	maxDirective  = 4096 // bytes of a line that count
)

// FindDirectives returns what a model asks to have searched for in its
// answer, by lines such as "SEARCH_TOOLS: send an e-mail": in their order, each
// once, at most five. The line may be quoted or set in bold or as code. What is
// beyond 4,096 bytes of it does not count.
func FindDirectives(answer string) []string {
	var d Directives
	_, _ = d.Write([]byte(answer)) // never fails
	return d.End()
}

// Directives finds search directives in an answer that comes in pieces, each of
// which is written to it. The zero value is ready for an answer.
type Directives struct {
	line    []byte // the line at hand, without what it can't be a directive with
	queries []string
}

// Write takes the next piece, which may be cut anywhere. It never fails.
func (d *Directives) Write(piece []byte) (int, error) {
	for _, c := range piece {
		if c == '\n' || c == '\r' {
			d.endLine()
		} else if len(d.line) < maxDirective {
			d.line = append(d.line, c)
		}
	}
	return len(piece), nil
}

// End returns what was found in the whole answer, and makes d ready for
// another one.
func (d *Directives) End() []string {
	d.endLine()
	queries := d.queries
	d.queries = nil
	return queries
}

func (d *Directives) endLine() {
	const marks = " \t*_`>\"'#-"
	line := strings.TrimLeft(strings.ToValidUTF8(string(d.line), " "), marks)
	d.line = d.line[:0]
	query, ok := strings.CutPrefix(line, Directive)
	query = strings.Trim(query, marks)
	if !ok || query == "" || len(d.queries) == maxDirectives {
		return
	}
	for _, q := range d.queries {
		if q == query {
			return
		}
	}
	d.queries = append(d.queries, query)
}
