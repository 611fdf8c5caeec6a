package meaning

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/mcphybrid/mcphybrid/vector"
)

// MaxSchema is how many bytes a schema in the store may have. It is more than almost
// any tool's; a part of a schema would be no JSON.
const MaxSchema = 64 << 10

// A Source is what a server says that the store should hold.
type Source struct {
	ID     string // in the store
	Server string
	Name   string // on the server
	Text   string // to embed

	// What readers of the store find beside it. Of a description, the first MaxText
	// bytes are stored. A schema of more than MaxSchema bytes is left out.
	Description string
	Schema      []byte // JSON; not changed afterwards
}

// A Text is what the store should hold under one id. It is never changed.
type Text struct {
	ID     string
	Server string
	text   string
	key    vector.Key
	sum    string

	description string
	schema      []byte
}

// NewText returns the text of a source. A store that nobody else uses has no
// readers, so there the text has no description and no schema.
func (k *Keeper) NewText(s Source) *Text {
	key := vector.KeyOf(k.Model, s.Text)
	t := &Text{ID: s.ID, Server: s.Server, text: s.Text, key: key, sum: tag(s.Server) + tag(s.Name) + hex.EncodeToString(key[:])}
	if !k.Private {
		t.description = strings.ToValidUTF8(s.Description[:min(len(s.Description), MaxText)], "")
		if len(s.Schema) <= MaxSchema {
			t.schema = s.Schema
		}
		t.sum += tag(t.description + "\x00" + string(t.schema))
	}
	return t
}

// record returns what is stored of a text with its vector.
func (t *Text) record(v []float32) vector.Record {
	return vector.Record{ID: t.ID, Sum: t.sum, Server: t.Server, Text: t.text, Vector: v,
		Description: t.description, Schema: strings.ToValidUTF8(string(t.schema), "\uFFFD")}
}

// A sum is a tag of the server, one of the name, the key of the text and, unless the
// store is private, a tag of what is for readers. So any process can tell from a sum
// whose record it is and whether its vector is that of a text.
const (
	tagBytes  = 16
	textBytes = 2 * len(vector.Key{})
)

// sameText reports whether the records with these sums have the same text and the
// same model made their vectors.
func sameText(a, b string) bool {
	const from, to = 2 * tagBytes, 2*tagBytes + textBytes
	return len(a) >= to && len(b) >= to && a[from:to] == b[from:to]
}

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
