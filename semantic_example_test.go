package mcphybrid_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
)

// topics is an embedder that knows three topics by some of their words. A real
// host uses a model: see vector.NewOpenAIEmbedder and vector.NewOllamaEmbedder.
type topics struct{}

func (topics) Model() string   { return "topics" }
func (topics) Dimensions() int { return 3 }

func (topics) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	v := []float32{0.01, 0.01, 0.01}
	for i, words := range []string{"cat dog sick vet animal", "car road drive", "bill pay money"} {
		for word := range strings.FieldsSeq(words) {
			if strings.Contains(strings.ToLower(text), word) {
				v[i]++
			}
		}
	}
	return v, nil
}

func (e topics) Embed(ctx context.Context, texts []string) (list [][]float32, err error) {
	for _, text := range texts {
		v, _ := e.EmbedQuery(ctx, text)
		list = append(list, v)
	}
	return list, nil
}

// A search finds a tool that shares no word with the query.
func ExampleSemanticOptions() {
	ready := make(chan bool, 1)
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Inline: mcphybrid.InlineOptions{Max: -1},
		Semantic: &mcphybrid.SemanticOptions{
			Embedder: topics{},
			Least:    0.5,
			Progress: func(done, total int) { ready <- done == total },
		},
	})
	defer mgr.Close()
	err := mgr.AddTools("town",
		server.ServerTool{Tool: mcp.NewTool("find_vet", mcp.WithDescription("Finds a vet nearby"))},
		server.ServerTool{Tool: mcp.NewTool("rent_car", mcp.WithDescription("Rents a car"))})
	if err != nil {
		log.Fatal(err)
	}
	<-ready // a host need not wait: until then, search uses words only

	answer := mgr.NewSession(nil).Find(context.Background(), "my cat is sick", mcphybrid.SearchOptions{})
	for _, hit := range answer.Hits {
		fmt.Printf("%s, words %.0f, similarity %.2f\n", hit.Tool.Name(), hit.Words, hit.Similarity)
	}
	fmt.Println(answer.Err)
	// Output:
	// mcp_town__find_vet, words 0, similarity 1.00
	// <nil>
}
