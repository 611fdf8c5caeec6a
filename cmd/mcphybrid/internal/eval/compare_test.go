package eval

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// saved writes a run whose corpora have these values for recall@5, and returns its path.
func saved(t *testing.T, name string, corpora map[string][]float64) string {
	t.Helper()
	var r savedRun
	for _, corpus := range []string{"a_one", "a_two", "b", "c"} {
		c := corpusRun{Name: corpus, Five: corpora[corpus], First: make([]float64, len(corpora[corpus]))}
		for i, v := range c.Five {
			c.IDs = append(c.IDs, string(rune('0'+i)))
			c.Figures.Recall5 += v / float64(len(c.Five))
		}
		if corpus == "c" {
			c.Complete = c.Five[:min(2, len(c.Five))]
		}
		r.add(c)
	}
	data, err := json.Marshal(r)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name+".json")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func TestCompare(t *testing.T) {
	half := []float64{0, 1, 0, 1}
	base := saved(t, "base", map[string][]float64{"a_one": half, "a_two": half, "b": half, "c": half})
	// It wins by the mean of all, but only through family a.
	flattered := saved(t, "flattered", map[string][]float64{"a_one": {1, 1, 1, 1}, "a_two": {1, 1, 1, 1}, "b": {0, 0, 0, 1}, "c": half})
	better := saved(t, "better", map[string][]float64{"a_one": half, "a_two": half, "b": half, "c": {1, 1, 0, 1}})
	var out strings.Builder
	require.NoError(t, run([]string{"-compare", base, flattered, better}, &out, io.Discard, io.Discard))
	table := out.String()
	lines := func(name string) string {
		for line := range strings.Lines(table) {
			if strings.HasPrefix(line, name) {
				return strings.Join(strings.Fields(line), " ")
			}
		}
		return "no line " + name
	}
	assert.Equal(t, "b 50.0 -25.0 (-75.0 to +0.0) +0.0 ( +0.0 to +0.0)", lines("b "))
	assert.Contains(t, lines("mean of 4"), "mean of 4 50.0 +18.8 (")
	assert.Contains(t, lines("mean of 4"), " +6.2 ( +0.0 to +18.8)")
	assert.Equal(t, "complete@5 50.0 +0.0 ( +0.0 to +0.0) +50.0 ( +0.0 to +100.0)", lines("  complete@5"), "of c alone")
	assert.Equal(t, "without a the best is better", lines("without a"))
	assert.Equal(t, "without b the best is flattered", lines("without b"))
	// Of its own family nothing: a gains 0, b loses 25, c gains 0.
	assert.Contains(t, lines("chosen without"), "chosen without 50.0 -6.2 (")

	again := new(strings.Builder)
	require.NoError(t, run([]string{"-compare", base, flattered, better}, again, io.Discard, io.Discard))
	assert.Equal(t, table, again.String())
}

// Runs are compared that have the same corpora, by name and number.
func TestCompareRefusesOtherCorpora(t *testing.T) {
	one := []float64{1}
	base := saved(t, "base", map[string][]float64{"a_one": one, "a_two": one, "b": one, "c": one})
	for name, change := range map[string]func([]corpusRun) []corpusRun{
		"fewer": func(c []corpusRun) []corpusRun { return c[:3] },
		"more":  func(c []corpusRun) []corpusRun { return append(c, c[3]) },
		"other": func(c []corpusRun) []corpusRun { c[3].Name = "d"; return c },
	} {
		var r savedRun
		data, err := os.ReadFile(base)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &r))
		r.Corpora = change(r.Corpora)
		data, err = json.Marshal(r)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), name+".json")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		for _, files := range [][]string{{base, path}, {path, base}} {
			assert.ErrorContains(t, run(append([]string{"-compare"}, files...), io.Discard, io.Discard, io.Discard), "has other queries than in "+files[0], name)
		}
	}
}

