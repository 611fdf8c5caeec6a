package mcphybrid

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/stretchr/testify/assert"
)

// removedOf returns so many tools of a server, numbered from first.
func removedOf(server string, first, n int) map[string]removedTool {
	list := make(map[string]removedTool, n)
	for i := range n {
		list[fmt.Sprintf("%s %06d", server, first+i)] = removedTool{subject: &rules.Subject{Own: fmt.Sprint(first + i), Server: server}, since: time.Unix(int64(first), 0)}
	}
	return list
}

func TestRemovedTools(t *testing.T) {
	t.Parallel()
	var empty removedTools
	assert.Nil(t, empty.with(nil, nil))
	l := empty.with(removedOf("a", 0, 3), nil)
	assert.Len(t, l, 3)
	assert.Equal(t, "2", l["a 000002"].subject.Own)
	back := l.with(removedOf("b", 0, 1), []string{"a 000001", "a 000009"})
	assert.NotContains(t, back, "a 000001")
	assert.Len(t, back, 3)
	assert.Len(t, l, 3, "it never changes")
	assert.Contains(t, l, "a 000001")
	again := back.with(removedOf("a", 1, 1), nil)
	assert.Len(t, again, 4)
}

// A server that has more and more to forget forgets its own, the oldest first.
func TestRemovedToolsAreBounded(t *testing.T) {
	t.Parallel()
	l := removedTools(nil).with(removedOf("quiet", 0, 2), nil)
	for round := range 12 {
		l = l.with(removedOf("endless", round*300, 300), nil)
		assert.Len(t, l, 2+min(300*(round+1), maxRemovedEach))
		assert.Contains(t, l, "quiet 000000")
		assert.Contains(t, l, fmt.Sprintf("endless %06d", round*300+299))
	}
	assert.NotContains(t, l, "endless 002599")
	assert.Contains(t, l, "endless 002600")

	for g := range 50 { // many servers that each fill theirs
		l = l.with(removedOf(fmt.Sprint("g", g), 0, maxRemovedEach), nil)
		assert.LessOrEqual(t, len(l), maxRemovedTools)
	}
	assert.Contains(t, l, "quiet 000000", "those that have the most lose")
	assert.Contains(t, l, "g0 000999")
	assert.Greater(t, len(l), maxRemovedTools-60)
}

// So many servers that not each can have one: the oldest are dropped.
func TestRemovedToolsOfManyServers(t *testing.T) {
	t.Parallel()
	now := make(map[string]removedTool)
	for g := range maxRemovedTools {
		now[fmt.Sprintf("g%06d", g)] = removedTool{subject: &rules.Subject{Server: fmt.Sprint(g)}}
	}
	l := removedTools(nil).with(now, nil)
	assert.Len(t, l, maxRemovedTools)
	l = l.with(removedOf("new", 0, 1), nil)
	assert.Len(t, l, maxRemovedTools)
	assert.Contains(t, l, "new 000000")
	assert.NotContains(t, l, "g000000")
	assert.Contains(t, l, "g000001")
}
