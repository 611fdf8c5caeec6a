package nearest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// catalogNames are names like those of a host with a dozen servers.
var catalogNames = strings.Fields(`
mcp_github__create_issue mcp_github__get_issue mcp_github__list_issues mcp_github__update_issue mcp_github__add_issue_comment
mcp_github__create_pull_request mcp_github__list_pull_requests mcp_github__merge_pull_request mcp_github__get_pull_request_diff
mcp_github__create_branch mcp_github__list_branches mcp_github__search_code mcp_github__search_repositories mcp_github__fork_repository
mcp_github__get_file_contents mcp_github__push_files mcp_github__create_or_update_file
mcp_jira__create_ticket mcp_jira__get_ticket mcp_jira__transition_ticket mcp_jira__search_tickets mcp_jira__assign_ticket
mcp_filesystem__read_file mcp_filesystem__write_file mcp_filesystem__edit_file mcp_filesystem__list_directory
mcp_filesystem__move_file mcp_filesystem__search_files mcp_filesystem__directory_tree mcp_filesystem__get_file_info
mcp_slack__post_message mcp_slack__list_channels mcp_slack__get_channel_history mcp_slack__reply_to_thread mcp_slack__add_reaction
mcp_playwright__browser_click mcp_playwright__browser_navigate mcp_playwright__browser_snapshot mcp_playwright__browser_take_screenshot
mcp_playwright__browser_fill_form mcp_playwright__browser_press_key
mcp_kubernetes__kubectl_get mcp_kubernetes__kubectl_apply mcp_kubernetes__exec_in_pod mcp_kubernetes__port_forward
mcp_grafana__query_prometheus mcp_grafana__list_dashboards mcp_grafana__get_dashboard_by_uid mcp_grafana__list_alert_rules
mcp_postgres__query mcp_postgres__list_tables mcp_postgres__describe_table
mcp_stripe__create_invoice mcp_stripe__refundPayment mcp_stripe__list_customers
mcp_notion__create_page mcp_notion__append_block_children mcp_notion__query_database
mcp_memory__create_entities mcp_memory__search_nodes mcp_memory__open_nodes
mcp_calendar__create_event mcp_calendar__list_events mcp_calendar__delete_event
mcp_gitlab__create_merge_request mcp_gitlab__get_file_contents
web_fetch mcp_tool_search
`)

func TestNearest(t *testing.T) {
	tests := []struct{ name, want string }{ // want is the first name, or "" for none
		// Without the server.
		{"create_issue", "mcp_github__create_issue"},
		{"browser_take_screenshot", "mcp_playwright__browser_take_screenshot"},
		{"query", "mcp_postgres__query"},

		// Other separators and case.
		{"mcp-github-create-issue", "mcp_github__create_issue"},
		{"github.createIssue", "mcp_github__create_issue"},
		{"mcp__github__create_issue", "mcp_github__create_issue"},
		{"github/create_issue", "mcp_github__create_issue"},
		{"github:create-issue", "mcp_github__create_issue"},
		{"GitHub_Create_Issue", "mcp_github__create_issue"},
		{"CREATEISSUE", "mcp_github__create_issue"},
		{"githubcreateissue", "mcp_github__create_issue"},
		{"functions.mcp_github__create_issue", "mcp_github__create_issue"},
		{"mcp_stripe__refund_payment", "mcp_stripe__refundPayment"},
		{"mcp.notion.appendBlockChildren", "mcp_notion__append_block_children"},
		{"webFetch", "web_fetch"},
		{"tool_search", "mcp_tool_search"},

		// A typo.
		{"create_isue", "mcp_github__create_issue"},
		{"mcp_github__craete_issue", "mcp_github__create_issue"},
		{"mcp_github__serach_repostories", "mcp_github__search_repositories"},
		{"brwoser_navigte", "mcp_playwright__browser_navigate"},
		{"mcp_githb__create_issue", "mcp_github__create_issue"},
		{"kubectl_aply", "mcp_kubernetes__kubectl_apply"},
		{"creatissue", "mcp_github__create_issue"},

		// Another number, order, verb, or a word more or less.
		{"list_issue", "mcp_github__list_issues"},
		{"issue_create", "mcp_github__create_issue"},
		{"pull_request_create", "mcp_github__create_pull_request"},
		{"open_pull_request", "mcp_github__create_pull_request"},
		{"slack_send_message", "mcp_slack__post_message"},
		{"github_create_new_issue", "mcp_github__create_issue"},
		{"remove_event", "mcp_calendar__create_event"}, // the first one about events
		{"get_dashboard", "mcp_grafana__get_dashboard_by_uid"},
		{"take_screenshot", "mcp_playwright__browser_take_screenshot"},
		{"search_repos", "mcp_github__search_repositories"},

		// The right tool of the wrong server, and a tool that two servers have.
		{"mcp_gitlab__create_issue", "mcp_github__create_issue"},
		{"mcp_files__read_file", "mcp_filesystem__read_file"},
		{"linear.create_ticket", "mcp_jira__create_ticket"},
		{"gitlab_get_file_contents", "mcp_gitlab__get_file_contents"},
		{"mcp_gitlab__get_file_content", "mcp_gitlab__get_file_contents"},
		{"get_file_contents", "mcp_github__get_file_contents"},

		// No near name.
		{"", ""},
		{"___", ""},
		{"frobnicate", ""},
		{"send_rocket_to_moon", ""},
		{"delete_everything", ""},
		{"mcp", ""},
		{"mcp_github__", ""},
		{"\xff\xfe", ""},
		{"天气", ""},
	}
	for _, test := range tests {
		got := Names(test.name, slices.Values(catalogNames), 3)
		if test.want == "" {
			assert.Nil(t, got, "%q", test.name)
		} else if assert.NotEmpty(t, got, "%q", test.name) {
			assert.Equal(t, test.want, got[0], "%q: %q", test.name, got)
		}
	}
}

