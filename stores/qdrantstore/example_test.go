package qdrantstore_test

import (
	"log"
	"os"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/stores/qdrantstore"
	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/qdrant/go-client/qdrant"
)

func Example() {
	client, err := qdrant.NewClient(&qdrant.Config{
		Host: "qdrant.example.com", UseTLS: true, APIKey: os.Getenv("QDRANT_API_KEY"),
		SkipCompatibilityCheck: true, // otherwise it waits for Qdrant, up to a minute
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	const model = "text-embedding-3-small"
	embedder, err := vector.NewOpenAIEmbedder(vector.HTTPEmbedderOptions{
		URL: "https://api.openai.com/v1", Model: model, Key: os.Getenv("OPENAI_API_KEY"),
	})
	if err != nil {
		log.Fatal(err)
	}
	manager := mcphybrid.NewManager(&mcphybrid.Options{Semantic: &mcphybrid.SemanticOptions{
		Embedder: embedder,
		Store:    qdrantstore.New(client, &qdrantstore.Options{Model: model}),
	}})
	defer manager.Close()
}
