package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxDiffCells bounds the product of the line counts that diffLines compares.
const maxDiffCells = 4 << 20

// An edit keeps (' '), removes ('-') or adds ('+') one line.
type edit struct {
	op   byte
	line string
}

// unifiedDiff returns the changes that turn a into b as a unified diff, each
// with some lines of context around it, or "" if there are none.
func unifiedDiff(nameA, nameB, a, b string, context int) (string, error) {
	if a == b {
		return "", nil
	}
	edits, err := diffLines(slices.Collect(strings.Lines(a)), slices.Collect(strings.Lines(b)))
	if err != nil {
		return "", err
	}
	shown := make([]bool, len(edits))
	for i, e := range edits {
		if e.op != ' ' {
			for j := max(0, i-context); j <= min(i+context, len(edits)-1); j++ {
				shown[j] = true
			}
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", nameA, nameB)
	lineA, lineB := 0, 0 // lines before the edit
	for i := 0; i < len(edits); {
		if !shown[i] { // hence kept
			lineA, lineB, i = lineA+1, lineB+1, i+1
			continue
		}
		end := i
		var hunk strings.Builder
		countA, countB := 0, 0
		for ; end < len(edits) && shown[end]; end++ {
			e := edits[end]
			if e.op != '+' {
				countA++
			}
			if e.op != '-' {
				countB++
			}
			hunk.WriteByte(e.op)
			hunk.WriteString(e.line)
			if !strings.HasSuffix(e.line, "\n") {
				hunk.WriteString("\n\\ No newline at end of file\n")
			}
		}
		fmt.Fprintf(&out, "@@ -%s +%s @@\n%s", span(lineA, countA), span(lineB, countB), hunk.String())
		lineA, lineB, i = lineA+countA, lineB+countB, end
	}
	return out.String(), nil
}

// span formats the count lines after the first before ones for a hunk header.
func span(before, count int) string {
	if count == 0 {
		return fmt.Sprintf("%d,0", before)
	}
	return fmt.Sprintf("%d,%d", before+1, count)
}

// diffLines returns a shortest list of edits that turns a into b.
func diffLines(a, b []string) ([]edit, error) {
	start, end := 0, 0 // length of the common prefix and suffix
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	x, y := a[start:len(a)-end], b[start:len(b)-end]
	if len(x)*len(y) > maxDiffCells {
		return nil, errors.New("the texts differ in too many lines to compare")
	}
	// common[i][j] is the length of the longest common subsequence of x[i:] and y[j:].
	common := make([][]int32, len(x)+1)
	common[len(x)] = make([]int32, len(y)+1)
	for i := len(x) - 1; i >= 0; i-- {
		common[i] = make([]int32, len(y)+1)
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	edits := make([]edit, 0, len(a)+len(y))
	for _, line := range a[:start] {
		edits = append(edits, edit{' ', line})
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			edits = append(edits, edit{' ', x[i]})
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			edits = append(edits, edit{'-', x[i]})
			i++
		default:
			edits = append(edits, edit{'+', y[j]})
			j++
		}
	}
	for _, line := range a[len(a)-end:] {
		edits = append(edits, edit{' ', line})
	}
	return edits, nil
}