func TestNearestOrder(t *testing.T) {
	names := slices.Values([]string{"mcp_b__get_item", "mcp_a__get_item", "mcp_a__get_itme", "get_item", "mcp_a__get_items"})
	assert.Equal(t, []string{"get_item", "mcp_b__get_item", "mcp_a__get_item"}, Names("getItem", names, 3))
	assert.Equal(t, []string{"mcp_a__get_item", "mcp_b__get_item"}, Names("a.get_item", names, 2))
	assert.Equal(t, []string{"mcp_b__get_item"}, Names("c.get_item", names, 1))
	for _, n := range []int{0, -1} {
		assert.Nil(t, Names("get_item", names, n))
	}
	assert.Nil(t, Names("get_item", slices.Values([]string{}), 3))
	assert.Len(t, Names("get_item", names, 1<<40), 5)

	// A word in another place may have one wrong letter, but not the first.
	assert.Nil(t, Names("create_soup", slices.Values([]string{"soup_greate"}), 3))
	assert.Equal(t, []string{"soup_creafe"}, Names("create_soup", slices.Values([]string{"soup_creafe"}), 3))
}

// Each name is the nearest to itself in every spelling, and a slip in a long
// name does not change that. A shorter answer is the beginning of a longer one.
func TestNearestProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	spellings := []func(string) string{
		strings.ToUpper,
		func(s string) string { return strings.ReplaceAll(s, "_", "-") },
		func(s string) string { return strings.ReplaceAll(strings.TrimPrefix(s, "mcp_"), "__", ".") },
		func(s string) string { return strings.Replace(s, "mcp_", "mcp__", 1) },
	}
	for _, name := range catalogNames {
		require.Equal(t, []string{name}, Names(name, slices.Values(catalogNames), 1))
		for _, spell := range spellings {
			if s := spell(name); s != strings.ToUpper(s) || !strings.Contains(name, "refundPayment") { // it has no words left
				require.Equal(t, []string{name}, Names(s, slices.Values(catalogNames), 1), s)
			}
		}
		own := strings.LastIndex(name, "__") + 2
		for range 20 {
			b := []byte(name)
			if i := own + random.IntN(len(b)-own-1); len(b)-own >= 12 && b[i] != '_' && b[i+1] != '_' {
				b[i], b[i+1] = b[i+1], b[i]
				require.Equal(t, []string{name}, Names(string(b), slices.Values(catalogNames), 1), "%s", b)
			}
		}
		all := Names(name[own:], slices.Values(catalogNames), len(catalogNames))
		for n := range len(all) {
			require.Equal(t, all[:n], append([]string{}, Names(name[own:], slices.Values(catalogNames), n)...), "%s, %d", name, n)
		}
	}
}

// plainDistance is the definition: optimal string alignment.
func plainDistance(a, b string) int {
	switch {
	case a == "" || b == "":
		return len(a) + len(b)
	case a[0] == b[0]:
		return plainDistance(a[1:], b[1:])
	}
	d := 1 + min(plainDistance(a[1:], b), plainDistance(a, b[1:]), plainDistance(a[1:], b[1:]))
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		d = min(d, 1+plainDistance(a[2:], b[2:]))
	}
	return d
}

func TestDistance(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	word := func() []byte {
		b := make([]byte, random.IntN(8))
		for i := range b {
			b[i] = "abc"[random.IntN(3)]
		}
		return b
	}
	for range 20_000 {
		a, b := word(), word()
		want := plainDistance(string(a), string(b))
		for limit := range 9 {
			require.Equal(t, min(want, limit+1), min(distance(a, b, limit), limit+1), "%s %s %d", a, b, limit)
		}
	}
	assert.Equal(t, 128, distance([]byte(strings.Repeat("a", 128)), []byte(strings.Repeat("b", 128)), 128))
}

