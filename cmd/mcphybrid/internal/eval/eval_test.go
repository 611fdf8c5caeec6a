package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// files writes a corpus and returns the arguments for it.
func files(t *testing.T, tools, queries string) []string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"-ranker", "classic", "-tools", filepath.Join(dir, "t.jsonl"), "-queries", filepath.Join(dir, "q.jsonl")}
	require.NoError(t, os.WriteFile(args[3], []byte(tools), 0o600))
	require.NoError(t, os.WriteFile(args[5], []byte(queries), 0o600))
	return args
}

// run is what the command does with all forms but that of running servers.
func run(args []string, stdout, term, errs io.Writer) error {
	var s settings
	rest, err := s.parse(args, errs)
	if err != nil {
		return err
	}
	return s.run(rest, stdout, term)
}

func eval(t *testing.T, args ...string) (figures, string) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, run(args, &out, io.Discard, io.Discard))
	var f figures
	_ = json.Unmarshal(out.Bytes(), &f) // the table is not read
	return f, out.String()
}

// Each of two tools is found by one word: "red" finds red, "red blue" finds
// both.
const (
	someTools = `{"id": "1", "server": "", "name": "red", "description": "", "input_schema": null}
{"id": "2", "server": "", "name": "blue"}

{"id": "3", "server": "other", "name": "blue", "description": "sky", "input_schema": {"type": "object"}, "more": 1}
`
	oneQuery = `{"id": "q", "query": "red", "relevant": ["1"]}` + "\n"
)

func TestFigures(t *testing.T) {
	ids := func(s string) []string { return strings.Fields(s) }
	log2 := math.Log2
	for _, test := range []struct {
		name, relevant, answer string
		want                   figures
	}{
		{"first", "a", "a b c", figures{Hit1: 1, Hit5: 1, Recall1: 1, Recall5: 1, Recall10: 1, MRR10: 1, NDCG10: 1, Complete5: 1}},
		{"third", "c", "a b c", figures{Hit5: 1, Recall5: 1, Recall10: 1, MRR10: 1. / 3, NDCG10: 0.5, Complete5: 1}}, // log2(4) is 2
		{"seventh", "g", "a b c d e f g", figures{Recall10: 1, MRR10: 1. / 7, NDCG10: 1. / 3}},                       // log2(8) is 3
		{"missing", "z", "a b c", figures{}},
		{"nothing found", "z", "", figures{}},
		{"two, all found", "b d", "a b c d", figures{
			Hit5: 1, Recall5: 1, Recall10: 1, MRR10: 0.5, Complete5: 1,
			NDCG10: (1/log2(3) + 1/log2(5)) / (1 + 1/log2(3)),
		}},
		{"two, the best first", "d a", "a d", figures{Hit1: 1, Hit5: 1, Recall1: 0.5, Recall5: 1, Recall10: 1, MRR10: 1, NDCG10: 1, Complete5: 1}},
		{"three, one missing, one late", "a f z", "a b c d e f", figures{
			Hit1: 1, Hit5: 1, Recall1: 1. / 3, Recall5: 1. / 3, Recall10: 2. / 3, MRR10: 1,
			NDCG10: (1 + 1/log2(7)) / (1 + 1/log2(3) + 0.5),
		}},
		{"more than ten", "a b c d e f g h i j k l", "a b c d e f g h i j", figures{
			Hit1: 1, Hit5: 1, Recall1: 1. / 12, Recall5: 5. / 12, Recall10: 10. / 12, MRR10: 1, NDCG10: 1,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, missed := newFigures([]query{{Relevant: ids(test.relevant)}}, [][]string{ids(test.answer)})
			assert.Equal(t, test.want.Recall5 < 1, len(missed) == 1)
			test.want.Queries = 1
			for _, pair := range [][2]float64{
				{test.want.MRR10, got.MRR10}, {test.want.NDCG10, got.NDCG10},
			} {
				assert.InDelta(t, pair[0], pair[1], 1e-12)
			}
			test.want.MRR10, test.want.NDCG10 = got.MRR10, got.NDCG10
			assert.Equal(t, test.want, got)
		})
	}
}

func TestFiguresAreMeans(t *testing.T) {
	queries := []query{
		{Relevant: []string{"a"}}, {Relevant: []string{"b"}}, {Relevant: []string{"a", "c"}}, {Relevant: []string{"z"}},
		{Relevant: []string{}}, {Relevant: []string{}}, {Relevant: []string{}},
	}
	answers := [][]string{{"a"}, {"a", "b"}, {"c", "b"}, nil, {"a"}, nil, {}}
	got, missed := newFigures(queries, answers)
	assert.Equal(t, []int{2, 3}, missed)
	assert.Equal(t, figures{
		Queries: 7, Unanswerable: 3, Rejected: 2. / 3,
		Hit1: 2. / 4, Hit5: 3. / 4, Recall1: 1.5 / 4, Recall5: 2.5 / 4, Recall10: 2.5 / 4, Complete5: 2. / 4,
		MRR10:  (1 + 0.5 + 1) / 4,
		NDCG10: (1 + 1/math.Log2(3) + 1/(1+1/math.Log2(3)) + 0) / 4,
	}, got)

	got, missed = newFigures(queries[4:], answers[4:])
	assert.Empty(t, missed)
	assert.Equal(t, figures{Queries: 3, Unanswerable: 3, Rejected: 2. / 3}, got)
}

