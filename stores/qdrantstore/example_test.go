package qdrantstore_test

import (
	"log"
	"os"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/stores/qdrantstore"
	"github.com/qdrant/go-client/qdrant"
)

func Example() {
	client, err := qdrant.NewClient(&qdrant.Config{
		Host: "qdrant.example.com", UseTLS: true, APIKey: os.Getenv("QDRANT_API_KEY"),
		SkipCompatibilityCheck: true, // it would wait for Qdrant, up to a minute
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	const model = "text-embedding-3-small"
	manager := mcphybrid.NewManager(&mcphybrid.Options{Semantic: &mcphybrid.SemanticOptions{
		Embedder: mcphybrid.NewOpenAIEmbedder(mcphybrid.HTTPEmbedderOptions{Model: model}),
		Store:    qdrantstore.New(client, &qdrantstore.Options{Model: model}),
	}})
	defer manager.Close()
}
