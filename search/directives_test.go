package search

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFindDirectives(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		answer string
		want   []string
	}{
		{"", nil},
		{"SEARCH_TOOLS:", nil},
		{"SEARCH_TOOLS:   \n", nil},
		{"You can write SEARCH_TOOLS: x in a line", nil},
		{"search_tools: x", nil},
		{"SEARCH_TOOLS: a\r\nSEARCH_TOOLS:b\rSEARCH_TOOLS: a", []string{"a", "b"}},
		{"  **SEARCH_TOOLS: send mail**\n> `SEARCH_TOOLS: read mail`\n- SEARCH_TOOLS: 天气\n", []string{"send mail", "read mail", "天气"}},
		{strings.Repeat("SEARCH_TOOLS: x\nSEARCH_TOOLS: y\n", 100), []string{"x", "y"}},
		{"SEARCH_TOOLS: 1\nSEARCH_TOOLS: 2\nSEARCH_TOOLS: 3\nSEARCH_TOOLS: 4\nSEARCH_TOOLS: 5\nSEARCH_TOOLS: 6", []string{"1", "2", "3", "4", "5"}},
	} {
		assert.Equal(t, test.want, FindDirectives(test.answer), "%q", test.answer)
	}
	for _, mark := range " \t*_`>\"'#-" {
		around := strings.Repeat(string(mark), 3)
		assert.Equal(t, []string{"a " + string(mark) + " b"}, FindDirectives(around+"SEARCH_TOOLS:"+around+"a "+string(mark)+" b"+around), "%q", mark)
	}
	assert.Nil(t, FindDirectives("+SEARCH_TOOLS: a\n.SEARCH_TOOLS: b"))
	assert.Equal(t, []string{"a .", "+ b"}, FindDirectives("SEARCH_TOOLS: a .\nSEARCH_TOOLS: + b"))
	var d Directives
	n, err := d.Write([]byte("SEARCH_TOOLS: x"))
	assert.Equal(t, len("SEARCH_TOOLS: x"), n)
	assert.NoError(t, err)
	assert.Equal(t, []string{"x"}, d.End())
	assert.Nil(t, d.End(), "another answer")
	long := FindDirectives("SEARCH_TOOLS: " + strings.Repeat("x", 1<<20))
	assert.Len(t, long[0], 4096-len("SEARCH_TOOLS: "))
}

// However an answer is cut into pieces, we find the same directives.
func FuzzDirectives(f *testing.F) {
	f.Add("text\nSEARCH_TOOLS: a b\nmore", 3)
	f.Add("**SEARCH_TOOLS: \xff**\r\nSEARCH_TOOLS: 天", 1)
	f.Fuzz(func(t *testing.T, answer string, size int) {
		want := FindDirectives(answer)
		var d Directives
		for rest := answer; len(rest) > 0; {
			n := min(max(size, 1), len(rest))
			_, _ = d.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		got := d.End()
		assert.Equal(t, want, got)
		if len(got) > 5 {
			t.Fatal(len(got))
		}
		assert.Nil(t, d.End())
	})
}
