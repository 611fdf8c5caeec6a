// Semantic shows what words, meaning and both together find for a query.
//
//	go run ./examples/semantic -query Q [-tools T.jsonl] [-ollama URL | -openai URL] [-model M]
//
// The tools have the format of mcphybrid eval. Meaning comes from the embedding model of the
// service; $EMBEDDING_KEY is its key. Without one, texts with common letters are similar.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/vector"
)

func main() {
	log.SetFlags(0)
	query := flag.String("query", "", "what is searched for")
	tools := flag.String("tools", "testdata/corpus/tools.jsonl", "the `file` with the tools")
	ollama := flag.String("ollama", "", "the `URL` of Ollama, such as http://localhost:11434")
	openai := flag.String("openai", "", "the `URL` of a service with OpenAI's /embeddings, such as http://localhost:8000/v1")
	model := flag.String("model", "nomic-embed-text", "the embedding `model`")
	flag.Parse()
	if *query == "" || flag.NArg() > 0 {
		log.Fatal("semantic: -query is needed, and no other arguments")
	}
	embedder, err := newEmbedder(*ollama, *openai, *model)
	if err == nil {
		err = show(context.Background(), os.Stdout, *tools, *query, embedder)
	}
	if err != nil {
		log.Fatal("semantic: ", err)
	}
}

func newEmbedder(ollama, openai, model string) (vector.Embedder, error) {
	opts := vector.HTTPEmbedderOptions{URL: cmp.Or(ollama, openai), Model: model, Key: os.Getenv("EMBEDDING_KEY")}
	switch {
	case ollama != "" && openai != "":
		return nil, errors.New("-ollama and -openai are two services")
	case ollama != "":
		return vector.NewOllamaEmbedder(opts)
	case openai != "":
		return vector.NewOpenAIEmbedder(opts)
	}
	return letters{}, nil
}

func show(ctx context.Context, w io.Writer, file, query string, embedder vector.Embedder) error {
	servers, all, err := readTools(file)
	if err != nil {
		return err
	}
	if _, err := embedder.EmbedQuery(ctx, query); err != nil {
		return err // the service is down
	}
	ready := make(chan struct{})
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Inline: mcphybrid.InlineOptions{Max: -1}, // search finds only tools that the model does not see
		Semantic: &mcphybrid.SemanticOptions{Embedder: embedder, Progress: func(done, total int) {
			log.Printf("%d of %d tools embedded", done, all)
			if done == all { // it is not called again
				close(ready)
			}
		}},
	})
	defer mgr.Close()
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if err := mgr.AddTools(name, servers[name]...); err != nil {
			return err
		}
	}
	<-ready // a host need not wait: until then, search uses words only

	for _, by := range []mcphybrid.SearchSide{mcphybrid.ByWords, mcphybrid.ByMeaning, ""} {
		fmt.Fprintln(w, "by", cmp.Or(by, "both"))
		answer := mgr.Default().Find(ctx, query, mcphybrid.SearchOptions{By: by})
		if answer.Err != nil {
			return answer.Err
		}
		for _, h := range answer.Hits {
			fmt.Fprintf(w, "  %.2f  %s (words %.2f, similarity %.2f)\n", h.Score, h.Tool.Name(), h.Words, h.Similarity)
		}
	}
	return nil
}

// readTools returns the tools of a file by server, and their number.
func readTools(file string) (servers map[string][]mcpserver.ServerTool, n int, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	servers = make(map[string][]mcpserver.ServerTool)
	for lines := json.NewDecoder(f); ; n++ {
		var in struct {
			Server, Name, Description string
			InputSchema               json.RawMessage `json:"input_schema"`
		}
		if err := lines.Decode(&in); errors.Is(err, io.EOF) && n > 0 {
			return servers, n, nil
		} else if err != nil {
			return nil, 0, fmt.Errorf("%s, tool %d: %w", file, n+1, err)
		}
		servers[in.Server] = append(servers[in.Server], mcpserver.ServerTool{Tool: mcp.NewToolWithRawSchema(in.Name, in.Description, in.InputSchema)})
	}
}

// letters is the stand-in for a model: texts with the same groups of three letters are similar.
type letters struct{}

func (letters) Model() string   { return "letters" }
func (letters) Dimensions() int { return 512 }

func (l letters) Embed(ctx context.Context, texts []string) (vectors [][]float32, err error) {
	for _, text := range texts {
		v, _ := l.EmbedQuery(ctx, text)
		vectors = append(vectors, v)
	}
	return vectors, ctx.Err()
}

func (l letters) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	v := make([]float32, l.Dimensions())
	v[0] = 0.01 // so that no vector is zero
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
		word = "<" + word + ">"
		for i := range len(word) - 2 {
			h := fnv.New32a()
			io.WriteString(h, word[i:i+3])
			v[h.Sum32()%uint32(len(v))]++
		}
	}
	return v, nil
}
