package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const tools, queries = "../../../../testdata/corpus/tools.jsonl", "../../../../testdata/corpus/queries.jsonl"

// SPEC G9: a model that knows nothing costs next to nothing, whatever its dimensions.
// One query more or less is 0.0034 here, and chance; so the mean of several counts.
func TestSpecG9RandomVectors(t *testing.T) {
	with := func(args ...string) figures {
		f, _ := eval(t, append(args, "-tools", tools, "-queries", queries, "-json")...)
		return f
	}
	words := with("-ranker", "default")
	mean, dims := 0.0, []string{"64", "128", "256", "512"}
	for _, d := range dims {
		hybrid := with("-ranker", "hybrid", "-random", d)
		mean += hybrid.Recall5 / float64(len(dims))
		assert.Equal(t, "hybrid", hybrid.Ranker)
	}
	assert.GreaterOrEqual(t, mean, words.Recall5-0.003)
	assert.Equal(t, words.Recall5, with("-ranker", "hybrid", "-random", "64", "-alpha", "-1").Recall5, "no meaning")
	assert.Less(t, with("-ranker", "hybrid", "-random", "64", "-alpha", "1").Recall5, 0.1, "no words")
}

// A figure is of searches by words and meaning; if the meaning fails, there is none.
func TestHybridFails(t *testing.T) {
	query := regexp.MustCompile(`"query":\s*"([^"]*)"`).FindStringSubmatch(oneQuery)
	require.NotNil(t, query)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		if slices.Equal(in.Input, query[1:]) { // the tools may come in several requests before
			http.Error(w, "no more", http.StatusBadRequest)
			return
		}
		var data []string
		for i := range in.Input {
			data = append(data, fmt.Sprintf(`{"index": %d, "embedding": [1, %d]}`, i, i))
		}
		fmt.Fprintf(w, `{"data": [%s]}`, strings.Join(data, ", "))
	}))
	defer service.Close()
	err := run(append(files(t, someTools, oneQuery), "-ranker", "hybrid", "-openai", service.URL), io.Discard, io.Discard, io.Discard)
	assert.ErrorContains(t, err, "no more")
}

// Each service is asked in its own way.
func TestHybridServicesAreAsked(t *testing.T) {
	t.Setenv("EMBEDDING_KEY", "hunter2")
	for option, path := range map[string]string{"-ollama": "/api/embed", "-openai": "/embeddings"} {
		asked := make(chan string, 100)
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var in struct {
				Model string
				Input []string
			}
			assert.NoError(t, json.NewDecoder(r.Body).Decode(&in))
			asked <- r.URL.Path + " " + in.Model + " " + r.Header.Get("Authorization")
			var vectors, data []string
			for i := range in.Input {
				vectors = append(vectors, fmt.Sprintf("[1, %d]", i))
				data = append(data, fmt.Sprintf(`{"index": %d, "embedding": [1, %[1]d]}`, i))
			}
			fmt.Fprintf(w, `{"embeddings": [%s], "data": [%s]}`, strings.Join(vectors, ", "), strings.Join(data, ", "))
		}))
		f, _ := eval(t, append(files(t, someTools, oneQuery), "-json", "-ranker", "hybrid", option, service.URL, "-model", "m")...)
		service.Close()
		assert.Equal(t, "hybrid", f.Ranker)
		assert.Equal(t, path+" m Bearer hunter2", <-asked)
	}
}

func TestHybridServices(t *testing.T) {
	down := httptest.NewServer(http.NotFoundHandler())
	defer down.Close()
	for _, args := range [][]string{
		{},
		{"-ollama", down.URL, "-openai", down.URL},
		{"-random", "64", "-openai", down.URL},
		{"-ollama", down.URL},
		{"-openai", down.URL},
		{"-openai", "no\x00url"},
	} {
		assert.Error(t, run(append(args, "-ranker", "hybrid", "-tools", tools, "-queries", queries), nil, io.Discard, io.Discard), "%q", args)
	}
}
