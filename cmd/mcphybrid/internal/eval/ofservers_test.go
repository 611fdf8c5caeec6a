package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/exit"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/findability"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/hints"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { commandtest.Main(m) }

var evalServers = commandtest.Command(command)

// office is a configuration with two servers.
func office(t *testing.T) string {
	t.Helper()
	return commandtest.Config(t, `"calendar": `+commandtest.Raw(t, `{"name": "delete_event", "description": "Deletes an event of a calendar"}, `+
		`{"name": "list_events", "description": "Lists the events of a calendar between two days"}`, "")+`,
		"todo": `+commandtest.Raw(t, `{"name": "cancel_reminder", "description": "Cancels a reminder, such as of an appointment"}, `+
		`{"name": "add_reminder", "description": "Adds a reminder, such as of a visit to the dentist"}, `+
		`{"name": "list_reminders", "description": "Lists all reminders"}`, ""))
}

// someQueries have a tool that is first, one that is second, one that is not found, and
// one that no tool answers.
const someQueries = `{"query": "list all reminders", "relevant": ["todo/list_reminders"]}

{"id": "two", "query": "appointment: cancel it, or delete it", "relevant": ["delete_event"], "more": 1}
{"query": "call off my appointment", "relevant": ["mcp_calendar__delete_event"]}
{"query": "weather in Lisbon", "relevant": []}
`

func TestServers(t *testing.T) {
	t.Parallel()
	queries := commandtest.WriteFile(t, "mine.jsonl", someQueries)
	suggest := filepath.Join(t.TempDir(), "hints.json")
	args := []string{"-config", office(t), "-queries", queries}
	stdout, stderr, err := evalServers.Run(t, append(args, "-json", "-suggest", suggest)...)
	require.NoError(t, err)
	assert.Empty(t, stderr)
	var r report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	assert.Equal(t, scores{Queries: 4, Hit1: 1. / 3, Hit5: 2. / 3, MRR10: 1.5 / 3, Unanswerable: 1, Rejected: 1}, r.scores)
	assert.Equal(t, []int{2, 5}, []int{r.Servers, r.Tools})
	assert.True(t, r.Passed, "without a mark")
	require.Len(t, r.Misses, 2)
	second, lost := r.Misses[0], r.Misses[1]
	assert.Equal(t, []string{"two", "calendar/delete_event", "todo/cancel_reminder"}, []string{second.ID, second.Nearest, second.First})
	assert.Equal(t, []int{3, 2}, []int{second.Line, second.Rank})
	appointment := slices.IndexFunc(second.Decide, func(w findability.Word) bool { return w.Word == "appointment" })
	require.GreaterOrEqual(t, appointment, 0)
	assert.Equal(t, []string{"description"}, second.Decide[appointment].First)
	assert.Empty(t, second.Decide[appointment].Wanted)
	assert.Positive(t, second.Decide[appointment].More)
	assert.Empty(t, second.Words, "a model sees it")

	assert.Equal(t, "line 4", lost.ID)
	assert.Equal(t, []string{"calendar/delete_event"}, lost.Wanted)
	assert.Equal(t, 0, lost.Rank)
	assert.Contains(t, lost.Lacks, "appointment")
	assert.Contains(t, lost.Words, "appointment")
	assert.Positive(t, lost.Helped)
	require.NotNil(t, r.Helped)
	assert.Greater(t, r.Helped.Hit5, r.Hit5)

	// What it suggests is in the form of hints, and has the worth that it told.
	data, err := os.ReadFile(suggest)
	require.NoError(t, err)
	var table map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &table))
	require.Len(t, table, 1)
	h, err := hints.Parse(table["calendar/delete_event"])
	require.NoError(t, err)
	assert.Equal(t, []string{hint(lost.Words)}, h.Preconditions)
	again := filepath.Join(t.TempDir(), "again.json")
	stdout, _, err = evalServers.Run(t, append(args, "-json", "-hints", suggest, "-suggest", again)...)
	require.NoError(t, err)
	var with report
	require.NoError(t, json.Unmarshal([]byte(stdout), &with))
	assert.Equal(t, *r.Helped, with.scores)
	kept, err := os.ReadFile(again)
	require.NoError(t, err)
	assert.Equal(t, string(data), string(kept), "what it was given stays")
}

