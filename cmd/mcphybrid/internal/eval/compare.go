package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A comparison sets runs over the same corpora against the first of them, the base.
//
// A difference is of two runs' recall@5 on the same queries. Its interval holds 95 %
// of the differences that the bootstrap gives: each of its samples draws queries with
// replacement, separately for each corpus.
//
// Corpora whose names agree up to the first "_" are a family; they may share tools. A
// figure of a run that was chosen because it is the best one flatters it. So the last
// line chooses anew for each family, by the mean over the corpora of all other
// families, and takes the figures of the run so chosen. A variant is worth taking if
// it wins there.
type comparison struct {
	names []string
	runs  []savedRun
}

func compareFiles(files []string, w io.Writer) error {
	var c comparison
	for _, file := range files {
		data, err := os.ReadFile(file)
		var r savedRun
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(r.Corpora) == 0 {
			return fmt.Errorf("%s: no corpora in it", file)
		}
		for i, corpus := range r.Corpora {
			if len(c.runs) == 0 {
				continue
			}
			base := c.runs[0]
			if len(base.Corpora) != len(r.Corpora) || base.Corpora[i].Name != corpus.Name || !slices.Equal(base.Corpora[i].IDs, corpus.IDs) {
				return fmt.Errorf("%s: corpus %s has other queries than in %s", file, corpus.Name, files[0])
			}
		}
		c.names = append(c.names, strings.TrimSuffix(filepath.Base(file), ".json"))
		c.runs = append(c.runs, r)
	}
	_, err := io.WriteString(w, c.table())
	return err
}

// resamples is how many samples an interval is taken from. The drawing is seeded, so
// equal runs give equal intervals.
const resamples = 2000

// interval returns the mean over corpora of the means of the differences, and the
// bounds of 95 % of its samples.
func interval(differences [][]float64) (mean, low, high float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	samples := make([]float64, resamples)
	for _, list := range differences {
		if len(list) == 0 {
			continue
		}
		share := 1 / float64(len(list)) / float64(len(differences))
		for _, d := range list {
			mean += d * share
		}
		for s := range samples {
			for range list {
				samples[s] += list[rng.IntN(len(list))] * share
			}
		}
	}
	slices.Sort(samples)
	return mean, samples[resamples/40], samples[resamples-1-resamples/40]
}

func minus(a, b []float64) []float64 {
	d := slices.Clone(a)
	for i := range d {
		d[i] -= b[i]
	}
	return d
}

// family returns the beginning of a corpus's name that its family shares.
func family(corpus string) string {
	name, _, _ := strings.Cut(corpus, "_")
	return name
}

// choose returns the run with the best mean over the corpora outside of a family. The
// base wins a tie.
func (c *comparison) choose(without string) (best int) {
	greatest := -1.0
	for i, r := range c.runs {
		var m meanFigures
		for _, corpus := range r.Corpora {
			if family(corpus.Name) != without {
				m.add(corpus.Figures)
			}
		}
		if m.Recall5 > greatest {
			best, greatest = i, m.Recall5
		}
	}
	return best
}

// completeLine writes complete@5 as the mean over the corpora with queries that several
// tools answer together, if all runs have it.
func (c *comparison) completeLine(line func(name string, base float64, lists ...[][]float64)) {
	var base []float64
	lists := make([][][]float64, len(c.runs)-1)
	for i, corpus := range c.runs[0].Corpora {
		if len(corpus.Complete) == 0 || slices.ContainsFunc(c.runs, func(r savedRun) bool { return len(r.Corpora[i].Complete) != len(corpus.Complete) }) {
			continue
		}
		base = append(base, mean(corpus.Complete))
		for j, r := range c.runs[1:] {
			lists[j] = append(lists[j], minus(r.Corpora[i].Complete, corpus.Complete))
		}
	}
	if base != nil {
		line("  complete@5", mean(base), lists...)
	}
}

// table returns the comparison for people.
func (c *comparison) table() string {
	var b strings.Builder
	line := func(name string, base float64, lists ...[][]float64) {
		fmt.Fprintf(&b, "%-18s %6.1f", name, 100*base)
		for _, differences := range lists {
			mean, low, high := interval(differences)
			fmt.Fprintf(&b, "  %+5.1f (%+5.1f to %+5.1f)", 100*mean, 100*low, 100*high)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%-18s %6s", "recall@5", c.names[0])
	for _, name := range c.names[1:] {
		fmt.Fprintf(&b, "  %-23s", name)
	}
	b.WriteByte('\n')
	base := c.runs[0]
	five, first := make([][][]float64, len(c.runs)), make([][][]float64, len(c.runs)) // differences by run, corpus, query
	for i, corpus := range base.Corpora {
		var lists [][][]float64
		for j, r := range c.runs[1:] {
			d := minus(r.Corpora[i].Five, corpus.Five)
			lists = append(lists, [][]float64{d})
			five[j+1] = append(five[j+1], d)
			first[j+1] = append(first[j+1], minus(r.Corpora[i].First, corpus.First))
		}
		line(corpus.Name, corpus.Figures.Recall5, lists...)
	}
	line(fmt.Sprintf("mean of %d", len(base.Corpora)), base.Mean.Recall5, five[1:]...)
	line("  recall@1", base.Mean.Recall1, first[1:]...)
	c.completeLine(line)

	var chosen [][]float64
	families := make(map[string]bool)
	for i, corpus := range base.Corpora {
		of := family(corpus.Name)
		run := c.choose(of)
		chosen = append(chosen, minus(c.runs[run].Corpora[i].Five, corpus.Five))
		if !families[of] {
			fmt.Fprintf(&b, "without %-10s the best is %s\n", of, c.names[run])
		}
		families[of] = true
	}
	line("chosen without", base.Mean.Recall5, chosen)
	return b.String()
}
