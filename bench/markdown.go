package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

const introduction = `# Benchmarks

How well the right tools are found, how fast, and what it costs to keep the index. Written by the command below; all
figures are of that one run. %[1]s, %[2]d cores, %[3]s, %[4]s, %[5]s; load before the run %[6]s; the run took %[7]s.

    %[8]s

| engine | |
|---|---|
%[9]s
Bleve and FTS5 get server, name, description and parameters, with identifiers taken apart; what else was tried with
them is told in ` + "`bench/bleve.go` and `bench/fts5.go`" + `. Classic and scan get server, name and description.
`

const method = `
## How it is measured

- In a round all engines are built, one after the other, and stay. Then they work in turn, a tenth of the queries each
  time, and likewise a tenth of the changes, in an order that is drawn for each round and rotated. An engine that takes
  less than 1 ms for a query first answers some for 2 ms without the clock, as those before it have had the processor's
  caches. A figure is the median over rounds; a ratio is computed within each round, and its range is given.
- All engines get the same tools, queries and changes, and are asked for 5 tools. The tools are %[1]s distinct ones of the
  corpora in an order drawn at random. Where more are needed, there are variants: on other servers, with some words taken
  from other tools and some newly coined, so that the vocabulary grows too. The queries are drawn from all corpora alike,
  but for those above 2,000 bytes.
- Build is from lines of JSON in memory to the first answer; *of it index* is what comes after decoding.
- Add, replace and remove are until the call returns. That the next search sees the change is checked each time, outside
  of the clock; *add+search* is with that search. This project's index is given a new list of documents: the list is made
  before the clock runs, but for what is appended.
- Query is one query by one goroutine, median and 99th percentile; the clock itself takes about 0.05 µs of it.
  *1→2* is how many times the queries per second of one goroutine two have together.
- Allocs are on Go's heap, per query, when each query has been asked before; the collector stands still meanwhile.
  B/tool is the heap after a collection, without the decoded tools themselves, which the caller has in any case; of fts5,
  SQLite's pages too.
- recall@5 is how much of what is labelled as relevant is among the first 5 answers, as a mean over the queries of a
  corpus that anything is relevant for; in a mean of corpora, each counts once. English are those with nine in ten
  queries in Latin letters.
`

const caveats = `
## What to keep in mind

- Bleve and FTS5 are engines for documents of any kind, and do much that is not asked of them here: phrases, facets,
  transactions, storage on disk. Their worth is not in this table.
- Bleve builds with several goroutines, the others with one. Its segments in memory are never merged, so that it becomes
  slower with the number of changes; its queries here are timed before any.
- FTS5 is translated to Go and answers one query at a time, as a database in memory belongs to one connection. What it
  allocates is for the most part outside of Go's heap. SQLite in C is faster.
- Default and lexical compile what they know of words once in a process. That is done before the clock runs, and its
  memory is not in B/tool.
- Bleve breaks ties by an order that differs from run to run: its recall varies by up to 0.003.
- The corpora are short texts with one language each; FTS5's and bleve's analysis is for English.
- Changes are up to 200 of each kind a round; an engine that has used up its time stops, after 3 at the least, and then
  the 99th percentile is the slowest one seen. The same goes for the 30 queries among 40,000 tools and the 80 among 4,000.
- The machine is not ours alone. The ratios suffer less from it than the times; the 99th percentiles suffer most.
`

// page writes the page that is kept at path, with the plots in dir, or without
// plots if dir is "".
func (res *results) page(w io.Writer, path, dir string) error {
	var b strings.Builder
	about := ""
	for _, e := range engines {
		about += fmt.Sprintf("| %s | %s |\n", e.name, e.about)
	}
	m := res.Machine
	fmt.Fprintf(&b, introduction, m.CPU, m.Cores, m.System, m.Go, m.Date, m.Load, m.Took, res.Command, about)
	if dir != "" {
		page, err1 := filepath.Abs(filepath.Dir(path))
		plots, err2 := filepath.Abs(dir)
		relative, err3 := filepath.Rel(page, plots)
		if err := cmp.Or(err1, err2, err3); err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n![Quality against time](%[1]s/quality.svg)\n\n![Cost against size](%[1]s/cost.svg)\n", filepath.ToSlash(relative))
	}
	b.WriteString("\n## Compared\n\nHow many times as much as ours another engine takes; below 1, it is ahead.\n\n")
	for _, line := range res.headline() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	for _, c := range compared {
		fmt.Fprintf(&b, "\n%s:\n\n%s", c.title, res.ratioTable(c.key).markdown())
	}
	fmt.Fprintf(&b, "\n## Quality\n\nrecall@5, each corpus on its own tools:\n\n%s", res.qualityTable().markdown())
	for _, size := range res.sizes {
		fmt.Fprintf(&b, "\n## %s tools\n\n%s", number(float64(size)), res.sizeTable(size).markdown())
	}
	fmt.Fprintf(&b, method, number(float64(res.Pool)))
	b.WriteString(caveats)
	_, err := io.WriteString(w, b.String())
	return err
}
