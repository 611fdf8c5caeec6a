package names

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// providerName matches the tool names that model providers accept.
var providerName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func TestSpecA3RegisteredName(t *testing.T) {
	// The eight characters at the end of an unsafe name are the first of the
	// SHA-256 of server, NUL, tool. They must not change: hosts have stored
	// conversations with such names.
	tests := []struct {
		name, server, prefix, tool string
		want                       string
	}{
		{"prefix from the server's name", "github", "", "create_issue", "mcp_github__create_issue"},
		{"- becomes _ in a derived prefix", "my-other-server", "", "run", "mcp_my_other_server__run"},
		{"- stays in the tool's name", "my-server", "", "run-it", "mcp_my_server__run-it"},
		{"a server that is named mcp_ is no given prefix", "mcp_x", "", "run", "mcp_mcp_x__run"},
		{"given prefix gets mcp_", "my-server", "ops", "run", "mcp_ops__run"},
		{"given prefix that has mcp_", "my-server", "mcp_ops", "run", "mcp_ops__run"},
		{"given prefix that only begins like it", "s", "mcpops", "run", "mcp_mcpops__run"},
		{"given prefix keeps its -", "s", "my-ops", "run", "mcp_my-ops__run"},
		{"case is kept", "GitHub", "", "createIssue", "mcp_GitHub__createIssue"},
		{"64 characters are kept", "s", "", strings.Repeat("x", 57), "mcp_s__" + strings.Repeat("x", 57)},

		{"65 characters are cut", "s", "", strings.Repeat("x", 58), "mcp_s__" + strings.Repeat("x", 48) + "_4160b76e"},
		{"long name", "s", "", strings.Repeat("x", 80), "mcp_s__" + strings.Repeat("x", 48) + "_cbf4205d"},
		{"slash", "my-server", "", "a/b", "mcp_my_server__a_b_44a208c8"},
		{"space in the tool's name", "github", "", "create issue", "mcp_github__create_issue_32639782"},
		{"Han: an underscore for each character", "文件", "", "搜索", "mcp_" + "__" + "__" + "__" + "_ff27b5d5"},
		{"no server", "", "", "tool", "mcp___tool"},
		{"the hash is of the server, not the prefix", "github", "x", "create issue", "mcp_x__create_issue_32639782"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Alone(test.server, test.prefix).Name(test.tool)
			assert.Equal(t, test.want, got)
			assert.Regexp(t, providerName, got)
		})
	}
}

func TestSpecA3UnsafeCharacters(t *testing.T) {
	for _, tool := range []string{"a b", "a.b", "a:b", "a/b", "a\nb", "a\x00b", "a\"b", "a\u00e9b", "a\u0430b", "a文b", "a🚀b", "a\xffb", "a\u200bb", "a\u202eb"} {
		got := Alone("server", "").Name(tool)
		assert.Regexp(t, `^mcp_server__a_b_[0-9a-f]{8}$`, got, "tool %q", tool)
	}
	for _, prefix := range []string{"o p", "o/p", "o文p", "o\np"} {
		got := Alone("server", prefix).Name("run")
		assert.Regexp(t, `^mcp_o_p__run_[0-9a-f]{8}$`, got, "prefix %q", prefix)
	}
}

// Names of a thousand lengths are safe. Two tools that differ only behind the
// cut have different names.
func TestSpecA3LongNames(t *testing.T) {
	for n := range 1000 {
		long := strings.Repeat("x", n)
		a, b := Alone("server", "").Name(long+"a"), Alone("server", "").Name(long+"b")
		require.Regexp(t, providerName, a)
		require.NotEqual(t, a, b)
		require.Regexp(t, providerName, Alone(long, "").Name("tool"))
		require.Regexp(t, providerName, Alone("server", long).Name("tool"))
	}
}

