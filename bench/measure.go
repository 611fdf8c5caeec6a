package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid"
)

// A row is one engine at one number of tools. Each figure is the median over
// rounds of that round's figure.
type row struct {
	Engine string `json:"engine"`
	Tools  int    `json:"tools"`

	// From lines of JSON in memory to the first answer; the part of it that
	// begins when they are decoded.
	BuildMS float64 `json:"build_ms"`
	IndexMS float64 `json:"index_ms"`

	// One change, until the call returns: from then on every search sees it,
	// which is checked. With AddSeenUS, until a search has answered it.
	AddUS      float64 `json:"add_us"`
	AddP99     float64 `json:"add_us_p99"`
	AddSeenUS  float64 `json:"add_seen_us"`
	ReplaceUS  float64 `json:"replace_us"`
	ReplaceP99 float64 `json:"replace_us_p99"`
	RemoveUS   float64 `json:"remove_us"`
	RemoveP99  float64 `json:"remove_us_p99"`

	// One query, one goroutine.
	QueryP50 float64 `json:"query_us_p50"`
	QueryP99 float64 `json:"query_us_p99"`
	Allocs   float64 `json:"allocs"` // on Go's heap, per query, mean

	// Queries per second of 1, 2 and GOMAXPROCS goroutines, and how many times
	// the first the others are.
	PerS1      float64 `json:"per_s_1"`
	PerS2      float64 `json:"per_s_2"`
	PerSMax    float64 `json:"per_s_max"`
	Scaling2   float64 `json:"scaling_2"`
	ScalingMax float64 `json:"scaling_max"`

	BytesPerTool float64 `json:"bytes_per_tool"` // of memory, the decoded tools themselves not counted

	Recall float64 `json:"recall@5"` // mean over corpora, each on its own tools; the same at all numbers of tools

	Rounds  int `json:"rounds"`
	Queries int `json:"queries"` // of a round
	Changes int `json:"changes"` // of each kind; of a round
}

// A figure is one column of the rows.
type figure struct {
	key, title string
	of         func(*row) *float64
	lower      bool // is better
}

var figures = []figure{
	{"build_ms", "build ms", func(r *row) *float64 { return &r.BuildMS }, true},
	{"index_ms", "of it index", func(r *row) *float64 { return &r.IndexMS }, true},
	{"add_us", "add µs", func(r *row) *float64 { return &r.AddUS }, true},
	{"add_us_p99", "p99", func(r *row) *float64 { return &r.AddP99 }, true},
	{"add_seen_us", "add+search", func(r *row) *float64 { return &r.AddSeenUS }, true},
	{"replace_us", "replace µs", func(r *row) *float64 { return &r.ReplaceUS }, true},
	{"replace_us_p99", "p99", func(r *row) *float64 { return &r.ReplaceP99 }, true},
	{"remove_us", "remove µs", func(r *row) *float64 { return &r.RemoveUS }, true},
	{"remove_us_p99", "p99", func(r *row) *float64 { return &r.RemoveP99 }, true},
	{"query_us_p50", "query µs", func(r *row) *float64 { return &r.QueryP50 }, true},
	{"query_us_p99", "p99", func(r *row) *float64 { return &r.QueryP99 }, true},
	{"allocs", "allocs", func(r *row) *float64 { return &r.Allocs }, true},
	{"per_s_1", "queries/s", func(r *row) *float64 { return &r.PerS1 }, false},
	{"per_s_2", "two goroutines", func(r *row) *float64 { return &r.PerS2 }, false},
	{"per_s_max", "GOMAXPROCS", func(r *row) *float64 { return &r.PerSMax }, false},
	{"scaling_2", "1→2", func(r *row) *float64 { return &r.Scaling2 }, false},
	{"scaling_max", "1→max", func(r *row) *float64 { return &r.ScalingMax }, false},
	{"bytes_per_tool", "B/tool", func(r *row) *float64 { return &r.BytesPerTool }, true},
	{"recall@5", "recall@5", func(r *row) *float64 { return &r.Recall }, false},
}

func figureOf(key string) figure {
	return figures[slices.IndexFunc(figures, func(f figure) bool { return f.key == key })]
}

// An effort is how much is measured in one turn of an engine.
type effort struct {
	rounds   int
	queries  int           // each asked once; all engines get the same
	changes  int           // of each kind, at most; all engines get the same
	patience time.Duration // after which no more changes are begun, but for the first three
	busy     time.Duration // of one throughput measurement, about
}