func TestPercentile(t *testing.T) {
	var times []time.Duration
	for i := range 200 {
		times = append(times, time.Duration(i+1)*time.Microsecond)
	}
	assert.Equal(t, 100.0, percentile(times, 50))
	assert.Equal(t, 198.0, percentile(times, 99))
	assert.Equal(t, 1.5, percentile([]time.Duration{1500}, 99))
}

func TestEval(t *testing.T) {
	queries := oneQuery + `{"id": "r", "query": "sky", "relevant": ["3", "1"]}
{"id": "s", "query": "blue", "relevant": ["2", "3"]}
{"id": "t", "query": "grey", "relevant": []}
{"id": "u", "query": "green", "relevant": ["2"]}`
	args := files(t, someTools, queries)
	f, _ := eval(t, append(args, "-json")...)
	assert.Equal(t, "classic 3 5", fmt.Sprint(f.Ranker, " ", f.Tools, f.Queries))
	assert.Equal(t, []float64{2. / 4, 2.5 / 4, 2.5 / 4, 3. / 4, 2. / 4},
		[]float64{f.Recall1, f.Recall5, f.Recall10, f.MRR10, f.Complete5})
	assert.Equal(t, "1 1", fmt.Sprint(f.Unanswerable, f.Rejected))
	assert.Positive(t, f.BuildMS)
	assert.Positive(t, f.QueryUSP50)
	assert.GreaterOrEqual(t, f.QueryUSP99, f.QueryUSP50)

	_, table := eval(t, args...)
	assert.Contains(t, table, "classic: 3 tools, 5 queries\n\nrecall@1     50.0 %\nrecall@5     62.5 %\n")
	assert.Contains(t, table, "rejected    100.0 % of 1 that no tool answers\n")
	assert.NotContains(t, table, "relevant:")

	_, table = eval(t, append(args, "-misses", "9")...)
	assert.True(t, strings.HasSuffix(table, `
r: sky
  relevant: 3, rank 1
  relevant: 1, not found
  found: 3

u: green
  relevant: 2, not found
  found: 
`), table)
	_, table = eval(t, append(args, "-misses", "1")...)
	assert.Contains(t, table, "r: sky")
	assert.NotContains(t, table, "u: green")
	_, table = eval(t, append(args, "-misses", "9", "-context", "1")...)
	assert.Contains(t, table, inContext("green", 1), "what was asked is shown")
}

// Each figure has a line of its own.
func TestTableOfFigures(t *testing.T) {
	f := figures{Ranker: "classic", Tools: 3, Queries: 5, Unanswerable: 1, Hit1: 0.01, Hit5: 0.02, Recall1: 0.03, Recall5: 0.04, Recall10: 0.05, MRR10: 0.06, NDCG10: 0.07, Complete5: 1, Rejected: 0.09, BuildMS: 10, QueryUSP50: 11, QueryUSP99: 12}
	assert.Equal(t, `classic: 3 tools, 5 queries

recall@1      3.0 %
recall@5      4.0 %
recall@10     5.0 %
mrr@10        6.0 %
ndcg@10       7.0 %
complete@5  100.0 %
hit@1         1.0 %
hit@5         2.0 %
rejected      9.0 % of 1 that no tool answers

build 10.0 ms, search 11.0 µs (p50), 12.0 µs (p99)
`, f.table())
}

// A tool without a server is found only by its own words. Long lines are read.
func TestUnusualTools(t *testing.T) {
	long := fmt.Sprintf(`{"id": "9", "server": "-", "name": "long", "input_schema": {"type": "object", "title": "%s"}}`, strings.Repeat("word ", 1<<18))
	args := files(t, someTools+long, oneQuery+`{"id": "long", "query": "long", "relevant": ["9"]}
{"id": "none", "query": "- server unnamed default null object", "relevant": []}`)
	f, _ := eval(t, append(args, "-json")...)
	assert.Equal(t, 1.0, f.Recall1)
	assert.Equal(t, 1.0, f.Rejected)
}

