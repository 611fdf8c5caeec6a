// Command savings counts the tokens that the tools of real servers add to a request, by
// OpenAI's o200k_base: with all definitions in the request, and with search.
//
//	go -C bench run ./savings FILE…
//
// A file is a tools/list result or any JSON object with a "tools" array. The command
// draws -samples tools and uses one after the other: the model searches for the words of
// the tool's name and then calls it. It counts everything that tools add: prompt
// sections, meta tools, active definitions and the answers of meta tools. It reports the
// median and the worst of all draws.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/tiktoken"
)

func main() {
	log.SetFlags(0)
	samples := flag.Int("samples", 100, "how many times tools are drawn")
	flag.Parse()
	if err := run(context.Background(), flag.Args(), *samples, os.Stdout); err != nil {
		log.Fatal("savings: ", err)
	}
}

func run(ctx context.Context, paths []string, samples int, out io.Writer) error {
	if len(paths) == 0 {
		return errors.New("no file given")
	}
	counter, err := tiktoken.New("o200k_base")
	if err != nil {
		return err
	}
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Tokens: counter})
	defer mgr.Close()
	var names []string
	for _, path := range paths {
		tools, err := readTools(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		server := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		if err := mgr.AddTools(server, tools...); err != nil {
			return err
		}
	}
	for _, t := range mgr.DeferredTools() {
		names = append(names, t.Name())
	}
	all := mgr.Stats().Tokens.All
	fmt.Fprintf(out, "%d tools of %d servers, all at once: %d tokens\n\n", len(names), len(paths), all)
	fmt.Fprintf(out, "%-28s %8s %8s %8s\n", "", "median", "worst", "saved")
	for _, way := range []struct {
		name       string
		disclosure mcphybrid.Disclosure
		results    int
	}{
		{"activation, 5 results", mcphybrid.ByActivation, 5},
		{"activation, 2 results", mcphybrid.ByActivation, 2},
		{"bridge, 5 results", mcphybrid.ByBridge, 5},
	} {
		for _, used := range []int{0, 1, 5} {
			var costs []int
			for seed := range samples {
				random := rand.New(rand.NewPCG(1, uint64(seed)))
				s := mgr.NewSession(&mcphybrid.SessionOptions{Disclosure: way.disclosure})
				cost := 0
				for range used {
					n, err := use(ctx, s, way.disclosure == mcphybrid.ByBridge, counter, names[random.IntN(len(names))], way.results)
					if err != nil {
						return err
					}
					cost += n
				}
				st := s.Stats().Tokens
				costs = append(costs, cost+st.Inline+st.Meta+st.Active+st.Sections+st.Searches)
			}
			slices.Sort(costs)
			median := costs[len(costs)/2]
			fmt.Fprintf(out, "%-28s %8d %8d %7.1f%%\n", fmt.Sprintf("%s, %d used", way.name, used),
				median, costs[len(costs)-1], 100*(1-float64(median)/float64(all)))
		}
	}
	return nil
}

// use searches for a tool by the words of its name and calls it. It returns the tokens
// that the session does not count.
func use(ctx context.Context, s *mcphybrid.Session, bridge bool, counter mcphybrid.TokenCounter, name string, results int) (int, error) {
	_, own, _ := strings.Cut(name, "__")
	query := map[string]any{"query": strings.NewReplacer("_", " ", "-", " ").Replace(own), "max_results": results}
	found, err := s.Call(ctx, mcphybrid.SearchToolName, query)
	if err != nil {
		return 0, err
	}
	if !bridge && !strings.Contains(mcp.GetTextFromContent(found.Content[0]), `"`+name+`"`) {
		s.ActivateToolIfDeferred(name) // the model calls it all the same
	}
	if !bridge {
		return 0, nil // the definition is in the list
	}
	described, err := s.Call(ctx, mcphybrid.DescribeToolName, map[string]any{"names": []string{name}})
	if err != nil {
		return 0, err
	}
	return counter.CountTokens(mcp.GetTextFromContent(described.Content[0])), nil
}

func readTools(path string) ([]mcpserver.ServerTool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Tools []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"inputSchema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	var tools []mcpserver.ServerTool
	for _, t := range file.Tools {
		tools = append(tools, mcpserver.ServerTool{Tool: mcp.NewToolWithRawSchema(t.Name, t.Description, t.InputSchema)})
	}
	return tools, nil
}
