package weaviatestore_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/stores/weaviatestore"
	"github.com/mcphybrid/mcphybrid/vector"
)

func Example() {
	store, err := weaviatestore.New(weaviatestore.Options{URL: "https://weaviate.example.com", APIKey: os.Getenv("WEAVIATE_API_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	var embedder vector.Embedder // of your choice
	manager := mcphybrid.NewManager(&mcphybrid.Options{Semantic: &mcphybrid.SemanticOptions{
		Embedder: embedder, Store: store, Scope: "system",
	}})
	defer manager.Close()
}

// Two users have tools of the same name. Each finds their own.
func Example_scopes() {
	ctx := context.Background()
	server, err := weaviatestore.ServerOfTests() // host:port
	if err != nil {
		log.Fatal(err)
	}
	store, err := weaviatestore.New(weaviatestore.Options{URL: "http://" + server, Class: "ExampleTools"})
	if err != nil {
		log.Fatal(err)
	}
	for user, text := range map[string]string{"ann": "Reads the mail of Ann", "ben": "Reads the mail of Ben"} {
		err := store.Upsert(ctx, user, []vector.Record{{ID: "mcp_mail__read", Sum: "1", Server: "mail of " + user, Text: text, Vector: []float32{1, 0}}})
		if err != nil {
			log.Fatal(err)
		}
		defer store.Drop(ctx, user)
	}
	found, err := store.Search(ctx, "ann", vector.Query{Words: "mail", Vector: []float32{3, 4}, Alpha: 0.5, Limit: 5})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range found {
		fmt.Printf("%s of %q: words %.1f, meaning %.1f, score %.1f\n", m.ID, m.Server, m.Words, m.Similarity, m.Score)
	}
	found, err = store.Search(ctx, "ann", vector.Query{Words: "Ben", Limit: 5})
	fmt.Println(len(found), err)
	// Output:
	// mcp_mail__read of "mail of ann": words 1.0, meaning 0.6, score 0.8
	// 0 <nil>
}
