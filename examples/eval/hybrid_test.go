package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const tools, queries = "../../testdata/corpus/tools.jsonl", "../../testdata/corpus/queries.jsonl"

// letters serves embeddings that count the groups of three letters in a text. They
// know no meaning.
func letters(t *testing.T) (url string) {
	const dims = 512
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		type datum struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var out struct {
			Data []datum `json:"data"`
		}
		for i, text := range in.Input {
			v := make([]float32, dims)
			v[0] = 0.01 // no text is nowhere
			for word := range strings.FieldsSeq(strings.ToLower(text)) {
				word = "<" + word + ">"
				for i := range max(len(word)-2, 0) {
					h := uint32(2166136261) // FNV-1a
					for _, c := range []byte(word[i : i+3]) {
						h = (h ^ uint32(c)) * 16777619
					}
					v[h%dims]++
				}
			}
			out.Data = append(out.Data, datum{i, v})
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestHybrid(t *testing.T) {
	with := func(args ...string) figures {
		f, _ := eval(t, append(args, "-tools", tools, "-queries", queries, "-json")...)
		return f
	}
	url := letters(t)
	words := with("-ranker", "default")
	assert.Equal(t, words.Recall5, with("-ranker", "hybrid", "-openai", url, "-alpha", "0").Recall5, "no meaning")
	meaning := with("-ranker", "hybrid", "-openai", url, "-alpha", "1")
	assert.Less(t, meaning.Recall5, words.Recall5, "letters are no meaning")
	assert.Equal(t, "hybrid", meaning.Ranker)
	assert.Greater(t, meaning.Recall5, 0.3)
}

func TestHybridServices(t *testing.T) {
	down := httptest.NewServer(http.NotFoundHandler())
	defer down.Close()
	for _, args := range [][]string{
		{},
		{"-ollama", down.URL, "-openai", down.URL},
		{"-ollama", down.URL},
		{"-openai", down.URL},
		{"-openai", "no\x00url"},
	} {
		assert.Error(t, run(append(args, "-ranker", "hybrid", "-tools", tools, "-queries", queries), nil, io.Discard), "%q", args)
	}
}
