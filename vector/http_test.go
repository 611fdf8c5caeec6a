package vector

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An embeddingRequest is a request to a service.
type embeddingRequest struct {
	Model      string
	Input      []string
	Dimensions int
}

// lengths returns the test service's vector of a text: its length and 1.
func lengths(text string) []float32 { return []float32{float32(len(text)), 1} }

// embeddings serves both protocols.
func embeddings(t *testing.T, see func(r *http.Request, in embeddingRequest)) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in embeddingRequest
		body, _ := io.ReadAll(r.Body)
		if !assert.NoError(t, json.Unmarshal(body, &in)) {
			return
		}
		see(r, in)
		var vectors [][]float32
		for _, text := range in.Input {
			vectors = append(vectors, lengths(text))
		}
		switch r.URL.Path {
		case "/v1/embeddings":
			type item struct {
				Index     int       `json:"index"`
				Embedding []float32 `json:"embedding"`
			}
			var data []item
			for i := range vectors { // in any order
				i = len(vectors) - 1 - i
				data = append(data, item{i, vectors[i]})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
		case "/api/embed":
			_ = json.NewEncoder(w).Encode(map[string]any{"model": in.Model, "embeddings": vectors})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestHTTPEmbedders(t *testing.T) {
	for _, kind := range []string{"openai", "ollama"} {
		t.Run(kind, func(t *testing.T) {
			var requests []embeddingRequest
			s := embeddings(t, func(r *http.Request, in embeddingRequest) {
				assert.Equal(t, "Bearer sk-1234567890", r.Header.Get("Authorization"))
				requests = append(requests, in)
			})
			opts := HTTPEmbedderOptions{URL: s.URL, Model: "m", Key: "sk-1234567890", Dimensions: 2, BatchSize: 3, TextPrefix: "p: ", QueryPrefix: "query: "}
			e, err := NewOllamaEmbedder(opts)
			if kind == "openai" {
				opts.URL += "/v1/"
				e, err = NewOpenAIEmbedder(opts)
			}
			require.NoError(t, err)
			vectors, err := e.Embed(t.Context(), []string{"", "a", "bb", "ccc", "dddd"})
			require.NoError(t, err)
			assert.Equal(t, [][]float32{{3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}}, vectors)
			vector, err := e.EmbedQuery(t.Context(), "x")
			require.NoError(t, err)
			assert.Equal(t, []float32{8, 1}, vector)
			assert.Equal(t, []embeddingRequest{
				{"m", []string{"p: ", "p: a", "p: bb"}, 2}, {"m", []string{"p: ccc", "p: dddd"}, 2}, {"m", []string{"query: x"}, 2},
			}, requests)
			assert.Equal(t, `m, 2 dimensions, after "p: "`, e.Model())
			opts.Dimensions, opts.TextPrefix = 0, ""
			plain, err := NewOllamaEmbedder(opts)
			require.NoError(t, err)
			assert.Equal(t, "m", plain.Model())
			assert.Equal(t, 2, e.Dimensions())
			vectors, err = e.Embed(t.Context(), nil)
			assert.NoError(t, err)
			assert.Empty(t, vectors)
		})
	}
}

// A malformed answer becomes an error that says what is wrong with it.
func TestHTTPEmbedderBadAnswers(t *testing.T) {
	for _, test := range []struct {
		status       int
		answer, want string
	}{
		{200, `{"data":[{"embedding":[1,2]}]}`, "1 vectors for 2 texts"},
		{200, `{"data":[{"embedding":[1,2]},{"embedding":[1]}]}`, "vector 1: it has 1 dimensions, want 2"},
		{200, `{"data":[{"embedding":[]},{"embedding":[]}]}`, "vector 0: it has 0 dimensions"},
		{200, `{"data":[{"embedding":[0,0]},{"embedding":[1,2]}]}`, "vector 0: it is zero"},
		{200, `{"data":[{"embedding":[3e38,3e38]},{"embedding":[1,2]}]}`, ""},
		{200, `{"data":[{"index":1,"embedding":[1,2]},{"index":1,"embedding":[1,2]}]}`, "or two have"},
		{200, `{"data":[{"index":-1,"embedding":[1,2]},{"index":7,"embedding":[1,2]}]}`, "has the index -1"},
		{200, `{"data":[{"embedding":[null,1]},{"embedding":["x",1]}]}`, "string"},
		{200, `{"data":[{"embedding":[1e99,1]},{"embedding":[1,1]}]}`, "1e99"},
		{200, `{"data":null}`, "0 vectors for 2 texts"},
		{200, `not JSON`, "invalid character"},
		{200, strings.Repeat(" ", 16<<20+1), "more bytes than the limit of 16777216"},
		{400, `{"error":"the key sk-1234567890 knows no model m"}`, `400 Bad Request: {"error":"the key … knows no model m"}`},
		{401, "", "401 Unauthorized"},
		{404, strings.Repeat("x", 100_000), "404 Not Found: xxx"},
		{500, "boom\nboom", "500 Internal Server Error: boom boom"},
	} {
		t.Run(test.want, func(t *testing.T) {
			var asked atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.answer)
			}))
			defer s.Close()
			e, err := NewOpenAIEmbedder(HTTPEmbedderOptions{URL: s.URL, Model: "m", Key: "sk-1234567890", Retries: -1})
			require.NoError(t, err)
			_, err = e.Embed(t.Context(), []string{"a", "b"})
			if test.want == "" {
				assert.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, `vector: embedding with "m": `)
			assert.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "sk-1234567890")
			assert.NotContains(t, err.Error(), s.URL)
			assert.Less(t, len(err.Error()), 1000)
			assert.EqualValues(t, 1, asked.Load())
		})
	}
}