func TestRefusals(t *testing.T) {
	good := strings.SplitAfter(someTools, "\n")[0]
	for _, test := range []struct{ name, tools, queries, want string }{
		{"no tools", "\n", oneQuery, "t.jsonl: the file is empty"},
		{"no queries", good, "", "q.jsonl: the file is empty"},
		{"not JSON", good + "\n{", oneQuery, "t.jsonl:3: unexpected end of JSON input"},
		{"two on a line", good, `{"id": "q"} {"id": "r"}`, "q.jsonl:1: invalid character '{' after top-level value"},
		{"wrong type", `{"id": "1", "name": 7}`, oneQuery, `t.jsonl:1: "name" is a JSON number, want a string`},
		{"no id", good + `{"name": "x"}`, oneQuery, `t.jsonl:2: the id "" is empty`},
		{"no name", good + `{"id": "2"}`, oneQuery, `t.jsonl:2: "name" is missing`},
		{"an id twice", good + `{"id": "1", "name": "x"}`, oneQuery, `t.jsonl:2: the id "1" is empty or that of another line`},
		{"a tool twice", good + `{"id": "2", "name": "red"}`, oneQuery, `t.jsonl:2: server "-" has the tool "red" on line 1 already`},
		{"a schema that is none", good + `{"id": "2", "name": "x", "input_schema": []}`, oneQuery, `t.jsonl:2: "input_schema" is neither`},
		{"no query", good, `{"id": "q", "relevant": []}`, `q.jsonl:1: "query" or "relevant" is missing`},
		{"no labels", good, `{"id": "q", "query": "x"}`, `q.jsonl:1: "query" or "relevant" is missing`},
		{"an unknown label", good, oneQuery + `{"id": "r", "query": "x", "relevant": ["1", "nope"]}`, `q.jsonl:2: there is no tool with the relevant id "nope"`},
		{"a label twice", good, `{"id": "q", "query": "x", "relevant": ["1", "1"]}`, `q.jsonl:1: the relevant id "1" is there twice`},
		{"a query twice", good, oneQuery + oneQuery, `q.jsonl:2: the id "q" is`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			assert.ErrorContains(t, run(files(t, test.tools, test.queries), &out, io.Discard, io.Discard), test.want)
			assert.Empty(t, out.String())
		})
	}
	small := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(small, "corpus"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(small, "corpus", "tools.jsonl"), []byte(good), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(small, "corpus", "queries.jsonl"), []byte(oneQuery), 0o600))
	for want, args := range map[string][]string{
		"-queries is needed, with -config or -tools, or -corpora": {"-tools", "x"},
		"no other arguments":          append(files(t, good, oneQuery), "more"),
		"is a directory":              {"-corpora", small, "-save", small},
		"nowhere.jsonl: no such file": {"-tools", "nowhere.jsonl", "-queries", "nowhere.jsonl"},
		`there is no ranker "magic"; there are default, lexical, classic`: append(files(t, good, oneQuery), "-ranker", "magic"),
	} {
		assert.ErrorContains(t, run(args, &bytes.Buffer{}, io.Discard, io.Discard), want)
	}
}

const ours = "../../../../testdata/corpus/"

// TestCorpus runs over our own corpus. Its figures depend on the ranker, so it
// checks only what must hold for any ranker.
func TestCorpus(t *testing.T) {
	_, out := eval(t, "-tools", ours+"tools.jsonl", "-queries", ours+"queries.jsonl", "-ranker", "classic", "-json")
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	number := func(name string) float64 {
		v, ok := got[name].(float64)
		assert.True(t, ok, name)
		delete(got, name)
		return v
	}
	for _, name := range []string{"hit@1", "hit@5", "recall@1", "recall@5", "recall@10", "mrr@10", "ndcg@10", "complete@5"} {
		v := number(name)
		assert.True(t, v > 0 && v < 1, "%s is %v", name, v)
	}
	rejected := number("rejected")
	assert.True(t, rejected >= 0 && rejected <= 1)
	assert.Greater(t, number("tools"), 200.0)
	assert.Greater(t, number("queries"), 200.0)
	assert.Greater(t, number("unanswerable"), 20.0)
	for _, name := range []string{"build_ms", "query_us_p50", "query_us_p99"} {
		assert.Positive(t, number(name))
	}
	assert.Equal(t, map[string]any{"ranker": "classic"}, got, "no other fields")
}

// TestCorpusIsSound checks what the command does not require of every corpus.
func TestCorpusIsSound(t *testing.T) {
	tools, queries, err := readCorpus(ours+"tools.jsonl", ours+"queries.jsonl")
	require.NoError(t, err)
	for _, tool := range tools {
		assert.Equal(t, tool.Server+"/"+tool.Name, tool.ID)
		assert.NotEmpty(t, tool.Description, tool.ID)
		var schema struct {
			Type       string
			Properties map[string]any
			Required   []string
		}
		require.NoError(t, json.Unmarshal(tool.InputSchema, &schema), tool.ID)
		assert.Equal(t, "object", schema.Type, tool.ID)
		for _, name := range schema.Required {
			assert.Contains(t, schema.Properties, name, tool.ID)
		}
	}
	seen := make(map[string]string)
	for _, q := range queries {
		assert.Empty(t, seen[q.Query], "%s asks the same", q.ID)
		seen[q.Query] = q.ID
		assert.Equal(t, strings.HasPrefix(q.ID, "none-"), len(q.Relevant) == 0, q.ID)
	}
}