// The report for people says the same, a miss in a line, and what is unseen first.
func TestServersText(t *testing.T) {
	t.Parallel()
	queries := commandtest.WriteFile(t, "mine.jsonl", someQueries)
	args := []string{"-config", office(t), "-queries", queries}
	stdout, _, err := evalServers.Run(t, append(args, "-least", "0.7")...)
	assert.ErrorIs(t, err, exit.ErrFound)
	_, misses, _ := strings.Cut(stdout, "\n\n"+queries)
	lines := strings.Split(misses, "\n")
	require.Greater(t, len(lines), 2)
	assert.Regexp(t, `^:4: “call off my appointment”: calendar/delete_event is not found  it has no word .*: call, appointment  todo/cancel_reminder is first: .*  → .* it is at place 1: call, appointment$`, lines[0])
	assert.Regexp(t, `/mine.jsonl:3: “appointment: cancel it, or delete it”: calendar/delete_event is at place 2  todo/cancel_reminder is first: .*“appointment” \(description; wanted: nowhere\)`, lines[2])
	assert.Contains(t, stdout, "\nnot passed: hit@5 is 66.7 %, and must be 70.0 %\n")
	again, _, err := evalServers.Run(t, append(args, "-least", "0.66")...)
	require.NoError(t, err)
	assert.Contains(t, again, "passed: hit@5 is 66.7 %, and must be 66.0 %\n")
}

// The output in docs/search.md is what is said of the queries there.
func TestServersInTheDocuments(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(commandtest.Here, "../../../../docs/search.md"))
	require.NoError(t, err)
	queries, rest, found := strings.Cut(string(document), "\n```\n\n| member |")
	require.True(t, found)
	_, queries, found = strings.Cut(queries, "This is `mine.jsonl`:\n\n```text\n")
	require.True(t, found)
	_, rest, found = strings.Cut(rest, "its tools\n```\n\n```text\n")
	require.True(t, found)
	output, _, found := strings.Cut(rest, "```\n")
	require.True(t, found)
	config := office(t)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("mine.jsonl", []byte(queries), 0o600))
	r, err := (&settings{servers: servers.File{Path: config}, queriesFile: "mine.jsonl", least: 0.7, ranker: "default"}).measureServers(t.Context(), commandtest.Null(t))
	require.NoError(t, err)
	var b strings.Builder
	r.print(terminal.Paper(&b, 100))
	assert.Equal(t, b.String(), output)
}