func TestCompareRefuses(t *testing.T) {
	base := saved(t, "base", map[string][]float64{"a_one": {1}, "a_two": {1}, "b": {1}, "c": {1}})
	other := saved(t, "other", map[string][]float64{"a_one": {1}, "a_two": {1}, "b": {1, 0}, "c": {1}})
	empty := filepath.Join(t.TempDir(), "empty.json")
	require.NoError(t, os.WriteFile(empty, []byte("{}"), 0o600))
	for want, args := range map[string][]string{
		"at least two saved runs":                {"-compare", base},
		"corpus b has other queries than in":     {"-compare", base, other},
		"empty.json: no corpora in it":           {"-compare", base, empty},
		"nowhere.json: no such file":             {"-compare", base, "nowhere.json"},
		"-save has no effect with -tools":        {"-save", "x", "-tools", "x", "-queries", "y"},
		"-queries has no effect with -corpora":   {"-tools", "x", "-queries", "y", "-corpora", "z"},
		"nowhere: no sub-folder has queries.jso": {"-corpora", "nowhere"},
		"-context is 9, must be 0 to 3":          {"-corpora", "x", "-context", "9"},
		"-sessions needs -half":                  {"-corpora", "x", "-sessions", "5"},
		`-half is "seen", must be "chosen"`:      {"-corpora", "x", "-half", "seen"},
	} {
		err := run(args, io.Discard, io.Discard, io.Discard)
		if want == "nowhere.json: no such file" {
			want = "open nowhere.json"
		}
		assert.ErrorContains(t, err, want)
	}
}

func TestCorpora(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		queries := oneQuery + `{"id": "r", "query": "sky red", "relevant": ["1", "3"]}` + "\n" + `{"id": "n", "query": "красный", "relevant": []}` + "\n"
		if name == "two" {
			queries = oneQuery
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "tools.jsonl"), []byte(someTools), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "queries.jsonl"), []byte(queries), 0o600))
	}
	file := filepath.Join(dir, "run.json")
	var out strings.Builder
	require.NoError(t, run([]string{"-corpora", dir, "-save", file}, &out, io.Discard, io.Discard))
	assert.Contains(t, out.String(), "mean, of 2")
	assert.Contains(t, out.String(), "mean, English, of 1")
	var r savedRun
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &r))
	require.Len(t, r.Corpora, 2)
	assert.Equal(t, "one", r.Corpora[0].Name)
	assert.Equal(t, []string{"q", "r"}, r.Corpora[0].IDs)
	assert.Equal(t, []float64{1, 1}, r.Corpora[0].Five)
	assert.Equal(t, []float64{1, 0.5}, r.Corpora[0].First)
	assert.Equal(t, []float64{1}, r.Corpora[0].Complete, "of the query with two tools")
	assert.Nil(t, r.Corpora[1].Complete)
	assert.Contains(t, out.String(), "100.0 of 1\n")
	assert.Equal(t, meanFigures{2, 0.875, 1}, r.Mean)

	out.Reset()
	require.NoError(t, run([]string{"-corpora", dir, "-json"}, &out, io.Discard, io.Discard))
	assert.True(t, json.Valid([]byte(out.String())))
}

// A folder of answers to tools/list is read like a file of tools.
func TestToolsFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.json"), []byte(`{"server": "paint", "tools": [{"name": "red", "title": "Crimson"}, {"name": "blue", "inputSchema": {"type": "object"}}]}`), 0o600))
	queries := filepath.Join(dir, "q.jsonl")
	require.NoError(t, os.WriteFile(queries, []byte(`{"id": "q", "query": "crimson", "relevant": ["paint/red"]}`), 0o600))
	f, _ := eval(t, "-tools", dir, "-queries", queries, "-json")
	assert.Equal(t, 2, f.Tools)
	assert.Equal(t, 1.0, f.Hit1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.json"), []byte(`{"server": "paint", "tools": [{"name": "red"}]}`), 0o600))
	assert.ErrorContains(t, run([]string{"-tools", dir, "-queries", queries}, io.Discard, io.Discard, io.Discard), `b.json: tool 1: server "paint" has the tool "red"`)
	assert.ErrorContains(t, run([]string{"-tools", t.TempDir(), "-queries", queries}, io.Discard, io.Discard, io.Discard), "no tools in it")
	for name, want := range map[string]string{"not JSON": "c.json: unexpected end of JSON input", "a folder": "c.json: is a directory"} {
		dir := t.TempDir()
		if name == "a folder" {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "c.json"), 0o700))
		} else {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "c.json"), []byte("{"), 0o600))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "d.json"), []byte(`{"server": "paint", "tools": [{"name": "red"}]}`), 0o600))
		assert.ErrorContains(t, run([]string{"-tools", dir, "-queries", queries}, io.Discard, io.Discard, io.Discard), want, name)
	}
}
