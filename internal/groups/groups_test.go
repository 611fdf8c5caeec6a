package groups

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMatching(t *testing.T) {
	t.Parallel()
	of := []string{"b", "a1", "b", "a2", "a1", "*"}
	g := New(len(of), func(i int) string { return of[i] })
	for range 2 { // the second time from what is kept
		for pattern, want := range map[string][]int{
			"b": {0, 2}, "a*": {1, 4, 3}, "?": {0, 2, 5}, "*": {0, 2, 1, 4, 3, 5}, "a": nil, "": nil, "c*": nil,
		} {
			assert.Equal(t, want, g.Matching(pattern), pattern)
		}
	}
	assert.Nil(t, New(0, nil).Matching("*"))
}

// However many patterns are asked for, and by how many goroutines, so many are kept.
func TestPatternsAreBounded(t *testing.T) {
	t.Parallel()
	g := New(1000, func(i int) string { return fmt.Sprint(i % 100) })
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 3 * maxPatterns {
				got := g.Matching(fmt.Sprintf("%d*", i))
				assert.Equal(t, i < 100, slices.Contains(got, 900+i), "%d: %v", i, got)
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, len(g.matched), maxPatterns)
	assert.NotEmpty(t, g.matched)
	for i := range maxPatterns / 2 { // which match all
		assert.Len(t, g.Matching("*"+strings.Repeat("*", i)), 1000)
		kept := 0
		for _, list := range g.matched {
			kept += len(list)
		}
		assert.Equal(t, kept, g.kept)
		assert.LessOrEqual(t, kept, maxTimes*1000)
	}
}

// What is kept is not looked for again.
func TestKept(t *testing.T) {
	g := New(1000, func(i int) string { return fmt.Sprint(i) })
	assert.Len(t, g.Matching("*9"), 100)
	assert.Zero(t, testing.AllocsPerRun(10, func() { g.Matching("*9") }))
}
