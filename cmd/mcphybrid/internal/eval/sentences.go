package eval

import (
	"errors"
	"slices"
	"strings"
)

// Ways in which models write to a search tool in several sentences.
const (
	framed = "framed" // what it is about, the request, and what is to be done with it
	joined = "joined" // two requests that the same tools answer
)

var errNoneJoined = errors.New("no two queries have the same relevant tools")

// inSentences returns queries as models write them. Of the joined ones, those remain that
// have a partner: the next query in a ring with the same relevant tools.
func inSentences(queries []query, kind string) (list []query) {
	for i, q := range queries {
		switch kind {
		case framed:
			q.Query = "The user wants help with a task. " + sentence(q.Query) + " Find the tool that can do this and return the result."
		case joined:
			other := slices.IndexFunc(slices.Concat(queries[i+1:], queries[:i]), func(o query) bool {
				return len(o.Relevant) > 0 && o.Query != q.Query && slices.Equal(o.Relevant, q.Relevant)
			})
			if other < 0 {
				continue
			}
			q.Query = sentence(queries[(i+1+other)%len(queries)].Query) + " " + sentence(q.Query)
		}
		list = append(list, q)
	}
	return list
}

// sentence returns text with a mark at its end.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	for _, mark := range []string{".", "?", "!", "。", "？", "！"} {
		if strings.HasSuffix(text, mark) {
			return text
		}
	}
	return text + "."
}
