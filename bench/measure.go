package main

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/search"
)

// A turn is one engine in one round. The engine is built and then runs its
// batches between those of the others. All engines exist at the same time.
type turn struct {
	*load
	engine
	row
	tools []*tool
	slow  bool                 // a query takes more than a millisecond on average
	took  map[string][]float64 // µs, by what was done
	spent time.Duration        // on changes and on checking them
}

// rounds returns the results of each round, by engine.
func (l *load) rounds(progress io.Writer) (map[string][]row, error) {
	rows := make(map[string][]row)
	for n := range l.effort.rounds {
		turns, err := l.round(n, func(phase string) {
			fmt.Fprintf(progress, "%d tools, round %d of %d: %s\n", len(l.lines), n+1, l.effort.rounds, phase)
		})
		if err != nil {
			return nil, err
		}
		for _, t := range turns {
			rows[t.row.name] = append(rows[t.row.name], t.row)
		}
	}
	return rows, nil
}

// round runs the engines batch by batch in turn, so that other load on the
// machine affects all of them. Each round draws their order, and each batch
// begins with another engine.
//
// The garbage of one engine is collected among the heaps of all. That does not
// make it dearer: the collector waits until the heap has doubled.
func (l *load) round(n int, begin func(phase string)) (turns []*turn, err error) {
	for _, i := range rand.New(rand.NewPCG(seed, uint64(n))).Perm(len(engines)) {
		turns = append(turns, &turn{
			load: l, engine: engines[i].make(), took: make(map[string][]float64),
			row: row{engines[i].name, len(l.lines), map[string]float64{"queries": float64(len(l.queries))}},
		})
	}
	order := slices.Clone(turns)
	each := func(step func(t *turn) error) {
		for _, t := range order {
			if err == nil {
				if err = step(t); err != nil {
					err = fmt.Errorf("%s, %d tools: %w", t.row.name, len(l.lines), err)
				}
			}
		}
		order = append(order[1:], order[0])
	}

	begin("build")
	held := heap()
	each(func(t *turn) error { return t.start(&held) })
	defer func() {
		for _, t := range turns {
			if t.tools != nil {
				err = cmp.Or(err, t.close())
			}
		}
	}()
	begin("queries")
	for batch := range slices.Chunk(l.queries, max(1, len(l.queries)/10)) {
		each(func(t *turn) error { return cmp.Or(t.warm(), t.ask(batch)) })
	}
	begin("queries of several goroutines")
	each((*turn).throughput)
	begin("changes")
	for batch := range slices.Chunk(l.changes, max(1, len(l.changes)/10)) {
		each(func(t *turn) error { return t.makeChanges(batch) })
	}
	for _, t := range turns {
		t.finish()
	}
	return turns, err
}

// An effort says how much to measure in one round.
type effort struct {
	rounds   int
	queries  int           // each timed once
	changes  int           // of each kind at most
	patience time.Duration // the engine then makes no more changes, except the first three
	busy     time.Duration // approximately, for one throughput measurement
}

// effortFor keeps a full run below 10 minutes on two cores. At 40,000 tools,
// the slow engines take 100 ms and more for a query and seconds to build.
func effortFor(tools int, short bool) effort {
	switch {
	case short:
		return effort{3, 60, 30, 50 * time.Millisecond, 20 * time.Millisecond}
	case tools > 10_000:
		return effort{3, 30, 200, 2 * time.Second, 50 * time.Millisecond}
	case tools > 1_000:
		return effort{5, 80, 200, time.Second, 50 * time.Millisecond}
	}
	return effort{7, 300, 200, 300 * time.Millisecond, 50 * time.Millisecond}
}

// A load is the input of all engines at one number of tools.
type load struct {
	effort
	lines   [][]byte // the tools
	bytes   int      // memory of the decoded tools
	queries []string
	changes []change
}

// A change adds one tool, replaces one and removes one. Each new tool has a
// word in its name that no other tool has.
type change struct {
	added, put, gone          *tool
	number, replaced, removed int // among these
}

