package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// A plot is drawn as SVG on white, so that it is readable on light and dark
// pages. Its texts need no escaping in XML.
type plot struct {
	title, x, y string // the name of y stands above the axis
	logY        bool   // x always has one
	series      []series
}

// A series is a line with its name at the end, or a dot if it has only one
// point.
type series struct {
	name   string // of an engine
	points []point
}

type point struct{ x, y float64 } // above 0 where the axis is logarithmic

// plots returns the plots by file name.
func (res *results) plots() map[string]plot {
	quality := plot{
		title: fmt.Sprintf("Quality against time, %s tools", number(float64(res.shown()))),
		x:     "time of a query, median, µs", y: "recall@5, mean over corpora",
	}
	cost := plot{title: "Cost against size", x: "tools", y: "time of a query, median, µs", logY: true}
	for _, name := range named() {
		line := series{name: name}
		for _, r := range res.Rows {
			if r.name != name {
				continue
			}
			took := r.figures["query_us_p50"]
			line.points = append(line.points, point{float64(r.size), took})
			if r.size == res.shown() {
				quality.series = append(quality.series, series{name, []point{{took, r.figures["recall@5"]}}})
			}
		}
		cost.series = append(cost.series, line)
	}
	return map[string]plot{"quality.svg": quality, "cost.svg": cost}
}

// In pixels.
const (
	width, height            = 760, 460
	left, right, top, bottom = 60, 110, 64, 52 // margins
	lineHeight               = 16
)

// An axis maps values to pixels.
type axis struct {
	low, high float64 // of values or, if log, of their logarithms
	from, to  float64 // pixels of low and high
	log       bool
	ticks     []float64 // values
}

func newAxis(values []float64, log bool, from, to float64) axis {
	low, high := slices.Min(values), slices.Max(values)
	if !log {
		const step = 0.05
		a := axis{low: step * math.Floor(low/step-0.2), high: step * math.Ceil(high/step+0.2), from: from, to: to}
		for n := math.Round(a.low / step); n*step <= a.high+step/2; n++ {
			a.ticks = append(a.ticks, n*step)
		}
		return a
	}
	a := axis{low: math.Log10(low / 1.6), high: math.Log10(high * 1.6), from: from, to: to, log: true}
	for decade := math.Floor(a.low); decade <= a.high; decade++ {
		for _, step := range []float64{1, 2, 5} {
			tick := step * math.Pow(10, decade)
			inside := a.low <= math.Log10(tick) && math.Log10(tick) <= a.high
			if inside && (step == 1 || a.high-a.low < 2.5) {
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
	write := func(x, y float64, attributes, text string) {
		draw(`<text x="%.1f" y="%.1f" %s>%s</text>`, x, y, attributes, text)
	}
	line := func(x1, y1, x2, y2 float64) {
		draw(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e5e8eb"/>`, x1, y1, x2, y2)
	}
	draw(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="13" fill="#57606a">`, width, height)
	draw(`<title>%s</title>`, p.title)
	draw(`<rect width="%d" height="%d" rx="6" fill="#ffffff"/>`, width, height)
	write(left, 26, `font-size="16" font-weight="bold" fill="#1f2328"`, p.title)
	write(left, top-14, "", p.y)
	write((left+width-right)/2, height-12, `text-anchor="middle"`, p.x)
	for _, tick := range x.ticks {
		line(x.pixel(tick), top, x.pixel(tick), height-bottom)
		write(x.pixel(tick), height-bottom+18, `text-anchor="middle"`, number(tick))
	}
	for _, tick := range y.ticks {
		label := number(tick)
		if !p.logY {
			label = fmt.Sprintf("%.2f", tick)
		}
		line(left, y.pixel(tick), width-right, y.pixel(tick))
		write(left-8, y.pixel(tick)+4, `text-anchor="end"`, label)
	}
	var ends []point // positions of the series, in pixels
	for _, s := range p.series {
		last := s.points[len(s.points)-1]
		ends = append(ends, point{x.pixel(last.x), y.pixel(last.y)})
	}
	labels := placeLabels(p.series, ends)
	for i, s := range p.series {
		e := engines[slices.IndexFunc(engines, func(e entrant) bool { return e.name == s.name })]
		weight, font := 1.6, "normal"
		if e.role == own {
			weight, font = 2.8, "bold"
		}
		var path []string
		for _, pt := range s.points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x.pixel(pt.x), y.pixel(pt.y)))
			draw(`<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"/>`, x.pixel(pt.x), y.pixel(pt.y), 2+weight, e.colour)
		}
		draw(`<polyline points="%s" fill="none" stroke="%s" stroke-width="%.1f"/>`, strings.Join(path, " "), e.colour, weight)
		write(labels[i].x, labels[i].y+4, fmt.Sprintf(`font-weight="%s" fill="%s"`, font, e.colour), s.name)
	}
	draw(`</svg>`)
	_, err := io.WriteString(w, b.String())
	return err
}

// placeLabels returns where the names of series begin: right of their ends, or,
// if that would cover another name or end, the nearest free place above or
// below.
func placeLabels(all []series, ends []point) []point {
	type box struct{ x, y, width, height float64 } // x is its left, y its middle
	var taken []box
	for _, end := range ends {
		taken = append(taken, box{end.x - 4, end.y, 8, 6})
	}
	labels := make([]point, len(all))
	for i, end := range ends {
		name := box{end.x + 10, end.y, 8 * float64(len(all[i].name)), lineHeight}
		covers := func(other box) bool {
			return name.x < other.x+other.width && other.x < name.x+name.width && 2*math.Abs(name.y-other.y) < name.height+other.height
		}
		for shift := 0.0; slices.ContainsFunc(taken, covers); shift = -shift {
			if shift >= 0 {
				shift++
			}
			name.y = end.y + shift
		}
		taken, labels[i] = append(taken, name), point{name.x, name.y}
	}
	return labels
}