// A tool that a model does not see with the words that it lacks either gets no hint of
// them. No tool gets more hints than it can have.
func TestWordsThatDoNotHelp(t *testing.T) {
	t.Parallel()
	var tools, queries []string
	for i := range 6 {
		tools = append(tools, fmt.Sprintf(`{"name": "soup_%d", "description": "Soup"}`, i))
	}
	words := strings.Fields("zeppelin quagga axolotl wombat numbat dugong okapi jerboa gharial kakapo tarsier bongo vicuna lemming ibis pangolin marmot")
	for _, word := range words {
		queries = append(queries, `{"query": "`+word+`", "relevant": ["stir"]}`)
	}
	config := commandtest.Config(t, `"kitchen": `+commandtest.Raw(t, strings.Join(append(tools, `{"name": "stir", "description": "Stirs a pot"}`), ","), ""))
	suggest := filepath.Join(t.TempDir(), "hints.json")
	given := commandtest.WriteFile(t, "given.json", `{"soup_0": {"output_shape": "a bowl"}}`)
	ask := func(queries ...string) (r report, table hintTable) {
		stdout, _, err := evalServers.Run(t, "-json", "-config", config, "-hints", given, "-queries", commandtest.WriteFile(t, "q.jsonl", strings.Join(queries, "\n")), "-suggest", suggest)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal([]byte(stdout), &r))
		data, err := os.ReadFile(suggest)
		require.NoError(t, err)
		table, err = parseHints(suggest, data)
		require.NoError(t, err)
		return r, table
	}
	r, table := ask(`{"query": "soup", "relevant": ["stir"]}`)
	require.Len(t, r.Misses, 1)
	assert.Equal(t, []string{"soup"}, r.Misses[0].Words)
	assert.Zero(t, r.Misses[0].Helped)
	assert.Nil(t, r.Helped)
	assert.Equal(t, hintTable{"kitchen/soup_0": {OutputShape: "a bowl"}}, table, "what was given stays")

	r, table = ask(queries...)
	require.Len(t, r.Misses, 17)
	assert.Len(t, table["kitchen/stir"].Preconditions, 16)
	assert.Equal(t, "a bowl", table["kitchen/soup_0"].OutputShape)
	assert.Equal(t, 1, r.Misses[15].Helped)
	assert.Zero(t, r.Misses[16].Helped)
	assert.Equal(t, 16./17, r.Helped.Hit5)
}

func TestServersStatus(t *testing.T) {
	t.Parallel()
	config, fine := office(t), commandtest.WriteFile(t, "mine.jsonl", someQueries)
	write := func(line string) string { return commandtest.WriteFile(t, "q.jsonl", "\n"+line) }
	good := `{"query": "x", "relevant": ["add_reminder"]}`
	denied := commandtest.Config(t, `"few": `+commandtest.Raw(t, `{"name": "stir"}, {"name": "shake"}`, `, "tools": {"deny": ["stir"]}`))
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"-config", config, "-queries", fine}, 0, ""},
		{[]string{"-config", config, "-queries", fine, "-hints", commandtest.WriteFile(t, "h.json", "{}")}, 0, ""},
		{[]string{"-config", config, "-queries", fine, "-least", "0.6666666666666666"}, 0, ""}, // just as much
		{[]string{"-config", config, "-queries", fine, "-least", "1"}, 1, "there is something to do"},
		{[]string{"-config", config, "-queries", fine, "-least", "90"}, 2, "-least is 90, must be 0 to 1"},
		{[]string{"-config", config, "-queries", fine, "-least", "NaN"}, 2, "-least is NaN, must be 0 to 1"},
		{[]string{"-config", config, "-queries", fine, "-misses", "1"}, 2, "-misses has no effect with -config"},
		{[]string{"-config", config, "-queries", fine, "-tools", "x"}, 2, "-config has no effect with -tools"},
		{[]string{"-config", config, "-queries", fine, "-ranker", "hybrid"}, 2, "-ranker hybrid can't be measured with -config"},
		{[]string{"-config", config}, 2, "-queries is needed"},
		{[]string{"-config", "nowhere.json", "-queries", fine}, 2, "nowhere.json: no such file"},
		{[]string{"-config", config, "-queries", "nowhere.jsonl"}, 2, "nowhere.jsonl: no such file"},
		{[]string{"-config", commandtest.Config(t, `"gone": {"command": "no-such-program"}`), "-queries", fine}, 2, `server "gone" is down (exec: "no-such-program": executable file not found`},
		{[]string{"-config", commandtest.Config(t, `"none": `+commandtest.Raw(t, "", "")), "-queries", fine}, 2, "no server has a tool that may be used"},
		{[]string{"-config", commandtest.Config(t, `"bad": {}`), "-queries", fine}, 2, "want exactly one of command and url"},
		{[]string{"-config", config, "-queries", write(`{"query": "x", "relevant": ["todo/ad_reminder"]}`)}, 2, `q.jsonl:2: no server has a tool "todo/ad_reminder" that may be used; near it are todo/add_reminder`},
		{[]string{"-config", config, "-queries", write(`{"query": "x", "relevant": ["zyzzyva"]}`)}, 2, `q.jsonl:2: no server has a tool "zyzzyva"`},
		{[]string{"-config", denied, "-queries", write(`{"query": "x", "relevant": ["few/stir"]}`)}, 2, `q.jsonl:2: no server has a tool "few/stir" that may be used`},
		{[]string{"-config", config, "-queries", write(`{"query": "x", "relevant": "add_reminder"}`)}, 2, `q.jsonl:2: "relevant" is a JSON string, want a list of strings`},
		{[]string{"-config", config, "-queries", write(`{"query": "x"}`)}, 2, `q.jsonl:2: "query" or "relevant" is missing`},
		{[]string{"-config", config, "-queries", write(good), "-hints", commandtest.WriteFile(t, "h.json", `{"stir": {}}`)}, 2, `h.json: no server has a tool "stir"`},
		{[]string{"-config", config, "-queries", write(good), "-hints", commandtest.WriteFile(t, "h.json", `{"add_reminder": {"x": 1}}`)}, 2, `h.json: tool "add_reminder": mcphybrid: hints: "x" is not a member of hints`},
		{[]string{"-config", config, "-queries", write(good), "-hints", commandtest.WriteFile(t, "h.json", `{"a": {}, "a": {}}`)}, 2, `h.json: tool "a" is there twice`},
		{[]string{"-config", config, "-queries", commandtest.WriteFile(t, "q.jsonl", strings.Repeat(" ", maxFile+1))}, 2, "q.jsonl: it has more than 16777216 bytes, the limit"},
	} {
		stdout, _, err := evalServers.Run(t, test.args...)
		assert.Equal(t, test.status, exit.Status(err), "%q: %v", test.args, err)
		if test.status > 0 {
			assert.ErrorContains(t, err, test.want)
		}
		assert.Equal(t, test.status == 2, stdout == "", "%q", test.args)
	}
}

