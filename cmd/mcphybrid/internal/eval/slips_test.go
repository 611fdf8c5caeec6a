package eval

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMisspelled(t *testing.T) {
	const query = "please translate these sentences into Spanish and a summary, 天气 tomorrow"
	words := strings.Fields(query)
	seen := make(map[string]bool)
	for seed := range uint64(50) {
		got := misspelled(query, seed)
		assert.Equal(t, got, misspelled(query, seed))
		seen[got] = true
		changed := 0
		for i, word := range strings.Fields(got) {
			if word == words[i] {
				continue
			}
			changed++
			assert.Greater(t, len(words[i]), 5, "%s is short", words[i])
			assert.Equal(t, words[i][0], word[0])
			assert.InDelta(t, len(words[i]), len(word), 1)
		}
		assert.LessOrEqual(t, changed, 2, "of six long words") // a doubled letter may be swapped with itself
	}
	assert.Greater(t, len(seen), 25)
	assert.Equal(t, "pay my tax", misspelled("pay my tax", 1))
}

func TestInContext(t *testing.T) {
	assert.Equal(t, "buy milk", inContext("buy milk", 0))
	one, three := inContext("", 1), inContext("", 3)
	assert.InDelta(t, 650, len(one), 100)
	assert.InDelta(t, 2000, len(three), 200)
	assert.True(t, strings.HasPrefix(three, one))
	assert.True(t, strings.HasSuffix(inContext("buy milk", 3), ".\n\nbuy milk"))
}

func TestAlter(t *testing.T) {
	const text = "translate these sentences"
	for _, s := range []settings{{}, {slips: true}, {context: 1}, {slips: true, context: 2}} {
		queries := []query{{Query: text}, {Query: text}}
		s.alter(queries)
		for i, q := range queries {
			want := text
			if s.slips {
				want = misspelled(text, uint64(i))
			}
			assert.Equal(t, inContext(want, s.context), q.Query)
		}
	}
}
