package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
)

// friday is the time in all the tests.
func friday() time.Time { return time.Date(2024, time.May, 31, 18, 30, 0, 0, time.UTC) }

type namedServer struct {
	name   string
	server *server.MCPServer
}

func allServers(t *testing.T) []namedServer {
	return []namedServer{
		{"files", filesServer(t.TempDir())},
		{"issues", issuesServer()},
		{"math", mathServer()},
		{"text", textServer()},
		{"clock", clockServer(friday)},
		{"units", unitsServer()},
		{"notes", notesServer()},
	}
}

func connect(t *testing.T, s *server.MCPServer) *client.Client {
	t.Helper()
	c, err := client.NewInProcessClient(s)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.Start(context.Background()))
	_, err = c.Initialize(context.Background(), mcp.InitializeRequest{})
	require.NoError(t, err)
	return c
}

func listTools(t *testing.T, c *client.Client) []mcp.Tool {
	t.Helper()
	list, err := c.ListTools(context.Background(), mcp.ListToolsRequest{})
	require.NoError(t, err)
	return list.Tools
}

// call returns the text of the result and whether it is an error.
func call(t *testing.T, c *client.Client, tool string, args any) (text string, isError bool) {
	t.Helper()
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, args
	result, err := c.CallTool(context.Background(), req)
	require.NoError(t, err, "%s panicked or broke the protocol", tool)
	require.Len(t, result.Content, 1)
	return mcp.GetTextFromContent(result.Content[0]), result.IsError
}

// A step calls a tool. If want starts with "error:" the call has to fail with
// an error that contains the rest.
type step struct{ tool, args, want string }

