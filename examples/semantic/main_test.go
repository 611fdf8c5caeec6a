package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const corpus = "../../testdata/corpus/tools.jsonl"

func TestSemantic(t *testing.T) {
	var out strings.Builder
	require.NoError(t, show(t.Context(), &out, corpus, "create an issue", letters{}))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 18, out.String())
	for i, heading := range []string{"by words", "by meaning", "by both"} {
		assert.Equal(t, heading, lines[6*i], out.String())
		assert.Contains(t, lines[6*i+1], "create_issue")
	}
}

// A request to a service has the form of its API.
func TestSemanticService(t *testing.T) {
	t.Setenv("EMBEDDING_KEY", "sk-12345678")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/api/embed", r.URL.Path)
		assert.Equal(t, "Bearer sk-12345678", r.Header.Get("Authorization"))
		var in struct{ Input []string }
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&in))
		vectors, _ := letters{}.Embed(r.Context(), in.Input)
		_ = json.NewEncoder(w).Encode(map[string]any{"embeddings": vectors})
	}))
	defer s.Close()
	e, err := newEmbedder(s.URL, "", "nomic-embed-text")
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, show(t.Context(), &out, corpus, "create an issue", e))
	assert.Contains(t, out.String(), "create_issue")
}

func TestSemanticErrors(t *testing.T) {
	for want, urls := range map[string][2]string{
		"two services":    {"http://a", "http://b"},
		"is not one with": {"localhost:11434", ""},
	} {
		_, err := newEmbedder(urls[0], urls[1], "m")
		assert.ErrorContains(t, err, want)
	}
	for file, want := range map[string]string{
		"nowhere.jsonl": "no such file",
		os.DevNull:      "tool 1: EOF",
	} {
		assert.ErrorContains(t, show(t.Context(), io.Discard, file, "x", letters{}), want)
	}
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	e, err := newEmbedder("", s.URL, "m")
	require.NoError(t, err)
	assert.Error(t, show(t.Context(), io.Discard, corpus, "x", e), "it would wait for ever")
}
