package needs

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// number returns the item with a name: 1 to 9.
func number(name string) int {
	n, _ := strconv.Atoi(name)
	return n
}

func TestAdd(t *testing.T) {
	t.Parallel()
	g := make(Graph[int])
	itself, missing := g.Add(1, []string{"3", "x", "2", "3", "x", "y"}, number)
	assert.False(t, itself)
	assert.Equal(t, []string{"x", "y"}, missing)
	itself, missing = g.Add(1, []string{"1", "2", "4"}, number)
	assert.True(t, itself)
	assert.Empty(t, missing)
	g.Add(2, []string{"x", "2"}, number)
	assert.Equal(t, Graph[int]{1: {3, 2, 4}}, g, "in order, none twice, and no entry for nothing")
}

func TestAlong(t *testing.T) {
	t.Parallel()
	g := Graph[int]{1: {2, 3}, 2: {4, 1}, 3: {2, 5}, 5: {6}}
	needs := func(n int) []int { return g[n] }
	all := func(int) bool { return true }
	assert.Equal(t, []int{2, 3, 4, 5, 6}, Along(1, 9, needs, all), "the nearest first")
	assert.Equal(t, []int{2, 3, 4}, Along(1, 3, needs, all))
	assert.Equal(t, []int{2, 3, 4}, Along(1, 9, needs, func(n int) bool { return n != 5 }), "and not what 5 needs")
	assert.Nil(t, Along(4, 9, needs, all))
}

// On random graphs, the cycles are the sets of items that reach each other.
func TestCyclesAgreeWithReachability(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 5))
		n := 1 + rng.IntN(20)
		g := make(Graph[int])
		reach := make([][]bool, n+1)
		var items []int
		for i := range n + 1 {
			reach[i] = make([]bool, n+1)
		}
		for i := 1; i <= n; i++ {
			items = append(items, i)
			var names []string
			for range rng.IntN(4) * rng.IntN(2) {
				to := 1 + rng.IntN(n)
				names = append(names, strconv.Itoa(to))
				reach[i][to] = true
			}
			g.Add(i, names, number)
		}
		for k := range reach {
			for i := range reach {
				for j := range reach {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		cycleOf := make(map[int]int)
		for c, cycle := range g.Cycles(items) {
			require.Greater(t, len(cycle), 1)
			for _, i := range cycle {
				require.Zero(t, cycleOf[i], "seed %d: %d is in two", seed, i)
				cycleOf[i] = c + 1
			}
		}
		for i := 1; i <= n; i++ {
			for j := range slices.Values(items) {
				want := i != j && reach[i][j] && reach[j][i]
				require.Equal(t, want, i != j && cycleOf[i] > 0 && cycleOf[i] == cycleOf[j], "seed %d: %d and %d", seed, i, j)
			}
		}
	}
}
