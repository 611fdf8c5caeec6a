package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/findability"
	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What each flag sets, and which flags don't go together.
func TestFlags(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What each command line sets, or why it is refused.\n")
	for _, line := range []string{
		"-queries q", "-queries q -config c -least 1 -hints h -suggest s -json -slips -context 3 -ranker lexical", "-queries q -tools t -ranker hybrid -ollama u -openai v -model m -random 4 -alpha 0.5 -misses 2 -sentences framed -half chosen -sessions 3",
		"-corpora d -save s -sentences joined -half aside", "-compare a b", "-compare a", "-compare", "", "-queries q more", "-tools t", "-config c", "-corpora d more", "-corpora d -queries q", "-compare -queries q a b", "-corpora d -tools t", "-compare -corpora d a b",
		"-queries q -ranker magic", "-queries q -ranker hybrid", "-queries q -context -1", "-queries q -context 4", "-queries q -context 0", "-queries q -least -0.1", "-queries q -least 1.1", "-queries q -least NaN", "-queries q -least 0",
		"-queries q -tools t -sentences both", "-queries q -tools t -half both", "-queries q -tools t -sessions 1", "-queries q -tools t -half aside -sessions -1", "-queries q -tools t -half aside -sessions 0", "-queries q -x", "-queries q -context x",
	} {
		var s settings
		rest, err := s.parse(strings.Fields(line), io.Discard)
		if err != nil {
			fmt.Fprintf(&b, "\n%s\n  %v\n", line, err)
			continue
		}
		fmt.Fprintf(&b, "\n%s\n  form %s, tools %q, queries %q, corpora %q, rest %q\n", line, s.form, s.tools, s.queriesFile, s.corpora, rest)
		fmt.Fprintf(&b, "  ranker %s %+v, alpha %v, slips %v, context %d, sentences %q, half %q, sessions %d\n", s.ranker, s.service, s.alpha, s.slips, s.context, s.sentences, s.half, s.sessions)
		fmt.Fprintf(&b, "  json %v, compare %v, misses %d, save %q, config %q, least %v, hints %q, suggest %q\n", s.asJSON, s.compare, s.misses, s.save, s.servers.Path, s.least, s.hints, s.suggest)
	}
	b.WriteString("\nWhich flags have an effect in which form:\n")
	forms := map[form]string{ofServers: "-queries q", ofTools: "-queries q -tools t", ofCorpora: "-corpora d", ofRuns: "-compare a b"}
	for _, name := range []string{"alpha", "compare", "config", "context", "corpora", "dialect", "half", "hints", "json", "least", "misses", "model", "ollama", "openai", "queries", "random", "ranker", "save", "sentences", "sessions", "slips", "suggest", "tokens", "tools"} {
		fmt.Fprintf(&b, "%s:", name)
		for _, in := range []form{ofServers, ofTools, ofCorpora, ofRuns} {
			value := map[string]string{"alpha": "1", "context": "1", "least": "1", "misses": "1", "random": "1", "sessions": "1", "half": "aside", "sentences": "joined"}[name]
			if value == "" {
				value = "default"
			}
			if name == "json" || name == "slips" || name == "compare" {
				value = "true"
			}
			_, err := new(settings).parse(append([]string{"-" + name + "=" + value}, strings.Fields(forms[in])...), io.Discard)
			switch {
			case err == nil:
				fmt.Fprintf(&b, " %s", in)
			case strings.Contains(err.Error(), "has no effect"):
			default:
				fmt.Fprintf(&b, " %s (%v)", in, err)
			}
		}
		b.WriteByte('\n')
	}
	var help bytes.Buffer
	_, _ = new(settings).parse([]string{"-h"}, &help)
	b.WriteString("\n" + help.String())
	golden.Compare(t, "flags.golden", b.String())
}