func run(t *testing.T, s *server.MCPServer, steps []step) {
	c := connect(t, s)
	for _, step := range steps {
		t.Run(step.tool, func(t *testing.T) {
			text, isError := call(t, c, step.tool, json.RawMessage(step.args))
			message, wantError := strings.CutPrefix(step.want, "error: ")
			require.Equal(t, wantError, isError, text)
			if wantError {
				require.Contains(t, text, message)
			} else {
				require.Equal(t, step.want, text)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	root := t.TempDir()
	run(t, filesServer(root), []step{
		{"write_file", `{"path":"src/a.txt","content":"one\ntwo\nthree\n"}`, "Wrote 14 bytes to src/a.txt."},
		{"write_file", `{"path":"src/a.txt","content":""}`, "error: src/a.txt exists; set overwrite to replace it"},
		{"read_file", `{"path":"src/a.txt"}`, "one\ntwo\nthree\n"},
		{"read_line_range", `{"path":"src/a.txt","start":2,"end":9}`, "2: two\n3: three\n"},
		{"head_file", `{"path":"src/a.txt","lines":2}`, "one\ntwo"},
		{"tail_file", `{"path":"src/a.txt","lines":1}`, "three"},
		{"count_lines", `{"path":"src/a.txt"}`, `{"bytes":14,"lines":3,"words":3}`},
		{"file_checksum", `{"path":"src/a.txt","algorithm":"md5"}`, "deed54b823522e0525693b090363f9df"},
		{"copy_file", `{"from":"src/a.txt","to":"b.txt"}`, "Copied src/a.txt to b.txt."},
		{"find_duplicate_files", `{}`, `[["b.txt","src/a.txt"]]`},
		{"edit_file", `{"path":"b.txt","old":"two","new":"2"}`, "--- b.txt\n+++ b.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"},
		{"edit_file", `{"path":"b.txt","old":"e","new":"E"}`, "error: occurs 3 times"},
		{"append_to_file", `{"path":"b.txt","content":"four"}`, "Appended 4 bytes to b.txt."},
		{"diff_files", `{"a":"src/a.txt","b":"b.txt","context":0}`,
			"--- src/a.txt\n+++ b.txt\n@@ -2,1 +2,1 @@\n-two\n+2\n@@ -3,0 +4,1 @@\n+four\n\\ No newline at end of file\n"},
		{"make_directory", `{"path":"src/deep/er"}`, "Created src/deep/er."},
		{"move_file", `{"from":"b.txt","to":"src/deep/c.md"}`, "Moved b.txt to src/deep/c.md."},
		{"directory_tree", `{}`, "src/\n  a.txt\n  deep/\n    c.md\n    er/\n"},
		{"list_directory", `{"path":"src/deep"}`, `[{"path":"src/deep/c.md","type":"file","size":16},{"path":"src/deep/er","type":"directory","size":0}]`},
		{"find_files", `{"pattern":"*.md"}`, `["src/deep/c.md"]`},
		{"find_files", `{"pattern":"src/**/?.*"}`, `["src/a.txt","src/deep/c.md"]`},
		{"grep_files", `{"pattern":"^T","ignore_case":true}`, "src/a.txt:2:two\nsrc/a.txt:3:three\nsrc/deep/c.md:3:three\n"},
		{"disk_usage", `{"top":1}`, `{"bytes":30,"files":2,"largest":[{"path":"src/deep/c.md","type":"file","size":16}]}`},
		{"replace_in_files", `{"glob":"*","old":"three","new":"3","dry_run":true}`, `[{"path":"src/a.txt","replacements":1},{"path":"src/deep/c.md","replacements":1}]`},
		{"replace_in_files", `{"glob":"*.txt","old":"three","new":"3"}`, `[{"path":"src/a.txt","replacements":1}]`},
		{"read_file", `{"path":"src/a.txt"}`, "one\ntwo\n3\n"},
		{"delete_file", `{"path":"src/a.txt"}`, "Deleted src/a.txt."},
		{"delete_directory", `{"path":"src","recursive":true}`, "Deleted src."},
		{"stat_file", `{"path":"src"}`, "error: no such file"},
	})
}

func TestFilesStayInRoot(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o644))
	root := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "link")))
	up, err := filepath.Rel(root, secret)
	require.NoError(t, err)

	c := connect(t, filesServer(root))
	for _, path := range []string{up, secret, "link/secret"} {
		for tool, args := range map[string]map[string]any{
			"read_file":        {"path": path},
			"stat_file":        {"path": path},
			"list_directory":   {"path": filepath.Dir(path)},
			"directory_tree":   {"path": filepath.Dir(path)},
			"write_file":       {"path": path, "content": "changed", "overwrite": true},
			"append_to_file":   {"path": path, "content": "changed"},
			"edit_file":        {"path": path, "old": "secret", "new": "changed"},
			"make_directory":   {"path": path + "s"},
			"move_file":        {"from": path, "to": "stolen"},
			"copy_file":        {"from": path, "to": "stolen"},
			"delete_file":      {"path": path},
			"delete_directory": {"path": filepath.Dir(path) + "/.", "recursive": true},
		} {
			text, isError := call(t, c, tool, args)
			require.True(t, isError, "%s %s: %s", tool, path, text)
		}
	}
	data, err := os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, "secret", string(data))
	text, isError := call(t, c, "grep_files", map[string]any{"pattern": "secret"})
	require.False(t, isError)
	require.Equal(t, "No matches.", text)
}

