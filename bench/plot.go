package main

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// A plot is drawn as SVG, on white, so that it reads in light and dark pages.
type plot struct {
	title, x, y string // y is written above the axis
	logY        bool   // x always is
	series      []series
}

// A series is a line with its name at the end or, of one point, a dot.
type series struct {
	name   string // of an engine
	points []point
}

type point struct{ x, y float64 } // above 0 where the axis is logarithmic

// plots returns the plots by the names of their files.
func (res *results) plots() map[string]plot {
	sizes := res.sizes()
	at := sizes[len(sizes)-1]
	if slices.Contains(sizes, 4000) {
		at = 4000
	}
	quality := plot{
		title: fmt.Sprintf("Quality against time, %s tools", number(float64(at))),
		x:     "time of a query, median, µs", y: "recall@5, mean over corpora",
	}
	cost := plot{title: "Cost against size", x: "tools", y: "time of a query, median, µs", logY: true}
	for _, e := range engines {
		line := series{name: e.name}
		for _, r := range res.Rows {
			if r.Engine != e.name {
				continue
			}
			line.points = append(line.points, point{float64(r.Tools), r.QueryP50})
			if r.Tools == at {
				quality.series = append(quality.series, series{e.name, []point{{r.QueryP50, r.Recall}}})
			}
		}
		if len(line.points) > 0 {
			cost.series = append(cost.series, line)
		}
	}
	return map[string]plot{"quality.svg": quality, "cost.svg": cost}
}

// Colours that differ for the colour-blind too, and are dark enough for text.
var colours = map[string]string{
	"default": "#0b5fa5", "lexical": "#007a5a", "classic": "#5f5f5f",
	"scan": "#8a5a9e", "bleve": "#c2410c", "fts5": "#8a6d00",
}

// Pixels.
const (
	width, height            = 720, 440
	left, right, top, bottom = 60, 90, 64, 52 // margins
	lineHeight               = 17
)

// An axis maps values to pixels.
type axis struct {
	low, high float64 // of values or, if log, of their logarithms
	from, to  float64 // pixels of low and high
	log       bool
	ticks     []float64 // values
}

func newAxis(values []float64, log bool, from, to float64) axis {
	a := axis{from: from, to: to, log: log}
	low, high := slices.Min(values), slices.Max(values)
	if !log {
		const step = 0.05
		a.low, a.high = step*math.Floor(low/step-0.2), step*math.Ceil(high/step+0.2)
		for n := math.Round(a.low / step); n*step <= a.high+step/2; n++ {
			a.ticks = append(a.ticks, n*step)
		}
		return a
	}
	a.low, a.high = math.Log10(low/1.6), math.Log10(high*1.6)
	steps := []float64{1}
	if a.high-a.low < 2.5 {
		steps = []float64{1, 2, 5}
	}
	for decade := math.Floor(a.low); decade <= a.high; decade++ {
		for _, step := range steps {
			if tick := step * math.Pow(10, decade); a.low <= math.Log10(tick) && math.Log10(tick) <= a.high {
				a.ticks = append(a.ticks, tick)
			}
		}
	}
	return a
}

func (a axis) pixel(value float64) float64 {
	if a.log {
		value = math.Log10(value)
	}
	return a.from + (value-a.low)/(a.high-a.low)*(a.to-a.from)
}

func (p plot) svg(w io.Writer) error {
	var xs, ys []float64
	for _, s := range p.series {
		for _, pt := range s.points {
			xs, ys = append(xs, pt.x), append(ys, pt.y)
		}
	}
	x := newAxis(xs, true, left, width-right)
	y := newAxis(ys, p.logY, height-bottom, top)

	var b strings.Builder
	draw := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	draw(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="13">`, width, height)
	draw(`<title>%s</title>`, html.EscapeString(p.title))
	draw(`<rect width="%d" height="%d" fill="#ffffff"/>`, width, height)
	draw(`<text x="%d" y="26" font-size="16" font-weight="bold" fill="#1f2328">%s</text>`, left, html.EscapeString(p.title))
	draw(`<text x="%d" y="%d" fill="#57606a">%s</text>`, left, top-14, html.EscapeString(p.y))
	draw(`<text x="%d" y="%d" fill="#57606a" text-anchor="middle">%s</text>`, (left+width-right)/2, height-12, html.EscapeString(p.x))
	for _, tick := range x.ticks {
		draw(`<line x1="%.1f" x2="%[1]f" y1="%d" y2="%d" stroke="#e5e8eb"/>`, x.pixel(tick), top, height-bottom)
		draw(`<text x="%.1f" y="%d" fill="#57606a" text-anchor="middle">%s</text>`, x.pixel(tick), height-bottom+18, number(tick))
	}
	for _, tick := range y.ticks {
		label := number(tick)
		if !p.logY {
			label = fmt.Sprintf("%.2f", tick)
		}
		draw(`<line x1="%d" x2="%d" y1="%.1f" y2="%[3]f" stroke="#e5e8eb"/>`, left, width-right, y.pixel(tick))
		draw(`<text x="%d" y="%.1f" fill="#57606a" text-anchor="end">%s</text>`, left-8, y.pixel(tick)+4, label)
	}
	labels := placeLabels(p.series, x, y)
	for i, s := range p.series {
		colour, weight := colours[s.name], 1.6
		if ours(s.name) {
			weight = 2.8
		}
		var path []string
		for _, pt := range s.points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x.pixel(pt.x), y.pixel(pt.y)))
			draw(`<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"/>`, x.pixel(pt.x), y.pixel(pt.y), 2+weight, colour)
		}
		draw(`<polyline points="%s" fill="none" stroke="%s" stroke-width="%.1f"/>`, strings.Join(path, " "), colour, weight)
		bold := ""
		if ours(s.name) {
			bold = ` font-weight="bold"`
		}
		draw(`<text x="%.1f" y="%.1f" fill="%s"%s>%s</text>`, labels[i].x, labels[i].y+4, colour, bold, html.EscapeString(s.name))
	}
	draw(`</svg>`)
	_, err := io.WriteString(w, b.String())
	return err
}

// placeLabels returns where the names of series begin, by series: right of the
// last point or, where that would cover another name or dot, the nearest place
// above or below that does not.
func placeLabels(all []series, x, y axis) []point {
	const clear, reach = 10, 60 // from a point to its name; the width of a name
	ends := make([]point, len(all))
	for i, s := range all {
		last := s.points[len(s.points)-1]
		ends[i] = point{x.pixel(last.x), y.pixel(last.y)}
	}
	var labels []point
	for i, end := range ends {
		free := func(at point) bool {
			overlaps := func(l point) bool { return math.Abs(l.x-at.x) < reach && math.Abs(l.y-at.y) < lineHeight }
			if slices.ContainsFunc(labels, overlaps) {
				return false
			}
			for j, dot := range ends {
				within := dot.x > at.x-clear/2 && dot.x < at.x+reach && math.Abs(dot.y-at.y) < lineHeight*2/3
				if j != i && within {
					return false
				}
			}
			return true
		}
		at := point{end.x + clear, end.y}
		for shift := 1.0; !free(at); shift++ {
			at.y = end.y + shift
			if !free(at) {
				at.y = end.y - shift
			}
		}
		labels = append(labels, at)
	}
	return labels
}
