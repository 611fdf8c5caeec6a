package main

import (
	"cmp"
	"errors"
	"os"
	"sync"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/vector"
)

// A service is the embedding service of the ranker "hybrid". $EMBEDDING_KEY is its
// key.
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
	return nil, errors.New("-ranker hybrid needs -ollama or -openai")
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