func TestIssues(t *testing.T) {
	run(t, issuesServer(), []step{
		{"create_issue", `{"title":"Crash on start","body":"Stack trace","labels":["bug","bug"],"priority":"high"}`,
			`{"number":1,"title":"Crash on start","state":"open","priority":"high","labels":["bug"],"body":"Stack trace"}`},
		{"create_issue", `{"title":"Dark mode","assignee":"ann"}`, `{"number":2,"title":"Dark mode","state":"open","priority":"normal","assignees":["ann"]}`},
		{"create_issue", `{"title":"Crash at start"}`, `{"number":3,"title":"Crash at start","state":"open","priority":"normal"}`},
		{"add_comment", `{"number":1,"body":"Me too","author":"bob"}`, "Issue #1: bob wrote comment 1."},
		{"add_comment", `{"number":1,"body":"Fixed?"}`, "Issue #1: agent wrote comment 2."},
		{"list_comments", `{"number":1}`, `[{"author":"bob","body":"Me too"},{"author":"agent","body":"Fixed?"}]`},
		{"add_labels", `{"number":2,"labels":["feature","ui"]}`, "Issue #2: labeled feature, ui."},
		{"remove_label", `{"number":2,"label":"ui"}`, "Issue #2: unlabeled ui."},
		{"assign_issue", `{"number":1,"assignee":"bob"}`, "Issue #1: assigned to bob."},
		{"unassign_issue", `{"number":2,"assignee":"bob"}`, "error: issue #2 is not assigned to bob"},
		{"create_milestone", `{"title":"v1","due":"2024-06-30"}`, `{"title":"v1","due":"2024-06-30","open":0,"closed":0}`},
		{"set_milestone", `{"number":1,"milestone":"v1"}`, "Issue #1: planned for v1."},
		{"link_issues", `{"number":1,"other":2,"relation":"blocks"}`, "Issue #1: blocks #2."},
		{"mark_duplicate", `{"number":3,"original":1}`, "Issue #3: closed as duplicate."},
		{"update_issue", `{"number":2,"priority":"low","title":"Dark mode"}`, "Issue #2: changed priority."},
		{"get_issue", `{"number":2}`, `{"number":2,"title":"Dark mode","state":"open","priority":"low","labels":["feature"],"assignees":["ann"],"links":[{"relation":"blocked_by","number":1}]}`},
		{"list_issues", `{"label":"feature"}`, `[{"number":2,"title":"Dark mode","state":"open","priority":"low","labels":["feature"],"assignees":["ann"],"links":[{"relation":"blocked_by","number":1}]}]`},
		{"search_issues", `{"query":"START crash","state":"closed"}`, `[{"number":3,"title":"Crash at start","state":"closed","reason":"duplicate","priority":"normal","links":[{"relation":"duplicate_of","number":1}]}]`},
		{"list_milestones", `{}`, `[{"title":"v1","due":"2024-06-30","open":1,"closed":0}]`},
		{"list_labels", `{}`, `{"bug":{"open":1,"closed":0},"feature":{"open":1,"closed":0}}`},
		{"issue_statistics", `{}`, `{"open":2,"closed":1,"by_priority":{"high":1,"low":1},"by_label":{"bug":1,"feature":1},"by_assignee":{"ann":1,"bob":1},"most_discussed":[1]}`},
		{"close_issue", `{"number":1,"comment":"Done"}`, "Issue #1: closed as completed."},
		{"reopen_issue", `{"number":1}`, "Issue #1: reopened."},
		{"issue_timeline", `{"number":3}`, `["opened","duplicate_of #1","closed as duplicate"]`},
		{"delete_issue", `{"number":1}`, "Issue #1 is deleted."},
		{"get_issue", `{"number":1}`, "error: there is no issue #1"},
	})
}

