package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The content of a document is read as it was written: the groups in the name
// first, and none of its terms lost where a distance or a number of terms does not
// fit.
func TestContent(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	x := &Index{first: []uint32{0}}
	type document struct {
		begins uint32
		does   verbClass
		keys   []uint64
	}
	var docs []document
	for i := range 300 {
		d := document{begins: strange}
		spread := uint32(1) << (1 + rng.IntN(24))
		n := rng.IntN(80)
		if i == 7 {
			n, spread = 3*math.MaxUint16, 1<<30
		}
		if i == 8 {
			n, spread = 70_000, 1
		}
		term := uint32(0)
		for range n {
			term += 1 + rng.Uint32N(spread)
			signature := rng.Uint32N(1 << 31)
			if rng.IntN(3) > 0 || i == 8 {
				signature = 5
			}
			d.keys = append(d.keys, contentKey(term, signature, signature%3 == 0))
			if rng.IntN(10) == 0 {
				d.begins = term
			}
		}
		d.does = verbClass(rng.IntN(int(verbClasses)))
		slices.Sort(d.keys)
		x.contents = appendContent(x.contents, d.begins, d.does, d.keys)
		x.first = append(x.first, uint32(len(x.contents)))
		docs = append(docs, d)
	}
	var c contentReader
	for slot, d := range docs {
		c.open(x, uint32(slot))
		require.Equal(t, d.begins, c.begins)
		require.Equal(t, d.does, c.does)
		var keys []uint64
		for named := true; c.next(); named = c.named {
			assert.True(t, named || !c.named, "a group in the name stands behind another")
			require.NotEmpty(t, c.terms)
			for _, term := range c.terms {
				keys = append(keys, contentKey(term, c.signature, c.named))
			}
		}
		require.True(t, slices.Equal(d.keys, keys), "document %d", slot)
	}
}

func TestSignatureOf(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	known := map[string]signature{}
	for range 10_000 {
		var s signature
		for f := range s {
			if rng.IntN(3) == 0 {
				s[f].tf = uint16(1 + rng.Uint32N(1<<rng.IntN(17))%math.MaxUint16)
				s[f].length = uint16(max(uint32(s[f].tf), rng.Uint32N(1<<16)))
			}
		}
		text := s.append(nil)
		require.Equal(t, s, signatureOf(text))
		if before, ok := known[string(text)]; ok {
			require.Equal(t, before, s)
		}
		known[string(text)] = s
	}
}
