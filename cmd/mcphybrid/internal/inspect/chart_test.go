package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/golden"
)

// What servers cost, as bars of several widths.
func TestCharts(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What servers cost, as bars, by the width of the screen, and whether that must not be exceeded.\n")
	some := []cost{{"crm", 900, 100}, {"mail", 0, 1000}, {"a-server-with-a-name-that-is-very-long-indeed", 1, 1}, {"", 0, 0}, {"世界", 500, 0}, {"edge", 999, 1}}
	for _, list := range [][]cost{nil, {{"free", 0, 0}}, some} {
		for _, width := range []int{10, 31, 40, 60, 80, 120} {
			for _, strict := range []bool{true, false} {
				fmt.Fprintf(&b, "\n%d columns, strict %v\n%s\n", width, strict, strings.Join(chart(list, width, strict), "\n"))
			}
		}
	}
	for _, c := range []cost{{"", 0, 1}, {"", 1, 0}, {"", 1, 1}, {"", 5, 5}, {"", 9, 1}, {"", 10, 0}} {
		for _, columns := range []int{0, 1, 2, 3, 10} {
			fmt.Fprintf(&b, "%d and %d of 10 in %d: [%s]\n", c.inline, c.deferred, columns, c.bar(10, columns))
		}
	}
	golden.Compare(t, "charts.golden", b.String())
}
