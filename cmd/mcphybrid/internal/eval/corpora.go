package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// A savedRun is how one version of the search answered the queries of some corpora.
type savedRun struct {
	Ranker  string      `json:"ranker"`
	Corpora []corpusRun `json:"corpora"`
	Mean    meanFigures `json:"mean"`
	English meanFigures `json:"english"`
}

// A corpusRun has, by query, the recall among the first 1 and the first 5 answers.
// Queries that no tool answers are left out. Complete is complete@5 of those that several
// tools answer together: tasks of several steps.
type corpusRun struct {
	Name     string    `json:"name"`
	English  bool      `json:"english"` // nine in ten queries have only Latin letters
	Figures  figures   `json:"figures"`
	IDs      []string  `json:"ids"`
	First    []float64 `json:"recall@1"`
	Five     []float64 `json:"recall@5"`
	Complete []float64 `json:"complete@5,omitempty"`
}

func mean(list []float64) (m float64) {
	for _, v := range list {
		m += v / float64(len(list))
	}
	return m
}

// meanFigures are means over corpora; each corpus counts the same.
type meanFigures struct {
	Corpora int     `json:"corpora"`
	Recall1 float64 `json:"recall@1"`
	Recall5 float64 `json:"recall@5"`
}

// runCorpora measures all corpora of a folder but those of which no queries can be joined.
func (s *settings) runCorpora(stdout io.Writer, show *progress) error {
	r := savedRun{Ranker: s.ranker}
	files, _ := filepath.Glob(filepath.Join(s.corpora, "*", "queries.jsonl"))
	if files == nil {
		return fmt.Errorf("%s: no sub-folder has queries.jsonl", s.corpora)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		m, err := s.measure(filepath.Join(dir, "tools.jsonl"), file, show)
		if errors.Is(err, errNoneJoined) {
			continue
		}
		if err != nil {
			return err
		}
		m.Close()
		r.add(newCorpusRun(filepath.Base(dir), m))
	}
	if len(r.Corpora) == 0 {
		return fmt.Errorf("%s: %w", s.corpora, errNoneJoined)
	}
	data, err := json.Marshal(r)
	if err == nil && s.save != "" {
		err = os.WriteFile(s.save, append(data, '\n'), 0o644)
	}
	if err != nil {
		return err
	}
	if s.asJSON {
		_, err = fmt.Fprintf(stdout, "%s\n", data)
	} else {
		_, err = io.WriteString(stdout, r.table())
	}
	return err
}

func newCorpusRun(name string, m *measurement) corpusRun {
	c := corpusRun{Name: name, Figures: m.figures}
	foreign := 0
	for i, q := range m.queries {
		if strings.ContainsFunc(q.Query, func(r rune) bool { return unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) }) {
			foreign++
		}
		if len(q.Relevant) > 0 {
			one, _ := newFigures([]query{q}, m.answers[i:i+1])
			c.IDs, c.First, c.Five = append(c.IDs, q.ID), append(c.First, one.Recall1), append(c.Five, one.Recall5)
			if len(q.Relevant) > 1 {
				c.Complete = append(c.Complete, one.Complete5)
			}
		}
	}
	c.English = 10*foreign <= len(m.queries)
	return c
}

func (r *savedRun) add(c corpusRun) {
	r.Corpora = append(r.Corpora, c)
	r.Mean.add(c.Figures)
	if c.English {
		r.English.add(c.Figures)
	}
}

func (m *meanFigures) add(f figures) {
	n := float64(m.Corpora)
	m.Recall1 = (m.Recall1*n + f.Recall1) / (n + 1)
	m.Recall5 = (m.Recall5*n + f.Recall5) / (n + 1)
	m.Corpora++
}

// table returns the run for people.
func (r *savedRun) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-18s %7s %8s %9s %9s %7s  %s\n", r.Ranker, "tools", "queries", "recall@1", "recall@5", "p50 µs", "complete@5 where several tools answer")
	for _, c := range r.Corpora {
		fmt.Fprintf(&b, "%-18s %7d %8d %9.1f %9.1f %7.1f", c.Name, c.Figures.Tools, c.Figures.Queries, 100*c.Figures.Recall1, 100*c.Figures.Recall5, c.Figures.QueryUSP50)
		if n := len(c.Complete); n > 0 {
			fmt.Fprintf(&b, "  %4.1f of %d", 100*mean(c.Complete), n)
		}
		b.WriteByte('\n')
	}
	for _, m := range []struct {
		name string
		meanFigures
	}{{"mean", r.Mean}, {"mean, English", r.English}} {
		fmt.Fprintf(&b, "%-18s %7s %8s %9.1f %9.1f\n", fmt.Sprintf("%s, of %d", m.name, m.Corpora), "", "", 100*m.Recall1, 100*m.Recall5)
	}
	return b.String()
}
