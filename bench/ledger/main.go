// Command ledger plays whole conversations and bills them under the rules of the
// providers' prompt caches: with all definitions in each request, and in the forms in which
// this library and providers hold them back.
//
//	go -C bench run ./ledger [-json FILE] [-sizes 36,100,270,496,4000] [-seeds 5] [-reversed]
//	go -C bench run ./ledger -catalog DIR [-corpus DIR,DIR…] …
//
// No model and no provider is called: the model is a script, which searches for what it
// does not have, and the rules are those that internal/billing has from documents. The requests
// are real: each has the bytes that a Session exports, and the answers of its meta tools.
//
// A conversation has 20 turns of a user. It is focused, which takes two searches and three
// tools, or wandering, with up to ten searches and fifteen tools. Above 40 tools, all of them are
// tools that the default options defer; up to 40, they are any.
//
// The tools are the first of a list, by size. -catalog is a folder of answers to tools/list,
// each with the member "server": first the eleven servers of testdata/catalog/mcp.json in its
// order, so that 36 are filesystem, everything and memory and 270 all eleven, and
// then the others by file name. -corpus has folders of corpora with a tools.jsonl each. What is
// then missing is invented: the tools of testdata/corpus, and copies of them under other
// names. The output says what was taken.
//
// The forms are:
//
//	raw          all definitions, as the servers wrote them
//	native       all deferred, and the provider's own search, which is assumed to find what ours
//	             finds and to cost a request; OpenAI's sees a line of each server
//	default      what a host gets that chooses nothing
//	activation   ByActivation: the list grows by what a search finds
//	bridge       ByBridge: found tools are called by a fixed meta tool
//	addition     ByActivation with a fixed list: found tools come in messages
//	provider     ByProvider: the provider hides what our search then finds, at OpenAI by tool_search
//	code         the tool of the module codemode alone: a script for each search and for each call,
//	             whose whole result the model reads
//	…-none       the same with nothing inline (Inline.Max -1)
//
// The table has what a form costs as a share of raw. A row of the JSON has, for the mean of the
// conversations: billed, in prices of an input token, and its ratio to raw; lost, the requests
// for which earlier messages were no longer in the cache; and refused, those that fail the
// provider's check of what stands before thinking. Equal tools give equal rows.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	log.SetFlags(0)
	var o options
	jsonPath := flag.String("json", "", "write the rows to this `file`")
	sizes := flag.String("sizes", "36,100,270,496,4000", "`numbers` of tools")
	flag.IntVar(&o.seeds, "seeds", 5, "how many conversations of each kind are played")
	flag.BoolVar(&o.reversed, "reversed", false, "take the servers of each size in reverse order")
	catalog := flag.String("catalog", "", "a `folder` of answers to tools/list")
	corpora := flag.String("corpus", "", "`folders` of corpora, separated by commas")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("ledger: unexpected argument %q", flag.Arg(0))
	}
	var err error
	if o.sizes, err = parseSizes(*sizes); err != nil {
		log.Fatal("ledger: ", err)
	}
	if o.source, err = readSource(*catalog, *corpora, invented); err != nil {
		log.Fatal("ledger: ", err)
	}
	rows, err := run(o, os.Stdout)
	if err == nil && *jsonPath != "" {
		err = writeJSON(*jsonPath, rows)
	}
	if err != nil {
		log.Fatal("ledger: ", err)
	}
}

type options struct {
	source   *source
	sizes    []int
	seeds    int
	reversed bool
}

// run plays all conversations and prints the table of each size as soon as it has it.
func run(o options, out io.Writer) (rows []row, err error) {
	counter, err := newCounter()
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(out, o.source)
	for _, size := range o.sizes {
		tools, note := o.source.first(size)
		if o.reversed {
			tools = reversed(tools)
			note += ", servers in reverse order"
		}
		of, err := measure(tools, counter, o.seeds)
		if err != nil {
			return nil, fmt.Errorf("%d tools: %w", size, err)
		}
		if err := table(out, of, note); err != nil {
			return nil, err
		}
		rows = append(rows, of...)
	}
	return rows, nil
}

func parseSizes(list string) (sizes []int, err error) {
	for _, text := range strings.Split(list, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size < 10 {
			return nil, fmt.Errorf("%q in -sizes is no number from 10", text)
		}
		sizes = append(sizes, size)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes), nil
}

func writeJSON(path string, rows []row) error {
	data, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
