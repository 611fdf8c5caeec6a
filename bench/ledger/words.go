package main

import (
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/mcphybrid/mcphybrid/tiktoken"
)

// A counter counts tokens by o200k_base, and each text once.
type counter struct {
	codec *tiktoken.Counter

	mu    sync.Mutex
	known map[string]int
}

func newCounter() (*counter, error) {
	codec, err := tiktoken.New("o200k_base")
	return &counter{codec: codec, known: make(map[string]int)}, err
}

func (c *counter) CountTokens(text string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, known := c.known[text]
	if !known {
		n = c.codec.CountTokens(text)
		c.known[text] = n
	}
	return n
}

// words are common ones: with a space before it, each is one token.
var words = strings.Fields(`
the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you were
all her she there would their we him been has when who will no more if out so up said what its about than into them can only
other time new some could these two may first then do any like my now over such our man me even most made after also did many
off before must well back through years much where your way down should because long each just state those people too
world work part life same still own see get here between both under never day last might great old year since against go
came right used take three`)

// prose returns a text of n words, which is about as many tokens.
func prose(random *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[random.IntN(len(words))])
	}
	return b.String()
}
