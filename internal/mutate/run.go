package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// What became of a mutant.
const (
	caught   = "caught"
	late     = "too slow" // its tests had no end, which is caught too
	survived = "survived"
	unasked  = "unreached" // no test runs it, so it survives
	broken   = "no code"   // it does not compile
)

// A pkg is a package whose code is changed.
type pkg struct {
	Dir, ImportPath           string
	GoFiles                   []string
	TestGoFiles, XTestGoFiles []string

	took    time.Duration // by its tests, unchanged
	reached *reach        // nil if all tests run for each mutant
	mutants []mutant
}

// A runner runs the tests of mutants. It writes to its scratch folder only.
type runner struct {
	scratch string
	jobs    int           // programs at once
	most    time.Duration // that the tests of one package may take, unchanged
	grace   time.Duration // that a mutant's tests may take longer than four times what they take without
	quick   time.Duration // tests that take longer are chosen by what they reach
	short   bool
	log     io.Writer
}

func (r *runner) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, "go", args...).CombinedOutput()
}

// program runs a test program in its package's folder, as go test does.
func (r *runner) program(ctx context.Context, p *pkg, path string, limit time.Duration, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, path, append(args, "-test.timeout", limit.String(), fmt.Sprintf("-test.short=%t", r.short))...)
	c.Dir = p.Dir
	c.WaitDelay = 5 * time.Second // for what a test has started
	return c.CombinedOutput()
}

// packages returns those that have code and tests, each with all its mutants.
func (r *runner) packages(ctx context.Context, patterns []string) (list []*pkg, err error) {
	var said bytes.Buffer
	c := exec.CommandContext(ctx, "go", append([]string{"list", "-json=Dir,ImportPath,GoFiles,TestGoFiles,XTestGoFiles", "--"}, patterns...)...)
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, &said)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		p := new(pkg)
		if err := decoder.Decode(p); err != nil {
			return nil, err
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			fmt.Fprintf(r.log, "%s has no tests\n", p.ImportPath)
			continue
		}
		for _, name := range p.GoFiles {
			file := filepath.Join(p.Dir, name)
			source, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			found, err := mutantsOf(file, source)
			if err != nil {
				return nil, err
			}
			p.mutants = append(p.mutants, found...)
		}
		list = append(list, p)
	}
	return list, nil
}

// maxOfFunction is how many mutants of a function a sample has, unless its places are told.
const maxOfFunction = 2

// A chosen mutant is one of a package.
type chosen struct {
	*pkg
	mutant
}

// A choice says which mutants are meant. What is empty means all.
type choice struct {
	kinds  []string
	places []string // as the table has them, the column or the line too may be missing
}

func (c choice) has(m mutant) bool {
	whole := fmt.Sprintf("%s:%d:%d:", filepath.ToSlash(m.file), m.at.Line, m.at.Column)
	return (len(c.kinds) == 0 || slices.Contains(c.kinds, m.kind)) &&
		(len(c.places) == 0 || slices.ContainsFunc(c.places, func(place string) bool { return strings.Contains(whole, "/"+place+":") }))
}

// sample chooses n mutants, or as many as there are, of those that are meant. The same seed chooses the same ones of the same code. They are sorted by package
// and place.
func sample(list []*pkg, of choice, n int, seed uint64) (picked []chosen) {
	var all []chosen
	for _, p := range list {
		for _, m := range p.mutants {
			if of.has(m) {
				all = append(all, chosen{p, m})
			}
		}
	}
	taken := make(map[[2]string]int)
	var numbers []int
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(all)) {
		key := [2]string{all[i].file, all[i].function}
		if taken[key]++; len(numbers) == n {
			break
		} else if taken[key] <= maxOfFunction || key[1] == "" || len(of.places) > 0 {
			numbers = append(numbers, i)
		}
	}
	slices.Sort(numbers)
	for _, i := range numbers {
		picked = append(picked, all[i])
	}
	return picked
}

// prepare runs the tests of p unchanged.
func (r *runner) prepare(ctx context.Context, p *pkg) error {
	program := filepath.Join(r.scratch, "unchanged.test")
	if out, err := r.goCommand(ctx, "test", "-c", "-vet=off", "-o", program, p.ImportPath); err != nil {
		return fmt.Errorf("%s: %w: %s", p.ImportPath, err, out)
	}
	begun := time.Now()
	if out, err := r.program(ctx, p, program, r.most); err != nil {
		return fmt.Errorf("the tests of %s fail without any change: %w: %s", p.ImportPath, err, out[max(len(out)-4000, 0):])
	}
	if p.took = time.Since(begun); p.took <= r.quick {
		return nil
	}
	var err error
	p.reached, err = r.reachOf(ctx, p)
	return err
}

// An outcome is what became of a mutant, and how long its tests took.
type outcome struct {
	what string
	took time.Duration
}

// try compiles the mutant in a file beside the tree, and runs the tests of its package.
func (r *runner) try(ctx context.Context, number int, c chosen) (o outcome, err error) {
	tests, took := ".", c.took
	if c.reached != nil {
		names, alone := c.reached.testsOf(c.ImportPath+"/"+filepath.Base(c.file), c.mutant)
		if len(names) == 0 {
			return outcome{what: unasked}, nil
		}
		tests, took = "^("+strings.Join(names, "|")+")$", min(took, alone)
	}
	source, err := os.ReadFile(c.file)
	if err != nil {
		return o, err
	}
	dir := filepath.Join(r.scratch, fmt.Sprint("mutant", number))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return o, err
	}
	defer os.RemoveAll(dir)
	changed, overlay, program := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.test")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {c.file: changed}})
	if err != nil {
		return o, err
	}
	if err := errors.Join(os.WriteFile(changed, c.apply(source), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return o, err
	}
	if _, err := r.goCommand(ctx, "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", program, c.ImportPath); err != nil {
		return outcome{what: broken}, ctx.Err()
	}
	begun := time.Now()
	out, err := r.program(ctx, c.pkg, program, 4*took+r.grace, "-test.failfast", "-test.run", tests)
	o = outcome{caught, time.Since(begun)}
	switch {
	case ctx.Err() != nil:
		return o, ctx.Err()
	case err == nil:
		o.what = survived
	case bytes.Contains(out, []byte("panic: test timed out")) || errors.Is(err, context.DeadlineExceeded):
		o.what = late
	}
	return o, nil
}
