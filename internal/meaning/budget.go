package meaning

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"time"
)

// A budget is how many texts of a server may be embedded now. It fills up within a
// day.
type budget struct {
	left float64
	at   time.Time // as of when
	told time.Time // when the log was told that it is used up
}

const day = 24 * time.Hour

// budgetOf returns the budget of a server as of now.
func (k *Keeper) budgetOf(server string, now time.Time) *budget {
	b := k.budgets[server]
	if b == nil {
		b = &budget{left: float64(k.Budget), at: now}
		k.budgets[server] = b
	}
	b.left = min(float64(k.Budget), b.left+float64(k.Budget)*now.Sub(b.at).Hours()/day.Hours())
	b.at = now
	return b
}

// forgetFull forgets the budgets of which nothing is spent.
func (k *Keeper) forgetFull(now time.Time) {
	for server := range k.budgets {
		if k.budgetOf(server, now).left >= float64(k.Budget) {
			delete(k.budgets, server)
		}
	}
}

// A spentError says that texts wait because their server has no budget left.
type spentError struct {
	server string
	budget int
}

func (e *spentError) Error() string {
	return fmt.Sprintf("server %q has used up its budget of %d texts a day", e.server, e.budget)
}

// admit returns the texts that may be embedded now, in their order. If some must
// wait, err names the first server of these, and wait is after how long to ask
// again.
func (k *Keeper) admit(texts []*Text, now time.Time) (admitted []*Text, wait time.Duration, err error) {
	if k.Budget == math.MaxInt {
		return texts, 0, nil
	}
	k.forgetFull(now)
	taken, waiting := make(map[string]int), make(map[string]int)
	var first string
	for _, t := range texts {
		if b := k.budgetOf(t.Server, now); b.left < float64(taken[t.Server]+1) {
			if len(waiting) == 0 {
				first = t.Server
			}
			waiting[t.Server]++
			continue
		}
		taken[t.Server]++
		admitted = append(admitted, t)
	}
	for _, server := range slices.Sorted(maps.Keys(waiting)) {
		b, n := k.budgetOf(server, now), waiting[server]
		// Not one by one, as the budget fills up.
		lacking := float64(taken[server]+min(n, maxBatch, k.Budget)) - b.left
		till := time.Duration(lacking / float64(k.Budget) * float64(day))
		if wait == 0 || till < wait {
			wait = max(till, time.Minute)
		}
		if now.Sub(b.told) >= day {
			b.told = now
			k.Log.Warn("mcphybrid: a server has used up what may be embedded of it", "server", server, "budget", k.Budget, "waiting", n)
		}
	}
	if first != "" {
		err = &spentError{first, k.Budget}
	}
	return admitted, wait, err
}

// spend takes texts from the budgets of their servers.
func (k *Keeper) spend(texts []*Text, now time.Time) {
	if k.Budget == math.MaxInt {
		return
	}
	for _, t := range texts {
		k.budgetOf(t.Server, now).left--
	}
}

// inTurn returns texts such that the servers take turns: the first text of each,
// then the second of each, and so on. Texts that the embedder refused come last, the
// one that was tried last at the end.
func (k *Keeper) inTurn(texts []*Text) []*Text {
	type place struct {
		*Text
		try, turn int
	}
	turns := make(map[string]int)
	places := make([]place, len(texts))
	for i, t := range texts {
		places[i] = place{t, k.refused[t.key], turns[t.Server]}
		turns[t.Server]++
	}
	sort.SliceStable(places, func(i, j int) bool {
		a, b := places[i], places[j]
		return cmp.Or(cmp.Compare(a.try, b.try), cmp.Compare(a.turn, b.turn)) < 0
	})
	ordered := make([]*Text, len(texts))
	for i, p := range places {
		ordered[i] = p.Text
	}
	return ordered
}