// How queries are changed before they are asked.
func TestChangedQueries(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("How queries are misspelled, framed, joined, and taken in halves.\n\n")
	for _, q := range []string{"", "short words only", "delete the calendar", "summarize yesterday's important messages quickly please", "löschen Kalender", "abcdef abcdef abcdef abcdef abcdef abcdef abcdef"} {
		for seed := range uint64(8) {
			fmt.Fprintf(&b, "%d %q\n", seed, misspelled(q, seed))
		}
	}
	for _, text := range []string{"", " ", "a", "a.", "a?", "a!", "a。", "a？", "a！", " a b \n", "a. "} {
		fmt.Fprintf(&b, "sentence %q: %q\n", text, sentence(text))
	}
	queries := []query{{ID: "1", Query: "one", Relevant: []string{"a"}}, {ID: "2", Query: "two", Relevant: []string{"a"}}, {ID: "3", Query: "three", Relevant: []string{"a", "b"}}, {ID: "4", Query: "four", Relevant: []string{}}, {ID: "5", Query: "five", Relevant: []string{}},
		{ID: "6", Query: "six", Relevant: []string{"a", "b"}}, {ID: "7", Query: "one", Relevant: []string{"a"}}, {ID: "8", Query: "eight", Relevant: []string{"b", "a"}}}
	for _, kind := range []string{"", framed, joined} {
		for _, q := range inSentences(queries, kind) {
			fmt.Fprintf(&b, "%s %s: %s %q\n", kind, q.ID, q.Query, q.Relevant)
		}
	}
	for _, half := range []string{"", chosenHalf, asideHalf, otherHalf(chosenHalf), otherHalf(asideHalf), otherHalf("")} {
		fmt.Fprintf(&b, "half %q:", half)
		for _, q := range inHalf(queries, half) {
			b.WriteString(" " + q.ID)
		}
		b.WriteByte('\n')
	}
	for n := range len(paragraphs) + 1 {
		q := inContext("do it", n)
		fmt.Fprintf(&b, "%d paragraphs: %d bytes, %d empty lines, %d line breaks, ends in %q\n", n, len(q), strings.Count(q, "\n\n"), strings.Count(q, "\n"), q[max(0, len(q)-20):])
	}
	s := settings{slips: true, context: 1}
	s.alter(queries)
	fmt.Fprintf(&b, "altered: %s\n", queries[5].Query)
	golden.Compare(t, "queries.golden", b.String())
}

// The tables of runs that are compared, and of corpora.
func TestTables(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("The tables of runs that are compared, and of corpora, from figures that are given.\n\n")
	run := func(shift float64) savedRun {
		r := savedRun{Ranker: fmt.Sprint("r", shift)}
		for i, name := range []string{"a_one", "a_two", "b", "c_x", "empty"} {
			c := corpusRun{Name: name, English: i != 2, Figures: figures{Tools: 10 * (i + 1), Queries: 4, Recall1: 0.1 * float64(i), Recall5: 0.2*float64(i) + shift*float64(1-i), QueryUSP50: 3.25}}
			if name != "empty" {
				c.IDs, c.First, c.Five = []string{"1", "2", "3", "4"}, []float64{0, 1, 0, shift}, []float64{1, shift, float64(i % 2), 0}
			}
			if i%2 == 0 {
				c.Complete = []float64{1, 0, shift}
			}
			r.add(c)
		}
		return r
	}
	c := comparison{names: []string{"base", "better", "other"}, runs: []savedRun{run(0), run(0.05), run(-0.1)}}
	b.WriteString(c.table() + "\n")
	c.runs[2].Corpora[2].Complete = c.runs[2].Corpora[2].Complete[:2]
	c.runs[1].Corpora[0].Complete = nil
	c.runs[1].Corpora[4].Complete = nil
	b.WriteString(c.table() + "\n")
	c = comparison{names: c.names[:2], runs: []savedRun{run(0), run(0)}}
	b.WriteString(c.table() + "\n")
	for _, shift := range []float64{0, 0.05} {
		r := run(shift)
		b.WriteString(r.table() + "\n")
	}
	for _, list := range [][][]float64{nil, {{}}, {{0.5}}, {{0, 1}, {1}}, {{0, 1, 0, 1, 1}, {}, {-1, 0}}} {
		mean, low, high := interval(list)
		fmt.Fprintf(&b, "interval of %v: %.3f, %.3f to %.3f\n", list, mean, low, high)
	}
	for n := range 12 {
		var times []time.Duration
		for i := range n + 1 {
			times = append(times, time.Duration(i+1)*time.Microsecond)
		}
		fmt.Fprintf(&b, "of %d times: p1 %v, p50 %v, p99 %v, p100 %v\n", n+1, percentile(times, 1), percentile(times, 50), percentile(times, 99), percentile(times, 100))
	}
	golden.Compare(t, "tables.golden", b.String())
}

