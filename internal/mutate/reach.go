package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A reach says which tests run which parts of a package.
type reach struct {
	Tests  []string
	Took   []time.Duration    // by each, alone
	Blocks map[string][]block // by the file's import path
}

// A block is some code that is run as one. It begins at From, and ends before To.
type block struct {
	From, To position
	Tests    []int // by their numbers
}

func (p position) before(q position) bool {
	return p.Line < q.Line || p.Line == q.Line && p.Column < q.Column
}

// testsOf returns the tests that run the mutant: those of its block, or if it is in none,
// of its function. It returns all for what is in no function. took is what they take one after
// the other.
func (r *reach) testsOf(path string, m mutant) (tests []string, took time.Duration) {
	if m.in != (position{}) {
		for _, at := range []position{m.at, m.in} {
			for _, b := range r.Blocks[path] {
				if !at.before(b.From) && at.before(b.To) {
					return r.named(b.Tests)
				}
			}
		}
	}
	for _, t := range r.Took {
		took += t
	}
	return r.Tests, took
}

func (r *reach) named(numbers []int) (tests []string, took time.Duration) {
	for _, n := range numbers {
		tests, took = append(tests, r.Tests[n]), took+r.Took[n]
	}
	return tests, took
}

// reachOf runs each test of p alone, or returns what was found before with the same code.
func (r *runner) reachOf(ctx context.Context, p *pkg) (*reach, error) {
	program := filepath.Join(r.scratch, "cover.test")
	if out, err := r.goCommand(ctx, "test", "-c", "-cover", "-vet=off", "-o", program, p.ImportPath); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", p.ImportPath, err, out)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	cache = filepath.Join(cache, "mcphybrid-mutate", fmt.Sprintf("%x-%t.json", sha256.Sum256(data), r.short))
	if data, err := os.ReadFile(cache); err == nil {
		found := new(reach)
		if json.Unmarshal(data, found) == nil && len(found.Took) == len(found.Tests) { // else it is of an older mutate
			return found, nil
		}
	}
	out, err := r.program(ctx, p, program, r.most, "-test.list", "^(Test|Example|Fuzz)")
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", p.ImportPath, err, out)
	}
	found := &reach{Tests: strings.Fields(string(out)), Blocks: make(map[string][]block)}
	fmt.Fprintf(r.log, "%s: which of %d tests runs what…\n", p.ImportPath, len(found.Tests))
	found.Took = make([]time.Duration, len(found.Tests))
	profiles := make([][]byte, len(found.Tests))
	r.each(len(found.Tests), func(i int) {
		profile := filepath.Join(r.scratch, fmt.Sprint(i, ".cover"))
		begun := time.Now()
		// One that fails alone, or has no end, says nothing of what it reaches.
		if _, err := r.program(ctx, p, program, r.most, "-test.run", "^"+found.Tests[i]+"$", "-test.coverprofile", profile); err == nil {
			profiles[i], _ = os.ReadFile(profile)
		}
		found.Took[i] = time.Since(begun)
		os.Remove(profile)
	})
	for i, profile := range profiles {
		if err := found.add(i, profile); err != nil {
			return nil, err
		}
	}
	if data, err = json.Marshal(found); err == nil && ctx.Err() == nil && os.MkdirAll(filepath.Dir(cache), 0o700) == nil {
		os.WriteFile(cache, data, 0o600)
	}
	return found, ctx.Err()
}

// add adds what a test has run: lines "path/file.go:1.2,3.4 statements count".
func (r *reach) add(test int, profile []byte) error {
	known := make(map[string]map[position]int)
	for path, blocks := range r.Blocks {
		known[path] = make(map[position]int)
		for i, b := range blocks {
			known[path][b.From] = i
		}
	}
	for line := range bytes.Lines(profile) {
		path, rest, ok := strings.Cut(string(line), ":")
		if !ok || path == "mode" {
			continue
		}
		var b block
		var statements, count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.From.Line, &b.From.Column, &b.To.Line, &b.To.Column, &statements, &count); err != nil {
			return fmt.Errorf("a line of a profile %q: %w", line, err)
		}
		i, ok := known[path][b.From]
		if !ok {
			if known[path] == nil {
				known[path] = make(map[position]int)
			}
			i = len(r.Blocks[path])
			known[path][b.From] = i
			r.Blocks[path] = append(r.Blocks[path], b)
		}
		if at := &r.Blocks[path][i]; count > 0 && !slices.Contains(at.Tests, test) {
			at.Tests = append(at.Tests, test)
		}
	}
	return nil
}

// each calls do for 0 to n-1, as many at once as the runner may.
func (r *runner) each(n int, do func(int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range r.jobs {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