func TestMath(t *testing.T) {
	run(t, mathServer(), []step{
		{"evaluate_expression", `{"expression":"2*(3+x)^2 - -1","variables":{"x":1}}`, "33"},
		{"evaluate_expression", `{"expression":"-2^2 + 1.5e1 + max(2, sqrt(9)) + 7 % 4"}`, "17"},
		{"evaluate_expression", `{"expression":"2^3^2 / sin(pi/2)"}`, "512"},
		{"evaluate_expression", `{"expression":"1/(2-2)"}`, "error: division by zero"},
		{"evaluate_expression", `{"expression":"foo(1)"}`, "error: unknown function foo with 1 arguments"},
		{"evaluate_expression", `{"expression":"10^400"}`, "error: not a finite number"},
		{"add", `{"numbers":[0.1,0.2]}`, "0.3"},
		{"subtract", `{"a":1,"b":0.9}`, "0.1"},
		{"multiply", `{"numbers":[2,3,7]}`, "42"},
		{"divide", `{"a":7,"b":2}`, `{"quotient":3.5,"remainder":1,"whole":3}`},
		{"power", `{"base":2,"exponent":0.5}`, "1.4142135623731"},
		{"gcd", `{"numbers":[12,-18,30]}`, "6"},
		{"lcm", `{"numbers":[4,6,10]}`, "60"},
		{"is_prime", `{"n":9007199254740881}`, "true"},
		{"prime_factors", `{"n":360}`, "[2,2,2,3,3,5]"},
		{"list_primes", `{"start":90,"count":3}`, "[97,101,103]"},
		{"factorial", `{"n":25}`, "15511210043330985984000000"},
		{"factorial", `{"n":5001}`, "error: Want:5000"},
		{"combinations", `{"n":49,"k":6}`, "13983816"},
		{"permutations", `{"n":5,"k":2}`, "20"},
		{"describe_statistics", `{"numbers":[4,1,3,2]}`, `{"count":4,"sum":10,"min":1,"lower_quartile":1.75,"median":2.5,"upper_quartile":3.25,"max":4,"mean":2.5,"standard_deviation":1.2909944487358}`},
		{"mean", `{"numbers":[1,2,4],"kind":"geometric"}`, "2"},
		{"median", `{"numbers":[5,1,9]}`, "5"},
		{"standard_deviation", `{"numbers":[2,4,4,4,5,5,7,9],"population":true}`, `{"standard_deviation":2,"variance":4}`},
		{"percentile", `{"numbers":[15,20,35,40,50],"percent":40}`, "29"},
		{"linear_regression", `{"x":[1,2,3],"y":[3,5,7],"predict":[10]}`, `{"slope":2,"intercept":1,"r_squared":1,"predictions":[21]}`},
		{"matrix_multiply", `{"a":[[1,2],[3,4]],"b":[[5],[6]]}`, "[[17],[39]]"},
		{"matrix_determinant", `{"matrix":[[0.1,0.7],[0.3,0.4]]}`, "-0.17"},
		{"matrix_inverse", `{"matrix":[[4,7],[2,6]]}`, "[[0.6,-0.7],[-0.2,0.4]]"},
		{"matrix_inverse", `{"matrix":[[1,2],[2,4]]}`, "error: singular"},
		{"solve_linear_system", `{"matrix":[[0,1],[2,1]],"constants":[3,5]}`, "[1,3]"},
		{"solve_quadratic", `{"a":1,"b":2,"c":5}`, `{"discriminant":-16,"roots":["-1-2i","-1+2i"]}`},
		{"convert_base", `{"value":"ff","from":16,"to":2}`, "11111111"},
		{"compound_interest", `{"principal":1000,"rate":5,"years":10}`, `{"deposited":1000,"interest":628.89,"total":1628.89}`},
	})
}

