package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/search"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ownCorpus = "../testdata/corpus"

func testLoad(t *testing.T, tools int) *load {
	t.Helper()
	corpora, err := readCorpora(ownCorpus)
	require.NoError(t, err)
	l, err := newLoad(corpora, newPool(corpora), tools, true)
	require.NoError(t, err)
	return l
}

// TestEngines runs one round with all engines. A round checks that tools are
// found by their names and that each change takes effect.
func TestEngines(t *testing.T) {
	l := testLoad(t, 400)
	turns, err := l.round(0, func(string) {})
	require.NoError(t, err)
	require.Len(t, turns, len(engines))
	for _, turn := range turns {
		figures := turn.figures
		assert.Equal(t, 400, turn.size)
		assert.GreaterOrEqual(t, figures["changes"], 3.0)
		for key, value := range figures {
			if key != "allocs" {
				assert.Positive(t, value, "%s, %s", turn.name, key)
			}
		}
		assert.GreaterOrEqual(t, figures["query_us_p99"], figures["query_us_p50"])
		assert.GreaterOrEqual(t, figures["build_ms"], figures["index_ms"])
		if slices.Contains(named(own), turn.name) && !raceDetector() {
			assert.Less(t, figures["allocs"], 0.1, turn.name)
		}
	}
}

// raceDetector reports whether the race detector is on, which allocates.
func raceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// A spy reports each call.
type spy struct {
	scan
	asked func()
}

func (e *spy) search(dst []search.Match, query string, k int) ([]search.Match, error) {
	e.asked()
	return e.scan.search(dst, query, k)
}

// TestTurns checks that the engines take turns ten times in a round, and that
// the first engine is the last one in the next turn.
func TestTurns(t *testing.T) {
	defer func(all []entrant) { engines = all }(engines)
	engines = nil
	var now, order string
	for _, name := range []string{"a", "b", "c"} {
		engines = append(engines, entrant{name: name, make: func() engine {
			return &spy{asked: func() {
				if now == "queries" && !strings.HasSuffix(order, name) {
					order += name
				}
			}}
		}})
	}
	_, err := testLoad(t, 40).round(0, func(phase string) { now = phase })
	require.NoError(t, err)
	require.Len(t, order, 30)
	for i := 0; i+6 <= len(order); i += 3 {
		assert.Equal(t, order[i+1:i+3]+order[i:i+1], order[i+3:i+6])
	}
}

// TestScanIsClassic compares two implementations of one formula, before and
// after changes.
func TestScanIsClassic(t *testing.T) {
	l := testLoad(t, 400)
	tools, err := decodeAll(l.lines)
	require.NoError(t, err)
	scan, classic := &scan{}, newClassic()
	same := func() {
		t.Helper()
		for _, query := range l.queries {
			got, err := scan.search(nil, query, k)
			require.NoError(t, err)
			want, err := classic.search(nil, query, k)
			require.NoError(t, err)
			require.Equal(t, len(want), len(got), query)
			for i := range want {
				require.Equal(t, want[i].Doc, got[i].Doc, query)
				require.InDelta(t, want[i].Score, got[i].Score, 1e-9, query)
			}
		}
	}
	for _, e := range []engine{scan, classic} {
		require.NoError(t, e.build(tools))
	}
	same()
	for _, e := range []engine{scan, classic} {
		for _, c := range l.changes {
			require.NoError(t, e.change(c.number, c.added)())
			require.NoError(t, e.change(c.replaced, c.put)())
			require.NoError(t, e.change(c.removed, nil)())
		}
	}
	same()
}

func TestPoolIsDeterministic(t *testing.T) {
	corpora, err := readCorpora(ownCorpus)
	require.NoError(t, err)
	lines := func(n int) [][]byte {
		lines, err := newPool(corpora).lines(n)
		require.NoError(t, err)
		require.Len(t, lines, n)
		return lines
	}
	long := lines(3000)
	assert.Equal(t, long, lines(3000))
	assert.Equal(t, long[:1000], lines(1000), "a shorter list is the beginning of a longer one")

	draw := func() []string { return drawQueries(corpora, 500, rand.New(rand.NewPCG(seed, 1))) }
	assert.Equal(t, draw(), draw())
}

// TestVariants checks that lists longer than the pool get new words all the
// time and still hold valid tools.
func TestVariants(t *testing.T) {
	l := testLoad(t, 4000)
	tools, err := decodeAll(l.lines)
	require.NoError(t, err)
	vocabulary := func(tools []*tool) int {
		known := make(map[string]bool)
		for _, t := range tools {
			for _, term := range terms(t.Description) {
				known[term] = true
			}
		}
		return len(known)
	}
	pooled, half, all := vocabulary(tools[:308]), vocabulary(tools[:2000]), vocabulary(tools)
	t.Logf("distinct terms: %d, %d, %d", pooled, half, all)
	assert.Greater(t, half, pooled*5/4)
	assert.Greater(t, all, half*5/4)

	ids := make(map[string]bool)
	for _, tool := range tools {
		ids[tool.ID] = true
		assert.NotEmpty(t, tool.Name)
		if len(tool.InputSchema) > 0 {
			names, _ := parameters(tool.InputSchema)
			before, _ := parameters(tools[slices.Index(tools, tool)%308].InputSchema)
			assert.True(t, json.Valid(tool.InputSchema))
			assert.Equal(t, before, names, "parameters keep their names")
		}
	}
	assert.Len(t, ids, 4000)
}

