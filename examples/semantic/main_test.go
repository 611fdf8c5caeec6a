package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const corpus = "../../testdata/corpus/tools.jsonl"

func TestSemantic(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"-tools", corpus, "-n", "3", "-query", "create an issue"}, &out, io.Discard))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 12, out.String())
	for _, at := range []int{0, 4, 8} {
		assert.False(t, strings.HasPrefix(lines[at], " "), out.String())
	}
	assert.Contains(t, lines[1], "create_issue")
	assert.Contains(t, lines[9], "create_issue")
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
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"-tools", corpus, "-ollama", s.URL, "-query", "create an issue"}, &out, io.Discard))
	assert.Contains(t, out.String(), "create_issue")
}

func TestSemanticErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"-query is needed": {},
		"two services":     {"-query", "x", "-ollama", "http://a", "-openai", "http://b"},
		"is not one with":  {"-query", "x", "-ollama", "localhost:11434"},
		"no such file":     {"-query", "x", "-tools", "nowhere.jsonl"},
		"/dev/null has no": {"-query", "x", "-tools", "/dev/null"},
	} {
		assert.ErrorContains(t, run(t.Context(), args, io.Discard, io.Discard), want)
	}
}
