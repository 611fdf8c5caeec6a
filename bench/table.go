package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A table has cells by row; the first row is its head. Columns that have
// numbers in the second row are aligned to the right.
type table [][]string

func (t table) numeric(column int) bool {
	return len(t) > 1 && t[1][column] != "" && '0' <= t[1][column][0] && t[1][column][0] <= '9'
}

// plain returns the table with aligned columns.
func (t table) plain() string {
	var b strings.Builder
	for _, line := range t {
		for i, cell := range line {
			width := 0
			for _, other := range t {
				width = max(width, utf8.RuneCountInString(other[i]))
			}
			if !t.numeric(i) {
				width = -width
			}
			fmt.Fprintf(&b, "  %*s", width, cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (t table) markdown() string {
	var b strings.Builder
	for i, line := range t {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
		if i > 0 {
			continue
		}
		for column := range line {
			b.WriteString("|---")
			if t.numeric(column) {
				b.WriteByte(':')
			}
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// number writes x with three digits, or with all digits before the point:
// 0.0123, 1.23, 12.3, 123, 1,234.
func number(x float64) string {
	decimals := 0
	if x != math.Trunc(x) {
		decimals = max(0, min(4, 2-int(math.Floor(math.Log10(math.Abs(x))))))
	}
	whole, fraction, pointed := strings.Cut(strconv.FormatFloat(x, 'f', decimals, 64), ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if pointed {
		return whole + "." + fraction
	}
	return whole
}
