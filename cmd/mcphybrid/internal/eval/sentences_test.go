package eval

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestInSentences(t *testing.T) {
	queries := []query{
		{ID: "1", Query: "open a pull request", Relevant: []string{"a", "b"}}, {ID: "2", Query: "fork it", Relevant: []string{"c"}}, {ID: "3", Query: " Send a PR!", Relevant: []string{"a", "b"}},
		{ID: "4", Query: "merge?", Relevant: []string{"b", "a"}}, {ID: "5", Query: "unanswered", Relevant: nil}, {ID: "6", Query: "no answer", Relevant: nil}, {ID: "7", Query: "open a pull request", Relevant: []string{"a", "b"}},
	}
	assert.Equal(t, []query{
		{ID: "1", Query: "Send a PR! open a pull request.", Relevant: []string{"a", "b"}},
		{ID: "3", Query: "open a pull request. Send a PR!", Relevant: []string{"a", "b"}},
		{ID: "7", Query: "Send a PR! open a pull request.", Relevant: []string{"a", "b"}},
	}, inSentences(queries, joined))
	one := inSentences(queries[3:4], framed)
	assert.Equal(t, "The user wants help with a task. merge? Find the tool that can do this and return the result.", one[0].Query)
	assert.Len(t, inSentences(queries, framed), len(queries))
	assert.Equal(t, queries, inSentences(queries, ""))
}