func TestPercentile(t *testing.T) {
	for _, test := range []struct {
		values []float64
		p      int
		want   float64
	}{
		{nil, 50, 0},
		{[]float64{7}, 50, 7},
		{[]float64{7}, 99, 7},
		{[]float64{3, 1, 2}, 50, 2},
		{[]float64{4, 3, 1, 2}, 50, 2},
		{[]float64{4, 3, 1, 2}, 99, 4},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 90, 9},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 100, 10},
	} {
		assert.Equal(t, test.want, percentile(slices.Clone(test.values), test.p), "%v, %d", test.values, test.p)
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.01234: "0.0123", 0.5: "0.500", 1.234: "1.23", 12.34: "12.3", 123.4: "123",
		999.9: "1,000", 1234.5: "1,234", 1234567: "1,234,567", 40: "40", -1234: "-1,234",
	} {
		assert.Equal(t, want, number(x), "%v", x)
	}
}

func TestWords(t *testing.T) {
	assert.Equal(t, "create Issue v2 get URL", words("createIssue_v2 getURL"))
	plain, best := &fts5{}, &fts5{tuned: true}
	assert.Equal(t, `"the" OR "create" OR "issue" OR "create" OR "issue"`, plain.expression("the createIssue, create_issue"))
	assert.Equal(t, `"create" OR "issue"`, best.expression("the createIssue, create_issue"))
	assert.Equal(t, `"天气api"`, plain.expression("天气API"))
	assert.Equal(t, `"天" OR "气" OR "api"`, best.expression("天气API"))
	assert.Empty(t, best.expression("the"))
	names, descriptions := parameters(json.RawMessage(
		`{"properties": {"b": {"items": {"properties": {"c": {"description": "inner"}}}}, "a": {"description": "outer"}}}`))
	assert.Equal(t, "a b c", names)
	assert.Equal(t, "outer inner", descriptions)
}

// TestRun checks all output files, and the names in the JSON that other
// programs read.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	require.NoError(t, run([]string{
		"-short", "-sizes", "20,30", "-json", filepath.Join(dir, "r.json"),
		"-svg", filepath.Join(dir, "plots"), "-markdown", filepath.Join(dir, "page", "B.md"),
	}, &out, io.Discard))
	assert.Contains(t, out.String(), "30 tools:")

	data, err := os.ReadFile(filepath.Join(dir, "r.json"))
	require.NoError(t, err)
	var res struct {
		Machine map[string]any
		Rows    []map[string]any
	}
	require.NoError(t, json.Unmarshal(data, &res))
	assert.NotEmpty(t, res.Machine["cpu"])
	require.Len(t, res.Rows, 2*len(engines))
	for i, r := range res.Rows {
		assert.Equal(t, engines[i%len(engines)].name, r["engine"])
		for _, key := range []string{"tools", "build_ms", "add_us", "remove_us", "query_us_p50", "query_us_p99", "allocs", "bytes_per_tool", "recall@5"} {
			assert.IsType(t, 0.0, r[key], key)
		}
		for _, f := range figures {
			assert.Contains(t, r, f.key)
		}
	}

	page, err := os.ReadFile(filepath.Join(dir, "page", "B.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), "(../plots/quality.svg)")
	for _, name := range []string{"quality.svg", "cost.svg"} {
		svg, err := os.ReadFile(filepath.Join(dir, "plots", name))
		require.NoError(t, err)
		assert.NoError(t, xml.Unmarshal(svg, new(struct{})), name)
		assert.NotContains(t, string(svg), "NaN")
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-sizes", "40,x"}, `"x" in -sizes`},
		{[]string{"-corpus", t.TempDir()}, "no tools.jsonl"},
		{[]string{"more"}, `unexpected argument "more"`},
	} {
		assert.ErrorContains(t, run(test.args, io.Discard, io.Discard), test.want)
	}
}

func TestCatalog(t *testing.T) {
	dir := t.TempDir()
	queries := filepath.Join(dir, "q.jsonl")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.json"), []byte(`{"server":"s","tools":[{"name":"red","description":"Paints the wall"},{"name":"blue","description":"Paints the roof"}]}`), 0o600))
	require.NoError(t, os.WriteFile(queries, []byte(`{"query":"wall","relevant":["s/red"]}
{"query":"roof roof paint wall","relevant":["s/blue","s/red"]}
{"query":"nothing","relevant":[]}`), 0o600))
	c, err := readCatalog(dir, queries)
	require.NoError(t, err)
	first, among, err := hits(engines[0].make(), c)
	require.NoError(t, err)
	assert.Equal(t, [2]float64{1, 1}, [2]float64{first, among})
	c.queries[0].Relevant = []string{"s/blue"}
	first, among, err = hits(engines[0].make(), c)
	require.NoError(t, err)
	assert.Equal(t, [2]float64{0.5, 0.5}, [2]float64{first, among})
	var out strings.Builder
	require.NoError(t, run([]string{"-catalog", dir, "-queries", queries}, &out, io.Discard))
	assert.Contains(t, out.String(), "| default | 100.0 | 100.0 |")
	assert.ErrorContains(t, run([]string{"-catalog", dir}, io.Discard, io.Discard), "go together")
	assert.ErrorContains(t, run([]string{"-catalog", t.TempDir(), "-queries", queries}, io.Discard, io.Discard), "no tools or no queries")
}
