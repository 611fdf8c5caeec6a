// Command savings counts the tokens that tools add to a request, by OpenAI's o200k_base:
// with all definitions in the request, and with this library.
//
//	go -C bench run ./savings [-samples N] [-only SERVER,SERVER…] [FILE…]
//
// A file is a tools/list result or any JSON object with a "tools" array; its name is the
// server's. Or it is a configuration with "mcpServers", whose servers are started, or JSON
// lines as mcphybrid eval takes them. Without a file, the command takes the invented
// servers of testdata/corpus.
//
// First it prints what a request has at the start with the default options: each server
// alone, then all. Sections and meta tools are counted. Then it prints what the tools
// alone have in each format, and as a runtime has them that takes a tool's name,
// description and schema. Then it draws -samples deferred
// tools of all servers and uses one after the other: the model searches for the words of
// the tool's name and then calls it; if the call goes by a bridge and the search did not
// tell the tool's schema, the model has the tool described. It counts everything that
// tools add: prompt sections, meta tools, active definitions and the answers of meta
// tools. It prints the median and the worst of all draws.
package main

import (
	"bytes"
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
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/tiktoken"
)

func main() {
	log.SetFlags(0)
	samples := flag.Int("samples", 30, "how many times tools are drawn")
	only := flag.String("only", "", "the `servers` to count, separated by commas; by default, all")
	flag.Parse()
	paths := flag.Args()
	if len(paths) == 0 {
		paths = []string{"../testdata/corpus/tools.jsonl"}
	}
	if err := run(context.Background(), paths, *only, *samples, os.Stdout); err != nil {
		log.Fatal("savings: ", err)
	}
}

func run(ctx context.Context, paths []string, only string, samples int, out io.Writer) error {
	counter, err := tiktoken.New("o200k_base")
	if err != nil {
		return err
	}
	var servers []server
	for _, path := range paths {
		read, err := readServers(ctx, path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		servers = append(servers, read...)
	}
	if names := strings.Split(only, ","); only != "" {
		servers = slices.DeleteFunc(servers, func(s server) bool { return !slices.Contains(names, s.name) })
	}
	if len(servers) == 0 {
		return errors.New("there is no server")
	}
	fmt.Fprintf(out, "the start, by default      tools inline      all   activation        bridge        export\n")
	for _, s := range servers {
		if err := start(out, counter, s.name, s); err != nil {
			return err
		}
	}
	if err := start(out, counter, fmt.Sprintf("all %d", len(servers)), servers...); err != nil {
		return err
	}
	fmt.Fprint(out, "\nexport: the start by activation, as it is exported for Anthropic; that leaves out $schema.\n")
	if err := formats(out, counter, servers); err != nil {
		return err
	}
	for _, inline := range []mcphybrid.InlineOptions{{}, {Max: -1}} {
		if err := draws(ctx, out, counter, inline, servers, samples); err != nil {
			return err
		}
	}
	return nil
}

// A server is a name and tools.
type server struct {
	name  string
	tools []mcpserver.ServerTool
}

func manager(counter mcphybrid.TokenCounter, inline mcphybrid.InlineOptions, servers []server) (*mcphybrid.Manager, error) {
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: inline, Tokens: counter})
	for _, s := range servers {
		if err := mgr.AddTools(s.name, s.tools...); err != nil {
			return nil, err
		}
	}
	return mgr, nil
}

// start prints what a request has at the start with the default options.
func start(out io.Writer, counter mcphybrid.TokenCounter, name string, servers ...server) error {
	mgr, err := manager(counter, mcphybrid.InlineOptions{}, servers)
	if err != nil {
		return err
	}
	defer mgr.Close()
	st := mgr.Stats()
	fmt.Fprintf(out, "%-26s %5d %6d %8d", name, st.Tools, st.Inline, st.Tokens.All)
	show := func(tokens int) {
		fmt.Fprintf(out, " %6d %+5.1f%%", tokens, 100*(float64(tokens)/float64(st.Tokens.All)-1))
	}
	for _, d := range []mcphybrid.Disclosure{mcphybrid.ByActivation, mcphybrid.ByBridge} {
		show(mgr.NewSession(&mcphybrid.SessionOptions{Disclosure: d}).Stats().Tokens.Sent())
	}
	exported, err := mgr.Default().Export(provider.Anthropic)
	if err != nil {
		return err
	}
	tokens := st.Tokens.Sections
	for _, t := range exported {
		tokens += counter.CountTokens(string(t.JSON) + ",")
	}
	show(tokens)
	fmt.Fprintln(out)
	return nil
}

