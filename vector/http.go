package vector

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// HTTPEmbedderOptions configures an embedder that asks a service over HTTP. URL
// and Model are required.
type HTTPEmbedderOptions struct {
	// URL is the base URL of the service, such as https://api.openai.com/v1 or
	// http://localhost:11434.
	URL string

	// Model is the name by which the service knows the model. The embedder's Model
	// also names Dimensions and TextPrefix, if they are set, since vectors of texts
	// depend on them: if one changes, texts are embedded again.
	Model string

	// Key is sent as a bearer token, if it is not empty. Errors don't contain it.
	Key string

	// Dimensions is the length of the vectors. If not zero, requests ask for it
	// and an answer with another length is an error.
	Dimensions int

	// TextPrefix and QueryPrefix are put before texts and queries, for models
	// that tell the two apart by a prefix, such as "passage: " and "query: ".
	TextPrefix, QueryPrefix string

	// BatchSize is the greatest number of texts in one request. If zero, it is 64.
	BatchSize int

	// Timeout bounds each request. If zero, it is 30 seconds.
	Timeout time.Duration

	// Retries is how often a request is repeated after a failure that may pass:
	// a connection error, status 429 or 5xx. The wait doubles from 0.2 to at
	// most 10 seconds; a longer Retry-After counts, up to 10 seconds. If zero,
	// it is 3. If negative, there are no retries.
	Retries int

	// Client sends the requests. If nil, [http.DefaultClient].
	Client *http.Client
}

// NewOpenAIEmbedder returns an embedder for OpenAI's /embeddings endpoint, which
// vLLM, LM Studio, llama.cpp and text-embeddings-inference offer too. It is an
// error if the options lack a valid URL or a model.
func NewOpenAIEmbedder(opts HTTPEmbedderOptions) (Embedder, error) {
	return newHTTPEmbedder(opts, "/embeddings", func(answer []byte) ([][]float32, error) {
		var in struct {
			Data []struct {
				Index     *int
				Embedding []float32
			}
		}
		if err := json.Unmarshal(answer, &in); err != nil {
			return nil, text.JSONError(answer, err)
		}
		vectors := make([][]float32, len(in.Data))
		for i, d := range in.Data {
			if d.Index != nil {
				i = *d.Index
			}
			if i < 0 || i >= len(vectors) || vectors[i] != nil {
				return nil, fmt.Errorf("%d vectors, of which one has the index %d, or two have", len(vectors), i)
			}
			vectors[i] = d.Embedding
		}
		return vectors, nil
	})
}

// NewOllamaEmbedder returns an embedder for Ollama's /api/embed endpoint. It is
// an error if the options lack a valid URL or a model.
func NewOllamaEmbedder(opts HTTPEmbedderOptions) (Embedder, error) {
	return newHTTPEmbedder(opts, "/api/embed", func(answer []byte) ([][]float32, error) {
		var in struct{ Embeddings [][]float32 }
		if err := json.Unmarshal(answer, &in); err != nil {
			return nil, text.JSONError(answer, err)
		}
		return in.Embeddings, nil
	})
}

// An httpEmbedder sends texts in batches and reads vectors from the answers.
type httpEmbedder struct {
	opts HTTPEmbedderOptions
	url  string
	read func(answer []byte) ([][]float32, error)
}

func newHTTPEmbedder(opts HTTPEmbedderOptions, path string, read func([]byte) ([][]float32, error)) (Embedder, error) {
	address, err := url.Parse(opts.URL) // its error would show what is secret in it
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, errors.New("vector: the embedder's URL is not one with http:// or https:// and a host")
	}
	if opts.Model == "" {
		return nil, errors.New("vector: the embedder has no model")
	}
	opts.BatchSize = max(cmp.Or(opts.BatchSize, 64), 1)
	opts.Timeout = cmp.Or(opts.Timeout, 30*time.Second)
	opts.Retries = max(cmp.Or(opts.Retries, 3), 0)
	if opts.Client == nil {
		opts.Client = http.DefaultClient
	}
	return &httpEmbedder{opts: opts, url: strings.TrimRight(opts.URL, "/") + path, read: read}, nil
}

