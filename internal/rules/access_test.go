package rules

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRightsPermitName(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		allow, deny []string
		yes, no     []string
	}{
		{"zero value", nil, nil, []string{"a", "", "a/b", "文"}, nil},
		{"empty lists", []string{}, []string{}, []string{"a"}, nil},
		{"allow names", []string{"read", "list"}, nil, []string{"read", "list"}, []string{"write", "rea", "reads", ""}},
		{"deny names", nil, []string{"write"}, []string{"read", "writes", ""}, []string{"write"}},
		{"deny beats allow", []string{"read", "write"}, []string{"write"}, []string{"read"}, []string{"write", "other"}},
		{"a denied pattern beats an allowed name", []string{"write"}, []string{"w*"}, nil, []string{"write"}},
		{"an allowed pattern does not beat a denied name", []string{"*"}, []string{"write"}, []string{"read"}, []string{"write"}},
		{"allow a pattern", []string{"get_*"}, nil, []string{"get_", "get_issue", "get_a/b"}, []string{"get", "forget_issue"}},
		{"question mark", []string{"v?"}, nil, []string{"v1", "v文", "v/"}, []string{"v", "v10"}},
		{"stars apart", nil, []string{"*b*d*"}, []string{"abc", "db"}, []string{"bd", "abcd", "xbxdx", "bbdd"}},
		{"a star at the end of what does not fit", nil, []string{"a*b"}, []string{"abc", "a"}, []string{"ab", "abb", "axbxb"}},
		{"other characters stand for themselves", nil, []string{`[a-z]\*`}, []string{"a*", "ab"}, []string{`[a-z]\x`}},
		{"case matters", nil, []string{"write"}, []string{"Write"}, []string{"write"}},
		{"deny everything", nil, []string{"*"}, nil, []string{"", "a", "a/b", "/", "a/b/c", "a\nb", "\xff"}},
		{"deny everything that is allowed", []string{"a/b"}, []string{"*"}, nil, []string{"a/b"}},
		{"a slash in the pattern", []string{"repo/*"}, nil, []string{"repo/a", "repo/a/b"}, []string{"repo", "repoa"}},
		{"NUL is no slash", nil, []string{"a/b"}, []string{"a\x00b"}, []string{"a/b"}},
		{"the empty pattern is the empty name", []string{""}, nil, []string{""}, []string{"a"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := Rights{{test.allow, test.deny}}
			for _, name := range test.yes {
				assert.True(t, r.PermitName(name), "%q", name)
			}
			for _, name := range test.no {
				assert.False(t, r.PermitName(name), "%q", name)
			}
		})
	}
}

// Rights that permit the same by other lists may have other keys. Those that permit everything share one.
func TestRightsKey(t *testing.T) {
	t.Parallel()
	for _, all := range []Rights{nil, {}, {{}}, {{Allow: []string{}}, {Deny: []string{}}}} {
		assert.Empty(t, all.Key())
	}
	keys := make(map[string]bool)
	for _, r := range []Rights{
		{{Allow: []string{"a"}}}, {{Deny: []string{"a"}}}, {{Allow: []string{"a", "b"}}}, {{Allow: []string{"a b"}}}, {{Allow: []string{`a" "b`}}},
		{{Allow: []string{"a"}}, {Allow: []string{"b"}}}, {{Allow: []string{"a"}, Deny: []string{"b"}}}, {{Allow: []string{""}}},
	} {
		assert.False(t, keys[r.Key()], "%q", r)
		keys[r.Key()] = true
	}
}

func TestAccessEmpty(t *testing.T) {
	t.Parallel()
	assert.True(t, Access{}.Empty())
	assert.True(t, Access{Allow: []string{}, Deny: []string{}}.Empty())
	assert.False(t, Access{Allow: []string{"*"}}.Empty())
	assert.False(t, Access{Deny: []string{"a"}}.Empty())
}

