package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// results holds everything that a run measured. Its JSON form is a contract.
type results struct {
	Machine machine   `json:"machine"`
	Command string    `json:"command"`
	Pool    int       `json:"pool"` // distinct tools of all corpora; longer lists have variants
	Quality []quality `json:"quality"`
	Rows    []row     `json:"rows"`   // by ascending tools, then in the order of engines
	Ratios  []ratio   `json:"ratios"` // our engines compared with the others

	sizes []int // ascending
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
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Load: "unknown", started: time.Now(),
	}
	m.Date = m.started.Format(time.DateOnly)
	info, _ := os.ReadFile("/proc/cpuinfo") // on other systems than Linux, less is known
	for line := range strings.Lines(string(info)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
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

// A row is one engine at one number of tools, in one round, or the medians of
// all rounds.
type row struct {
	name    string
	size    int
	figures map[string]float64
}

// MarshalJSON writes an object of the engine, the tools and the figures.
func (r row) MarshalJSON() ([]byte, error) {
	object := fmt.Appendf(nil, `{"engine":%q,"tools":%d`, r.name, r.size)
	for _, f := range figures {
		object = fmt.Appendf(object, `,%q:%v`, f.key, r.figures[f.key])
	}
	return append(object, '}'), nil
}

// figures are the figures of a row. Those with a title are columns of the
// tables.
var figures = []struct {
	key, title string
	more       bool // a higher value is better
}{
	{key: "build_ms", title: "build ms"},
	{key: "index_ms", title: "of it index"},
	{key: "add_us", title: "add µs"},
	{key: "add_us_p99", title: "p99"},
	{key: "add_seen_us", title: "add+search"},
	{key: "replace_us", title: "replace µs"},
	{key: "replace_us_p99", title: "p99"},
	{key: "remove_us", title: "remove µs"},
	{key: "remove_us_p99", title: "p99"},
	{key: "query_us_p50", title: "query µs"},
	{key: "query_us_p99", title: "p99"},
	{key: "allocs", title: "allocs"},
	{key: "per_s_1"}, // queries per second with one goroutine, with two, and with GOMAXPROCS
	{key: "per_s_2"},
	{key: "per_s_max"},
	{key: "scaling_2", title: "1→2", more: true},
	{key: "scaling_max"},
	{key: "bytes_per_tool", title: "B/tool"},
	{key: "recall@5", title: "recall@5", more: true}, // the same at all numbers of tools
	{key: "rounds"},
	{key: "queries"}, // in one round
	{key: "changes"}, // of each kind, in one round
}

// A ratio says how many times better one of our engines is than another by one
// figure. Above 1, ours is better. Engines are compared within each round.
type ratio struct {
	Engine string  `json:"engine"`
	Peer   string  `json:"peer"`
	Tools  int     `json:"tools"`
	Figure string  `json:"figure"`
	Times  float64 `json:"times"` // the median over rounds
	Low    float64 `json:"low"`   // the least and the greatest of all rounds
	High   float64 `json:"high"`
}

// compared are the figures that have ratios.
var compared = []struct{ key, title string }{
	{"query_us_p50", "A query, median"},
	{"build_ms", "Build"}, {"index_ms", "Build, without decoding"},
	{"add_us", "Add a tool"}, {"replace_us", "Replace a tool"}, {"remove_us", "Remove a tool"},
	{"bytes_per_tool", "Memory"},
}

// add adds the results of the rounds at one number of tools.
func (res *results) add(size int, rounds map[string][]row) {
	res.sizes = append(res.sizes, size)
	for _, name := range named() {
		r := row{name, size, make(map[string]float64)}
		for _, f := range figures {
			var values []float64
			for _, round := range rounds[name] {
				values = append(values, round.figures[f.key])
			}
			r.figures[f.key] = percentile(values, 50)
		}
		r.figures["rounds"] = float64(len(rounds[name]))
		r.figures["recall@5"] = meanRecall(res.Quality, name)
		res.Rows = append(res.Rows, r)
	}
	for _, name := range named(own) {
		for _, other := range named(peer, tuned, former) {
			for _, c := range compared {
				var times []float64
				for i, round := range rounds[name] {
					times = append(times, rounds[other][i].figures[c.key]/max(round.figures[c.key], 1e-9))
				}
				res.Ratios = append(res.Ratios, ratio{
					name, other, size, c.key, percentile(times, 50), slices.Min(times), slices.Max(times),
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

// shown is the number of tools for the headline and the first plot: 4,000, or
// the largest without it.
func (res *results) shown() int {
	if slices.Contains(res.sizes, 4000) {
		return 4000
	}
	return res.sizes[len(res.sizes)-1]
}

// headline returns two lines for each of our engines: how many times as long
// the peers take for a query, and the peers that we tuned.
func (res *results) headline() []string {
	var lines []string
	for _, name := range named(own) {
		start := fmt.Sprintf("%s, a query among %s tools: ", name, number(float64(res.shown())))
		for _, role := range []string{peer, tuned} {
			var parts []string
			for _, r := range res.Ratios {
				if r.Engine == name && r.Tools == res.shown() && r.Figure == compared[0].key && slices.Contains(named(role), r.Peer) {
					parts = append(parts, fmt.Sprintf("%s %s×", r.Peer, number(r.Times)))
				}
			}
			lines = append(lines, start+strings.Join(parts, ", "))
			start = "as we tuned them: "
		}
	}
	return lines
}

// ratioTable shows the ratios of one figure, with the engines as columns.
func (res *results) ratioTable(key string) table {
	t := table{append([]string{"ours", "tools"}, named(peer, tuned, former)...)}
	for _, r := range res.Ratios {
		if r.Figure != key {
			continue
		}
		size := number(float64(r.Tools))
		if last := t[len(t)-1]; last[0] != r.Engine || last[1] != size {
			t = append(t, []string{r.Engine, size})
		}
		t[len(t)-1] = append(t[len(t)-1], fmt.Sprintf("%s× (%s–%s)", number(r.Times), number(r.Low), number(r.High)))
	}
	slices.SortStableFunc(t[1:], func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return t
}

func (res *results) sizeTable(size int) table {
	t := table{{"engine"}}
	for _, f := range figures {
		if f.title != "" {
			t[0] = append(t[0], f.title)
		}
	}
	for _, r := range res.Rows {
		if r.size != size {
			continue
		}
		line := []string{r.name}
		for _, f := range figures {
			switch {
			case f.key == "recall@5":
				line = append(line, fmt.Sprintf("%.3f", r.figures[f.key]))
			case f.title != "":
				line = append(line, number(r.figures[f.key]))
			}
		}
		t = append(t, line)
	}
	return t
}

// qualityTable shows the corpora as rows, then their means.
func (res *results) qualityTable() table {
	t := table{append([]string{"corpus", "tools", "queries"}, named()...)}
	add := func(title, tools, queries string, of []quality) {
		line := []string{title, tools, queries}
		for _, name := range named() {
			line = append(line, fmt.Sprintf("%.3f", meanRecall(of, name)))
		}
		t = append(t, line)
	}
	var english []quality
	for _, q := range res.Quality {
		add(q.Corpus, number(float64(q.Tools)), number(float64(q.Queries)), []quality{q})
		if q.English {
			english = append(english, q)
		}
	}
	if len(english) > 0 {
		add("mean, English", "", "", english)
	}
	add("mean", "", "", res.Quality)
	return t
}

// print writes the results for people, the most important first.
func (res *results) print(w io.Writer) error {
	var b strings.Builder
	for _, line := range res.headline() {
		b.WriteString("  " + line + "\n")
	}
	fmt.Fprintf(&b, "\nA query takes the others how many times as long (median; range over rounds):\n\n%s",
		res.ratioTable(compared[0].key).plain())
	for _, size := range res.sizes {
		fmt.Fprintf(&b, "\n%s tools:\n\n%s", number(float64(size)), res.sizeTable(size).plain())
	}
	fmt.Fprintf(&b, "\nrecall@5, each corpus on its own tools:\n\n%s", res.qualityTable().plain())
	m := res.Machine
	fmt.Fprintf(&b, "\n%s, %d cores, %s, %s, %s, load %s, took %s\n", m.CPU, m.Cores, m.System, m.Go, m.Date, m.Load, m.Took)
	_, err := io.WriteString(w, b.String())
	return err
}
