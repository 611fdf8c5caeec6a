// Eval measures how well search finds tools. It needs a corpus: tools, and queries
// labelled with the tools that answer them.
//
//	go run ./examples/eval -tools T.jsonl -queries Q.jsonl [-ranker R] [-json] [-misses N]
//
// The ranker "hybrid" combines the default ranker with an embedding model: -ollama URL
// or -openai URL, -model M, -alpha A. Without a service, a stand-in compares letters,
// which does not improve the results. On a terminal, standard error shows progress.
//
// Each line of a file is a JSON object; further members are ignored:
//
//	{"id": …, "server": …, "name": …, "description": …, "input_schema": {…}}
//	{"id": …, "query": …, "relevant": [ids of tools]}
//
// testdata/corpus has a corpus to start with. Your own tells you more.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/vector"
)

var rankers = []string{"default", "lexical", "classic", "hybrid"}

const depth = 10 // results considered per query

func main() {
	log.SetFlags(0)
	if err := run(os.Args[1:], os.Stdout, onTerminal(os.Stderr)); err != nil && !errors.Is(err, flag.ErrHelp) {
		log.Fatal("eval: ", err)
	}
}

// run writes the report to stdout and the progress to term.
func run(args []string, stdout, term io.Writer) error {
	flags := flag.NewFlagSet("eval", flag.ContinueOnError)
	toolsFile := flags.String("tools", "", "the `file` with the tools")
	queriesFile := flags.String("queries", "", "the `file` with the queries")
	ranker := flags.String("ranker", rankers[0], "how tools are ranked: "+strings.Join(rankers, ", "))
	asJSON := flags.Bool("json", false, "print JSON")
	misses := flags.Int("misses", 0, "without -json: show the first `N` queries with recall@5 below 1")
	var services service
	flags.StringVar(&services.ollama, "ollama", "", "with -ranker hybrid: the `URL` of Ollama, such as http://localhost:11434")
	flags.StringVar(&services.openai, "openai", "", "with -ranker hybrid: the `URL` of a service with OpenAI's /embeddings")
	flags.StringVar(&services.model, "model", "nomic-embed-text", "with -ranker hybrid: the embedding `model`")
	alpha := flags.Float64("alpha", vector.DefaultAlpha, "with -ranker hybrid: what the meaning weighs, from 0 to 1")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *toolsFile == "" || *queriesFile == "" || flags.NArg() > 0:
		return errors.New("-tools and -queries are needed, and no other arguments")
	case !slices.Contains(rankers, *ranker):
		return fmt.Errorf("there is no ranker %q; there are %s", *ranker, strings.Join(rankers, ", "))
	}
	tools, queries, err := readCorpus(*toolsFile, *queriesFile)
	if err != nil {
		return err
	}
	show := &progress{w: term}
	defer show.end()
	begun := time.Now()
	opts := mcphybrid.Options{Search: mcphybrid.RankingOptions{Ranker: mcphybrid.Ranker(*ranker)}}
	var ready <-chan struct{}
	if *ranker == "hybrid" {
		e, err := services.embedder()
		if err == nil {
			_, err = e.EmbedQuery(context.Background(), "is there a model?")
		}
		if err != nil {
			return err
		}
		opts.Search.Ranker = mcphybrid.RankerDefault
		opts.Semantic, ready = hybrid(e, *alpha, len(tools), show)
	}
	s, err := newSubject(tools, opts)
	if err != nil {
		return err
	}
	defer s.Close()
	if ready != nil {
		<-ready
	}
	s.Search(queries[0].Query, depth)
	build := time.Since(begun)
	answers, times := s.ask(queries, show)
	show.end()
	f, missed := newFigures(queries, answers)
	f.Ranker, f.Tools = *ranker, len(tools)
	f.BuildMS, f.QueryUSP50, f.QueryUSP99 = build.Seconds()*1e3, percentile(times, 50), percentile(times, 99)
	if *asJSON {
		return json.NewEncoder(stdout).Encode(f)
	}
	report := f.table()
	for _, i := range missed[:max(0, min(*misses, len(missed)))] {
		report += s.miss(queries[i])
	}
	_, err = io.WriteString(stdout, report)
	return err
}

// A subject is a Manager with the tools of a corpus, all deferred.
type subject struct {
	*mcphybrid.Manager
	ids map[[2]string]string // ids of tools, by server and name
}

// newSubject adds tools as a host would, server by server in the order of the file.
func newSubject(tools []tool, opts mcphybrid.Options) (*subject, error) {
	opts.Inline.Max = -1
	opts.Search.Limit = max(depth, len(tools)) // all, for the rank of a miss
	opts.Limits.MaxDefinition = 1 << 30
	s := &subject{mcphybrid.NewManager(&opts), make(map[[2]string]string)}
	var servers []string
	of := make(map[string][]mcpserver.ServerTool)
	for _, t := range tools {
		if of[t.Server] == nil {
			servers = append(servers, t.Server)
		}
		of[t.Server] = append(of[t.Server], mcpserver.ServerTool{Tool: mcp.NewToolWithRawSchema(t.Name, t.Description, t.InputSchema)})
		s.ids[[2]string{t.Server, t.Name}] = t.ID
	}
	for _, name := range servers {
		if err := s.AddTools(name, of[name]...); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// find returns the ids of the n best tools, best first, and the time of the search.
func (s *subject) find(query string, n int) (ids []string, took time.Duration) {
	begun := time.Now()
	hits := s.Search(query, n)
	took = time.Since(begun)
	for _, h := range hits {
		ids = append(ids, s.ids[[2]string{h.Tool.Server(), h.Tool.OriginalName()}])
	}
	return ids, took
}

// ask returns the results of each query and the sorted times of all searches. It asks
// each query five times, or until a second has passed.
func (s *subject) ask(queries []query, show *progress) (answers [][]string, times []time.Duration) {
	begun := time.Now()
	doing := "asking query"
	for pass := 0; pass == 0 || pass < 5 && time.Since(begun) < time.Second; pass++ {
		for i, q := range queries {
			ids, took := s.find(q.Query, depth)
			answers, times = append(answers, ids), append(times, took)
			show.show(doing, i+1, len(queries))
		}
		doing = "asking again, for the times: query"
	}
	slices.Sort(times)
	return answers[:len(queries)], times
}

// miss returns, in readable form, the rank of each relevant tool among all tools, and
// the first 5 tools found.
func (s *subject) miss(q query) string {
	text := fmt.Sprintf("\n%s: %s\n", q.ID, q.Query)
	all, _ := s.find(q.Query, len(s.ids))
	for _, id := range q.Relevant {
		rank := "not found"
		if at := slices.Index(all, id); at >= 0 {
			rank = fmt.Sprintf("rank %d", at+1)
		}
		text += fmt.Sprintf("  relevant: %s, %s\n", id, rank)
	}
	return text + "  found: " + strings.Join(all[:min(5, len(all))], ", ") + "\n"
}