// A transport replaces the service, so that time passes in a synctest bubble.
type aTransport func(*http.Request) (*http.Response, error)

func (f aTransport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, header, text string) *http.Response {
	r := &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: make(http.Header), Body: io.NopCloser(strings.NewReader(text))}
	if header != "" {
		r.Header.Set("Retry-After", header)
	}
	return r
}

func TestHTTPEmbedderRetries(t *testing.T) {
	const good = `{"data":[{"embedding":[1,2]}]}`
	embed := func(t *testing.T, ctx context.Context, retries int, serve func(try int) (*http.Response, error)) (took time.Duration, tries int, err error) {
		e, err := NewOpenAIEmbedder(HTTPEmbedderOptions{URL: "http://localhost", Model: "m", Retries: retries, Client: &http.Client{
			Transport: aTransport(func(*http.Request) (*http.Response, error) { tries++; return serve(tries) }),
		}})
		require.NoError(t, err)
		begun := time.Now()
		_, err = e.Embed(ctx, []string{"a"})
		return time.Since(begun), tries, err
	}
	between := func(t *testing.T, took, least, most time.Duration) {
		t.Helper()
		assert.True(t, took >= least && took <= most, "%v, want %v to %v", took, least, most)
	}
	synctest.Test(t, func(t *testing.T) {
		took, tries, err := embed(t, t.Context(), 0, func(try int) (*http.Response, error) {
			switch try {
			case 1:
				return nil, io.ErrUnexpectedEOF
			case 2:
				return answer(503, "", "busy"), nil
			case 3:
				return answer(429, "2", "slow down"), nil
			}
			return answer(200, "", good), nil
		})
		assert.NoError(t, err)
		assert.Equal(t, 4, tries)
		between(t, took, 200*time.Millisecond+400*time.Millisecond+2*time.Second, 200*time.Millisecond+400*time.Millisecond+2*time.Second+3*firstRetry)

		_, tries, err = embed(t, t.Context(), 2, func(int) (*http.Response, error) { return answer(500, "", "never"), nil })
		assert.ErrorContains(t, err, "500: never")
		assert.Equal(t, 3, tries)

		_, tries, err = embed(t, t.Context(), 5, func(int) (*http.Response, error) { return answer(403, "", "no"), nil })
		assert.ErrorContains(t, err, "403: no")
		assert.Equal(t, 1, tries)

		// A wait never exceeds the caller's deadline, even if the service asks for more.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		took, _, err = embed(t, ctx, 5, func(int) (*http.Response, error) { return answer(429, "999999", "later"), nil })
		assert.ErrorContains(t, err, "429: later; there is no time for another try")
		between(t, took, 0, 0)
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		took, _, err = embed(t, ctx, 5, func(int) (*http.Response, error) { return answer(429, "999999", "later"), nil })
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorContains(t, err, "429: later")
		between(t, took, time.Second, time.Second)

		took, _, err = embed(t, t.Context(), 1, func(int) (*http.Response, error) { return answer(429, "999999", "later"), nil })
		assert.Error(t, err)
		between(t, took, maxRetry, maxRetry)
	})
}

