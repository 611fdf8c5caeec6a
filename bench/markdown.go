package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

const introduction = `# Benchmarks

How well the right tools are found, how fast, and what it costs to keep the index. Written by the command below; all
figures are of that one run. %[1]s, %[2]d cores, %[3]s, %[4]s, %[5]s; load before the run %[6]s; the run took %[7]s.

    %[8]s

| engine | |
|---|---|
| default, lexical | the rankers of this project |
| classic | this project's BM25 by the published formula; each change builds it anew |
| scan | the same formula without an index: every query looks into every tool |
| bleve | [bleve](https://github.com/blevesearch/bleve) 2.5.7, scorch in memory, English analyzer, name and text |
| fts5 | SQLite's [FTS5](https://www.sqlite.org/fts5.html) in memory by [modernc.org/sqlite](https://gitlab.com/cznic/sqlite), Porter stemming, weighted columns |

Bleve and FTS5 get server, name, description and parameters, with identifiers taken apart; their configurations, and
what was tried to find them, are in ` + "`bench/bleve.go` and `bench/fts5.go`" + `. Classic and scan get server, name and
description, as published.
`

const method = `
## How it is measured

- The engines take turns in one process, in each round another one first. A figure is the median over rounds; a ratio is
  computed within each round, and its range over the rounds is given.
- All engines get the same tools, queries and changes, and are asked for 5 tools. The tools are %[1]s distinct ones of the
  corpora in an order drawn at random. Where more are needed, there are variants: on other servers, with some words taken
  from other tools and some newly coined, so that the vocabulary grows too. The queries are drawn from all corpora alike.
- Build is from lines of JSON in memory to the first answer; *of it index* is what comes after decoding.
- Add, replace and remove are until the call returns. That the next search sees the change is checked each time.
- Query is one query by one goroutine, median and 99th percentile; the clock itself takes about 0.05 µs of it.
  *1→2* is how many times the queries per second of one goroutine two have together.
- Allocs are on Go's heap, per query. B/tool is the heap after a collection, without the decoded tools themselves, which
  the caller has in any case; of fts5, SQLite's pages too.
- recall@5 is how much of what is labelled as relevant is among the first 5 answers, as a mean over the queries of a
  corpus that anything is relevant for; where it is given for all corpora, each counts once.
`

const caveats = `
## What to keep in mind

- Bleve and FTS5 are engines for documents of any kind, and do much that is not asked of them here: phrases, facets,
  transactions, storage on disk. Their worth is not in this table.
- Bleve builds with several goroutines, the others with one. Its segments in memory are never merged, so that it becomes
  slower with the number of changes; here it has seen few.
- FTS5 is translated to Go and answers one query at a time, as a database in memory belongs to one connection. What it
  allocates is for the most part outside of Go's heap. SQLite in C is faster.
- Default and lexical compile what they know of words once in a process. That is done before the clock runs, and its
  memory is not in B/tool.
- Bleve breaks ties by an order that differs from run to run: its recall varies by up to 0.003.
- The corpora are short texts with one language each; FTS5's and bleve's analysis is for English.
- The 99th percentile of changes is that of a few dozen a round, of the slow engines that of a few: there it is the
  slowest one seen.
- The machine is not ours alone. The ratios suffer less from it than the times; the 99th percentiles suffer most.
`

// markdown returns the page for path, with the plots in dir, or without plots
// if dir is "".
func (res *results) markdown(path, dir string) (string, error) {
	var b strings.Builder
	m := res.Machine
	fmt.Fprintf(&b, introduction, m.CPU, m.Cores, m.System, m.Go, m.Date, m.Load, m.Took, res.Command)
	if dir != "" {
		page, err := filepath.Abs(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		plots, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		relative, err := filepath.Rel(page, plots)
		if err != nil {
			return "", err
		}
		relative = filepath.ToSlash(relative)
		fmt.Fprintf(&b, "\n![Quality against time](%[1]s/quality.svg)\n\n![Cost against size](%[1]s/cost.svg)\n", relative)
	}
	if len(res.Ratios) > 0 {
		b.WriteString("\n## Compared\n\nHow many times as long as ours another engine takes; below 1, it is the faster one.\n")
		for _, part := range []struct{ title, key string }{
			{"A query, median", "query_us_p50"}, {"Build", "build_ms"},
			{"Add a tool", "add_us"}, {"Remove a tool", "remove_us"},
			{"Memory, as many times as ours", "bytes_per_tool"},
		} {
			fmt.Fprintf(&b, "\n%s:\n\n%s", part.title, res.ratioTable(part.key).markdown())
		}
		fmt.Fprintf(&b, "\n## Where others are ahead\n\n%s", res.behind().markdown())
	}
	fmt.Fprintf(&b, "\n## Quality\n\nrecall@5, each corpus on its own tools:\n\n%s", res.qualityTable().markdown())
	for _, size := range res.sizes() {
		fmt.Fprintf(&b, "\n## %s tools\n\n%s", number(float64(size)), res.sizeTable(size).markdown())
	}
	fmt.Fprintf(&b, method, number(float64(res.Pool)))
	b.WriteString(caveats)
	return b.String(), nil
}

// behind shows, by figure, which engines are better than one of ours, and at
// how many tools.
func (res *results) behind() table {
	t := table{{"figure"}}
	for _, e := range engines {
		if ours(e.name) && slices.ContainsFunc(res.Rows, func(r row) bool { return r.Engine == e.name }) {
			t[0] = append(t[0], "than "+e.name)
		}
	}
	for _, key := range []string{"query_us_p50", "query_us_p99", "build_ms", "index_ms", "add_us", "replace_us", "remove_us", "allocs", "scaling_2", "bytes_per_tool", "recall@5"} {
		line := []string{key}
		for _, head := range t[0][1:] {
			line = append(line, res.ahead(strings.TrimPrefix(head, "than "), figureOf(key)))
		}
		if strings.Join(line[1:], "") != "" {
			t = append(t, line)
		}
	}
	return t
}

// ahead returns the engines that are better than the named one, as in "scan at
// 40, 400; bleve at 40".
func (res *results) ahead(name string, f figure) string {
	var parts []string
	for _, e := range engines {
		var sizes []string
		for _, own := range res.Rows {
			for _, other := range res.Rows {
				if own.Engine != name || other.Engine != e.name || ours(e.name) || own.Tools != other.Tools {
					continue
				}
				if a, b := *f.of(&own), *f.of(&other); f.lower && b < a || !f.lower && b > a {
					sizes = append(sizes, number(float64(own.Tools)))
				}
			}
		}
		if len(sizes) > 0 {
			parts = append(parts, e.name+" at "+strings.Join(sizes, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

func (t table) markdown() string {
	var b strings.Builder
	for i, line := range t {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
		if i > 0 {
			continue
		}
		for column := range line {
			b.WriteString("|---")
			if len(t) > 1 && digit(t[1][column]) {
				b.WriteByte(':')
			}
		}
		b.WriteString("|\n")
	}
	return b.String()
}