func TestText(t *testing.T) {
	run(t, textServer(), []step{
		{"change_case", `{"text":"parse HTTPRequest id","style":"snake"}`, "parse_http_request_id"},
		{"change_case", `{"text":"it's a ÉTUDE","style":"title"}`, "It's A Étude"},
		{"slugify", `{"text":"  Crème brûlée: Größe & Co.! "}`, "creme-brulee-groesse-co"},
		{"count_words", `{"text":"Hello there. Bye!\n"}`, `{"words":3,"characters":18,"lines":1,"sentences":2,"reading_minutes":1}`},
		{"word_frequency", `{"text":"b a B, c a.","limit":2}`, `[{"word":"a","count":2},{"word":"b","count":2}]`},
		{"regex_find", `{"text":"a1 b22","pattern":"([a-z])(\\d+)"}`, `[{"match":"a1","offset":0,"groups":["a","1"]},{"match":"b22","offset":3,"groups":["b","22"]}]`},
		{"regex_replace", `{"text":"John Smith","pattern":"(\\w+) (\\w+)","replacement":"$2, $1"}`, "Smith, John"},
		{"sort_lines", `{"text":"10 b\n9 a\nc","by":"number","reverse":true}`, "c\n10 b\n9 a"},
		{"dedupe_lines", `{"text":"a\nA\nb\na","ignore_case":true}`, "a\nb"},
		{"wrap_text", `{"text":"the quick brown fox\n\njumps","width":12,"indent":"> "}`, "> the quick\n> brown fox\n\n> jumps"},
		{"base64_encode", `{"text":"hi?>","url_safe":true}`, "aGk_Pg"},
		{"base64_decode", `{"text":"aGk_Pg=="}`, "hi?>"},
		{"hex_encode", `{"text":"Go"}`, "476f"},
		{"hex_decode", `{"text":"47 6f"}`, "Go"},
		{"url_encode", `{"text":"a b&c"}`, "a+b%26c"},
		{"url_decode", `{"text":"a%20b","part":"path"}`, "a b"},
		{"hash_text", `{"text":"abc"}`, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"json_pretty", `{"json":"{\"b\":1,\"a\":[]}"}`, "{\n  \"b\": 1,\n  \"a\": []\n}"},
		{"json_pretty", `{"json":"{\n\"b\":}"}`, "error: line 2: invalid character"},
		{"json_minify", `{"json":"[ 1, \"<a b>\" ]"}`, `[1,"<a b>"]`},
		{"json_query", `{"json":"{\"users\":[{\"a/b\":\"x\"}]}","pointer":"/users/0/a~1b"}`, `"x"`},
		{"json_query", `{"json":"[1]","pointer":"/1"}`, `error: nothing at "1"`},
		{"csv_to_json", `{"csv":"name,age\n\"Ann, B\",42\n","infer_types":true}`, `[{"name":"Ann, B","age":42}]`},
		{"levenshtein_distance", `{"a":"kitten","b":"sitting"}`, `{"distance":3,"similarity":0.57142857142857}`},
		{"diff_text", `{"a":"x\ny\n","b":"x\n"}`, "--- a\n+++ b\n@@ -1,2 +1,1 @@\n x\n-y\n"},
		{"fill_template", `{"template":"Dear {{ name }}, {{n}}!","values":{"name":"Ann","n":3}}`, "Dear Ann, 3!"},
		{"fill_template", `{"template":"{{x}}","values":{}}`, `error: no value for "x"`},
		{"extract_emails", `{"text":"Write to a.b@ex.org or a.b@ex.org."}`, `["a.b@ex.org"]`},
		{"extract_urls", `{"text":"See (https://go.dev/doc), http://x.y."}`, `["https://go.dev/doc","http://x.y"]`},
	})
}

