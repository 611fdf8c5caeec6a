// Mutate asks the tests of some packages whether they see small changes of the code: a
// condition that is negated, a statement that is missing, an error that is swallowed.
//
//	go run ./internal/mutate -seed 7 -n 20 ./internal/names ./internal/trust
//
// It writes all such changes into a copy of the module, each behind a switch, and compiles that
// once. It chooses some by the seed, switches on one at a time, and runs the tests that reach it.
// What survives is either a change that changes nothing, or a test that is missing. What must be
// a constant is not changed. It is for this project alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	code, err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
	}
	stop()
	os.Exit(code)
}

// run returns the exit status: 0, 1 if fewer mutants were caught than wanted, or 2 with an
// error.
func run(ctx context.Context, args []string, w io.Writer) (code int, err error) {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	seed := flags.Uint64("seed", 1, "chooses the mutants")
	n := flags.Int("n", 20, "mutants, over all packages, at most two of a function")
	kinds := flags.String("kinds", "", "only these `kinds`, with commas between: negate, branch, boundary, equality, logic,\noperand, statement, error, clone, number, bool, arithmetic, extreme, jump, case")
	places := flags.String("at", "", "only these `places`, with commas between, as the table has them: internal/names/names.go:340:2")
	least := flags.Float64("least", 0, "exit with status 1 if less than this `percentage` is caught")
	a := new(asker)
	flags.IntVar(&a.jobs, "jobs", 1, "test programs at once")
	flags.BoolVar(&a.short, "short", false, "run the tests with -short")
	flags.DurationVar(&a.most, "most", 30*time.Second, "what the tests of one package may take for one mutant; the quickest are asked first")
	if err := flags.Parse(args); err != nil {
		return 2, err
	}
	if a.jobs < 1 || *n < 0 || flags.NArg() == 0 {
		return 2, fmt.Errorf("-jobs %d, -n %d and %d packages: at least 1, 0 and 1", a.jobs, *n, flags.NArg())
	}
	if a.scratch, err = os.MkdirTemp("", "mutate"); err != nil {
		return 2, err
	}
	defer os.RemoveAll(a.scratch)
	copied, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return 2, err
	}
	defer os.RemoveAll(copied)
	if a.tree, err = newTree(ctx, copied, flags.Args(), w); err != nil {
		return 2, err
	}
	words := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
	picked := sample(a.tree.all, choice{words(*kinds), words(*places)}, *n, *seed)
	if err := a.build(ctx); err != nil {
		return 2, err
	}
	if err := a.find(ctx, w); err != nil {
		return 2, err
	}
	outcomes, err := a.all(ctx, picked, w)
	if err != nil {
		return 2, err
	}
	return report(w, outcomes, *seed, *least), nil
}

// maxOfFunction is how many mutants of a function a sample has, unless its places are told.
const maxOfFunction = 2

// A choice says which mutants are meant. What is empty means all.
type choice struct {
	kinds  []string
	places []string // as the table has them, the column or the line too may be missing
}

func (c choice) has(m *mutant) bool {
	whole := fmt.Sprintf("/%s:%d:%d:", m.file, m.line, m.column)
	return !m.broken && (len(c.kinds) == 0 || slices.Contains(c.kinds, m.kind)) &&
		(len(c.places) == 0 || slices.ContainsFunc(c.places, func(place string) bool { return strings.Contains(whole, "/"+place+":") }))
}

// sample chooses n mutants, or as many as there are, of those that are meant. The same seed
// chooses the same ones of the same code. They are sorted by package and place.
func sample(all []*mutant, of choice, n int, seed uint64) (picked []*mutant) {
	meant := slices.DeleteFunc(slices.Clone(all), func(m *mutant) bool { return !of.has(m) })
	taken := make(map[[2]string]int)
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(meant)) {
		m := meant[i]
		key := [2]string{m.file, m.function}
		if taken[key]++; len(picked) == n {
			break
		} else if taken[key] <= maxOfFunction || key[1] == "" || len(of.places) > 0 {
			picked = append(picked, m)
		}
	}
	slices.SortFunc(picked, func(x, y *mutant) int { return x.id - y.id })
	return picked
}

// all asks about the mutants, and prints each as soon as those before it are done.
func (a *asker) all(ctx context.Context, picked []*mutant, w io.Writer) (outcomes []outcome, err error) {
	outcomes = make([]outcome, len(picked))
	failed := make([]error, len(picked))
	done := make([]chan struct{}, len(picked))
	for i := range done {
		done[i] = make(chan struct{})
	}
	go a.each(len(picked), func(i int) {
		outcomes[i], failed[i] = a.ask(ctx, picked[i])
		close(done[i])
	})
	for i, m := range picked {
		<-done[i]
		if failed[i] != nil && err == nil {
			err = failed[i]
		}
		o := outcomes[i]
		fmt.Fprintf(w, "%-9s  %-10s  %5.1f s  %s:%d:%d\n    - %s\n    + %s\n", o.what, m.kind, o.took.Seconds(), m.file, m.line, m.column, m.was, m.is)
	}
	return outcomes, err
}

// report prints the last line, and returns the exit status.
func report(w io.Writer, outcomes []outcome, seed uint64, least float64) int {
	of := make(map[string]int)
	for _, o := range outcomes {
		of[o.what]++
	}
	seen, percent := of[caught]+of[late], 100.0
	if len(outcomes) > 0 {
		percent = 100 * float64(seen) / float64(len(outcomes))
	}
	fmt.Fprintf(w, "seed %d: %d mutants, %d caught (%d by time), %d survived (%d unreached): %.1f %%\n",
		seed, len(outcomes), seen, of[late], len(outcomes)-seen, of[unasked], percent)
	if percent < least {
		return 1
	}
	return 0
}
