package figures

import (
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/golden"
)

// All that is exposed of calls of each outcome, at the bounds and beyond them.
func TestExposition(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What is exposed of nothing, and then of calls at each bound and beyond it.\n")
	e := NewExposition(&b)
	f := New()
	f.Expose(e)
	for i, bound := range bounds {
		f.Count("b", outcomes[i%len(outcomes)], bound)
		f.Count("b", OK, bound+1)
	}
	f.Count("", Refused, 0)
	f.Count("a \"\\\n\xff", Failed, 1500*time.Millisecond)
	f.CountUnauthorized()
	f.CountUnauthorized()
	b.WriteByte('\n')
	f.Expose(e)
	e.Gauge("open", "How many are open.", -3)
	e.Sample("bare", 0.25)
	e.Sample("several", 1e9, "a", "1", "b", "2")
	golden.Compare(t, "exposition.golden", b.String())
}
