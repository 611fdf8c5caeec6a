package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A corpus has tools, and queries labelled with the tools that answer them.
type corpus struct {
	name    string
	tools   []*tool
	queries []labelled
}

type labelled struct {
	Query    string   `json:"query"`
	Relevant []string `json:"relevant"` // ids of tools; empty if no tool answers the query
}

// readCorpora reads the corpus in dir. If dir has no tools.jsonl, it reads
// those in its subfolders, in the order of their names.
func readCorpora(dir string) ([]corpus, error) {
	paths, _ := filepath.Glob(filepath.Join(dir, "tools.jsonl"))
	if paths == nil {
		paths, _ = filepath.Glob(filepath.Join(dir, "*", "tools.jsonl"))
	}
	if paths == nil {
		return nil, fmt.Errorf("%s: no tools.jsonl, and no sub-folder with one", dir)
	}
	var corpora []corpus
	for _, path := range paths {
		abs, err := filepath.Abs(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		c := corpus{name: filepath.Base(abs)}
		lines, err := readLines(path)
		if err != nil {
			return nil, err
		}
		if c.tools, err = decodeAll(lines); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		path = filepath.Join(abs, "queries.jsonl")
		if lines, err = readLines(path); err != nil {
			return nil, err
		}
		c.queries = make([]labelled, len(lines))
		for i, line := range lines {
			if err := json.Unmarshal(line, &c.queries[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
		if len(c.tools) == 0 || len(c.queries) == 0 {
			return nil, fmt.Errorf("%s: no tools or no queries", abs)
		}
		corpora = append(corpora, c)
	}
	return corpora, nil
}

// readLines returns the lines of a file without the empty ones.
func readLines(path string) ([][]byte, error) {
	data, err := os.ReadFile(path)
	lines := bytes.Split(data, []byte("\n"))
	return slices.DeleteFunc(lines, func(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }), err
}

// drawQueries returns n queries. It takes them from each corpus in turn, so
// that a large corpus does not outweigh the others, and in an order drawn by
// rng. If there are fewer than n, they recur. It leaves out queries above 2,000
// bytes: one has an image in it, and the slow engines would need as long for it
// as for all others.
func drawQueries(corpora []corpus, n int, rng *rand.Rand) []string {
	drawn := make([][]string, len(corpora))
	for i, c := range corpora {
		for _, j := range rng.Perm(len(c.queries)) {
			if query := c.queries[j].Query; len(query) <= 2000 {
				drawn[i] = append(drawn[i], query)
			}
		}
	}
	queries := make([]string, n)
	for i := range queries {
		from := drawn[i%len(drawn)]
		queries[i] = from[i/len(drawn)%len(from)]
	}
	return queries
}

// seed is the seed of all random numbers.
const seed = 1

// A pool has the tools of all corpora, shuffled and distinct by server, name
// and description. It makes lists of tools of any length. Equal corpora give
// equal lists, and a shorter list is the beginning of a longer one.
type pool []*tool

func newPool(corpora []corpus) pool {
	var p pool
	known := make(map[[3]string]bool)
	for _, c := range corpora {
		for _, t := range c.tools {
			if key := [3]string{t.Server, t.Name, t.Description}; !known[key] {
				known[key] = true
				p = append(p, t)
			}
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
	return p
}

// lines returns n tools as lines of JSON: first the pooled ones, then variants
// of them.
func (p pool) lines(n int) ([][]byte, error) {
	lines := make([][]byte, n)
	for i := range lines {
		t := p[i%len(p)]
		if i >= len(p) {
			t = p.variant(i)
		}
		var err error
		if lines[i], err = json.Marshal(record{t.ID, t.Server, t.Name, t.Description, t.InputSchema}); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// How variants differ from the tool they are made of. One new word in 25 makes
// the vocabulary grow with the number of tools, as in collections of real text,
// and makes most of its words rare. So the number of postings and of terms
// grows.
const (
	borrowed = 0.25 // the share of words taken from another tool
	coined   = 0.04 // the share of words that are new
)

// Words of text, for variants: a run of letters, or a pair of Han characters.
var variable = regexp.MustCompile(`\p{Han}{2}|[^\P{L}\p{Han}]{3,}`)

// Descriptions in a schema, with their quotes.
var described = regexp.MustCompile(`("description":\s*)("(?:[^"\\]|\\.)*")`)

// variant returns tool i of a list that is longer than the pool. It is a copy
// of a pooled tool, taken in turn, on another server and with a coined word
// added to its name. In its description and those of its parameters, some words
// are replaced by words of another pooled tool and some by coined ones. Han
// characters are replaced by Han characters.
func (p pool) variant(i int) *tool {
	rng := rand.New(rand.NewPCG(seed, uint64(i)))
	t := *p[i%len(p)]
	from := variable.FindAllString(p[rng.IntN(len(p))].Description, -1)
	vary := func(text string) string {
		return variable.ReplaceAllStringFunc(text, func(word string) string {
			other := word
			if len(from) > 0 {
				other = from[rng.IntN(len(from))]
			}
			switch dice := rng.Float64(); {
			case isHan(other) != isHan(word):
				return word
			case dice < borrowed:
				return other
			case dice < borrowed+coined:
				return coin(word, other)
			}
			return word
		})
	}
	t.ID = fmt.Sprintf("%s#%d", t.ID, i)
	t.Server = fmt.Sprintf("%s-%d", t.Server, i/len(p))
	t.Name += "_" + marker(rng)
	t.Description = vary(t.Description)
	t.InputSchema = described.ReplaceAllFunc(t.InputSchema, func(found []byte) []byte {
		parts := described.FindSubmatch(found)
		var text string
		if json.Unmarshal(parts[2], &text) != nil {
			return found
		}
		quoted, err := json.Marshal(vary(text))
		if err != nil {
			return found
		}
		return slices.Concat(parts[1], quoted)
	})
	return &t
}

// coin returns a word made of the first half of a and the second half of b.
func coin(a, b string) string {
	x, y := []rune(a), []rune(b)
	return string(x[:(len(x)+1)/2]) + string(y[len(y)/2:])
}

// marker returns a word of nine letters that no other tool has.
func marker(rng *rand.Rand) string {
	var b strings.Builder
	for range 3 {
		b.WriteByte("bdfgklmnprtvz"[rng.IntN(13)])
		b.WriteByte("aeiou"[rng.IntN(5)])
		b.WriteByte("bdfgklmnprtvz"[rng.IntN(13)])
	}
	return b.String()
}

func isHan(word string) bool { return strings.ContainsFunc(word, han) }
