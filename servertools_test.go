package mcphybrid

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// toolsOfServer returns tools with these registered names.
func toolsOfServer(number int, names []string, more bool) *serverTools {
	s := &serverTools{number: number, declares: more}
	var tools []*BridgeTool
	for _, name := range names {
		tools = append(tools, &BridgeTool{name: name})
	}
	s.setTools(tools)
	return s
}

func joined(list []*serverTools) (all []*BridgeTool, withMore []*serverTools) {
	for _, b := range list {
		if b != nil {
			all = append(all, b.tools...)
			if b.hasMore() {
				withMore = append(withMore, b)
			}
		}
	}
	return all, withMore
}

// Whatever changes, a list has the tools of its servers in order, finds each, knows the
// servers that have more than tools, and the earlier versions stay as they were.
func TestToolList(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var now []*serverTools
		versions, want := []toolList{{}}, [][]*serverTools{nil}
		made := 0
		fresh := func(number int) *serverTools {
			var names []string
			for range rnd.IntN(4) {
				made++
				names = append(names, fmt.Sprintf("%d %d", number, made))
			}
			switch {
			case names != nil:
			case rnd.IntN(2) == 0:
				return nil
			default: // it has no tools, so others may have its number
				number = rnd.IntN(4)
			}
			return toolsOfServer(number, names, rnd.IntN(3) == 0)
		}
		taken := func(number int) bool {
			return slices.ContainsFunc(now, func(b *serverTools) bool { return b != nil && len(b.tools) > 0 && b.number == number })
		}
		for range 40 {
			now = slices.Clone(now)
			free := 0
			for taken(free) {
				free++
			}
			switch at := rnd.IntN(len(now) + 1); {
			case at == len(now):
				now = append(now, fresh(free))
			case rnd.IntN(2) == 0:
				now = slices.Delete(now, at, at+1)
			case now[at] == nil || len(now[at].tools) == 0:
				now[at] = fresh(free)
			default:
				now[at] = fresh(now[at].number)
			}
			before := &versions[len(versions)-1]
			next := before.next(now, max(free+1, len(before.at)))
			gone := slices.DeleteFunc(slices.Clone(before.tools), func(t *BridgeTool) bool { return slices.Contains(next.tools, t) })
			assert.ElementsMatch(t, gone, before.without(&next), "seed %d", seed)
			versions, want = append(versions, next), append(want, now)
		}
		for i, l := range versions {
			tools, withMore := joined(want[i])
			require.True(t, slices.Equal(tools, l.tools), "seed %d: %v, want %v", seed, namesOf(l.tools), namesOf(tools))
			require.True(t, slices.Equal(withMore, l.withMore), "seed %d: %v, want %v", seed, l.withMore, withMore)
			for at, tool := range l.tools {
				var number int
				_, err := fmt.Sscan(tool.name, &number)
				require.NoError(t, err)
				got, ok := l.index(number, tool.name)
				require.True(t, ok)
				require.Equal(t, at, got)
				assert.Same(t, tool, l.server(number).tool(tool.name))
				_, ok = l.index(number, "other")
				assert.False(t, ok)
			}
			_, ok := l.index(49, "x")
			assert.False(t, ok)
			_, ok = l.index(-1, "x")
			assert.False(t, ok)
		}
	}
}

// A list that only gets more servers keeps its tools where they are.
func TestToolListAppends(t *testing.T) {
	t.Parallel()
	list, l, moved := []*serverTools{}, toolList{}, 0
	for i := range 1000 {
		list = append(slices.Clip(list), toolsOfServer(i, []string{fmt.Sprint(i)}, false))
		next := l.next(list, 1000)
		if i > 0 && &next.tools[0] != &l.tools[0] {
			moved++
		}
		l = next
	}
	assert.Less(t, moved, 30)
}

// A number that no server of the list has is nowhere.
func TestPlaceOfNoServer(t *testing.T) {
	t.Parallel()
	l := &toolList{servers: []*serverTools{{}}, at: []serverPlace{{}, {server: 1}}}
	for number, want := range map[int]bool{-1: false, 0: false, 1: true, 2: false, 3: false} {
		k, ok := l.place(number)
		assert.Equal(t, want, ok, number)
		assert.Zero(t, k, number)
	}
}
