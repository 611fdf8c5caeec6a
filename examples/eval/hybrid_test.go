package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

const tools, queries = "../../testdata/corpus/tools.jsonl", "../../testdata/corpus/queries.jsonl"

func TestHybrid(t *testing.T) {
	with := func(args ...string) figures {
		f, _ := eval(t, append(args, "-tools", tools, "-queries", queries, "-json")...)
		return f
	}
	words := with("-ranker", "default")
	assert.Equal(t, words.Recall5, with("-ranker", "hybrid", "-alpha", "0").Recall5, "no meaning")
	meaning := with("-ranker", "hybrid", "-alpha", "1")
	assert.Less(t, meaning.Recall5, words.Recall5, "letters are no meaning")
	assert.Equal(t, "hybrid", meaning.Ranker)
	assert.Greater(t, meaning.Recall5, 0.3)
}

func TestHybridServices(t *testing.T) {
	down := httptest.NewServer(http.NotFoundHandler())
	defer down.Close()
	for _, args := range [][]string{
		{"-ollama", down.URL, "-openai", down.URL},
		{"-ollama", down.URL},
		{"-openai", down.URL},
		{"-openai", "no\x00url"},
	} {
		assert.Error(t, run(append(args, "-ranker", "hybrid", "-tools", tools, "-queries", queries), nil, io.Discard), "%q", args)
	}
}