// effortFor keeps a full run below 10 minutes on two cores. At 40,000 tools
// the slow engines take 10 ms and more for a query, and seconds to build.
func effortFor(tools int, short bool) effort {
	switch {
	case short:
		return effort{3, 200, 30, 200 * time.Millisecond, 50 * time.Millisecond}
	case tools > 10_000:
		return effort{3, 100, 30, time.Second / 2, 200 * time.Millisecond}
	case tools > 1_000:
		return effort{5, 200, 50, time.Second, 100 * time.Millisecond}
	}
	return effort{9, 500, 50, time.Second, 50 * time.Millisecond}
}

// A load is what all engines are given at one number of tools.
type load struct {
	effort
	lines   [][]byte // the tools
	bytes   int      // of memory that the tools take, decoded
	queries []string
	changes []change
}

// A change adds one tool, puts another in the place of one that is there, and
// removes one that is there. Each tool that comes has a word in its name that
// no other has.
type change struct {
	added, put        *tool
	replaced, removed int // numbers; each occurs once
}

func newLoad(corpora []corpus, p *pool, tools int, short bool) (*load, error) {
	l := &load{effort: effortFor(tools, short)}
	var err error
	if l.lines, err = p.lines(tools); err != nil {
		return nil, err
	}
	before := heap()
	decoded, err := decodeAll(l.lines)
	if err != nil {
		return nil, err
	}
	l.bytes = heap() - before
	runtime.KeepAlive(decoded)

	rng := rand.New(rand.NewPCG(p.seed, 1))
	l.queries = drawQueries(corpora, l.effort.queries, rng)
	numbers := rng.Perm(tools)
	for i := range min(l.effort.changes, tools/2) {
		const apart = 1 << 32 // from the tools that are there
		l.changes = append(l.changes, change{
			p.variant(apart + 2*i), p.variant(apart + 2*i + 1),
			numbers[2*i], numbers[2*i+1],
		})
	}
	return l, nil
}