func TestClock(t *testing.T) {
	run(t, clockServer(friday), []step{
		{"current_time", `{"zone":"Asia/Tokyo"}`, `{"time":"2024-06-01T03:30:00+09:00","weekday":"Saturday","zone":"Asia/Tokyo"}`},
		{"current_time", `{"zone":"Local"}`, `error: unknown time zone "Local"`},
		{"convert_timezone", `{"time":"2024-01-15 09:00","from":"America/New_York","to":"Europe/Berlin"}`, `{"time":"2024-01-15T15:00:00+01:00","weekday":"Monday","zone":"Europe/Berlin"}`},
		{"timezone_offset", `{"zone":"Europe/Berlin"}`, `{"abbreviation":"CEST","daylight_saving":true,"next_change":"2024-10-27T02:00:00+01:00","offset":"+02:00"}`},
		{"add_duration", `{"time":"2024-01-31","months":1,"hours":-1}`, `{"time":"2024-02-28T23:00:00Z","weekday":"Wednesday"}`},
		{"time_difference", `{"end":"2024-06-02T00:00:01Z"}`, `{"days":1.2291782407407,"hours":29.500277777778,"seconds":106201,"text":"1 day, 5 hours, 30 minutes, 1 second"}`},
		{"day_of_week", `{"date":"2024-02-29"}`, `{"day_of_year":60,"weekday":"Thursday"}`},
		{"count_business_days", `{"start":"2024-05-01","end":"2024-05-31","holidays":["2024-05-01"]}`, "22"},
		{"add_business_days", `{"days":2,"holidays":["2024-06-03"]}`, "2024-06-05 (Wednesday)"},
		{"iso_week", `{"date":"2021-01-03"}`, `{"end":"2021-01-03","start":"2020-12-28","week":"2020-W53"}`},
		{"parse_time", `{"text":"Jan 2, 2024"}`, "2024-01-02T00:00:00Z"},
		{"parse_time", `{"text":"02.01.24","layout":"02.01.06","zone":"Europe/Rome"}`, "2024-01-02T00:00:00+01:00"},
		{"parse_time", `{"text":"soon"}`, `error: "soon" is not a known format`},
		{"format_time", `{"time":"now","layout":"02.01.2006"}`, "31.05.2024"},
		{"is_leap_year", `{"year":1900}`, "false"},
		{"days_in_month", `{"year":2024,"month":2}`, "29"},
		{"month_calendar", `{"year":2024,"month":2}`,
			"February 2024\n Mo Tu We Th Fr Sa Su\n           1  2  3  4\n  5  6  7  8  9 10 11\n 12 13 14 15 16 17 18\n 19 20 21 22 23 24 25\n 26 27 28 29"},
		{"unix_to_time", `{"timestamp":1717180200}`, `{"time":"2024-05-31T18:30:00Z","weekday":"Friday","zone":"UTC"}`},
		{"time_to_unix", `{"time":"now","unit":"milliseconds"}`, "1717180200000"},
		{"calculate_age", `{"born":"1990-07-15"}`, `{"days":16,"months":10,"years":33}`},
		{"next_weekday", `{"weekday":"friday"}`, "2024-06-07"},
	})
}

func TestUnits(t *testing.T) {
	run(t, unitsServer(), []step{
		{"convert_length", `{"value":5,"from":"mile","to":"kilometer"}`, "5 mi = 8.04672 km"},
		{"convert_mass", `{"value":150,"from":"pound","to":"kilogram","decimals":1}`, "150 lb = 68 kg"},
		{"convert_temperature", `{"value":98.6,"from":"fahrenheit","to":"celsius"}`, "98.6 °F = 37 °C"},
		{"convert_speed", `{"value":100,"from":"kilometer_per_hour","to":"mile_per_hour","decimals":2}`, "100 km/h = 62.14 mph"},
		{"convert_area", `{"value":1,"from":"hectare","to":"square_meter"}`, "1 ha = 10000 m²"},
		{"convert_volume", `{"value":2,"from":"cup","to":"tablespoon"}`, "2 cup = 32 tbsp"},
		{"convert_data_size", `{"value":1,"from":"gibibyte","to":"byte"}`, "1 GiB = 1073741824 B"},
		{"convert_data_rate", `{"value":100,"from":"megabit_per_second","to":"megabyte_per_second"}`, "100 Mbit/s = 12.5 MB/s"},
		{"convert_pressure", `{"value":1,"from":"atmosphere","to":"hectopascal"}`, "1 atm = 1013.25 hPa"},
		{"convert_energy", `{"value":1,"from":"kilowatt_hour","to":"megajoule"}`, "1 kWh = 3.6 MJ"},
		{"convert_angle", `{"value":0.5,"from":"turn","to":"degree"}`, "0.5 tr = 180 °"},
		{"convert_time", `{"value":1.5,"from":"day","to":"hour"}`, "1.5 d = 36 h"},
		{"convert_fuel_economy", `{"value":5,"from":"liter_per_100_kilometers","to":"mile_per_gallon","decimals":1}`, "5 l/100km = 47 mpg"},
		{"convert_fuel_economy", `{"value":0,"from":"kilometer_per_liter","to":"liter_per_100_kilometers"}`, "error: cannot be expressed"},
		{"convert_units", `{"value":6,"from":"feet","to":"cm"}`, "6 ft = 182.88 cm"},
		{"convert_units", `{"value":20,"from":"C","to":"Fahrenheit"}`, "20 °C = 68 °F"},
		{"list_units", `{"dimension":"temperature"}`, "temperature: celsius (°C), fahrenheit (°F), kelvin (K), rankine (°R)\n"},
		{"compare_quantities", `{"a":{"value":5,"unit":"feet"},"b":{"value":1.6,"unit":"meters"}}`, "5 ft is less than 1.6 m, by 0.249343832021 ft"},
		{"format_bytes", `{"bytes":1536,"binary":true}`, "1.5 KiB"},
	})
}

