package mcphybrid

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestListRoomAdmits(t *testing.T) {
	t.Parallel()
	limits := listLimits{items: 5, tokens: 100, itemsEach: 3, tokensEach: 60}
	type item struct {
		source string
		tokens int
		fits   bool
	}
	tests := []struct {
		name  string
		items []item
	}{
		{"as many as fit", []item{{"a", 1, true}, {"a", 1, true}, {"a", 1, true}, {"a", 1, false}, {"b", 1, true}, {"b", 1, true}, {"b", 1, false}}},
		{"as many tokens as fit", []item{{"a", 60, true}, {"a", 1, false}, {"b", 41, false}, {"b", 40, true}, {"c", 1, false}, {"c", 0, true}}},
		{"what does not fit takes nothing", []item{{"a", 61, false}, {"a", 60, true}}},
		{"overflow", []item{{"a", math.MaxInt, false}, {"a", 60, true}}},
	}
	for _, test := range tests {
		r := newListRoom(limits)
		for i, it := range test.items {
			assert.Equal(t, it.fits, r.tryAdd(origin{server: it.source}, it.tokens), "%s: item %d", test.name, i)
		}
	}
}

func TestListRoomMayBeExceeded(t *testing.T) {
	t.Parallel()
	r := newListRoom(listLimits{items: 2, tokens: 10, itemsEach: 2, tokensEach: 10})
	r.add(r.useOf(origin{server: "a"}), 11)
	assert.False(t, r.tryAdd(origin{server: "a"}, 0))
	assert.False(t, r.tryAdd(origin{server: "b"}, 0), "nothing is left of the tokens of all")
}

func TestListRoomWithoutLimit(t *testing.T) {
	t.Parallel()
	const no = math.MaxInt
	r := newListRoom(listLimits{no, no, no, no})
	for range 1000 {
		assert.True(t, r.tryAdd(origin{}, 1<<40))
	}
}

func TestNamedRoomCloses(t *testing.T) {
	t.Parallel()
	n := newNamedRoom(listLimits{items: 5, tokens: 100, itemsEach: 5, tokensEach: 100}, 0)
	n.add("a", origin{server: "s"}, 1)
	n.close("a")
	n.close("b")
	for name, admits := range map[string]bool{"a": false, "b": false, "c": true} {
		assert.Equal(t, admits, n.tryAdd(name, origin{server: "s"}, 1), name)
	}
}

// A name takes room once, and again after it was forgotten.
func TestNamedRoomForgets(t *testing.T) {
	t.Parallel()
	n := newNamedRoom(listLimits{items: 3, tokens: 100, itemsEach: 3, tokensEach: 25}, 0)
	for i, step := range []struct {
		forget bool
		tokens int
		admits bool
	}{{false, 10, true}, {false, 99, true}, {true, 10, true}, {true, 6, false}, {false, 5, true}, {true, 0, false}, {false, 0, false}} {
		if step.forget {
			n.forget("a")
		}
		assert.Equal(t, step.admits, n.tryAdd("a", origin{server: "s"}, step.tokens), "step %d", i)
	}
	assert.Equal(t, listUse{3, 25}, n.room.all)
}