// heap returns the bytes in use on Go's heap.
func heap() int {
	// A first collection only moves what is pooled to where the next takes it.
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// measure gives one engine its turn in a round.
func (l *load) measure(e engine) (r row, err error) {
	r = row{Tools: len(l.lines), Rounds: 1, Queries: len(l.queries)}
	dst := make([]mcphybrid.Match, 0, k)
	before := heap()

	begun := time.Now()
	tools, err := decodeAll(l.lines)
	if err != nil {
		return r, err
	}
	decoded := time.Now()
	if err := e.build(tools); err != nil {
		return r, err
	}
	defer func() { err = cmp.Or(err, e.close()) }()
	if _, err := e.search(dst, l.queries[0], k); err != nil {
		return r, err
	}
	r.BuildMS, r.IndexMS = since(begun)/1e3, since(decoded)/1e3

	if err := findsItsTools(e, tools); err != nil {
		return r, err
	}
	if err := l.ask(e, &r); err != nil {
		return r, err
	}
	after := heap()
	outside, err := e.outside()
	if err != nil {
		return r, err
	}
	r.BytesPerTool = float64(after-before-l.bytes+outside) / float64(len(tools))

	if err := l.throughput(e, &r); err != nil {
		return r, err
	}
	err = l.change(e, tools, &r)
	runtime.KeepAlive(tools)
	return r, err
}

// since returns microseconds.
func since(t time.Time) float64 { return float64(time.Since(t).Nanoseconds()) / 1e3 }

// findsItsTools checks an engine that was just built, and warms it: of 20
// tools, most must be among the answers to their names. Not all, as there are
// names that many tools have.
func findsItsTools(e engine, tools []*tool) error {
	found, tried := 0, min(len(tools), 20)
	for i := range tried {
		t := tools[i*len(tools)/tried]
		matches, err := e.search(nil, t.Name, k)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(matches, func(m mcphybrid.Match) bool { return tools[m.Doc].Name == t.Name }) {
			found++
		}
	}
	if 2*found <= tried {
		return fmt.Errorf("of %d tools, only %d are found by their names", tried, found)
	}
	return nil
}

// ask measures single queries.
func (l *load) ask(e engine, r *row) error {
	dst := make([]mcphybrid.Match, 0, k)
	took := make([]float64, len(l.queries))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i, query := range l.queries {
		begun := time.Now()
		_, err := e.search(dst, query, k)
		took[i] = since(begun)
		if err != nil {
			return fmt.Errorf("query %q: %w", query, err)
		}
	}
	runtime.ReadMemStats(&after)
	r.Allocs = float64(after.Mallocs-before.Mallocs) / float64(len(l.queries))
	r.QueryP50, r.QueryP99 = percentile(took, 50), percentile(took, 99)
	return nil
}

// throughput measures queries from several goroutines at once. Each goroutine
// asks the same ones, as many as take one goroutine about l.busy.
func (l *load) throughput(e engine, r *row) error {
	n := max(8, int(float64(l.busy.Microseconds())/r.QueryP50))
	perSecond := func(goroutines int) (float64, error) {
		var all sync.WaitGroup
		errs := make([]error, goroutines)
		begun := time.Now()
		for g := range goroutines {
			all.Go(func() {
				dst := make([]mcphybrid.Match, 0, k)
				for i := range n {
					if _, err := e.search(dst, l.queries[i%len(l.queries)], k); err != nil {
						errs[g] = err
					}
				}
			})
		}
		all.Wait()
		return float64(goroutines*n) * 1e6 / since(begun), cmp.Or(errs...)
	}
	var err1, err2, err3 error
	r.PerS1, err1 = perSecond(1)
	r.PerS2, err2 = perSecond(2)
	r.PerSMax = r.PerS2
	if runtime.GOMAXPROCS(0) != 2 {
		r.PerSMax, err3 = perSecond(runtime.GOMAXPROCS(0))
	}
	r.Scaling2, r.ScalingMax = r.PerS2/r.PerS1, r.PerSMax/r.PerS1
	return cmp.Or(err1, err2, err3)
}

// change measures changes, and checks that they are seen.
func (l *load) change(e engine, tools []*tool, r *row) error {
	var add, seen, replace, remove []float64
	dst := make([]mcphybrid.Match, 0, k)
	finds := func(query string, number int) (bool, error) {
		matches, err := e.search(dst, query, k)
		return slices.ContainsFunc(matches, func(m mcphybrid.Match) bool { return m.Doc == number }), err
	}
	for i, started := 0, time.Now(); i < len(l.changes) && (i < 3 || time.Since(started) < l.patience); i++ {
		c, number := l.changes[i], len(l.lines)+i

		begun := time.Now()
		err := e.add(number, c.added)
		add = append(add, since(begun))
		if err != nil {
			return err
		}
		found, err := finds(ownWord(c.added), number)
		seen = append(seen, since(begun))
		if err != nil || !found {
			return cmp.Or(err, fmt.Errorf("an added tool is not found by %q", ownWord(c.added)))
		}

		begun = time.Now()
		err = e.replace(c.replaced, c.put)
		replace = append(replace, since(begun))
		if err != nil {
			return err
		}
		if found, err := finds(ownWord(c.put), c.replaced); err != nil || !found {
			return cmp.Or(err, fmt.Errorf("a tool that replaced another is not found by %q", ownWord(c.put)))
		}

		begun = time.Now()
		err = e.remove(c.removed)
		remove = append(remove, since(begun))
		if err != nil {
			return err
		}
		if found, err := finds(tools[c.removed].Name, c.removed); err != nil || found {
			return cmp.Or(err, fmt.Errorf("a removed tool is still found by %q", tools[c.removed].Name))
		}
	}
	r.Changes = len(add)
	r.AddUS, r.AddP99 = percentile(add, 50), percentile(add, 99)
	r.AddSeenUS = percentile(seen, 50)
	r.ReplaceUS, r.ReplaceP99 = percentile(replace, 50), percentile(replace, 99)
	r.RemoveUS, r.RemoveP99 = percentile(remove, 50), percentile(remove, 99)
	return nil
}

// ownWord returns the word that a variant has to itself.
func ownWord(t *tool) string { return t.Name[strings.LastIndexByte(t.Name, '_')+1:] }

// percentile returns the smallest of values that p percent of them do not
// exceed, and 0 if there are none. It sorts values. 0 < p <= 100.
func percentile(values []float64, p int) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)*p+99)/100-1]
}

// summary returns the row of an engine's turns: of each figure, the median.
func summary(turns []row) row {
	r := turns[0]
	r.Rounds = len(turns)
	values := make([]float64, len(turns))
	for _, f := range figures {
		for i := range turns {
			values[i] = *f.of(&turns[i])
		}
		*f.of(&r) = percentile(values, 50)
	}
	return r
}
