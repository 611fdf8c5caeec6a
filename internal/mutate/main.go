// Mutate asks the tests of some packages whether they see small changes of the code: a
// condition that is negated, a statement that is missing, an error that is swallowed.
//
//	go run ./internal/mutate -seed 7 -n 20 ./internal/names ./internal/trust
//
// It chooses the changes by the seed, makes one at a time in a copy of the file, and runs
// the tests of that package. What survives is either a change that changes nothing, or a
// test that is missing. The tree stays as it is. It is for this project alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
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
	n := flags.Int("n", 20, "mutants, over all packages")
	kinds := flags.String("kinds", "", "only these `kinds`, with commas between: negate, branch, boundary, equality, logic,\noperand, statement, error, clone, number, bool, arithmetic, extreme, jump, case")
	places := flags.String("at", "", "only these `places`, with commas between, as the table has them: internal/names/names.go:340:2")
	least := flags.Float64("least", 0, "exit with status 1 if less than this `percentage` of those that compile is caught")
	r := &runner{log: w}
	flags.IntVar(&r.jobs, "jobs", 1, "mutants at once")
	flags.BoolVar(&r.short, "short", false, "run the tests with -short")
	flags.DurationVar(&r.grace, "grace", 20*time.Second, "stop a mutant's tests this long after four times what they take without it")
	flags.DurationVar(&r.quick, "quick", 15*time.Second, "if a package's tests take longer, only those that run the changed line do; which ones is\nfound once for the same code, and kept in the user's cache folder")
	flags.DurationVar(&r.most, "most", 10*time.Minute, "what the tests of one package may take without a change")
	if err := flags.Parse(args); err != nil {
		return 2, err
	}
	if r.jobs < 1 || *n < 0 || flags.NArg() == 0 {
		return 2, fmt.Errorf("-jobs %d, -n %d and %d packages: at least 1, 0 and 1", r.jobs, *n, flags.NArg())
	}
	if r.scratch, err = os.MkdirTemp("", "mutate"); err != nil {
		return 2, err
	}
	defer os.RemoveAll(r.scratch)
	list, err := r.packages(ctx, flags.Args())
	if err != nil {
		return 2, err
	}
	words := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
	picked := sample(list, choice{words(*kinds), words(*places)}, *n, *seed)
	outcomes, err := r.all(ctx, picked)
	if err != nil {
		return 2, err
	}
	return report(w, outcomes, *seed, *least), nil
}

// all tries the mutants, and prints each as soon as those before it are done.
func (r *runner) all(ctx context.Context, picked []chosen) (outcomes []outcome, err error) {
	for i, c := range picked {
		if i == 0 || picked[i-1].pkg != c.pkg {
			if err := r.prepare(ctx, c.pkg); err != nil {
				return nil, err
			}
		}
	}
	outcomes = make([]outcome, len(picked))
	failed := make([]error, len(picked))
	done := make([]chan struct{}, len(picked))
	for i := range done {
		done[i] = make(chan struct{})
	}
	go r.each(len(picked), func(i int) {
		outcomes[i], failed[i] = r.try(ctx, i, picked[i])
		close(done[i])
	})
	for i, c := range picked {
		<-done[i]
		if err == nil {
			err = failed[i]
		}
		if err == nil {
			err = show(r.log, c.mutant, outcomes[i])
		}
	}
	return outcomes, err
}

// show prints a row of the table, and below it what is changed.
func show(w io.Writer, m mutant, o outcome) error {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return err
	}
	name := m.file
	if dir, err := os.Getwd(); err == nil {
		if below, err := filepath.Rel(dir, name); err == nil {
			name = below
		}
	}
	fmt.Fprintf(w, "%-9s  %-10s  %5.1f s  %s:%d:%d\n", o.what, m.kind, o.took.Seconds(), filepath.ToSlash(name), m.at.Line, m.at.Column)
	was, is := difference(source, m)
	_, err = fmt.Fprintf(w, "    - %s\n    + %s\n", was, is)
	return err
}

// difference returns the lines that are changed, before and after, in one line each, of at most
// 200 characters.
func difference(source []byte, m mutant) (was, is string) {
	begin, end := m.begin, m.end
	for begin > 0 && source[begin-1] != '\n' {
		begin--
	}
	for end < len(source) && source[end] != '\n' {
		end++
	}
	whole := func(middle string) string {
		line := []rune(strings.Join(strings.Fields(string(source[begin:m.begin])+middle+string(source[m.end:end])), " "))
		return string(line[:min(len(line), 200)])
	}
	return whole(string(source[m.begin:m.end])), whole(m.text)
}

// report prints the last line, and returns the exit status.
func report(w io.Writer, outcomes []outcome, seed uint64, least float64) int {
	of := make(map[string]int)
	for _, o := range outcomes {
		of[o.what]++
	}
	seen := of[caught] + of[late]
	compiled := len(outcomes) - of[broken]
	percent := 100.0
	if compiled > 0 {
		percent = 100 * float64(seen) / float64(compiled)
	}
	fmt.Fprintf(w, "seed %d: %d mutants, %d compile, %d caught (%d by time), %d survived (%d unreached): %.1f %%\n",
		seed, len(outcomes), compiled, seen, of[late], compiled-seen, of[unasked], percent)
	if percent < least {
		return 1
	}
	return 0
}