// A file may be as large as the limit.
func TestReadBounded(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{0: "", maxFile: "", maxFile + 1: "it has more than 16777216 bytes, the limit"} {
		data, err := readBounded(commandtest.WriteFile(t, "q.jsonl", strings.Repeat(" ", size)))
		if want != "" {
			assert.ErrorContains(t, err, want)
		} else if assert.NoError(t, err, size) {
			assert.Len(t, data, size)
		}
	}
	_, err := readBounded(t.TempDir())
	assert.ErrorContains(t, err, "is a directory")
}

// A suggestion has at most 12 words, each once, of at most 32 bytes. Those that the tool lacks
// come first.
func TestSuggestion(t *testing.T) {
	t.Parallel()
	long, longer := strings.Repeat("x", maxWord), strings.Repeat("x", maxWord+1)
	why := findability.Why{Lacks: []string{"stir", "", longer, long, "stir"}, Words: []findability.Word{{Word: "stir"}, {Word: "fry"}}}
	assert.Equal(t, []string{"stir", long, "fry"}, suggestion(why))
	assert.Equal(t, "For: stir, "+long+", fry", hint(suggestion(why)))
	for i := range maxWords {
		why.Lacks = append(why.Lacks, fmt.Sprint("more", i))
	}
	words := suggestion(why)
	assert.Len(t, words, maxWords)
	assert.Equal(t, "more9", words[maxWords-1])
}

func TestServersInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := command(ctx, []string{"-config", office(t), "-queries", commandtest.WriteFile(t, "mine.jsonl", someQueries)}, commandtest.Null(t), commandtest.Null(t))
	assert.EqualError(t, err, "interrupted")
	assert.Equal(t, 1, exit.Status(err))
}

