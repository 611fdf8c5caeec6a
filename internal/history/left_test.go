package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// departures returns so many of a group, numbered from first.
func departures(group string, first, n int) map[string]Departure[int] {
	list := make(map[string]Departure[int], n)
	for i := range n {
		list[fmt.Sprintf("%s %06d", group, first+i)] = Departure[int]{Value: first + i, Group: group, Since: time.Unix(int64(first), 0)}
	}
	return list
}

func TestLeft(t *testing.T) {
	t.Parallel()
	var empty Left[int]
	assert.Nil(t, empty.With(nil, nil))
	l := empty.With(departures("a", 0, 3), nil)
	assert.Len(t, l, 3)
	assert.Equal(t, 2, l["a 000002"].Value)
	back := l.With(departures("b", 0, 1), []string{"a 000001", "a 000009"})
	assert.NotContains(t, back, "a 000001")
	assert.Len(t, back, 3)
	assert.Len(t, l, 3, "it never changes")
	assert.Contains(t, l, "a 000001")
	again := back.With(departures("a", 1, 1), nil)
	assert.Len(t, again, 4)
}

// A group that has more and more to forget forgets its own, the oldest first.
func TestLeftIsBounded(t *testing.T) {
	t.Parallel()
	l := Left[int](nil).With(departures("quiet", 0, 2), nil)
	for round := range 12 {
		l = l.With(departures("endless", round*300, 300), nil)
		assert.Len(t, l, 2+min(300*(round+1), MaxLeftEach))
		assert.Contains(t, l, "quiet 000000")
		assert.Contains(t, l, fmt.Sprintf("endless %06d", round*300+299))
	}
	assert.NotContains(t, l, "endless 002599")
	assert.Contains(t, l, "endless 002600")

	for g := range 50 { // many groups that each fill theirs
		l = l.With(departures(fmt.Sprint("g", g), 0, MaxLeftEach), nil)
		assert.LessOrEqual(t, len(l), MaxLeft)
	}
	assert.Contains(t, l, "quiet 000000", "those that have the most lose")
	assert.Contains(t, l, "g0 000999")
	assert.Greater(t, len(l), MaxLeft-60)
}

// So many groups that not each can have one: the oldest are dropped.
func TestLeftOfManyGroups(t *testing.T) {
	t.Parallel()
	now := make(map[string]Departure[int])
	for g := range MaxLeft {
		now[fmt.Sprintf("g%06d", g)] = Departure[int]{Group: fmt.Sprint(g)}
	}
	l := Left[int](nil).With(now, nil)
	assert.Len(t, l, MaxLeft)
	l = l.With(departures("new", 0, 1), nil)
	assert.Len(t, l, MaxLeft)
	assert.Contains(t, l, "new 000000")
	assert.NotContains(t, l, "g000000")
	assert.Contains(t, l, "g000001")
}
