package history

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNewest(t *testing.T) {
	t.Parallel()
	n := NewNewest[int](3)
	assert.Empty(t, n.All())
	n.Add(1)
	n.Add(2)
	assert.Equal(t, []int{2, 1}, n.All())
	for i := 3; i <= 10; i++ {
		n.Add(i)
		assert.Equal(t, []int{i, i - 1, i - 2}, n.All())
	}
	n.All()[0] = 0
	assert.Equal(t, 10, n.All()[0], "the caller owns the slice")
}

func TestNewestByMany(t *testing.T) {
	t.Parallel()
	const goroutines, each = 8, 500
	n := NewNewest[int](goroutines * each / 2)
	var adding sync.WaitGroup
	for g := range goroutines {
		adding.Go(func() {
			for i := range each {
				n.Add(g*each + i)
				if i%100 == 0 {
					n.All()
				}
			}
		})
	}
	adding.Wait()
	seen := make(map[int]bool)
	for _, v := range n.All() {
		seen[v] = true
	}
	assert.Len(t, seen, goroutines*each/2, "none twice")
}

func TestNewestChange(t *testing.T) {
	t.Parallel()
	n := NewNewest[int](3)
	n.Change(func(int) int { panic("there is none") })
	for i := range 5 {
		n.Add(i)
	}
	n.Change(func(i int) int { return 10 * i })
	assert.Equal(t, []int{40, 30, 20}, n.All())
}

// What is merged is the newest then, and takes no room.
func TestNewestMerge(t *testing.T) {
	t.Parallel()
	n := NewNewest[int](3)
	add := func(v, ten int) {
		n.Merge(v, func(old int) bool { return old/10 == ten }, func(old int) (int, bool) { return old + 1, old%10 < 2 })
	}
	for _, v := range []int{10, 20, 30, 40} {
		add(v, v/10)
	}
	add(99, 2)
	assert.Equal(t, []int{21, 40, 30}, n.All())
	n.Add(50)
	assert.Equal(t, []int{50, 21, 40}, n.All(), "the oldest left")
	add(99, 2)
	add(99, 2)
	assert.Equal(t, []int{99, 22, 50}, n.All(), "it may not be merged again")

	n = NewNewest[int](3)
	for _, v := range []int{10, 11, 30} {
		n.Add(v)
	}
	asked := 0
	n.Merge(12, func(old int) bool { return old/10 == 1 }, func(int) (int, bool) { asked++; return 0, false })
	assert.Equal(t, 1, asked, "only the newest of its kind may be merged")
	assert.Equal(t, []int{12, 30, 11}, n.All())
	n.Merge(13, func(old int) bool { return old == 11 }, func(old int) (int, bool) { return old + 100, true })
	assert.Equal(t, []int{111, 12, 30}, n.All(), "the oldest can be merged too")
}
