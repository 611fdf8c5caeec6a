package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A corpus is tools and queries that are labelled with the tools they are for.
type corpus struct {
	name    string
	lines   [][]byte // of tools.jsonl
	queries []labelled
}

type labelled struct {
	Query    string   `json:"query"`
	Relevant []string `json:"relevant"` // ids of tools; none if the corpus has nothing for the query
}

// readCorpora reads the corpus in dir or, if dir has no tools.jsonl, those in
// its sub-folders, in the order of their names.
func readCorpora(dir string) ([]corpus, error) {
	c, err := readCorpus(dir)
	if err == nil {
		return []corpus{c}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var corpora []corpus
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		c, err := readCorpus(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		corpora = append(corpora, c)
	}
	if len(corpora) == 0 {
		return nil, fmt.Errorf("%s: no tools.jsonl, and no sub-folder with one", dir)
	}
	return corpora, nil
}

func readCorpus(dir string) (corpus, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return corpus{}, err
	}
	c := corpus{name: filepath.Base(abs)}
	if c.lines, err = readLines(filepath.Join(dir, "tools.jsonl")); err != nil {
		return c, err
	}
	path := filepath.Join(dir, "queries.jsonl")
	lines, err := readLines(path)
	if err != nil {
		return c, err
	}
	for _, line := range lines {
		var q labelled
		if err := json.Unmarshal(line, &q); err != nil {
			return c, fmt.Errorf("%s: %w", path, err)
		}
		c.queries = append(c.queries, q)
	}
	if len(c.lines) == 0 || len(c.queries) == 0 {
		return c, fmt.Errorf("%s: no tools or no queries", dir)
	}
	return c, nil
}

// readLines returns the lines of a file that are not empty.
func readLines(path string) ([][]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lines [][]byte
	scan := bufio.NewScanner(bytes.NewReader(data))
	scan.Buffer(nil, len(data)+1)
	for scan.Scan() {
		if len(bytes.TrimSpace(scan.Bytes())) > 0 {
			lines = append(lines, bytes.Clone(scan.Bytes()))
		}
	}
	return lines, scan.Err()
}

// drawQueries returns n queries, from each corpus in turn so that a large one
// does not outweigh the others, each corpus's own in an order drawn by rng.
// They recur if there are fewer than n.
func drawQueries(corpora []corpus, n int, rng *rand.Rand) []string {
	orders := make([][]int, len(corpora))
	for i, c := range corpora {
		orders[i] = rng.Perm(len(c.queries))
	}
	queries := make([]string, n)
	for i := range queries {
		c := i % len(corpora)
		order := orders[c]
		queries[i] = corpora[c].queries[order[i/len(corpora)%len(order)]].Query
	}
	return queries
}

// A pool makes lists of tools of any length. Equal corpora and seeds make
// equal lists, and a shorter list is the beginning of a longer one.
type pool struct {
	tools []*tool // of all corpora, distinct by server, name and description, shuffled
	seed  uint64
}

func newPool(corpora []corpus, seed uint64) (*pool, error) {
	p := &pool{seed: seed}
	known := make(map[[3]string]bool)
	for _, c := range corpora {
		tools, err := decodeAll(c.lines)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		for _, t := range tools {
			if key := [3]string{t.Server, t.Name, t.Description}; !known[key] {
				known[key] = true
				p.tools = append(p.tools, t)
			}
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(p.tools), func(i, j int) { p.tools[i], p.tools[j] = p.tools[j], p.tools[i] })
	return p, nil
}

// lines returns n tools as lines of JSON: first the pooled ones, then variants
// of them.
func (p *pool) lines(n int) ([][]byte, error) {
	lines := make([][]byte, n)
	for i := range lines {
		t := p.tools[i%len(p.tools)]
		if i >= len(p.tools) {
			t = p.variant(i)
		}
		line, err := json.Marshal(record{t.ID, t.Server, t.Name, t.Description, t.InputSchema})
		if err != nil {
			return nil, err
		}
		lines[i] = line
	}
	return lines, nil
}

// How variants differ from the tool that they are made of. One new word in 25
// makes a vocabulary that goes on growing with the number of tools, as it does
// in collections of real text, and most of its words rare; so both postings
// and terms become more.
const (
	borrowed = 0.25 // the share of words that are another tool's
	coined   = 0.04 // the share of words that are new
)

// Words of text, for variants: a run of letters, or a pair of Han characters.
var variable = regexp.MustCompile(`\p{Han}{2}|[^\P{L}\p{Han}]{3,}`)

// Descriptions in a schema, with their quotes.
var described = regexp.MustCompile(`("description":\s*)("(?:[^"\\]|\\.)*")`)

// variant returns tool i of a list that is longer than the pool: a copy of
// pooled tool i, counted round and round, on another server and with a coined
// word added to its name. In its description and those of its parameters some
// words are replaced by words of another pooled tool and some by coined ones.
// Script stays with script: Han characters are replaced by Han characters.
func (p *pool) variant(i int) *tool {
	rng := rand.New(rand.NewPCG(p.seed, uint64(i)))
	t := *p.tools[i%len(p.tools)]
	from := variable.FindAllString(p.tools[rng.IntN(len(p.tools))].Description, -1)
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
	t.Server = fmt.Sprintf("%s-%d", t.Server, i/len(p.tools))
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

// coin returns a word that is made of the first half of a and the second of b.
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
