package pgstore_test

import (
	"context"
	"log"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/stores/pgstore"
	"github.com/mcphybrid/mcphybrid/vector"
)

func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://agent@localhost/agent")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	store, err := pgstore.New(ctx, pool, nil)
	if err != nil {
		log.Fatal(err)
	}
	var embedder vector.Embedder // of your choice
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Semantic: &mcphybrid.SemanticOptions{Embedder: embedder, Store: store, Scope: "system"},
	})
	defer mgr.Close()
}
