package mcphybrid

import (
	"context"
	"strings"
)

// SelectFor activates the tools that message, such as the user's, most likely
// needs, and what these need, and returns them: [JustInTimeOptions.Results], or
// without [Options.JustInTime] [RankingOptions.Results]. A host calls it before
// it calls the model, and again with what [SearchDirectives] finds in the
// model's answer. It finds by meaning within ctx and the timeout, and otherwise
// by words. Like every activation it appends to what was sent.
func (s *Session) SelectFor(ctx context.Context, message string) []*BridgeTool {
	n := s.scope.opts.Search.Results
	if s.scope.opts.JustInTime != nil {
		n = s.scope.opts.JustInTime.Results
	}
	var names []string
	for _, h := range s.Find(ctx, message, SearchOptions{Limit: n}).Hits {
		names = append(names, h.Tool.name)
	}
	selected, _ := s.activate(names)
	return selected
}

// maxDirectives bounds the searches of one answer.
const maxDirectives = 5

// SearchDirectives returns what a model asks to have searched for in its
// answer, by lines such as "SEARCH_TOOLS: send an e-mail": in their order, each
// once, at most five. The line may be quoted or set in bold or as code.
func SearchDirectives(answer string) []string {
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
		} else if len(d.line) < maxQueryBytes {
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
