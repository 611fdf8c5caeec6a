package mcphybrid

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/stretchr/testify/assert"
)

// removedOf returns so many tools of a server, numbered from first.
func removedOf(server string, first, n int) (list []*removedTool) {
	for i := range n {
		list = append(list, &removedTool{name: fmt.Sprintf("%s %06d", server, first+i), subject: rules.Subject{Own: fmt.Sprint(first + i), Server: server}, since: time.Unix(int64(first), 0)})
	}
	return list
}

func (l removedTools) count() (n int) {
	for _, of := range l.byServer {
		n += len(of)
	}
	return n
}

func TestRemovedTools(t *testing.T) {
	t.Parallel()
	var empty removedTools
	assert.Zero(t, empty.with(nil, nil))
	assert.Zero(t, empty.with(nil, []string{"a 000000"}))
	l := empty.with(removedOf("a", 0, 3), nil)
	assert.Equal(t, 3, l.count())
	assert.Equal(t, "2", l.named("a 000002").subject.Own)
	back := l.with(removedOf("b", 0, 1), []string{"a 000001", "a 000009"})
	assert.Nil(t, back.named("a 000001"))
	assert.Equal(t, 3, back.count())
	assert.Equal(t, 3, l.count(), "it never changes")
	assert.NotNil(t, l.named("a 000001"))
	again := back.with(removedOf("a", 1, 1), nil)
	assert.Equal(t, 4, again.count())
	assert.Greater(t, again.named("a 000001").number, back.named("b 000000").number)
	none := back.with(nil, []string{"a 000000", "a 000002", "b 000000"})
	assert.Empty(t, none.byServer)
}

// A server that has more and more to forget forgets its own, the oldest first.
func TestRemovedToolsAreBounded(t *testing.T) {
	t.Parallel()
	l := removedTools{}.with(removedOf("quiet", 0, 2), nil)
	for round := range 12 {
		l = l.with(removedOf("endless", round*300, 300), nil)
		assert.Equal(t, 2+min(300*(round+1), maxRemovedEach), l.count())
		assert.NotNil(t, l.named("quiet 000000"))
		assert.NotNil(t, l.named(fmt.Sprintf("endless %06d", round*300+299)))
	}
	assert.Nil(t, l.named("endless 002599"))
	assert.NotNil(t, l.named("endless 002600"))

	for g := range 50 { // many servers that each fill theirs
		l = l.with(removedOf(fmt.Sprint("g", g), 0, maxRemovedEach), nil)
		assert.LessOrEqual(t, l.count(), maxRemovedTools)
	}
	assert.NotNil(t, l.named("quiet 000000"), "those that have the most lose")
	assert.NotNil(t, l.named("g0 000999"))
	assert.Greater(t, l.count(), maxRemovedTools-60)
}

// So many servers that not each can have one: the oldest are dropped.
func TestRemovedToolsOfManyServers(t *testing.T) {
	t.Parallel()
	var now []*removedTool
	for g := range maxRemovedTools {
		now = append(now, removedOf(fmt.Sprintf("g%06d", g), 0, 1)...)
	}
	l := removedTools{}.with(now, nil)
	assert.Equal(t, maxRemovedTools, l.count())
	l = l.with(removedOf("new", 0, 1), nil)
	assert.Equal(t, maxRemovedTools, l.count())
	assert.NotNil(t, l.named("new 000000"))
	assert.Nil(t, l.named("g000000 000000"))
	assert.NotNil(t, l.named("g000001 000000"))
}
