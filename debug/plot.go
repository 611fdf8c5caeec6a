package debug

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/snapshot"
)

// A plot draws samples in a box 1000 wide and 200 high. The page stretches the box,
// so all text stands outside of it.
type plot struct {
	Sent, Saved string // SVG paths of the two areas; Saved lies on top of Sent
	Top         int    // tokens at the upper edge
	From, To    time.Time
	Last        snapshot.Sample
}

// LastSaved returns the tokens saved in the newest sample.
func (p plot) LastSaved() int { return saved(p.Last) }

// Share returns the percentage of tokens saved in the newest sample.
func (p plot) Share() int { return 100 * saved(p.Last) / max(p.Last.All, 1) }

func saved(s snapshot.Sample) int { return max(s.All-s.Sent, 0) }

// newPlot draws samples, which must be oldest first. It returns nil if there are
// fewer than two, or nothing was ever saved.
func newPlot(samples []snapshot.Sample) *plot {
	if len(samples) < 2 || !slices.ContainsFunc(samples, func(s snapshot.Sample) bool { return saved(s) > 0 }) {
		return nil
	}
	first, last := samples[0], samples[len(samples)-1]
	p := &plot{From: first.At, To: last.At, Last: last, Top: 1}
	for _, s := range samples {
		p.Top = max(p.Top, s.All, s.Sent)
	}
	p.Top = roundUp(p.Top)
	span := max(last.At.Sub(first.At), 1)
	point := func(s snapshot.Sample, tokens int) string {
		x := 1000 * float64(s.At.Sub(first.At)) / float64(span)
		return fmt.Sprintf("%.1f,%.1f", x, 200-200*float64(tokens)/float64(p.Top))
	}
	var bottom, middle, top []string
	for _, s := range samples {
		bottom = append(bottom, point(s, 0))
		middle = append(middle, point(s, s.Sent))
		top = append(top, point(s, s.Sent+saved(s)))
	}
	p.Sent, p.Saved = area(bottom, middle), area(middle, top)
	return p
}

// area returns the SVG path around the area between two lines.
func area(below, above []string) string {
	var b strings.Builder
	b.WriteString("M" + above[0])
	for _, point := range above[1:] {
		b.WriteString("L" + point)
	}
	for i := len(below) - 1; i >= 0; i-- {
		b.WriteString("L" + below[i])
	}
	return b.String() + "Z"
}

// roundUp returns the least number >= n that has at most two digits before its
// trailing zeros.
func roundUp(n int) int {
	unit := 1
	for n > 99*unit {
		unit *= 10
	}
	return (n + unit - 1) / unit * unit
}