func TestSpecA3DistinctNames(t *testing.T) {
	t.Parallel()
	const pairs = 100_000
	owners := make(map[string]string, pairs)
	for i := range pairs {
		// 400 servers have 250 tools each. Every fourth tool has a name that is
		// too long and differs from its neighbours only behind the cut.
		server, tool := fmt.Sprintf("server %d", i/250), fmt.Sprintf("get/item.%d", i%250)
		if i%4 == 0 {
			tool = strings.Repeat("long_", 12) + fmt.Sprint(i%250)
		}
		name := Alone(server, "").Name(tool)
		owner := server + "\x00" + tool
		if other, ok := owners[name]; ok {
			require.FailNow(t, "not distinct", "%q is the name of %q and of %q", name, other, owner)
		}
		owners[name] = owner
	}
	assert.Len(t, owners, pairs)
}

// Two tools of one server may get the same name. Then the second gets another
// hash, whichever of them is there.
func TestNameIsTaken(t *testing.T) {
	b := NewBook(4)
	c, first, err := b.Claim("github", "")
	require.NoError(t, err)
	assert.Empty(t, first)
	name := func(tool string) string {
		t.Helper()
		name, err := b.Name(c, tool)
		require.NoError(t, err)
		return name
	}
	assert.Equal(t, "mcp_github__create_issue_32639782", name("create issue"))
	assert.Equal(t, "mcp_github__create_issue_32639782_0ad7929e", name("create_issue_32639782"))
	assert.Equal(t, "mcp_github__report_20240101", name("report_20240101"), "it only looks like a hash")
	assert.Equal(t, "mcp_github__create_issue_32639782", name("create issue"), "again")
	assert.Equal(t, "mcp_github__a_b_", name("a?b!")[:16])
	_, err = b.Name(c, "one more")
	assert.EqualError(t, err, "the server has used up the names that need a hash")
	assert.Equal(t, "mcp_github__plain", name("plain"), "it needs no hash")
}

func TestClaims(t *testing.T) {
	b := NewBook(10)
	claim := func(server, given string) (prefix, first string) {
		t.Helper()
		c, first, err := b.Claim(server, given)
		require.NoError(t, err)
		assert.Equal(t, server, c.Server)
		return c.Prefix, first
	}
	tests := []struct{ server, given, prefix, first string }{
		{"my-server", "", "mcp_my_server", ""},
		{"my_server", "", "mcp_my_server_ddc1744a", "my-server"},
		{"third", "my_server", "mcp_my_server_b1e99324", "my-server"},
		{"my-server", "", "mcp_my_server", ""}, // again
		{"a", "", "mcp_a", ""},
		{"a__b", "", "mcp_a_b_63e5c1c4", "a"}, // a may have a tool b__run
		{"a_", "", "mcp_a_571fb0e3", "a"},     // and one _run
		{"x__y", "", "mcp_x__y", ""},
		{"x", "", "mcp_x_2d711642", "x__y"},
		{"a b", "", "mcp_a_b", ""},
	}
	for _, test := range tests {
		prefix, first := claim(test.server, test.given)
		assert.Equal(t, test.first, first, test.server)
		assert.Equal(t, test.prefix, prefix)
	}
	claims := b.Claims()
	assert.Len(t, claims, len(tests)-1)

	// Another process gives the same names.
	again := NewBook(10)
	again.Restore(claims)
	assert.Empty(t, again.Refused())
	assert.Equal(t, claims, again.Claims())
	for _, test := range slices.Backward(tests) {
		want, _ := claim(test.server, test.given)
		c, _, err := again.Claim(test.server, test.given)
		require.NoError(t, err)
		assert.Equal(t, want, c.Prefix)
	}

	// The names that were given here count.
	again.Restore([]Claim{
		{"evil", "mcp_evil", "mcp_a"}, {"evil", "mcp_evil", "mcp_a__x"}, {"evil", "mcp_evil", "mcp_x__y__z"},
		{"evil", "mcp_evil", "a b"}, {"", "mcp_n", "mcp_n"}, {"evil", "x", "mcp_n"}, {"evil", "mcp_evil", "mcp_" + strings.Repeat("n", 60)},
		{"a", "mcp_a", "mcp_other"},
	})
	assert.Equal(t, claims, again.Claims())
	assert.Len(t, again.Refused(), 8)
	assert.Empty(t, again.Refused())
}

