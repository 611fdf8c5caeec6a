package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/search"
)

// readCatalog reads a folder of answers to tools/list, each with the member "server"
// added, and labelled queries. The id of a tool is server/name.
func readCatalog(dir, queriesFile string) (corpus, error) {
	c := corpus{name: strings.TrimSuffix(filepath.Base(queriesFile), ".jsonl")}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		var answer struct {
			Server string
			Tools  []struct {
				Name, Title, Description string
				InputSchema              json.RawMessage
			}
		}
		if err == nil {
			err = json.Unmarshal(data, &answer)
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", file, err)
		}
		for _, t := range answer.Tools {
			c.tools = append(c.tools, &tool{answer.Server + "/" + t.Name, search.Document{
				Server: answer.Server, Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
			}})
		}
	}
	lines, err := readLines(queriesFile)
	if err != nil {
		return c, err
	}
	for i, line := range lines {
		var q labelled
		if err := json.Unmarshal(line, &q); err != nil {
			return c, fmt.Errorf("%s:%d: %w", queriesFile, i+1, err)
		}
		c.queries = append(c.queries, q)
	}
	if len(c.tools) == 0 || len(c.queries) == 0 {
		return c, fmt.Errorf("%s or %s: no tools or no queries", dir, queriesFile)
	}
	return c, nil
}

// runCatalog prints, by engine, for which share of the queries any right tool comes
// first, and is among the first k.
func runCatalog(c corpus, w io.Writer) error {
	fmt.Fprintf(w, "%s: %d tools\n\n| engine | hit@1 | hit@%d |\n|---|---:|---:|\n", c.name, len(c.tools), k)
	for _, e := range engines {
		first, any, err := hits(e.make(), c)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		fmt.Fprintf(w, "| %s | %.1f | %.1f |\n", e.name, 100*first, 100*any)
	}
	return nil
}

func hits(e engine, c corpus) (first, among float64, err error) {
	if err := e.build(c.tools); err != nil {
		return 0, 0, err
	}
	n := 0.0
	for _, q := range c.queries {
		if len(q.Relevant) == 0 {
			continue
		}
		matches, err := e.search(nil, q.Query, k)
		if err != nil {
			return 0, 0, fmt.Errorf("query %q: %w", q.Query, err)
		}
		n++
		at := slices.IndexFunc(matches, func(m search.Match) bool { return slices.Contains(q.Relevant, c.tools[m.Doc].ID) })
		if at == 0 {
			first++
		}
		if at >= 0 {
			among++
		}
	}
	n = max(n, 1)
	return first / n, among / n, e.close()
}