// The report of running servers, for people and as JSON.
func TestReport(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("The report of running servers, for people and as JSON, from figures that are given.\n")
	misses := []miss{
		{Line: 3, ID: "a", Query: "seen", Wanted: []string{"s/t", "s/u"}, Nearest: "s/t", Rank: 2, First: "s/x", Decide: []findability.Word{}, Lacks: []string{}, Words: []string{}},
		{Line: 4, ID: "b", Query: "last that is seen", Nearest: "s/t", Rank: findability.Seen},
		{Line: 5, ID: "c", Query: "first that is not", Nearest: "s/t", Rank: findability.Seen + 1, Words: []string{"x", "y"}, Helped: 1},
		{Line: 6, ID: "d", Query: "nowhere", Nearest: "s/t", Words: []string{"z"}},
		{Line: 7, ID: "e", Query: "nowhere, no words", Nearest: "s/t"},
	}
	for _, r := range []report{
		{Servers: 1, Tools: 2, Passed: true, Misses: []miss{}, scores: scores{Queries: 3, Hit1: 0.111, Hit5: 0.222, MRR10: 0.333}, file: "q.jsonl"},
		{Servers: 1, Tools: 2, Least: 0.5, Misses: misses, scores: scores{Queries: 3, Hit1: 1, Hit5: 0.4999, MRR10: 1, Unanswerable: 4, Rejected: 0.25}, Helped: &scores{Queries: 9, Hit1: 0.75, Hit5: 0.85, MRR10: 0.95, Unanswerable: 1}, file: "q.jsonl"},
		{Least: 1, Passed: true, file: "q.jsonl"},
	} {
		path := filepath.Join(t.TempDir(), "out")
		f, err := os.Create(path)
		require.NoError(t, err)
		s := terminal.NewSheet(f)
		r.print(s)
		require.NoError(t, s.Err())
		require.NoError(t, f.Close())
		printed, err := os.ReadFile(path)
		require.NoError(t, err)
		data, err := json.MarshalIndent(r, "", " ")
		require.NoError(t, err)
		fmt.Fprintf(&b, "\n%s\n%s\n", printed, data)
	}
	golden.Compare(t, "report.golden", b.String())
}

// timeless replaces what differs from run to run.
func timeless(text string) string {
	text = regexp.MustCompile(`"(build_ms|query_us_p50|query_us_p99)":[-+.\de]+`).ReplaceAllString(text, `"$1":1`)
	text = regexp.MustCompile(`build .*`).ReplaceAllString(text, "build and search take some time")
	return regexp.MustCompile(`(?m)^(\S+ +\d+ +\d+ +[\d.]+ +[\d.]+) +[\d.]+`).ReplaceAllString(text, "$1     1.0")
}

