package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// results are all that a run found; their JSON form is a contract.
type results struct {
	Machine machine   `json:"machine"`
	Command string    `json:"command"`
	Pool    int       `json:"pool"` // distinct tools of all corpora; lists of more have variants
	Quality []quality `json:"quality"`
	Rows    []row     `json:"rows"`   // by ascending tools, then in the order of engines
	Ratios  []ratio   `json:"ratios"` // of our engines to the others
}

type machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	System     string `json:"system"` // as in linux/amd64
	Go         string `json:"go"`
	Date       string `json:"date"` // as in 2026-11-21
	Load       string `json:"load"` // Linux's averages at the start, over 1, 5 and 15 minutes
	Took       string `json:"took"` // the whole run, as in 8m12s

	started time.Time
}

func thisMachine() machine {
	m := machine{
		CPU: runtime.GOARCH, Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), started: time.Now(),
	}
	m.Date = m.started.Format(time.DateOnly)
	info, _ := os.ReadFile("/proc/cpuinfo") // elsewhere than on Linux, less is known
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(load)); len(fields) >= 3 {
		m.Load = strings.Join(fields[:3], " ")
	}
	return m
}

// A ratio is how many times better one of our engines is than another by one
// figure: above 1, ours is better. The engines are compared within each round.
type ratio struct {
	Engine string  `json:"engine"`
	Peer   string  `json:"peer"`
	Tools  int     `json:"tools"`
	Figure string  `json:"figure"`
	Times  float64 `json:"times"` // the median over rounds
	Low    float64 `json:"low"`   // the least and the most of any round
	High   float64 `json:"high"`
}

// compared are the figures that there are ratios of.
var compared = []string{"query_us_p50", "build_ms", "index_ms", "add_us", "replace_us", "remove_us", "bytes_per_tool"}

// add takes the turns of the engines at one number of tools.
func (res *results) add(names []string, turns map[string][]row) {
	for _, name := range names {
		r := summary(turns[name])
		r.Recall = meanRecall(res.Quality, name)
		res.Rows = append(res.Rows, r)
	}
	for _, name := range names {
		for _, peer := range names {
			if !ours(name) || ours(peer) {
				continue
			}
			for _, key := range compared {
				f := figureOf(key)
				var times []float64
				for i := range turns[name] {
					times = append(times, *f.of(&turns[peer][i])/max(*f.of(&turns[name][i]), 1e-9))
				}
				slices.Sort(times)
				res.Ratios = append(res.Ratios, ratio{
					name, peer, turns[name][0].Tools, key,
					percentile(times, 50), times[0], times[len(times)-1],
				})
			}
		}
	}
}

func (res *results) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(res)
}

// sizes returns the numbers of tools, ascending.
func (res *results) sizes() []int {
	var sizes []int
	for _, r := range res.Rows {
		sizes = append(sizes, r.Tools)
	}
	return slices.Compact(sizes)
}

// A table is cells by row, the first row its head.
type table [][]string

// ratioTable shows the ratios of one figure, with the sizes as columns.
func (res *results) ratioTable(key string) table {
	t := table{{"ours", "to"}}
	for _, size := range res.sizes() {
		t[0] = append(t[0], number(float64(size))+" tools")
	}
	for _, r := range res.Ratios {
		if r.Figure != key {
			continue
		}
		i := slices.IndexFunc(t, func(line []string) bool { return line[0] == r.Engine && line[1] == r.Peer })
		if i < 0 {
			i = len(t)
			t = append(t, []string{r.Engine, r.Peer})
		}
		t[i] = append(t[i], fmt.Sprintf("%s× (%s–%s)", number(r.Times), number(r.Low), number(r.High)))
	}
	return t
}

// shown are the columns of the tables of one size.
var shown = []string{
	"build_ms", "index_ms", "add_us", "add_us_p99", "replace_us", "remove_us",
	"query_us_p50", "query_us_p99", "allocs", "scaling_2", "bytes_per_tool", "recall@5",
}

func (res *results) sizeTable(size int) table {
	t := table{{"engine"}}
	for _, key := range shown {
		t[0] = append(t[0], figureOf(key).title)
	}
	for _, r := range res.Rows {
		if r.Tools != size {
			continue
		}
		line := []string{r.Engine}
		for _, key := range shown {
			text := number(*figureOf(key).of(&r))
			if key == "recall@5" {
				text = fmt.Sprintf("%.3f", r.Recall)
			}
			line = append(line, text)
		}
		t = append(t, line)
	}
	return t
}

// qualityTable shows the corpora as rows, and their mean.
func (res *results) qualityTable() table {
	t := table{{"corpus", "tools", "queries"}}
	mean := []string{"mean", "", ""}
	for _, e := range engines {
		if _, ok := res.Quality[0].Recall[e.name]; ok {
			t[0] = append(t[0], e.name)
			mean = append(mean, fmt.Sprintf("%.3f", meanRecall(res.Quality, e.name)))
		}
	}
	for _, q := range res.Quality {
		line := []string{q.Corpus, number(float64(q.Tools)), number(float64(q.Queries))}
		for _, name := range t[0][3:] {
			line = append(line, fmt.Sprintf("%.3f", q.Recall[name]))
		}
		t = append(t, line)
	}
	return append(t, mean)
}

// print writes the results for people, what matters most first.
func (res *results) print(w io.Writer) error {
	var b strings.Builder
	if len(res.Ratios) > 0 {
		b.WriteString("A query takes the others how many times as long (median; range over rounds):\n\n")
		b.WriteString(res.ratioTable("query_us_p50").plain())
	}
	for _, size := range res.sizes() {
		fmt.Fprintf(&b, "\n%s tools:\n\n%s", number(float64(size)), res.sizeTable(size).plain())
	}
	fmt.Fprintf(&b, "\nrecall@5, each corpus on its own tools:\n\n%s", res.qualityTable().plain())
	fmt.Fprintf(&b, "\n%s, %d cores, %s, %s, %s, load %s\n", res.Machine.CPU, res.Machine.Cores,
		res.Machine.System, res.Machine.Go, res.Machine.Date, res.Machine.Load)
	_, err := io.WriteString(w, b.String())
	return err
}

// plain returns the table with aligned columns: words to the left, numbers to
// the right.
func (t table) plain() string {
	var b strings.Builder
	for _, line := range t {
		for i, cell := range line {
			width := 0
			for _, other := range t {
				width = max(width, utf8.RuneCountInString(other[i]))
			}
			pad := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
			if words := !digit(t[1][i]); words {
				b.WriteString("  " + cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func digit(s string) bool { return s != "" && '0' <= s[0] && s[0] <= '9' }

// number writes x with three digits, or all before the point: 0.0123, 1.23,
// 12.3, 123, 1,234.
func number(x float64) string {
	decimals := 0
	if x != math.Trunc(x) && x != 0 {
		decimals = max(0, min(4, 2-int(math.Floor(math.Log10(math.Abs(x))))))
	}
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	whole, fraction, pointed := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if pointed {
		return whole + "." + fraction
	}
	return whole
}
