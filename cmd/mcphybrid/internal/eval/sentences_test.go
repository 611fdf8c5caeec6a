package eval

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestInSentences(t *testing.T) {
	queries := []query{
		{"1", "open a pull request", []string{"a", "b"}}, {"2", "fork it", []string{"c"}}, {"3", " Send a PR!", []string{"a", "b"}},
		{"4", "merge?", []string{"b", "a"}}, {"5", "unanswered", nil}, {"6", "no answer", nil}, {"7", "open a pull request", []string{"a", "b"}},
	}
	assert.Equal(t, []query{
		{"1", "Send a PR! open a pull request.", []string{"a", "b"}},
		{"3", "open a pull request. Send a PR!", []string{"a", "b"}},
		{"7", "Send a PR! open a pull request.", []string{"a", "b"}},
	}, inSentences(queries, joined))
	one := inSentences(queries[3:4], framed)
	assert.Equal(t, "The user wants help with a task. merge? Find the tool that can do this and return the result.", one[0].Query)
	assert.Len(t, inSentences(queries, framed), len(queries))
	assert.Equal(t, queries, inSentences(queries, ""))
}