func TestNotes(t *testing.T) {
	run(t, notesServer(), []step{
		{"put_note", `{"key":"garden","text":"Buy seeds","tags":["todo","home"]}`, "Saved version 1 of garden."},
		{"put_note", `{"key":"garden","text":"Buy seeds and soil"}`, "Saved version 2 of garden."},
		{"append_to_note", `{"key":"diary","text":"Worked in the [[garden]]"}`, "Saved version 1 of diary."},
		{"append_to_note", `{"key":"diary","text":"Rained"}`, "Saved version 2 of diary."},
		{"get_note", `{"key":"diary"}`, `{"key":"diary","text":"Worked in the [[garden]]\n\nRained","version":2}`},
		{"list_notes", `{}`, `[{"key":"diary"},{"key":"garden","tags":["home","todo"]}]`},
		{"search_notes", `{"query":"GARDEN worked"}`, `[{"key":"diary","text":"Worked in the [[garden]]\n\nRained"}]`},
		{"tag_note", `{"key":"diary","tags":["home"]}`, "diary is tagged home."},
		{"untag_note", `{"key":"garden","tag":"home"}`, "Removed the tag home from garden."},
		{"list_note_tags", `{}`, `{"home":1,"todo":1}`},
		{"note_history", `{"key":"garden"}`, `[{"version":1,"text":"Buy seeds"},{"version":2,"text":"Buy seeds and soil"}]`},
		{"diff_note_versions", `{"key":"garden","from":1}`,
			"--- version 1\n+++ version 2\n@@ -1,1 +1,1 @@\n-Buy seeds\n\\ No newline at end of file\n+Buy seeds and soil\n\\ No newline at end of file\n"},
		{"restore_note_version", `{"key":"garden","version":1}`, "Restored version 1 of garden as version 3."},
		{"note_backlinks", `{"key":"garden"}`, `["diary"]`},
		{"rename_note", `{"key":"garden","to":"yard"}`, "Renamed garden to yard."},
		{"export_notes", `{"tag":"todo"}`, `[{"key":"yard","text":"Buy seeds","tags":["todo"]}]`},
		{"import_notes", `{"json":"[{\"key\":\"yard\",\"text\":\"x\"},{\"key\":\"new\",\"text\":\"y\"}]"}`, "Imported 1 notes and skipped 1."},
		{"notes_statistics", `{}`, `{"notes":3,"versions":6,"tags":2,"words":8,"longest":"diary"}`},
		{"delete_note", `{"key":"yard"}`, "Deleted yard."},
		{"delete_note", `{"key":"yard"}`, `error: there is no note "yard"`},
	})
}

