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

func joined(list []*Block[string, int]) (all []string) {
	for _, b := range list {
		all = append(all, b.Items...)
	}
	return all
}

// Whatever changes, a list has the items of its blocks in order, finds each, and the
// earlier versions stay as they were.
func TestList(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var now []*Block[string, int]
		versions, want := []List[string, int]{{}}, [][]string{nil}
		made := 0
		fresh := func(number int) *Block[string, int] {
			var items []string
			for range rnd.IntN(4) {
				made++
				items = append(items, fmt.Sprintf("%d %d", number, made))
			}
			return New(number, items, itself, 0)
		}
		for range 40 {
			now = slices.Clone(now)
			switch at := rnd.IntN(len(now) + 1); {
			case at == len(now):
				free := 0
				for slices.ContainsFunc(now, func(b *Block[string, int]) bool { return b.number == free }) {
					free++
				}
				now = append(now, fresh(free))
			case rnd.IntN(2) == 0:
				now = slices.Delete(now, at, at+1)
			default:
				now[at] = fresh(now[at].number)
			}
			before := &versions[len(versions)-1]
			next := before.Next(now, 50)
			gone := slices.DeleteFunc(slices.Clone(before.Items), func(item string) bool { return slices.Contains(next.Items, item) })
			assert.ElementsMatch(t, gone, before.Without(&next), "seed %d", seed)
			versions, want = append(versions, next), append(want, joined(now))
		}
		for i, l := range versions {
			require.Equal(t, append([]string{}, want[i]...), append([]string{}, l.Items...), "seed %d", seed)
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
		list = append(slices.Clip(list), New(i, []string{fmt.Sprint(i)}, itself, 0))
		next := l.Next(list, 1000)
		if i > 0 && &next.Items[0] != &l.Items[0] {
			moved++
		}
		l = next
	}
	assert.Less(t, moved, 30)
}