// What is printed of small corpora, with each flag, and why there is nothing to measure.
func TestSmallCorpora(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	const tools = `{"id": "1", "server": "", "name": "crimson", "input_schema": null}
{"id": "2", "server": "", "name": "turquoise"}
{"id": "3", "server": "other", "name": "turquoise", "description": "heaven", "title": "Heaven", "annotations": {"readOnlyHint": true}}
`
	const queries = `{"id": "a", "query": "crimson", "relevant": ["1"]}

{"id": "b", "query": "turquoise", "relevant": ["2", "3"]}
{"id": "c", "query": "heaven", "relevant": ["3"]}
{"id": "d", "query": "a crimson", "relevant": ["1"]}
{"id": "e", "query": "nothing", "relevant": []}
{"id": "f", "query": "небо", "relevant": ["3"]}
`
	write("all/one/tools.jsonl", tools)
	write("all/one/queries.jsonl", queries)
	write("all/two/tools.jsonl", tools)
	write("all/two/queries.jsonl", `{"id": "a", "query": "heaven", "relevant": ["3"]}`)
	write("all/three/tools.jsonl", tools)
	write("all/three/queries.jsonl", strings.Repeat("\n", 3)+`{"id": "e", "query": "zz", "relevant": []}`+"\n"+`{"id": "f", "query": "небо", "relevant": []}`)
	write("none/one/tools.jsonl", tools)
	write("none/one/queries.jsonl", `{"id": "a", "query": "heaven", "relevant": ["3"]}`)
	write("bad/one/queries.jsonl", queries)
	write("folder/b.json", `{"server": "s", "tools": [{"name": "crimson", "title": "T", "description": "D", "inputSchema": {"type": "object"}, "annotations": {"title": "x"}}, {"name": "heaven"}]}`)
	write("folder/a.json", `{"server": "s", "tools": []}`)
	write("folder/ignored.txt", `{`)
	write("folderqueries", `{"id": "a", "query": "heaven", "relevant": ["s/heaven"]}`)
	write("folder2/a.json", `{"server": "s", "tools": [{"name": "x"}, {"name": ""}]}`)
	write("folder3/a.json", `{"server": 1}`)
	write("folder4/a.json", `{"server": "s", "tools": []}`)
	write("folder5/a.json", `{"server": "s", "tools": [{"name": "x"}, {"name": "x"}]}`)
	var b strings.Builder
	b.WriteString("What is printed of small corpora.\n")
	one := "-tools all/one/tools.jsonl -queries all/one/queries.jsonl -ranker classic "
	for _, line := range []string{
		one, one + "-json", one + "-misses 9", one + "-misses 1", one + "-misses -1", one + "-misses 9 -slips", one + "-misses 9 -context 1", one + "-misses 9 -sentences framed", one + "-misses 9 -sentences joined", one + "-half chosen -json", one + "-half aside -json",
		one + "-half chosen -sessions 1 -misses 9", one + "-half aside -sessions 99 -misses 9",
		"-tools all/one/tools.jsonl -queries all/one/queries.jsonl -ranker hybrid", "-tools all/one/tools.jsonl -queries all/one/queries.jsonl -ranker hybrid -random 4 -ollama x",
		"-tools all/one/tools.jsonl -queries all/one/queries.jsonl -ranker hybrid -openai x -ollama x", "-tools all/one/tools.jsonl -queries all/one/queries.jsonl -ranker hybrid -random 4 -openai x",
		"-tools folder -queries folderqueries -misses 1 -ranker classic", "-tools folder2 -queries folderqueries", "-tools folder3 -queries folderqueries", "-tools folder4 -queries folderqueries", "-tools folder5 -queries folderqueries", "-tools nowhere -queries folderqueries", "-tools folder -queries nowhere",
		"-tools all/two/tools.jsonl -queries all/two/queries.jsonl -half chosen", "-tools all/two/tools.jsonl -queries all/two/queries.jsonl -half aside", "-tools all/two/tools.jsonl -queries all/two/queries.jsonl -sentences joined",
		"-corpora all -ranker classic", "-corpora all -ranker classic -json", "-corpora all -ranker classic -save saved.json", "-corpora all -ranker classic -sentences joined", "-corpora all -ranker classic -half chosen", "-corpora none -sentences joined", "-corpora bad", "-corpora folder", "-corpora all -ranker classic -save nowhere/saved.json",
		"-compare saved.json saved.json", "-compare saved.json folderqueries", "-compare saved.json nowhere", "-compare folder/ignored.txt saved.json",
	} {
		args := strings.Fields(line)
		for i, arg := range args {
			if strings.ContainsAny(arg, "/") || arg == "all" || arg == "none" || arg == "bad" || strings.HasPrefix(arg, "folder") || arg == "nowhere" || arg == "saved.json" {
				args[i] = filepath.Join(dir, arg)
			}
		}
		var out, term bytes.Buffer
		err := run(args, &out, &term, io.Discard)
		fmt.Fprintf(&b, "\n======== %s\n%s", line, timeless(out.String()))
		if err != nil {
			b.WriteString(err.Error() + "\n")
		}
		if shown := term.String(); shown != "" && !strings.HasSuffix(shown, eraseLine) {
			fmt.Fprintf(&b, "the progress is left: %q\n", shown)
		}
	}
	saved, err := os.ReadFile(filepath.Join(dir, "saved.json"))
	require.NoError(t, err)
	b.WriteString("\n======== saved.json\n" + timeless(string(saved)))
	golden.Compare(t, "corpora.golden", strings.ReplaceAll(b.String(), dir+string(filepath.Separator), ""))
}

// A line of progress is drawn anew as often as one can see, and at the first and last step of each work.
func TestProgressLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := &progress{w: &out}
		var b strings.Builder
		b.WriteString("What is written to a terminal at each step, by the time since the start.\n")
		begun := time.Now()
		step := func(wait time.Duration, doing string, done int) {
			time.Sleep(wait)
			if doing == "" {
				p.end()
			} else {
				p.show(doing, done, 4)
			}
			fmt.Fprintf(&b, "%v %s %d: %q\n", time.Since(begun), doing, done, out.String())
			out.Reset()
		}
		step(0, "", 0)
		step(0, "asking", 1)
		step(redraw-1, "asking", 2)
		step(1, "asking", 3)
		step(1, "asking", 3)
		step(1, "asking", 4)
		step(1, "again", 1)
		step(1, "again", 2)
		step(0, "", 0)
		step(0, "", 0)
		step(1, "again", 3)
		golden.Compare(t, "progress.golden", b.String())
	})
}