func TestToolCount(t *testing.T) {
	total := 0
	for _, s := range allServers(t) {
		tools := listTools(t, connect(t, s.server))
		t.Logf("%s: %d tools", s.name, len(tools))
		require.GreaterOrEqual(t, len(tools), 12, s.name)
		total += len(tools)
		names := map[string]bool{}
		for _, tool := range tools {
			require.Regexp(t, "^[a-z0-9_]+$", tool.Name)
			require.False(t, names[tool.Name], "%s has two tools %s", s.name, tool.Name)
			names[tool.Name] = true
			require.NotEmpty(t, tool.Description, tool.Name)
			for name, property := range tool.InputSchema.Properties {
				require.NotEmpty(t, property.(map[string]any)["description"], "%s: %s", tool.Name, name)
			}
		}
	}
	t.Logf("%d tools", total)
	require.GreaterOrEqual(t, total, 120)
}

func TestBadArguments(t *testing.T) {
	for _, s := range allServers(t) {
		c := connect(t, s.server)
		for _, tool := range listTools(t, c) {
			text, isError := call(t, c, tool.Name, map[string]any{})
			require.Equal(t, len(tool.InputSchema.Required) > 0, isError, "%s {}: %s", tool.Name, text)

			wrong := map[string]any{"unknown": true}
			for name, property := range tool.InputSchema.Properties {
				if property.(map[string]any)["type"] == "string" {
					wrong[name] = []int{1}
				} else {
					wrong[name] = "wrong"
				}
			}
			text, isError = call(t, c, tool.Name, wrong)
			require.True(t, isError, "%s: %s", tool.Name, text)
			delete(wrong, "unknown")
			text, isError = call(t, c, tool.Name, wrong)
			require.Equal(t, len(wrong) > 0, isError, "%s: %s", tool.Name, text)
		}
	}
}

// TestExtremeArguments calls every tool with strange and huge values.
func TestExtremeArguments(t *testing.T) {
	texts := []string{"", "\x00", "now", "é漢字🙂", "((((", "[[{{", "../..", "-1", strings.Repeat("a ", 2500), strings.Repeat("\n[", 1000)}
	numbers := []float64{0, -1, 1, 0.5, 1e-320, math.MaxFloat64, -math.MaxFloat64, 1<<53 - 1}
	for _, s := range allServers(t) {
		c := connect(t, s.server)
		for _, tool := range listTools(t, c) {
			for i := range texts {
				args := map[string]any{}
				for name, property := range tool.InputSchema.Properties {
					args[name] = extreme(property.(map[string]any), texts[i], numbers[i%len(numbers)])
				}
				call(t, c, tool.Name, args)
			}
		}
	}
}

// extreme returns a value for a property in the direction of a text and a number.
func extreme(schema map[string]any, text string, number float64) any {
	switch schema["type"] {
	case "string":
		if enum, ok := schema["enum"].([]any); ok {
			return enum[len(text)%len(enum)]
		}
		return text
	case "integer":
		low, _ := schema["minimum"].(float64)
		high, _ := schema["maximum"].(float64)
		return int64(min(max(number, low), high))
	case "boolean":
		return number > 0
	case "array":
		items, _ := schema["items"].(map[string]any)
		list := []any{}
		for range 20 {
			list = append(list, extreme(items, text, number))
		}
		return list
	case "object":
		values := map[string]any{"x": number}
		if properties, ok := schema["properties"].(map[string]any); ok {
			values = map[string]any{}
			for name, property := range properties {
				values[name] = extreme(property.(map[string]any), text, number)
			}
		}
		return values
	}
	return number
}

func TestConcurrentCalls(t *testing.T) {
	issues, notes := connect(t, issuesServer()), connect(t, notesServer())
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			call(t, issues, "create_issue", map[string]any{"title": "x", "labels": []string{"bug"}})
			call(t, issues, "add_comment", map[string]any{"number": 1, "body": "y"})
			call(t, issues, "list_issues", map[string]any{})
			call(t, notes, "put_note", map[string]any{"key": "k", "text": fmt.Sprint(i)})
			call(t, notes, "note_history", map[string]any{"key": "k"})
		})
	}
	wg.Wait()
	text, _ := call(t, issues, "issue_statistics", map[string]any{})
	require.Contains(t, text, `{"open":20,`)
}
