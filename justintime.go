package mcphybrid

import (
	"strings"
)

// maxDirectives bounds the searches in one answer.
const maxDirectives = 5

// SearchDirectives returns the searches that a model asks for in its answer, by
// lines such as "SEARCH_TOOLS: send an e-mail". The lines may be quoted, bold or
// code. SearchDirectives returns the first five different queries, in order.
func SearchDirectives(answer string) []string {
	var d Directives
	_, _ = d.Write([]byte(answer)) // never fails
	return d.End()
}

// Directives finds search directives in a streamed answer: see [SearchDirectives].
// Write each piece of the answer to it, then call End. The zero value is ready to
// use. Its methods must not be called concurrently.
type Directives struct {
	line    []byte // the current line, cut to maxQueryBytes
	queries []string
}

// Write takes the next piece of the answer, which may be cut anywhere. It never
// fails.
func (d *Directives) Write(piece []byte) (int, error) {
	for _, c := range piece {
		if c == '\n' || c == '\r' {
			d.endLine()
		} else if len(d.line) < maxQueryBytes {
			d.line = append(d.line, c)
		}
	}
	return len(piece), nil
}

// End returns the searches found in the whole answer, or nil, and makes d ready
// for another answer.
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
	query, ok := strings.CutPrefix(line, directive)
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
