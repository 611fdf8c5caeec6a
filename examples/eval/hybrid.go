package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"sync"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/vector"
)

// A service is the embedding service of the ranker "hybrid". $EMBEDDING_KEY is its
// key. The zero value selects a stand-in.
type service struct {
	ollama, openai string // URLs
	model          string
}

func (s service) embedder() (vector.Embedder, error) {
	opts := vector.HTTPEmbedderOptions{URL: cmp.Or(s.ollama, s.openai), Model: s.model, Key: os.Getenv("EMBEDDING_KEY")}
	switch {
	case s.ollama != "" && s.openai != "":
		return nil, errors.New("-ollama and -openai are two services")
	case s.ollama != "":
		return vector.NewOllamaEmbedder(opts)
	case s.openai != "":
		return vector.NewOpenAIEmbedder(opts)
	}
	return letters{}, nil
}

// hybrid returns the options for searches by words and meaning, and a channel that is
// closed when that many tools are embedded.
func hybrid(e vector.Embedder, alpha float64, tools int, show *progress) (*mcphybrid.SemanticOptions, <-chan struct{}) {
	ready := make(chan struct{})
	var once sync.Once
	if alpha == 0 {
		alpha = -1 // 0 is the default's
	}
	return &mcphybrid.SemanticOptions{Embedder: e, Alpha: alpha, ServerBudget: mcphybrid.NoLimit, Progress: func(done, _ int) {
		show.show("embedding tool", done, tools)
		if done == tools {
			once.Do(func() { close(ready) })
		}
	}}, ready
}

// letters stands in for an embedding model. Its vectors count the groups of three
// letters in a text. It knows no meaning.
type letters struct{}

const letterDims = 512

func (letters) Model() string   { return "letters" }
func (letters) Dimensions() int { return letterDims }

func (l letters) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i], _ = l.EmbedQuery(ctx, text)
	}
	return vectors, ctx.Err()
}

func (letters) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	v := make([]float32, letterDims)
	v[0] = 0.01 // no text is nowhere
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		word = "<" + word + ">"
		for i := range max(len(word)-2, 0) {
			h := uint32(2166136261) // FNV-1a
			for _, c := range []byte(word[i : i+3]) {
				h = (h ^ uint32(c)) * 16777619
			}
			v[h%letterDims]++
		}
	}
	return v, nil
}