// Files of queries and hints that are refused say where and why.
func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	defer mgr.Close()
	var b strings.Builder
	b.WriteString("What is read of files with queries or hints, and why it is refused.\n")
	for _, text := range []string{"", " \n\n", `{"query": "a", "relevant": []}`, "\n" + `{"query": "a", "relevant": ["x", "y"], "id": "z"}` + "\n" + `{"query": "b", "relevant": ["x"]}`, `{"query": "a", "relevant": ["x", "y", "x"]}`, `{"query": "", "relevant": []}`, `{"query": "a"}`, `{"query": "a", "relevant": null}`,
		`{"query": 1, "relevant": []}`, `{`, `[]`, `{"query": "a", "relevant": [], "id": "line 2"}` + "\n" + `{"query": "b", "relevant": []}`, `{"query": "a", "relevant": []} x`, `{"query": "a", "relevant": [1]}`} {
		queries, err := parseWanted("q.jsonl", []byte(text))
		fmt.Fprintf(&b, "\nqueries %q\n", text)
		for _, q := range queries {
			fmt.Fprintf(&b, "  line %d, id %q: %q %q\n", q.line, q.ID, q.Query, q.Relevant)
		}
		if err != nil {
			fmt.Fprintf(&b, "  %v\n", err)
		}
	}
	for _, text := range []string{``, `{}`, `[]`, `{"a": {"preconditions": ["x"]}, "b": {}}`, `{"a": {}, "a": {}}`, `{"a": 1}`, `{"a": {"unknown": 1}}`, `{"a": }`} {
		table, err := parseHints("h.json", []byte(text))
		fmt.Fprintf(&b, "\nhints %q\n  %v %v\n", text, table, err)
	}
	words := func(from, to int) (list []string) {
		for i := from; i < to; i++ {
			list = append(list, fmt.Sprintf("w%d", i))
		}
		return list
	}
	for _, w := range []findability.Why{
		{}, {Lacks: words(0, 3)}, {Lacks: words(0, 3), Words: []findability.Word{{Word: "w1"}, {Word: ""}, {Word: "more"}, {Word: "more"}}}, {Lacks: words(0, 12)}, {Lacks: words(0, 13)}, {Lacks: words(0, 11), Words: []findability.Word{{Word: "a"}, {Word: "b"}}},
		{Lacks: []string{strings.Repeat("x", 32), strings.Repeat("y", 33), strings.Repeat("é", 16), strings.Repeat("é", 17)}},
	} {
		fmt.Fprintf(&b, "\nsuggested: %q\n", suggestion(w))
	}
	b.WriteString(hint([]string{"a", "b"}) + "\n")
	golden.Compare(t, "files.golden", b.String())
}

// Lists of a miss are [] in JSON if they are empty, and its own: what is changed in them changes no answer.
func TestListsOfMisses(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}})
	t.Cleanup(func() { require.NoError(t, mgr.Close()) })
	require.NoError(t, mgr.AddTools("s", mcptest.Echo("one", "Soup"), mcptest.Echo("two", "Soup"), mcptest.Echo("three", "Salad")))
	tools := mgr.DeferredTools()
	for _, test := range []struct {
		query, want string
		at          int
	}{
		{"soup", `{"line":1,"id":"q","query":"soup","wanted":[],"nearest":"s/two","rank":2,"first":"s/one","decide":[],"lacks":[],"words":[],"helped":0}`, 1},
		{"zeppelin", `{"line":1,"id":"q","query":"zeppelin","wanted":[],"nearest":"s/three","rank":0,"first":"","decide":[],"lacks":["zeppelin"],"words":[],"helped":0}`, 2},
	} {
		i := slices.IndexFunc(tools, func(t *mcphybrid.BridgeTool) bool {
			return t.OriginalName() == []string{"one", "two", "three"}[test.at]
		})
		m := newMiss(query{ID: "q", Query: test.query, line: 1}, nil, findability.Ask(mgr.Default(), test.query, tools[i]))
		data, err := json.Marshal(m)
		require.NoError(t, err)
		assert.JSONEq(t, test.want, string(data))
		if len(m.Lacks) > 0 {
			m.Lacks[0] = "changed"
			assert.Equal(t, []string{"zeppelin"}, m.why.Lacks)
		}
	}
}