// A service that accepts and never answers costs one timeout.
func TestHTTPEmbedderHangs(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	client := new(http.Client)
	defer client.CloseIdleConnections()
	e, err := NewOllamaEmbedder(HTTPEmbedderOptions{URL: s.URL, Model: "m", Timeout: 50 * time.Millisecond, Retries: -1, Client: client})
	require.NoError(t, err)
	_, err = e.EmbedQuery(t.Context(), "x")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestHTTPEmbedderOptions(t *testing.T) {
	for _, opts := range []HTTPEmbedderOptions{{}, {URL: "http://x"}, {Model: "m"}, {URL: "ftp://x", Model: "m"}, {URL: "localhost:1", Model: "m"}, {URL: "http://me:s3cret@[x/", Model: "m"}} {
		e, err := NewOpenAIEmbedder(opts)
		assert.Nil(t, e)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "s3cret")
	}
}

// Without a size, a batch has 64 texts, and one of less than nothing has one.
func TestHTTPEmbedderBatches(t *testing.T) {
	for size, want := range map[int][]int{0: {64, 1}, -1: {1, 1}, 1: {1, 1}, 2: {2}} {
		var got []int
		s := embeddings(t, func(_ *http.Request, in embeddingRequest) { got = append(got, len(in.Input)) })
		e, err := NewOllamaEmbedder(HTTPEmbedderOptions{URL: s.URL + "//", Model: "m", BatchSize: size})
		require.NoError(t, err)
		n := 0
		for _, texts := range want {
			n += texts
		}
		vectors, err := e.Embed(t.Context(), make([]string, n))
		require.NoError(t, err)
		assert.Len(t, vectors, n)
		assert.Equal(t, want, got, "%d", size)
	}
}

func TestCheckVectors(t *testing.T) {
	nan := float32(math.NaN())
	assert.NoError(t, CheckAll(nil, 0, 0))
	assert.NoError(t, CheckAll([][]float32{{1, 2}, {0, -1}}, 2, 2))
	assert.ErrorContains(t, CheckAll([][]float32{{1, 2}}, 1, 3), "it has 2 dimensions, want 3")
	assert.ErrorContains(t, CheckAll([][]float32{{1, nan}}, 1, 0), "no numbers")
	assert.ErrorContains(t, CheckAll([][]float32{{0, 0}}, 1, 0), "zero")
}

func FuzzEmbeddings(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":0,"embedding":[1,2]}],"embeddings":[[1,2]]}`))
	openAI, err := NewOpenAIEmbedder(HTTPEmbedderOptions{URL: "http://x", Model: "m"})
	require.NoError(f, err)
	ollama, err := NewOllamaEmbedder(HTTPEmbedderOptions{URL: "http://x", Model: "m"})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, e := range []Embedder{openAI, ollama} {
			vectors, err := e.(*httpEmbedder).read(data)
			if err == nil {
				_ = CheckAll(vectors, 1, 2)
			}
		}
	})
}