func newLoad(corpora []corpus, p pool, tools int, short bool) (*load, error) {
	l := &load{effort: effortFor(tools, short)}
	var err error
	if l.lines, err = p.lines(tools); err != nil {
		return nil, err
	}
	before := heap()
	there, err := decodeAll(l.lines)
	if err != nil {
		return nil, err
	}
	l.bytes = heap() - before

	rng := rand.New(rand.NewPCG(seed, 1))
	l.queries = drawQueries(corpora, l.effort.queries, rng)
	numbers := make([]int, tools)
	for i := range numbers {
		numbers[i] = i
	}
	for i := range l.effort.changes {
		const apart = 1 << 32 // from the existing tools
		c := change{added: p.variant(apart + 2*i), put: p.variant(apart + 2*i + 1), number: tools + i}
		there, numbers = append(there, c.added), append(numbers, c.number)
		at := rng.IntN(len(there))
		c.replaced, there[at] = numbers[at], c.put
		at = rng.IntN(len(there))
		c.removed, c.gone = numbers[at], there[at]
		there, numbers = slices.Delete(there, at, at+1), slices.Delete(numbers, at, at+1)
		l.changes = append(l.changes, c)
	}
	return l, nil
}

// heap returns the bytes in use on Go's heap.
func heap() int {
	// The first collection only ages the pools; the second one frees them.
	for range 2 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// start builds the engine, lets it answer each query once, and measures what an
// answer then allocates and how much memory the engine holds. Before, *held
// bytes were in use.
func (t *turn) start(held *int) error {
	begun := time.Now()
	tools, err := decodeAll(t.lines)
	if err != nil {
		return err
	}
	decoded := time.Now()
	if err := t.build(tools); err != nil {
		return err
	}
	t.tools = tools
	if _, err := t.search(nil, t.queries[0], k); err != nil {
		return err
	}
	t.figures["build_ms"], t.figures["index_ms"] = since(begun)/1e3, since(decoded)/1e3

	if err := findsItsTools(t.engine, tools); err != nil {
		return err
	}
	// A collection would empty the pools of the engines, and each processor has
	// its own pools.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	dst := make([]search.Match, 0, k)
	for _, m := range []*runtime.MemStats{&before, &after} {
		begun = time.Now()
		for _, query := range t.queries {
			if _, err := t.search(dst, query, k); err != nil {
				return fmt.Errorf("query %q: %w", query, err)
			}
		}
		runtime.ReadMemStats(m)
	}
	t.slow = time.Since(begun) > time.Duration(len(t.queries))*time.Millisecond
	t.figures["allocs"] = float64(after.Mallocs-before.Mallocs) / float64(len(t.queries))

	now := heap()
	outside, err := t.outside()
	t.figures["bytes_per_tool"] = float64(now-*held-t.bytes+outside) / float64(len(tools))
	*held = now
	return err
}

// since returns the microseconds since begun.
func since(t time.Time) float64 { return float64(time.Since(t).Nanoseconds()) / 1e3 }

// findsItsTools checks an engine that was just built: for 20 tools, most must
// be among the answers to their names. Not all, because many tools share some
// names.
func findsItsTools(e engine, tools []*tool) error {
	found, tried := 0, min(len(tools), 20)
	for i := range tried {
		t := tools[i*len(tools)/tried]
		matches, err := e.search(nil, t.Name, k)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(matches, func(m search.Match) bool { return tools[m.Doc].Name == t.Name }) {
			found++
		}
	}
	if 2*found <= tried {
		return fmt.Errorf("of %d tools, only %d are found by their names", tried, found)
	}
	return nil
}

// warm asks queries for two milliseconds, to bring back what the other engines
// have displaced from the processor's caches. For slow engines, it makes no
// difference.
func (t *turn) warm() error {
	begun := time.Now()
	for i := 0; !t.slow && time.Since(begun) < 2*time.Millisecond; i++ {
		if _, err := t.search(nil, t.queries[i%len(t.queries)], k); err != nil {
			return err
		}
	}
	return nil
}

// ask times single queries.
func (t *turn) ask(queries []string) error {
	dst := make([]search.Match, 0, k)
	took := make([]float64, len(queries))
	for i, query := range queries {
		begun := time.Now()
		_, err := t.search(dst, query, k)
		took[i] = since(begun)
		if err != nil {
			return fmt.Errorf("query %q: %w", query, err)
		}
	}
	t.took["query"] = append(t.took["query"], took...)
	return nil
}

// throughput measures queries from several goroutines at once. Each goroutine
// asks the same queries, as many as one goroutine answers in about t.busy.
func (t *turn) throughput() error {
	mean := 0.0
	for _, took := range t.took["query"] {
		mean += took / float64(len(t.queries))
	}
	n := max(2, int(float64(t.busy.Microseconds())/mean))
	perSecond := func(goroutines int) (float64, error) {
		var all sync.WaitGroup
		errs := make([]error, goroutines)
		begun := time.Now()
		for g := range goroutines {
			all.Go(func() {
				dst := make([]search.Match, 0, k)
				for i := range n {
					if _, err := t.search(dst, t.queries[i%len(t.queries)], k); err != nil {
						errs[g] = err
					}
				}
			})
		}
		all.Wait()
		return float64(goroutines*n) * 1e6 / since(begun), cmp.Or(errs...)
	}
	one, err1 := perSecond(1)
	two, err2 := perSecond(2)
	most, err3 := two, error(nil)
	if runtime.GOMAXPROCS(0) != 2 {
		most, err3 = perSecond(runtime.GOMAXPROCS(0))
	}
	t.figures["per_s_1"], t.figures["per_s_2"], t.figures["per_s_max"] = one, two, most
	t.figures["scaling_2"], t.figures["scaling_max"] = two/one, most/one
	return cmp.Or(err1, err2, err3)
}

// makeChanges times changes, and checks outside of that time that they took
// effect.
func (t *turn) makeChanges(changes []change) error {
	begun := time.Now()
	defer func() { t.spent += time.Since(begun) }()
	for _, c := range changes {
		if len(t.took["add"]) >= 3 && t.spent+time.Since(begun) > t.patience {
			break
		}
		if err := cmp.Or(
			t.put("add", c.number, c.added, c.added),
			t.put("replace", c.replaced, c.put, c.put),
			t.put("remove", c.removed, nil, c.gone),
		); err != nil {
			return err
		}
	}
	return nil
}

// put changes a number to one tool or none, and searches for another.
func (t *turn) put(kind string, number int, to, other *tool) error {
	query := other.Name
	if to != nil {
		query = ownWord(to)
	}
	apply := t.change(number, to)
	begun := time.Now()
	err := apply()
	took := since(begun)
	if err != nil {
		return err
	}
	matches, err := t.search(nil, query, k)
	seen := since(begun)
	if err != nil {
		return err
	}
	if found := slices.ContainsFunc(matches, func(m search.Match) bool { return m.Doc == number }); found != (to != nil) {
		return fmt.Errorf("after %s of tool %d, its being found by %q is %t", kind, number, query, found)
	}
	t.took[kind], t.took[kind+" seen"] = append(t.took[kind], took), append(t.took[kind+" seen"], seen)
	return nil
}

func (t *turn) finish() {
	f := t.figures
	f["query_us_p50"], f["query_us_p99"] = percentile(t.took["query"], 50), percentile(t.took["query"], 99)
	for _, kind := range []string{"add", "replace", "remove"} {
		f[kind+"_us"], f[kind+"_us_p99"] = percentile(t.took[kind], 50), percentile(t.took[kind], 99)
	}
	f["add_seen_us"] = percentile(t.took["add seen"], 50)
	f["changes"] = float64(len(t.took["add"]))
}

// ownWord returns the word that only this variant has.
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