// What is kept shares nothing with what was given, and an empty list adds nothing.
func TestRightsAnd(t *testing.T) {
	t.Parallel()
	a := Access{Allow: []string{"read"}, Deny: []string{"write"}}
	r := Rights{}.And(Access{}).And(a)
	a.Allow[0], a.Deny[0] = "changed", "changed"
	assert.Equal(t, Rights{{[]string{"read"}, []string{"write"}}}, r)
	assert.True(t, r.Denies("write") && !r.Denies("read") && !r.Denies("neither"))

	r = r.And(a).And(a) // a list of three has room for a fourth
	one, other := r.And(Access{Deny: []string{"one"}}), r.And(Access{Deny: []string{"other"}})
	assert.True(t, one.Denies("one") && !one.Denies("other") && other.Denies("other"))
}

// All lists must permit a tool. What is not permitted is told by the entry that denies it.
func TestRightsOfATool(t *testing.T) {
	t.Parallel()
	tool := Subject{Name: "mcp_s__a", Server: "s", Own: "a", Wanted: "mcp_w__a"}
	for name, test := range map[string]struct {
		rights  Rights
		permits bool
		because string
	}{
		"none":               {nil, true, ""},
		"one":                {Rights{{Allow: []string{"s/a"}}}, true, ""},
		"another name":       {Rights{{Allow: []string{"b", "a"}}}, true, ""},
		"others":             {Rights{{Allow: []string{"b"}}}, false, ": it allows only others"},
		"denied":             {Rights{{Deny: []string{"b", "s/*"}}}, false, `: it denies "s/*"`},
		"denied and allowed": {Rights{{Allow: []string{"a"}, Deny: []string{"a"}}}, false, `: it denies "a"`},
		"the second":         {Rights{{Allow: []string{"a"}}, {Allow: []string{"b"}}}, false, ": it allows only others"},
		"the second denies":  {Rights{{Allow: []string{"b"}}, {Deny: []string{"a"}}}, false, `: it denies "a"`},
		"the wanted name":    {Rights{{Deny: []string{"mcp_w__*"}}}, false, `: it denies "mcp_w__*"`},
		"not by that name":   {Rights{{Allow: []string{"mcp_w__*"}}}, false, ": it allows only others"},
	} {
		assert.Equal(t, test.permits, test.rights.Permit(tool), name)
		if !test.permits {
			assert.Equal(t, test.because, test.rights.Because(tool), name)
		}
	}
}

// What is known of a server that has listed nothing is its name and how its tools' names begin, and
// perhaps the URI that somebody asks for.
func TestAccessMayPermit(t *testing.T) {
	t.Parallel()
	server := Subject{Name: "mcp_x__", Server: "x"}
	read := Subject{Name: "mcp_x__", Server: "x", URI: "mem://a"}
	tool := Subject{Name: "mcp_x__get", Server: "x", Own: "get"}
	for _, test := range []struct {
		allow, deny        string
		server, read, tool bool
	}{
		{"", "", true, true, true},
		{"x/*", "", true, true, true},
		{"x/get", "", true, true, true},
		{"mcp_x__g*", "", true, true, true},
		{"x/put", "", true, true, false},
		{"get", "", true, true, true},
		{"x/mem://a", "", true, true, false},
		{"y/*", "", false, false, false},
		{"mcp_y__*", "", false, false, false},
		{"", "x/*", false, false, false},
		{"", "mcp_x__*", false, false, false},
		{"", "*", false, false, false},
		{"", "mcp_*", false, false, false},
		{"x/*", "x/*", false, false, false},
		{"", "x/get", true, true, false},
		{"", "get*", true, true, false},
		{"", "x/*et", true, true, false},
		{"", "x/mem://*", true, false, true},
		{"", "y/*", true, true, true},
	} {
		var a Access
		if test.allow != "" {
			a.Allow = []string{test.allow}
		}
		if test.deny != "" {
			a.Deny = []string{test.deny}
		}
		assert.Equal(t, test.server, a.MayPermit(server), "%q", a)
		assert.Equal(t, test.read, a.MayPermit(read), "%q", a)
		assert.Equal(t, test.tool, a.MayPermit(tool), "%q", a)
	}
}