func (e *httpEmbedder) Dimensions() int { return e.opts.Dimensions }

func (e *httpEmbedder) Model() string {
	name := e.opts.Model
	if e.opts.Dimensions != 0 {
		name += fmt.Sprintf(", %d dimensions", e.opts.Dimensions)
	}
	if e.opts.TextPrefix != "" {
		name += fmt.Sprintf(", after %q", e.opts.TextPrefix)
	}
	return name
}

func (e *httpEmbedder) EmbedQuery(ctx context.Context, query string) ([]float32, error) {
	vectors, err := e.embed(ctx, []string{e.opts.QueryPrefix + query})
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}

func (e *httpEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	prefixed := make([]string, len(texts))
	for i, text := range texts {
		prefixed[i] = e.opts.TextPrefix + text
	}
	return e.embed(ctx, prefixed)
}

func (e *httpEmbedder) embed(ctx context.Context, texts []string) ([][]float32, error) {
	var vectors [][]float32
	dims := e.opts.Dimensions
	for len(texts) > 0 {
		batch := texts[:min(len(texts), e.opts.BatchSize)]
		texts = texts[len(batch):]
		answer, err := e.ask(ctx, batch)
		if err == nil {
			err = CheckAll(answer, len(batch), dims)
		}
		if err != nil {
			return nil, fmt.Errorf("vector: embedding with %q: %w", e.opts.Model, e.withoutKey(err))
		}
		dims = len(answer[0])
		vectors = append(vectors, answer...)
	}
	return vectors, nil
}

// withoutKey removes the URL and the key from err. A service may repeat the key
// in its answer.
func (e *httpEmbedder) withoutKey(err error) error {
	err = text.WithoutURL(err)
	if e.opts.Key != "" && strings.Contains(err.Error(), e.opts.Key) {
		return errors.New(strings.ReplaceAll(err.Error(), e.opts.Key, "…"))
	}
	return err
}

const (
	firstRetry = 200 * time.Millisecond
	maxRetry   = 10 * time.Second
)

// ask sends one batch. It retries until it has an answer, a retry would not help
// or ctx is done.
func (e *httpEmbedder) ask(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(struct {
		Model      string   `json:"model"`
		Input      []string `json:"input"`
		Dimensions int      `json:"dimensions,omitempty"`
	}{e.opts.Model, texts, e.opts.Dimensions})
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		answer, wait, err := e.post(ctx, body)
		if err == nil {
			return e.read(answer)
		}
		if wait < 0 || try >= e.opts.Retries || ctx.Err() != nil {
			return nil, cmp.Or(context.Cause(ctx), err)
		}
		// The random part keeps clients that wait equally long from returning at
		// once.
		wait = min(max(wait, firstRetry<<min(try, 8))+rand.N(firstRetry), maxRetry)
		if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
			return nil, fmt.Errorf("%w; there is no time for another try", err)
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("%w, after: %w", context.Cause(ctx), err)
		}
	}
}

// post sends one request. If it fails, wait is how long the service asks callers
// to wait, or negative if a retry would not help.
func (e *httpEmbedder) post(ctx context.Context, body []byte) (answer []byte, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.opts.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, -1, err
	}
	r.Header.Set("Content-Type", "application/json")
	if e.opts.Key != "" {
		r.Header.Set("Authorization", "Bearer "+e.opts.Key)
	}
	resp, err := e.opts.Client.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, 0, err
	}
	switch {
	case len(answer) > maxAnswer:
		return nil, -1, fmt.Errorf("a message has more bytes than the limit of %d", maxAnswer)
	case resp.StatusCode == http.StatusOK:
		return answer, 0, nil
	}
	err = fmt.Errorf("%s: %s", resp.Status, text.Line(string(answer), maxErrorEcho))
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < 500 {
		return nil, -1, err
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return nil, time.Duration(min(max(seconds, 0), 3600)) * time.Second, err
}

const (
	maxAnswer    = 16 << 20 // bytes of an answer
	maxErrorEcho = 500      // characters of a service's error that ours repeats
)
