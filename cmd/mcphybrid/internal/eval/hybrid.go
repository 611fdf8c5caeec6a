package eval

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/vector"
)

// A service is the embedding service of the ranker "hybrid". $EMBEDDING_KEY is its
// key.
type service struct {
	ollama, openai string // URLs
	model          string
	random         int // instead of a service: dimensions of random vectors
}

func (s service) embedder() (vector.Embedder, error) {
	opts := vector.HTTPEmbedderOptions{URL: cmp.Or(s.ollama, s.openai), Model: s.model, Key: os.Getenv("EMBEDDING_KEY")}
	switch {
	case s.ollama != "" && s.openai != "" || s.random > 0 && s.ollama+s.openai != "":
		return nil, errors.New("only one of -ollama, -openai and -random can be measured")
	case s.random > 0:
		return random(s.random), nil
	case s.ollama != "":
		return vector.NewOllamaEmbedder(opts)
	case s.openai != "":
		return vector.NewOpenAIEmbedder(opts)
	}
	return nil, errors.New("-ranker hybrid needs -ollama, -openai or -random")
}

// random is an embedder that knows nothing: of each text, it makes a random vector with
// so many dimensions, always the same.
type random int

func (r random) Model() string   { return "random" }
func (r random) Dimensions() int { return int(r) }

func (r random) Embed(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		h := fnv.New64a()
		h.Write([]byte(text))
		source := rand.New(rand.NewPCG(h.Sum64(), 1))
		vectors[i] = make([]float32, r)
		for j := range vectors[i] {
			vectors[i][j] = float32(source.NormFloat64())
		}
	}
	return vectors, nil
}

func (r random) EmbedQuery(ctx context.Context, query string) ([]float32, error) {
	vectors, _ := r.Embed(ctx, []string{query}) // it has no error
	return vectors[0], nil
}

// hybrid returns the options for searches by words and meaning, and a channel that is
// closed when that many tools are embedded.
func hybrid(e vector.Embedder, alpha float64, tools int, show *progress) (*mcphybrid.SemanticOptions, <-chan struct{}) {
	ready := make(chan struct{})
	var once sync.Once
	return &mcphybrid.SemanticOptions{Embedder: e, Alpha: alpha, ServerBudget: mcphybrid.NoLimit, Timeout: time.Minute, Progress: func(done, _ int) {
		show.show("embedding tool", done, tools)
		if done == tools {
			once.Do(func() { close(ready) })
		}
	}}, ready
}