// A server above takes no prefix from another one below. The same server has the same.
func TestAbove(t *testing.T) {
	t.Parallel()
	below := NewBook(10)
	claim := func(b *Book, server string) string {
		c, _, err := b.Claim(server, "")
		require.NoError(t, err)
		return c.Prefix
	}
	assert.Equal(t, "mcp_s_0", claim(below, "s-0"))
	above := below.Above()
	assert.Equal(t, "mcp_s_0", claim(above, "s-0"))
	other := claim(above, "s_0")
	assert.Regexp(t, "^mcp_s_0_[0-9a-f]{8}$", other)
	assert.Equal(t, other, claim(below, "s_0"))
	assert.Equal(t, "mcp_t", claim(above, "t"))
	assert.Equal(t, "mcp_t", claim(below, "t"), "what is below knows nothing of what is above")
	_, first, err := above.Claim("s_0", "")
	require.NoError(t, err)
	assert.Equal(t, "s-0", first)
}

// A snapshot of the prefixes tells whose a name is, and does not change.
func TestPrefixes(t *testing.T) {
	b := NewBook(10)
	assert.Empty(t, b.Prefixes().Server("mcp_a__x"))
	for _, server := range []string{"a-b", "c", "a__b", "c_", "e"} { // five, for which there is room for more
		_, _, err := b.Claim(server, "")
		require.NoError(t, err)
	}
	p := b.Prefixes()
	c, _, err := b.Claim("d", "")
	require.NoError(t, err)
	for _, between := range []string{"b", "a0", "bb"} {
		_, _, err := b.Claim(between, "")
		require.NoError(t, err)
	}
	for name, server := range map[string]string{
		"mcp_a_b__x": "a-b", "mcp_c__": "c", "mcp_c___x": "c", "mcp_a__b__x": "a__b", "mcp_a__x": "", "mcp_c_x": "", "mcp_d__x": "", "mcp_b__x": "", "": "", "x": "", "mcp_z__x": "",
	} {
		assert.Equal(t, server, p.Server(name), name)
	}
	for name, prefix := range map[string]string{"mcp_a_b__x": "mcp_a_b", "mcp_a__b__x": "mcp_a__b", "mcp_c___x": "mcp_c", "mcp_z__x": "", "": ""} {
		assert.Equal(t, prefix, p.Prefix(name), name)
	}
	assert.Equal(t, "d", b.Prefixes().Server(c.Name("x")))
	_, _, err = b.Claim("d", "") // which has its prefix
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(5, func() { b.Prefixes() }), "made once, however many there are")
	assert.Empty(t, b.Above().Prefixes(), "those of a Book below are not its own")
}

func TestClaimsAreBounded(t *testing.T) {
	t.Parallel()
	b := NewBook(10)
	for i := range 100_000 {
		_, _, err := b.Claim(fmt.Sprint("server ", i), "")
		require.NoError(t, err)
	}
	_, _, err := b.Claim("one more", "")
	assert.EqualError(t, err, "names are kept for 100000 servers, which is the limit")
	_, _, err = b.Claim("server 7", "")
	assert.NoError(t, err)
	b.Restore([]Claim{{"one more", "mcp_one", "mcp_one"}})
	assert.Len(t, b.Refused(), 1)
}