func TestFoldedName(t *testing.T) {
	tests := []struct {
		name  string
		words string
		first int
		tool  int
	}{
		{"mcp_my_server__create_issue", "mcp my server create issue", 1, 3},
		{"mcp-GitHub.getURLs", "mcp git hub get ur ls", 1, 3},
		{"parseHTTPResponse2x", "parse http response2x", 0, 0},
		{"a.b/c:d__e", "a b c d e", 0, 4},
		{"trailing__", "trailing", 0, 0},
		{"mcp_x__", "mcp x", 1, 1},
		{"__lead", "lead", 0, 0},
		{"mcp", "mcp", 0, 0},
		{"überTool", "über tool", 0, 0},
		{"", "", 0, 0},
	}
	for _, test := range tests {
		f := foldedName{tool: 7, count: 7}
		f.fold(test.name)
		var words []string
		for i := range f.count {
			words = append(words, string(f.word(i)))
		}
		assert.Equal(t, strings.Fields(test.words), append([]string{}, words...), test.name)
		assert.Equal(t, []int{test.first, test.tool}, []int{f.first, f.tool}, test.name)
	}
	long := foldedName{}
	long.fold(strings.Repeat("a_", 1<<20))
	assert.Equal(t, 64, long.count)
	long.fold(strings.Repeat("ABc", 42) + ".x") // 84 words
	assert.Equal(t, []int{64, 64 - 1}, []int{long.count, long.tool})

	// A word counts once.
	var one, two foldedName
	one.fold("issue")
	two.fold("issue_issue")
	shared, _ := one.sharedWords(&two)
	assert.Equal(t, 2000*2/(5+2), shared)
}

// Words of four letters may be slips of each other, shorter ones are other words.
func TestIsSlip(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"user", "usre"}: true, {"user", "users"}: true, {"user", "usx"}: false, {"use", "usr"}: false, {"use", "user"}: false, {"list", "listing"}: true, {"list", "lxst"}: true, {"list", "lxxt"}: false, {"lists", "xlistsx"}: false,
	} {
		assert.Equal(t, want, isSlip([]byte(pair[0]), []byte(pair[1])), pair)
		assert.Equal(t, want, isSlip([]byte(pair[1]), []byte(pair[0])), pair)
	}
}

// Own names share the letters that stay in order, by the longer of them; what is below three
// quarters, or the floor, counts nothing.
func TestSharedLetters(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	word := func() string {
		b := make([]byte, 1+random.IntN(9))
		for i := range b {
			b[i] = "abc"[random.IntN(3)]
		}
		return string(b)
	}
	seen := make(map[bool]int)
	for range 20_000 {
		a, b, floor := word(), word(), 700+random.IntN(301)
		if random.IntN(2) == 0 { // alike
			b = a + word()[:1]
		}
		var own, other foldedName
		own.fold(a)
		other.fold(b)
		longer := max(len(a), len(b))
		want := 1000 - 1000*plainDistance(a, b)/longer
		if want < max(floor, 750) {
			want = 0
		}
		got := own.sharedLetters(&other, floor)
		if got < max(floor, 750) { // what is a little below may come out too
			got = 0
		}
		require.Equal(t, want, got, "%s %s %d", a, b, floor)
		seen[want > 0]++
	}
	assert.Greater(t, seen[true], 1000)
	assert.Greater(t, seen[false], 1000)
}

func TestNearestBounded(t *testing.T) {
	for _, s := range []string{"create_issue_", "a_", "A", "aB", "\xff", "_", "é"} {
		long := strings.Repeat(s, 1<<20/len(s))
		allocs := testing.AllocsPerRun(5, func() { Names(long, slices.Values(append(catalogNames, long)), 2) })
		assert.Less(t, allocs, 20.0, s)
	}
}

func FuzzNearest(f *testing.F) {
	f.Add("create_isue", "mcp_github__create_issue\nmcp_jira__create_ticket", 3)
	f.Add("mcp.\xff\xfe", "\xff\n\n_", 1)
	f.Add("aBcDeFgH", "a_b_c\nABC", 2)
	f.Fuzz(func(t *testing.T, name, list string, n int) {
		candidates := strings.Split(list, "\n")
		got := Names(name, slices.Values(candidates), n)
		require.LessOrEqual(t, len(got), max(n, 0))
		require.Equal(t, got, Names(name, slices.Values(candidates), n))
		for _, g := range got {
			require.Contains(t, candidates, g)
		}
		if i := slices.Index(candidates, name); i >= 0 && n > 0 && len(name) <= 128 {
			var folded foldedName
			if folded.fold(name); folded.count > 0 {
				require.NotEmpty(t, got)
			}
		}
	})
}

func BenchmarkNearest(b *testing.B) {
	verbs := []string{"create", "list", "get", "update", "delete", "search", "add", "remove"}
	nouns := []string{"issue", "pull_request", "branch", "page", "message", "channel", "invoice", "repository", "file", "alert_rule"}
	for _, size := range []int{400, 40_000} {
		var names []string
		for i := range size {
			names = append(names, fmt.Sprintf("mcp_server_%d__%s_%s_of_%s", i/80, verbs[i%8], nouns[i/8%10], nouns[i/80%10]))
		}
		for _, name := range []string{"create_issue_of_page", "mcp_gitlab__crete_isue_in_page", "xyzzy"} {
			b.Run(fmt.Sprintf("candidates=%d/%s", size, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Names(name, slices.Values(names), 3)
				}
			})
		}
	}
}
