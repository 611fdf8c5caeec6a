package meaning

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/mcphybrid/mcphybrid/vector"
)

// A Text is what the store should hold under one id. It is never changed.
type Text struct {
	ID     string
	Server string
	text   string
	key    vector.Key
	sum    string
}

// NewText returns the text that is to be stored under id. name is its name on the
// server, which need not be the id.
func NewText(model, id, server, name, text string) *Text {
	key := vector.KeyOf(model, text)
	return &Text{id, server, text, key, tag(server) + tag(name) + hex.EncodeToString(key[:])}
}

// tagBytes is the length of a tag. A sum is two tags, of the server and of the name,
// and the key of the text. So a sum tells whose record it is, in any process.
const tagBytes = 16

func tag(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:tagBytes/2])
}

// A said is what servers say that they have: tags of names, by the server's tag.
type said map[string]map[string]bool

func saidBy(listed map[string][]string) said {
	s := make(said, len(listed))
	for server, names := range listed {
		tags := make(map[string]bool, len(names))
		for _, name := range names {
			tags[tag(name)] = true
		}
		s[tag(server)] = tags
	}
	return s
}

// denies reports whether the server of a record was asked and does not have it.
func (s said) denies(sum string) bool {
	if len(sum) <= 2*tagBytes {
		return false
	}
	names, asked := s[sum[:tagBytes]]
	return asked && !names[sum[tagBytes:2*tagBytes]]
}

func keysOf(texts []*Text) []vector.Key {
	keys := make([]vector.Key, len(texts))
	for i, t := range texts {
		keys[i] = t.key
	}
	return keys
}

func sumsOf(texts []*Text) map[string]string {
	sums := make(map[string]string, len(texts))
	for _, t := range texts {
		sums[t.ID] = t.sum
	}
	return sums
}

// fingerprintOf returns a hash of what a store should hold.
func fingerprintOf(texts []*Text) [32]byte {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s%s", len(t.ID), t.ID, t.sum)
	}
	return [32]byte(h.Sum(nil))
}
