package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mutate/change"
)

// What became of a mutant.
const (
	caught   = "caught"
	late     = "too slow" // its tests had no end, which is caught too
	survived = "survived"
	unasked  = "unreached" // no test runs it, so it survives
)

// An outcome is what became of a mutant, and how long its tests took.
type outcome struct {
	what string
	took time.Duration
}

// ask runs the tests that reach the mutant until one fails: those of its own package, then those
// of others, in each the quickest first.
func (a *asker) ask(ctx context.Context, m *mutant) (o outcome, err error) {
	tests := a.reach[m.id]
	if len(tests) == 0 {
		return outcome{what: unasked}, nil
	}
	begun := time.Now()
	o.what = survived
	for _, of := range byPackage(tests, m.pkg) {
		if o.what, err = a.askPackage(ctx, m, of); o.what != survived || err != nil {
			break
		}
	}
	o.took = time.Since(begun)
	return o, err
}

// byPackage returns the tests of each package, with own first.
func byPackage(tests []*test, own *pkg) (list [][]*test) {
	at := map[*pkg]int{own: 0}
	list = [][]*test{nil}
	for _, t := range tests {
		i, ok := at[t.pkg]
		if !ok {
			i = len(list)
			at[t.pkg], list = i, append(list, nil)
		}
		list[i] = append(list[i], t)
	}
	return list
}

// patience is how long the tests of a mutant may take beyond four times what they take without it.
var patience = 10 * time.Second

// askPackage runs tests of one package, first a few and then more at a time: a mutant that is
// caught is mostly caught by one of the quickest.
func (a *asker) askPackage(ctx context.Context, m *mutant, tests []*test) (what string, err error) {
	begun := time.Now()
	for round := time.Second; len(tests) > 0 && time.Since(begun) < a.most; round *= 6 {
		var names []string
		var took time.Duration
		for len(tests) > len(names) && (len(names) == 0 || took+tests[len(names)].took <= round) {
			took += tests[len(names)].took
			names = append(names, tests[len(names)].name)
		}
		limit := 4*took + patience
		_, err := a.program(ctx, tests[0].pkg, limit, fmt.Sprint(change.Active, "=", m.id), "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case errors.Is(err, errLate):
			return late, nil
		case err != nil:
			return caught, nil
		}
		tests = tests[len(names):]
	}
	return survived, nil
}
