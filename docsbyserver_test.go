package mcphybrid

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDocsByServer(t *testing.T) {
	t.Parallel()
	of := []string{"b", "a1", "b", "a2", "a1", "*"}
	g := newDocsByServer(len(of), func(i int) string { return of[i] })
	for range 2 { // the second time from what is kept
		for pattern, want := range map[string][]int{
			"b": {0, 2}, "a*": {1, 4, 3}, "?": {0, 2, 5}, "*": {0, 2, 1, 4, 3, 5}, "a": nil, "": nil, "c*": nil,
		} {
			assert.Equal(t, want, g.matching(pattern), pattern)
		}
	}
	assert.Nil(t, newDocsByServer(0, nil).matching("*"))
}

// However many patterns are asked for, and by how many goroutines, so many are kept.
func TestPatternsOfServersAreBounded(t *testing.T) {
	t.Parallel()
	g := newDocsByServer(1000, func(i int) string { return fmt.Sprint(i % 100) })
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 3 * maxMatchedPatterns {
				got := g.matching(fmt.Sprintf("%d*", i))
				assert.Equal(t, i < 100, slices.Contains(got, 900+i), "%d: %v", i, got)
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, len(g.matched), maxMatchedPatterns)
	assert.NotEmpty(t, g.matched)
	for i := range maxMatchedPatterns / 2 { // which match all
		assert.Len(t, g.matching("*"+strings.Repeat("*", i)), 1000)
		kept := 0
		for _, list := range g.matched {
			kept += len(list)
		}
		assert.Equal(t, kept, g.cached)
		assert.LessOrEqual(t, kept, maxMatchedTimes*1000)
	}
}

// What is kept is not looked for again.
func TestPatternsOfServersAreKept(t *testing.T) {
	g := newDocsByServer(1000, func(i int) string { return fmt.Sprint(i) })
	assert.Len(t, g.matching("*9"), 100)
	assert.Zero(t, testing.AllocsPerRun(10, func() { g.matching("*9") }))
}
