// Policy compares five policies on one catalog of 308 tools: how many tools the model
// sees, how many tokens they cost, and how many requests need no search. Use is counted on
// one half of the requests and judged on the other, so that no policy knows the answers.
//
//	go run ./examples/policy [-tools T.jsonl -queries Q.jsonl]
//
// The files have the format of mcphybrid eval.
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
	"os"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

type (
	tool struct {
		ID, Server, Name, Description string
		InputSchema                   json.RawMessage `json:"input_schema"`
	}
	query struct{ Relevant []string } // a request, with the ids of the tools that it takes
)

func main() {
	log.SetFlags(0)
	tools := flag.String("tools", "testdata/corpus/tools.jsonl", "the `file` with the tools")
	queries := flag.String("queries", "testdata/corpus/queries.jsonl", "the `file` with the requests")
	flag.Parse()
	if err := show(os.Stdout, *tools, *queries); err != nil {
		log.Fatal("policy: ", err)
	}
}

// A policy is a set of options and, for the one with rules, an intent.
type policy struct {
	name    string
	options mcphybrid.Options
	intent  string
}

// policies returns all of them. One knows how often each tool was used.
func policies(used map[string]float64) []policy {
	return []policy{
		{name: "the first 40"},
		{name: "pins and the first others", options: mcphybrid.Options{Pins: []string{"mcp_postbox__*", "mcp_dayplan__*"}}},
		{name: "a tenth of 32,000 tokens", options: mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 1000, ContextWindow: 32_000}}},
		{name: "the 40 most used", options: mcphybrid.Options{Usage: &mcphybrid.UsageOptions{Counts: used}}},
		{name: "rules for those who code", intent: "code", options: mcphybrid.Options{Rules: []mcphybrid.Rule{
			{Name: "what coding needs", Intent: "code", Patterns: []string{"mcp_forgehub__*", "mcp_buildline__*", "mcp_tracklane__*"}, Action: mcphybrid.RuleInclude},
			{Name: "nothing is deleted", Patterns: []string{"*delete*", "*Delete*"}, Action: mcphybrid.RuleExclude},
			{Name: "seldom needed", Priority: 1, Patterns: []string{"mcp_buildline__*"}, Action: mcphybrid.RuleSummarize},
		}}},
	}
}

func show(w io.Writer, toolsFile, queriesFile string) error {
	tools, err := readLines[tool](toolsFile)
	if err != nil {
		return err
	}
	queries, err := readLines[query](queriesFile)
	if err != nil {
		return err
	}
	plain, cost, err := place(tools, policy{})
	if err != nil {
		return err
	}
	var halves [2][]query
	used := [2]map[string]float64{{}, {}} // in each half, by registered name
	for i, q := range queries {
		if len(q.Relevant) > 0 {
			halves[i%2] = append(halves[i%2], q)
		}
		for _, id := range q.Relevant {
			used[i%2][plain[id].Tool.Name()]++
		}
	}

	fmt.Fprintf(w, "%31s%12s%10s%8s%8s%11s\n", "inline", "summarized", "deferred", "hidden", "tokens", "no search")
	for n, p := range policies(nil) {
		standing, tokens, atOnce := make(map[string]int), 0, 0
		for half, requests := range halves {
			places, cost, err := place(tools, policies(used[1-half])[n])
			if err != nil {
				return err
			}
			clear(standing) // it is the same for both halves
			for _, p := range places {
				standing[p.Standing]++
			}
			tokens += cost.Sent()
			for _, q := range requests {
				if !slices.ContainsFunc(q.Relevant, func(id string) bool { return places[id].Standing != "inline" }) {
					atOnce++
				}
			}
		}
		fmt.Fprintf(w, "%-25s%6d%12d%10d%8d%8d%9.0f %%\n", p.name, standing["inline"], standing["summarized"], standing["deferred"],
			standing["hidden"], tokens/2, 100*float64(atOnce)/float64(len(halves[0])+len(halves[1])))
	}
	fmt.Fprintf(w, "\ntokens: of the inline tools and the prompt sections\nwithout a policy: all %d definitions, %d tokens\n"+
		"no search: requests whose tools are all inline\n", len(tools), cost.All)
	return nil
}

// place returns where a policy places the tools, by id, and what they cost.
func place(tools []tool, p policy) (map[string]mcphybrid.Placement, snapshot.Tokens, error) {
	mgr := mcphybrid.NewManager(&p.options)
	defer mgr.Close()
	err := mgr.Start(context.Background()) // reads what was used
	ids := make(map[string]string)         // by server and name
	for _, t := range tools {
		ids[t.Server+"/"+t.Name] = t.ID
		definition := mcp.NewToolWithRawSchema(t.Name, t.Description, t.InputSchema)
		err = errors.Join(err, mgr.AddTools(t.Server, mcpserver.ServerTool{Tool: definition}))
	}
	sess := mgr.NewSession(&mcphybrid.SessionOptions{Intent: p.intent})
	places := make(map[string]mcphybrid.Placement)
	for _, p := range sess.Placements() {
		places[ids[p.Tool.Server()+"/"+p.Tool.OriginalName()]] = p
	}
	return places, sess.Stats().Tokens, err
}

func readLines[T any](path string) (list []T, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var one T
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, len(list)+1, err)
		}
		list = append(list, one)
	}
	return list, nil
}
