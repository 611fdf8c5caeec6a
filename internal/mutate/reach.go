package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mutate/change"
)

// A test is one test function of a package.
type test struct {
	pkg  *pkg
	name string
	took time.Duration // alone
}

// An asker runs tests of a tree.
type asker struct {
	tree    *tree
	scratch string
	jobs    int           // programs at once
	most    time.Duration // after which no more tests of a package begin, for one mutant
	short   bool
	reach   map[int][]*test // the tests that reach a mutant, the quickest first
}

func (a *asker) programOf(p *pkg) string {
	return filepath.Join(a.scratch, strings.ReplaceAll(p.ImportPath, "/", "_")+".test")
}

// errLate means that a test program had no end.
var errLate = errors.New("it did not end in time")

// program runs a package's test program in its folder, as go test does.
func (a *asker) program(ctx context.Context, p *pkg, limit time.Duration, env string, args ...string) ([]byte, error) {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := exec.CommandContext(within, a.programOf(p), append(args, fmt.Sprintf("-test.short=%t", a.short))...)
	c.Dir = p.Dir
	c.Env = append(os.Environ(), env)
	c.WaitDelay = 5 * time.Second // for what a test has started
	out, err := c.CombinedOutput()
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = errLate
	}
	return out, err
}

// build compiles the test programs.
func (a *asker) build(ctx context.Context) error {
	for _, p := range a.tree.pkgs {
		if _, err := a.tree.goCommand(ctx, "test", "-c", "-vet=off", "-o", a.programOf(p), p.ImportPath); err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
	return nil
}

// find runs each test alone, to see which mutants it reaches. One that fails is left out, and named.
func (a *asker) find(ctx context.Context, log io.Writer) error {
	var tests []*test
	for _, p := range a.tree.pkgs {
		out, err := a.program(ctx, p, time.Minute, "", "-test.list", "^(Test|Example|Fuzz)")
		if err != nil {
			return fmt.Errorf("%s: %w: %s", p.ImportPath, err, out)
		}
		for _, name := range strings.Fields(string(out)) {
			tests = append(tests, &test{pkg: p, name: name})
		}
	}
	fmt.Fprintf(log, "which of %d mutants do %d tests reach?\n", len(a.tree.all), len(tests))
	reached, failed := make([][]int, len(tests)), make([]error, len(tests))
	a.each(len(tests), func(i int) { reached[i], failed[i] = a.alone(ctx, tests[i]) })
	a.reach = make(map[int][]*test)
	for i, t := range tests {
		if failed[i] != nil {
			fmt.Fprintf(log, "%s %s fails without any change, and is left out: %v\n", t.pkg.ImportPath, t.name, failed[i])
		}
		for _, id := range reached[i] {
			a.reach[id] = append(a.reach[id], t)
		}
	}
	for _, tests := range a.reach {
		slices.SortStableFunc(tests, func(x, y *test) int { return cmp.Compare(x.took, y.took) })
	}
	return ctx.Err()
}

// alone runs one test, and returns the mutants that it reaches.
func (a *asker) alone(ctx context.Context, t *test) (reached []int, err error) {
	file, err := os.CreateTemp(a.scratch, "reached")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	file.Close()
	begun := time.Now()
	out, err := a.program(ctx, t.pkg, 10*a.most, change.Reached+"="+file.Name(), "-test.run", "^"+t.name+"$")
	if t.took = time.Since(begun); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out[:min(len(out), 2000)])
	}
	data, err := os.ReadFile(file.Name())
	for ; len(data) >= 4; data = data[4:] {
		reached = append(reached, int(binary.LittleEndian.Uint32(data)))
	}
	slices.Sort(reached) // children of a test append to the file too
	return slices.Compact(reached), err
}

// each calls do for 0 to n-1, as many at once as may run.
func (a *asker) each(n int, do func(int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range a.jobs {
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
