// Bench measures how well and how fast this project's rankers find tools,
// beside other ways to do so, all in one run.
//
//	go -C bench run . [-corpus DIR] [-sizes 40,400,4000,40000] [-engines LIST]
//		[-short] [-seed N] [-json FILE] [-svg DIR] [-markdown FILE]
//
// Paths are seen from the folder bench. This writes everything:
//
//	go -C bench run . -corpus DIR -json results.json -svg plots -markdown ../BENCHMARKS.md
//
// It prints tables and writes what it is asked for. Equal corpora, sizes and
// seeds give equal tools, queries and changes; the times are the machine's.
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
	engineList := flags.String("engines", "", "`names` of engines (default all)")
	short := flags.Bool("short", false, "measure less, to see that all works: fewer rounds, the first 100 queries of a corpus")
	seed := flags.Uint64("seed", 1, "for what is drawn at random")
	jsonPath := flags.String("json", "", "write the results to this `file`")
	svgDir := flags.String("svg", "", "write the plots to this `folder`")
	markdownPath := flags.String("markdown", "", "write a page with all of it to this `file`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	names, err := parseEngines(*engineList)
	if err != nil {
		return err
	}
	sizes, err := parseSizes(*sizeList, *short)
	if err != nil {
		return err
	}
	corpora, err := readCorpora(*dir)
	if err != nil {
		return err
	}

	res := &results{Machine: thisMachine(), Command: command(flags), names: names}
	for _, c := range corpora {
		if *short {
			c.queries = c.queries[:min(len(c.queries), 100)]
		}
		fmt.Fprintf(stderr, "quality: %s\n", c.name)
		q, err := qualityOf(c, names)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		res.Quality = append(res.Quality, q)
	}
	p, err := newPool(corpora, *seed)
	if err != nil {
		return err
	}
	res.Pool = len(p.tools)
	for _, size := range sizes {
		l, err := newLoad(corpora, p, size, *short)
		if err != nil {
			return err
		}
		rounds, err := l.rounds(names, stderr)
		if err != nil {
			return err
		}
		res.add(size, rounds)
	}
	res.Machine.Took = time.Since(res.Machine.started).Round(time.Second).String()

	if err := res.print(stdout); err != nil {
		return err
	}
	if *jsonPath != "" {
		if err := write(*jsonPath, res.json); err != nil {
			return err
		}
	}
	if *svgDir != "" {
		for name, plot := range res.plots() {
			if err := write(filepath.Join(*svgDir, name), plot.svg); err != nil {
				return err
			}
		}
	}
	if *markdownPath != "" {
		page, err := res.markdown(*markdownPath, *svgDir)
		if err != nil {
			return err
		}
		return write(*markdownPath, func(w io.Writer) error { _, err := io.WriteString(w, page); return err })
	}
	return nil
}

func parseEngines(list string) ([]string, error) {
	var all []string
	for _, e := range engines {
		all = append(all, e.name)
	}
	if list == "" {
		return all, nil
	}
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("no engine %q; there are %s", name, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(names, name) }), nil
}

// parseSizes returns ascending sizes.
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

// command returns what to type for the same run. Where the corpora are is
// left open: they differ from machine to machine.
func command(flags *flag.FlagSet) string {
	text := "go -C bench run ."
	flags.Visit(func(f *flag.Flag) {
		value := " " + f.Value.String()
		switch {
		case f.Name == "corpus":
			value = " DIR"
		case value == " true":
			value = ""
		}
		text += " -" + f.Name + value
	})
	return text
}

// write makes a file, and the folder for it.
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
