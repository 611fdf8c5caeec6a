package main

import "strings"

// A testCase is a question that a long result answers.
type testCase struct {
	name   string // of the file in testdata
	result string // what it is
	value  string // that is wanted

	// until is what a model that reads on must have seen, or "" if it must see
	// all, since it counts or compares.
	until   string
	selects []string // the expressions of a model that selects; nil where there is no JSON
	answer  string   // what the last one must show
}

func (t testCase) needsAll() bool { return t.until == "" }

func (t testCase) isSeen(text string) bool {
	return !t.needsAll() && strings.Contains(text, t.until)
}

// The results were recorded on 2026-11-29. All data but the names of this project's files, and what
// npm says of packages, was made for this by a program.
var cases = []testCase{
	{
		name: "tree", result: "server-filesystem 2026.8.31, `directory_tree` of this project", value: "the files of a folder", until: `"words_test.go"`,
		selects: []string{`.[] | select(.name == "internal").children[] | select(.name == "result").children[].name`}, answer: "words_test.go",
	},
	{
		name: "lock", result: "server-filesystem 2026.8.31, `read_text_file` of a package-lock.json", value: "the version of a package", until: `"node_modules/hono": {`,
		selects: []string{`.packages["node_modules/hono"].version`}, answer: `"4.13.19"`,
	},
	{
		name: "graph", result: "server-memory 2026.8.31, `read_graph`", value: "all about one entity",
		selects: []string{`"Lea Troy 209" as $who | (.entities[] | select(.name == $who)), (.relations[] | select(.from == $who or .to == $who))`}, answer: `asked about the index theme since 2025`,
	},
	{
		name: "log", result: "git-mcp-server 2.15.3, `git_log`", value: "commits of each author",
		selects: []string{`.commits | group_by(.author) | map({author: .[0].author, commits: length})`}, answer: `{"author":"Ben Cole","commits":79}`,
	},
	{
		name: "issues", result: "openapi-mcp-server 1.16.1, a list of issues", value: "open bugs that nobody has",
		selects: []string{`.items[] | select(.state == "open" and .assignee == null and any(.labels[]; .name == "bug")) | {number, title}`}, answer: `{"number":114,"title":"The queue hangs after report"}`,
	},
	{
		name: "weather", result: "openapi-mcp-server 1.16.1, weather by the hour", value: "the warmest hour", until: `"relative_humidity_2m": [`,
		selects: []string{
			`.hourly | [.time, .temperature_2m] | transpose | max_by(.[1])`, // transpose is not available
			`.hourly as $h | [range($h.time | length) as $i | {time: $h.time[$i], degrees: $h.temperature_2m[$i]}] | max_by(.degrees)`,
		},
		answer: `{"degrees":19.3,"time":"2026-03-03T06:00"}`,
	},
	{
		name: "package", result: "mcp-npx-fetch 1.0.0, `fetch_json` of a package in a registry", value: "what a version needs", until: `"3.2.1":{`,
		selects: []string{`.versions["3.2.1"].engines.node`}, answer: `">=18"`,
	},
	{
		name: "orders", result: "dbhub 1.4.0, `execute_sql` of 600 rows", value: "the sum of some",
		selects: []string{`[.data.statements[0].rows[] | select(.status == "refunded" and .city == "Oslo").total] | add`}, answer: "9353.98",
	},
	{
		name: "tables", result: "dbhub 1.4.0, `search_objects` of 41 tables", value: "the columns of a table", until: `"name": "webhooks",`,
		selects: []string{`.data.results[] | select(.name == "webhooks").columns[] | .name + " " + .type`}, answer: "created_at TEXT",
	},
	{
		name: "lint", result: "@eslint/mcp 0.3.13, `lint-files`: JSON between sentences", value: "files with undefined names",
	},
}
