// Bench measures how well and how fast the rankers of this project find tools, together
// with other search engines, in one run.
//
//	go -C bench run . [-corpus DIR] [-sizes 40,400,4000,40000] [-short]
//		[-json FILE] [-svg DIR] [-markdown FILE]
//	go -C bench run . -catalog DIR -queries FILE
//
// The second form only tells how many of the queries find a right tool, first and
// among the first five. DIR has answers to tools/list, each with "server" added.
//
// Paths are relative to the folder bench. This writes everything:
//
//	go -C bench run . -corpus DIR -json results.json -svg plots -markdown ../BENCHMARKS.md
//
// It prints tables and writes the files asked for. Equal corpora and sizes give equal
// tools, queries and changes. The times depend on the machine.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("corpus", "../testdata/corpus", "the `folder` of a corpus, or of folders of corpora")
	sizeList := flags.String("sizes", "", "`numbers` of tools (default 40,400,4000,40000; with -short 40,400)")
	short := flags.Bool("short", false, "measure less, to see that all works: fewer rounds, the first 100 queries of a corpus")
	jsonPath := flags.String("json", "", "write the results to this `file`")
	svgDir := flags.String("svg", "", "write the plots to this `folder`")
	markdownPath := flags.String("markdown", "", "write a page with all of it to this `file`")
	catalog := flags.String("catalog", "", "a `folder` of answers to tools/list, for -queries")
	queries := flags.String("queries", "", "the `file` with queries for -catalog")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if (*catalog == "") != (*queries == "") {
		return errors.New("-catalog and -queries go together")
	}
	if *catalog != "" {
		c, err := readCatalog(*catalog, *queries)
		if err != nil {
			return err
		}
		return runCatalog(c, stdout)
	}
	sizes, err := parseSizes(*sizeList, *short)
	if err != nil {
		return err
	}
	corpora, err := readCorpora(*dir)
	if err != nil {
		return err
	}

	res := &results{Machine: thisMachine(), Command: command(flags)}
	for _, c := range corpora {
		if *short {
			c.queries = c.queries[:min(len(c.queries), 100)]
		}
		fmt.Fprintf(stderr, "quality: %s\n", c.name)
		q, err := qualityOf(c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		res.Quality = append(res.Quality, q)
	}
	p := newPool(corpora)
	res.Pool = len(p)
	for _, size := range sizes {
		l, err := newLoad(corpora, p, size, *short)
		if err != nil {
			return err
		}
		rounds, err := l.rounds(stderr)
		if err != nil {
			return err
		}
		res.add(size, rounds)
	}
	res.Machine.Took = time.Since(res.Machine.started).Round(time.Second).String()

	err = res.print(stdout)
	if *jsonPath != "" {
		err = errors.Join(err, write(*jsonPath, res.json))
	}
	if *svgDir != "" {
		for name, plot := range res.plots() {
			err = errors.Join(err, write(filepath.Join(*svgDir, name), plot.svg))
		}
	}
	if *markdownPath != "" {
		err = errors.Join(err, write(*markdownPath, func(w io.Writer) error { return res.page(w, *markdownPath, *svgDir) }))
	}
	return err
}

// parseSizes returns the sizes in ascending order.
func parseSizes(list string, short bool) ([]int, error) {
	switch {
	case list == "" && short:
		return []int{40, 400}, nil
	case list == "":
		return []int{40, 400, 4000, 40000}, nil
	}
	var sizes []int
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

// command returns the command line that repeats this run, without the directory of the
// corpora.
func command(flags *flag.FlagSet) string {
	text := "go -C bench run ."
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "corpus":
			text += " -corpus DIR"
		case "short":
			text += " -short"
		default:
			text += " -" + f.Name + " " + f.Value.String()
		}
	})
	return text
}

// write writes a file and creates its folder if need be.
func write(path string, content func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(content(f), f.Close())
}
