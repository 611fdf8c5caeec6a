package servers

import (
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
)

// A column is as wide as the longest name, at least 20, unless it must fit: then at most as
// wide as there is room, and at least 4.
func TestNameColumn(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 30)
	for _, test := range []struct {
		names  []string
		most   int
		strict bool
		name   string
		want   string
	}{
		{nil, 0, false, "a", "a" + strings.Repeat(" ", 19)},
		{[]string{long}, 5, false, long, long},
		{[]string{long}, 5, true, long, "xxxx…"},
		{[]string{long}, 1, true, long, "xxx…"},
		{[]string{"a"}, 100, true, "a", "a" + strings.Repeat(" ", 19)},
		{[]string{long}, 100, true, "a\x1b", "a?" + strings.Repeat(" ", 28)},
	} {
		assert.Equal(t, test.want, NameColumn(test.names, test.most, test.strict)(test.name))
	}
}

func TestStandings(t *testing.T) {
	t.Parallel()
	assert.Nil(t, Standings(nil))
	of := func(standing, reason string) mcphybrid.Placement {
		return mcphybrid.Placement{Standing: standing, Reason: reason}
	}
	assert.Equal(t, []string{"2 b: x", "1 a: x", "1 b: y"}, Standings([]mcphybrid.Placement{of("b", "x"), of("a", "x"), of("b", "x"), of("b", "y")}))
}
