package search

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTopic(t *testing.T) {
	of := func(server string, names ...string) string {
		s := Topic{Server: server}
		for _, n := range names {
			s.Add(n)
		}
		return s.String()
	}
	assert.Equal(t, "issue, comment, pull", of("github", "create_issue", "listIssues", "github-add-comment", "issue_comments", "pull_request", "push"))
	assert.Equal(t, "", of("x", "get_data", "Ünï", "a_b_c", ""))
	assert.Equal(t, "issue, pull, abc", of("x", "pull_Pulls", "ab_issue_abc", "issues", "getX_xyz9", "zzz"), "once in a name, and of three letters")
	assert.Equal(t, []string{"create", "pull", "request"}, wordsOf("createPullRequest"))
	assert.Equal(t, []string{"get", "http", "log", "x"}, wordsOf("get-HTTPLog2_x"))
	assert.Equal(t, []string{"ab", "cd"}, wordsOf("ab日本CD"))
	for i := range 3 {
		assert.Equal(t, "alpha, beta, gamma", of("s", "alpha", "beta", "gamma", "delta"), fmt.Sprint(i))
	}
}

func FuzzTopic(f *testing.F) {
	f.Add("createPullRequest")
	f.Fuzz(func(t *testing.T, name string) {
		s := Topic{Server: name[:len(name)/2]}
		s.Add(name)
		for _, r := range s.String() {
			if r != ',' && r != ' ' && (r < 'a' || r > 'z') {
				t.Errorf("%q has %q", s.String(), r)
			}
		}
	})
}
