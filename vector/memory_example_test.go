package vector_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mcphybrid/mcphybrid/vector"
)

// Each scope is searched by itself.
func ExampleMemoryStore() {
	ctx := context.Background()
	var store vector.MemoryStore
	err := store.Upsert(ctx, "system", []vector.Record{
		{ID: "find_vet", Text: "Finds a vet", Vector: []float32{1, 0}},
		{ID: "rent_car", Text: "Rents a car", Vector: []float32{0, 1}},
	})
	if err != nil {
		log.Fatal(err)
	}
	query := vector.Query{Vector: []float32{0.8, 0.6}, Limit: 5}
	for _, scope := range []string{"system", "user:alice"} {
		matches, err := store.Search(ctx, scope, query)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(scope, len(matches))
		for _, m := range matches {
			fmt.Printf("  %s %.1f\n", m.ID, m.Similarity)
		}
	}
	// Output:
	// system 2
	//   find_vet 0.8
	//   rent_car 0.6
	// user:alice 0
}

// Half of the score comes from the words, half from the meaning.
func ExampleFuse() {
	words := []vector.Match{{ID: "rent_car", Words: 8}, {ID: "wash_car", Words: 4}}
	similar := []vector.Match{{ID: "wash_car", Similarity: 0.9}, {ID: "find_vet", Similarity: 0.4}}
	for _, m := range vector.Fuse(words, similar, 0.5, 3) {
		fmt.Printf("%s %.2f\n", m.ID, m.Score)
	}
	// Output:
	// wash_car 0.70
	// rent_car 0.50
	// find_vet 0.20
}

// Only the places count: what both sides have found comes first.
func ExampleFuseRanks() {
	words := []vector.Match{{ID: "rent_car", Words: 8}, {ID: "wash_car", Words: 4}}
	similar := []vector.Match{{ID: "wash_car", Similarity: 0.9}, {ID: "find_vet", Similarity: 0.4}}
	for _, m := range vector.FuseRanks(words, similar, 3) {
		fmt.Printf("%s %.4f\n", m.ID, m.Score)
	}
	// Output:
	// wash_car 0.0325
	// rent_car 0.0164
	// find_vet 0.0161
}