// However servers choose the names of their prefixes and tools, and whenever
// they come, no name ever means two tools.
func TestNamesNeverChangeHands(t *testing.T) {
	t.Parallel()
	parts := []string{"a", "b", "_", "__", "-", ".", "mcp_", "é", "_0a1b2c3d", "_32639782", strings.Repeat("x", 30)}
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		word := func(n int) (w string) {
			for range 1 + rnd.IntN(n) {
				w += parts[rnd.IntN(len(parts))]
			}
			return w
		}
		b := NewBook(1000)
		owners, given := make(map[string][2]string), make(map[[2]string]string)
		var known []string
		for range 60 {
			server, prefix, tool := word(3), "", word(4)
			if rnd.IntN(3) == 0 {
				prefix = word(2)
			}
			if len(known) > 0 && rnd.IntN(3) == 0 { // the end of an existing name
				name := known[rnd.IntN(len(known))]
				tool = name[rnd.IntN(len(name)):]
			}
			c, _, err := b.Claim(server, prefix)
			require.NoError(t, err)
			name, err := b.Name(c, tool)
			require.NoError(t, err)
			require.Regexp(t, providerName, name)
			require.True(t, strings.HasPrefix(name, "mcp_"), name)
			who := [2]string{c.Server, tool}
			if other, ok := owners[name]; ok {
				require.Equal(t, other, who, "seed %d: %s", seed, name)
			}
			owners[name] = who
			key := [2]string{c.Prefix, tool}
			if before, ok := given[key]; ok {
				require.Equal(t, before, name)
			}
			given[key] = name
			known = append(known, name)
			if rnd.IntN(20) == 0 { // another process continues, with the prefixes only
				next := NewBook(1000)
				next.Restore(b.Claims())
				require.Equal(t, b.Claims(), next.Claims())
			}
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("github", "", "create_issue", "x", "github__create", "issue")
	f.Add("my-server", "ops", "a/b", "a", "", "b")
	f.Add("文件", "mcp_文", "搜索", "", "", "")
	f.Add("a\xff", "\x00", "\n", "mcp_", "mcp_", strings.Repeat("x", 100))
	f.Fuzz(func(t *testing.T, server, prefix, tool, server2, prefix2, tool2 string) {
		if server == "" || server2 == "" {
			return // such servers are refused earlier
		}
		b := NewBook(10)
		one, _, err := b.Claim(server, prefix)
		require.NoError(t, err)
		two, _, err := b.Claim(server2, prefix2)
		require.NoError(t, err)
		name, err := b.Name(one, tool)
		require.NoError(t, err)
		other, err := b.Name(two, tool2)
		require.NoError(t, err)
		for _, n := range []string{name, other} {
			require.Regexp(t, providerName, n)
			require.True(t, strings.HasPrefix(n, "mcp_"), n)
		}
		if server != server2 || tool != tool2 {
			require.NotEqual(t, name, other)
		}
		require.True(t, strings.HasPrefix(name, one.Start()), name)
		require.True(t, strings.HasPrefix(other, two.Start()), other)
		again := NewBook(10)
		again.Restore(b.Claims())
		require.Equal(t, b.Claims(), again.Claims())
	})
}

// A Book takes no prefix of the one below it, also if it has not given that prefix itself,
// and neither does what it restores.
func TestAboveTakesNothingFromBelow(t *testing.T) {
	t.Parallel()
	below := NewBook(10)
	for _, server := range []string{"s-0", "long__er"} {
		_, _, err := below.Claim(server, "")
		require.NoError(t, err)
	}
	for server, owner := range map[string]string{
		"s_0":         "s-0",      // the same prefix
		"long":        "long__er", // its names could begin with the other's
		"long__er__x": "long__er", // and the other way round
	} {
		for _, above := range []*Book{below.Above(), below.Above().Above()} {
			c, first, err := above.Claim(server, "")
			require.NoError(t, err)
			assert.NotEqual(t, Alone(server, "").Prefix, c.Prefix, server)
			assert.Equal(t, owner, first, server)
		}
		above := below.Above()
		taken := Alone(server, "")
		above.Restore([]Claim{taken})
		assert.Equal(t, []Claim{taken}, above.Refused(), server)
		assert.Zero(t, above.Len())
	}
}

// A store gets the claims of both, and where two are in conflict, keeps its own.
func TestMerge(t *testing.T) {
	t.Parallel()
	stored := []Claim{Alone("a", ""), Alone("s-0", "")}
	further := []Claim{Alone("b", ""), Alone("s_0", ""), Alone("a", "")}
	assert.Equal(t, []Claim{Alone("a", ""), Alone("b", ""), Alone("s-0", "")}, Merge(stored, further))
	assert.Equal(t, []Claim{Alone("a", ""), Alone("b", ""), Alone("s_0", "")}, Merge(further, stored))
	assert.Equal(t, stored, Merge(stored, nil))
	assert.Equal(t, stored, Merge(nil, stored))
	assert.Empty(t, Merge(nil, nil))
}

// What Refused returns is the caller's, whatever is done with it.
func TestRefusedIsTheCallers(t *testing.T) {
	t.Parallel()
	b := NewBook(10)
	bad := func(server string) Claim { return Claim{server, "mcp_x", "no prefix"} }
	b.Restore([]Claim{bad("a"), bad("b"), bad("c")})
	first := b.Refused()
	require.Len(t, first, 3)
	b.Restore([]Claim{bad("d")})
	first[0] = Claim{}
	_ = append(first, Claim{})
	b.Restore([]Claim{bad("a")})
	assert.Equal(t, []Claim{bad("d")}, b.Refused(), "a has been returned before")
}

// However many claims a store has that are wrong, 100 of them are told.
func TestRefusedIsBounded(t *testing.T) {
	t.Parallel()
	b := NewBook(10)
	var bad []Claim
	for i := range 101 {
		bad = append(bad, Claim{fmt.Sprint("server ", i), "mcp_x", "no prefix"})
	}
	b.Restore(bad)
	assert.Equal(t, bad[:100], b.Refused())
}

// A claim knows the own names of its server's tools.
func TestOwnNames(t *testing.T) {
	t.Parallel()
	c := Alone("srv", "")
	own, ok := c.Own(c.Prefix + separator + "a__b")
	assert.True(t, ok)
	assert.Equal(t, "a__b", own)
	for _, name := range []string{c.Prefix + "_a", "mcp_other__a", ""} {
		_, ok = c.Own(name)
		assert.False(t, ok, name)
	}
}

// Servers of one book are told apart, whatever stands below it.
func TestConflictsWithinABookAbove(t *testing.T) {
	t.Parallel()
	for _, below := range []string{"", "other"} {
		under := NewBook(10)
		if below != "" {
			_, _, err := under.Claim(below, "")
			require.NoError(t, err)
		}
		above := under.Above()
		one, first, err := above.Claim("a-b", "")
		require.NoError(t, err)
		assert.Empty(t, first)
		two, first, err := above.Claim("a_b", "")
		require.NoError(t, err)
		assert.Equal(t, "a-b", first)
		assert.NotEqual(t, one.Prefix, two.Prefix)
	}
	b := NewBook(10).Above()
	b.Restore([]Claim{Alone("a-b", ""), Alone("a_b", "")})
	assert.Equal(t, []Claim{Alone("a_b", "")}, b.Refused())
}

// A name begins with prefixes of both only if they meet.
func TestPrefixesThatMeet(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		book := func() Prefixes {
			b := NewBook(10)
			for range rnd.IntN(8) {
				parts := []string{"a", "b", "_", "__", "a"}
				name := "s"
				for range rnd.IntN(6) {
					name += parts[rnd.IntN(len(parts))]
				}
				_, _, err := b.Claim(name, "")
				require.NoError(t, err)
			}
			return b.Prefixes()
		}
		p, others := book(), book()
		var want []int
		for n, mine := range p.given {
			if slices.ContainsFunc(others.given, func(o prefix) bool {
				return strings.HasPrefix(mine.begin, o.begin) || strings.HasPrefix(o.begin, mine.begin)
			}) {
				want = append(want, n)
			}
		}
		require.Equal(t, want, p.Meeting(others), "seed %d: %v and %v", seed, p.given, others.given)
	}
}