// What is wrong with the file or with tools goes to standard error, since it changes what
// is measured.
func TestServersComplain(t *testing.T) {
	t.Parallel()
	config := commandtest.Config(t, `"x": `+commandtest.Raw(t, `{"name": "stir"}, {"name": "shake", "inputSchema": "x"}`, `, "colour": "red"`))
	stdout, stderr, err := evalServers.Run(t, "-config", config, "-queries", commandtest.WriteFile(t, "q.jsonl", `{"query": "stir", "relevant": ["stir"]}`))
	require.NoError(t, err)
	assert.Contains(t, stdout, "1 query, 1 tool of 1 server")
	assert.Regexp(t, `(?m)"colour" is not known here and has no effect$`, stderr)
	assert.Regexp(t, `(?m)^mcphybrid: server "x": tool 1: the inputSchema of "shake" `, stderr)
}

// The place of a tool is told however many are before it.
func TestFarPlaces(t *testing.T) {
	t.Parallel()
	config := commandtest.Config(t, `"kitchen": `+commandtest.Child(t, "1", "")) // 50 tools that cook dishes
	stdout, _, err := evalServers.Run(t, "-json", "-config", config, "-queries", commandtest.WriteFile(t, "q.jsonl", `{"query": "cook", "relevant": ["tool_49"]}`))
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Len(t, r.Misses, 1)
	assert.Equal(t, 50, r.Misses[0].Rank)
	assert.Zero(t, r.Hit5)
}

// A name is that of one server's tool, or of the tools of all servers that have it.
func TestNamesOfTools(t *testing.T) {
	t.Parallel()
	config := commandtest.Config(t, `"x": `+commandtest.Raw(t, `{"name": "search", "description": "Searches soups"}`, "")+`,
		"y": `+commandtest.Raw(t, `{"name": "search", "description": "Searches salads"}`, ""))
	for name, rank := range map[string]int{"search": 0, "x/search": 0, "y/search": 2, "mcp_y__search": 2} {
		stdout, _, err := evalServers.Run(t, "-json", "-config", config, "-queries", commandtest.WriteFile(t, "q.jsonl", `{"query": "search soups", "relevant": ["`+name+`"]}`))
		require.NoError(t, err)
		var r report
		require.NoError(t, json.Unmarshal([]byte(stdout), &r))
		got := 0
		if len(r.Misses) > 0 {
			got = r.Misses[0].Rank
		}
		assert.Equal(t, rank, got, name)
	}
}

// FuzzParseWanted: whatever a file of queries says, each query has an id of its own, a text
// and a list, and stands on the line that it tells.
func FuzzParseWanted(f *testing.F) {
	for _, data := range []string{someQueries, oneQuery, "", "\n{", `{"query": "x", "relevant": null}`, `{"id": "line 2", "query": "x", "relevant": []}` + "\n" + `{"query": "y", "relevant": []}`} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		queries, err := parseWanted("q", data)
		if err != nil {
			assert.True(t, strings.HasPrefix(err.Error(), "q:"), err)
			return
		}
		ids, line := make(map[string]bool), 0
		for _, q := range queries {
			assert.False(t, ids[q.ID])
			ids[q.ID] = true
			assert.NotEmpty(t, q.Query)
			assert.NotNil(t, q.Relevant)
			assert.Greater(t, q.line, line)
			line = q.line
		}
		assert.NotEmpty(t, queries)
		assert.LessOrEqual(t, line, strings.Count(string(data), "\n")+1)
	})
}

// FuzzParseHints: whatever a file of hints says, what is read is within the limits, and is
// read again as it is written.
func FuzzParseHints(f *testing.F) {
	for _, data := range []string{`{"a/b": {"preconditions": ["For: c"]}}`, `{"a": {}, "a": {}}`, `[]`, `{"a": null}`, `{`, ""} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := parseHints("h", data)
		if err != nil {
			assert.True(t, strings.HasPrefix(err.Error(), "h: "), err)
			return
		}
		for _, h := range table {
			assert.NoError(t, h.Check())
		}
		written, err := json.Marshal(table)
		require.NoError(t, err)
		again, err := parseHints("h", written)
		require.NoError(t, err)
		assert.Equal(t, table, again)
	})
}
