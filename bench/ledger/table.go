package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// The rule whose losses the table has: by it and one breakpoint, a change costs the most.
const strictest = "Anthropic 5.5, automatic"

// table prints the rows of one size: for each kind the ratios to raw, a rule a line, and then
// what happened by the strictest rule.
func table(out io.Writer, rows []row, note string) error {
	for _, k := range kinds {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(out, "\n%d tools (%s), %s: cost as a share of raw\n\n", rows[0].Tools, note, k.name)
		fmt.Fprint(w, "rule\traw, k\t")
		for _, f := range forms[1:] {
			fmt.Fprint(w, f.name, "\t")
		}
		rule := ""
		for _, r := range rows {
			if r.Kind != k.name {
				continue
			}
			if r.Rule != rule {
				rule = r.Rule
				cells(w, rows, k.name, rule)
			}
		}
		fmt.Fprintf(w, "\n\n%s\traw\t", strictest)
		for _, f := range forms[1:] {
			fmt.Fprint(w, f.name, "\t")
		}
		for _, line := range []struct {
			name  string
			value func(row) float64
		}{
			{"first request, tokens", func(r row) float64 { return r.First }},
			{"requests", func(r row) float64 { return r.Requests }},
			{"lost the cache", func(r row) float64 { return r.Lost }},
			{"refused", func(r row) float64 { return r.Refused }},
		} {
			fmt.Fprintf(w, "\n%s\t", line.name)
			for _, f := range forms {
				r, _ := rowOf(rows, k.name, strictest, f.name)
				fmt.Fprintf(w, "%.*f\t", digits(line.value(r)), line.value(r))
			}
		}
		fmt.Fprintln(w)
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func digits(n float64) int {
	if n >= 100 || n == float64(int(n)) {
		return 0
	}
	return 1
}

// cells prints a line of ratios.
func cells(w io.Writer, rows []row, kind, rule string) {
	fmt.Fprintf(w, "\n%s\t", rule)
	for _, f := range forms {
		r, ok := rowOf(rows, kind, rule, f.name)
		switch {
		case !ok:
			fmt.Fprint(w, "–\t")
		case f.name == "raw":
			fmt.Fprintf(w, "%.0f\t", r.Billed/1000)
		default:
			fmt.Fprintf(w, "%.2f\t", r.Ratio)
		}
	}
}

func rowOf(rows []row, kind, rule, form string) (row, bool) {
	for _, r := range rows {
		if r.Kind == kind && r.Rule == rule && r.Form == form {
			return r, true
		}
	}
	return row{}, false
}
