package search

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDictionaryEqualsMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	d, numbers := newDictionary(nil), map[string]uint32{}
	var terms []string
	type snapshot struct {
		view dictionaryView
		n    int
	}
	var snapshots []snapshot
	for i := range 20_000 {
		term := make([]byte, rng.IntN(4))
		for j := range term {
			term[j] = byte(rng.IntN(256))
		}
		n, ok := d.lookup(term)
		want, known := numbers[string(term)]
		require.Equal(t, known, ok, "%q", term)
		if known {
			require.Equal(t, want, n, "%q", term)
		} else {
			want = uint32(len(terms))
			numbers[string(term)] = want
			terms = append(terms, string(term))
		}
		require.Equal(t, want, d.add(term), "%q", term)
		term = append(term, "x"...) // the caller may reuse its bytes
		if len(term) > 1 {
			term[0]++
		}
		if i%1000 == 0 {
			snapshots = append(snapshots, snapshot{d.dictionaryView, len(terms)})
		}
	}
	require.Greater(t, len(terms), 4<<10, "the table grows twice at least")
	for n, term := range terms {
		require.Equal(t, term, string(d.text(uint32(n))))
	}

	// A view sees the terms added before it was taken, and no newer ones.
	for _, s := range snapshots {
		for n, term := range terms {
			got, ok := s.view.lookup([]byte(term))
			if n >= s.n {
				require.False(t, ok, "view of %d terms, term %d", s.n, n)
				continue
			}
			require.True(t, ok, "view of %d terms, term %d", s.n, n)
			require.EqualValues(t, n, got)
		}
	}
}

// Views are read while the dictionary grows.
func TestDictionaryConcurrent(t *testing.T) {
	const terms, readers = 20_000, 4
	term := func(n int) []byte { return fmt.Append(nil, "term", n) }
	d := newDictionary(nil)
	var published atomic.Pointer[dictionaryView]
	var found, missed atomic.Int64
	var wg sync.WaitGroup
	view := d.dictionaryView
	published.Store(&view)
	var done atomic.Bool
	for reader := range readers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(reader), 1))
			for more := true; more; {
				more = !done.Load()
				v := published.Load()
				for range 100 {
					n := rng.IntN(terms)
					got, ok := v.lookup(term(n))
					if ok != (n < v.len()) || ok && int(got) != n {
						t.Errorf("view of %d terms: term %d is %d, %v", v.len(), n, got, ok)
						return
					}
					if ok {
						found.Add(1)
					} else {
						missed.Add(1)
					}
				}
			}
		})
	}
	for n := range terms {
		d.add(term(n))
		if n%50 == 0 || n == terms-1 {
			view := d.dictionaryView
			published.Store(&view)
		}
	}
	done.Store(true)
	wg.Wait()
	assert.GreaterOrEqual(t, found.Load()+missed.Load(), int64(readers*100))
	assert.NotZero(t, found.Load())
	assert.Equal(t, terms, d.len())
}
