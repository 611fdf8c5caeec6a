package blocks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func itself(name string) string { return name }

func joined(list []*Block[string, int]) (all []string, marked []*Block[string, int]) {
	for _, b := range list {
		if b != nil {
			all = append(all, b.Items...)
			if b.marked {
				marked = append(marked, b)
			}
		}
	}
	return all, marked
}

// Whatever changes, a list has the items of its blocks in order, finds each, knows the
// blocks that are marked, and the earlier versions stay as they were.
func TestList(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var now []*Block[string, int]
		versions, want := []List[string, int]{{}}, [][]*Block[string, int]{nil}
		made := 0
		fresh := func(number int) *Block[string, int] {
			var items []string
			for range rnd.IntN(4) {
				made++
				items = append(items, fmt.Sprintf("%d %d", number, made))
			}
			switch {
			case items != nil:
			case rnd.IntN(2) == 0:
				return nil
			default: // it has no items, so others may have its number
				number = rnd.IntN(4)
			}
			return New(number, items, itself, 0, rnd.IntN(3) == 0)
		}
		taken := func(number int) bool {
			return slices.ContainsFunc(now, func(b *Block[string, int]) bool { return b != nil && len(b.Items) > 0 && b.number == number })
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
			case now[at] == nil || len(now[at].Items) == 0:
				now[at] = fresh(free)
			default:
				now[at] = fresh(now[at].number)
			}
			before := &versions[len(versions)-1]
			next := before.Next(now, max(free+1, len(before.at)))
			gone := slices.DeleteFunc(slices.Clone(before.Items), func(item string) bool { return slices.Contains(next.Items, item) })
			assert.ElementsMatch(t, gone, before.Without(&next), "seed %d", seed)
			versions, want = append(versions, next), append(want, now)
		}
		for i, l := range versions {
			items, marked := joined(want[i])
			require.Equal(t, append([]string{}, items...), append([]string{}, l.Items...), "seed %d", seed)
			require.True(t, slices.Equal(marked, l.Marked), "seed %d: %v, want %v", seed, l.Marked, marked)
			for at, item := range l.Items {
				var number int
				_, err := fmt.Sscan(item, &number)
				require.NoError(t, err)
				got, ok := l.Place(number, item)
				require.True(t, ok)
				require.Equal(t, at, got)
				assert.Equal(t, item, l.block(number).Find(item))
				_, ok = l.Place(number, "other")
				assert.False(t, ok)
			}
			_, ok := l.Place(49, "x")
			assert.False(t, ok)
			_, ok = l.Place(-1, "x")
			assert.False(t, ok)
		}
	}
}

// A list that only gets more blocks keeps its items where they are.
func TestNextAppends(t *testing.T) {
	t.Parallel()
	list, l, moved := []*Block[string, int]{}, List[string, int]{}, 0
	for i := range 1000 {
		list = append(slices.Clip(list), New(i, []string{fmt.Sprint(i)}, itself, 0, false))
		next := l.Next(list, 1000)
		if i > 0 && &next.Items[0] != &l.Items[0] {
			moved++
		}
		l = next
	}
	assert.Less(t, moved, 30)
}