// formats prints what the tools of a first request have, by default.
func formats(out io.Writer, counter mcphybrid.TokenCounter, servers []server) error {
	mgr, err := manager(counter, mcphybrid.InlineOptions{}, servers)
	if err != nil {
		return err
	}
	defer mgr.Close()
	size, tokens := 0, 0
	count := func(text string) {
		size += len(text)
		tokens += counter.CountTokens(text)
	}
	fmt.Fprintf(out, "\n%-26s %5s %8s %8s\n", fmt.Sprintf("all %d, tools alone", len(servers)), "tools", "bytes", "tokens")
	row := func(name string, tools int) {
		fmt.Fprintf(out, "%-26s %5d %8d %8d\n", name, tools, size, tokens)
		size, tokens = 0, 0
	}
	tools := mgr.Default().Tools()
	for _, t := range tools {
		count(fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":%s}`, t.Name(), t.Description(), t.InputSchema()))
	}
	row("name, description, schema", len(tools))
	for _, f := range []provider.Format{
		provider.MCP, provider.OpenAIChat, provider.OpenAIResponses, provider.Anthropic, provider.Gemini,
	} {
		list, err := mgr.Default().Export(f)
		if err != nil {
			return err
		}
		for _, e := range list {
			count(string(e.JSON))
		}
		row(string(f), len(list))
	}
	return nil
}

// draws prints what a request has after tools were used.
func draws(ctx context.Context, out io.Writer, counter mcphybrid.TokenCounter, inline mcphybrid.InlineOptions, servers []server, samples int) error {
	mgr, err := manager(counter, inline, servers)
	if err != nil {
		return err
	}
	defer mgr.Close()
	var names []string
	for _, t := range mgr.DeferredTools() {
		names = append(names, t.Name())
	}
	st := mgr.Stats()
	fmt.Fprintf(out, "\n%-30s   median    worst    saved\n", fmt.Sprintf("all %d, %d tools inline", len(servers), st.Inline))
	if len(names) == 0 {
		fmt.Fprintln(out, "no tool is deferred")
		return nil
	}
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
				for range used {
					if err := use(ctx, s, way.disclosure == mcphybrid.ByBridge, names[random.IntN(len(names))], way.results); err != nil {
						return err
					}
				}
				costs = append(costs, s.Stats().Tokens.Sent())
			}
			slices.Sort(costs)
			median := costs[len(costs)/2]
			fmt.Fprintf(out, "%-30s %8d %8d %7.1f%%\n", fmt.Sprintf("%s, %d used", way.name, used),
				median, costs[len(costs)-1], 100*(1-float64(median)/float64(st.Tokens.All)))
		}
	}
	return nil
}

// use searches for a tool by the words of its name and has what it takes to call it. The
// session counts the tokens of the answers.
func use(ctx context.Context, s *mcphybrid.Session, bridge bool, name string, results int) error {
	_, own, _ := strings.Cut(name, "__")
	query := map[string]any{"query": strings.NewReplacer("_", " ", "-", " ").Replace(own), "max_results": results}
	found, err := s.Call(ctx, mcphybrid.SearchToolName, query)
	if err != nil {
		return err
	}
	var answer struct {
		Tools []struct {
			Name        string
			InputSchema json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(mcp.GetTextFromContent(found.Content[0])), &answer); err != nil {
		return err
	}
	ready := false // to be called
	for _, t := range answer.Tools {
		ready = ready || t.Name == name && (!bridge || t.InputSchema != nil)
	}
	switch {
	case ready:
	case bridge:
		_, err = s.Call(ctx, mcphybrid.DescribeToolName, map[string]any{"names": []string{name}})
	default:
		s.ActivateToolIfDeferred(name) // the model calls it all the same
	}
	return err
}

func readServers(ctx context.Context, path string) ([]server, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(path) == ".jsonl" {
		return readLines(data)
	}
	var file struct {
		Servers json.RawMessage   `json:"mcpServers"`
		Tools   []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	if file.Servers != nil {
		return listServers(ctx, path)
	}
	s := server{name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
	for _, raw := range file.Tools {
		var t mcp.Tool
		var schemas struct {
			Input  json.RawMessage `json:"inputSchema"`
			Output json.RawMessage `json:"outputSchema"`
		}
		if err := errors.Join(json.Unmarshal(raw, &t), json.Unmarshal(raw, &schemas)); err != nil {
			return nil, err
		}
		// Whole, and not only what mcp-go knows of them.
		t.InputSchema, t.RawInputSchema = mcp.ToolInputSchema{}, schemas.Input
		t.OutputSchema, t.RawOutputSchema = mcp.ToolOutputSchema{}, schemas.Output
		s.tools = append(s.tools, mcpserver.ServerTool{Tool: t})
	}
	return []server{s}, nil
}

// listServers starts the servers of a configuration and lists their tools.
func listServers(ctx context.Context, path string) (servers []server, err error) {
	cfg, err := mcphybrid.LoadConfig(path)
	if err != nil {
		return nil, err
	}
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: cfg.Servers, Limits: config.Limits{StartTimeout: 10 * time.Minute}})
	defer mgr.Close()
	if err := mgr.Start(ctx); err != nil {
		return nil, err
	}
	for _, p := range mgr.Default().Placements() {
		servers = with(servers, p.Tool.Server(), mcp.NewToolWithRawSchema(p.Tool.OriginalName(), p.Tool.Description(), p.Tool.InputSchema()))
	}
	return servers, nil
}

// with appends a tool to that server's.
func with(servers []server, name string, t mcp.Tool) []server {
	i := slices.IndexFunc(servers, func(s server) bool { return s.name == name })
	if i < 0 {
		i = len(servers)
		servers = append(servers, server{name: name})
	}
	servers[i].tools = append(servers[i].tools, mcpserver.ServerTool{Tool: t})
	return servers
}

// readLines reads tools of several servers, in the order in which these come.
func readLines(data []byte) (servers []server, err error) {
	for line := range bytes.Lines(data) {
		var t struct {
			Server      string          `json:"server"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		}
		if err := json.Unmarshal(line, &t); err != nil {
			return nil, err
		}
		servers = with(servers, t.Server, mcp.NewToolWithRawSchema(t.Name, t.Description, t.InputSchema))
	}
	return servers, nil
}
