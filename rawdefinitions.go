package mcphybrid

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"maps"
	"sync"
	"weak"
)

// A rawDefinition is a definition as a server sent it.
type rawDefinition struct{ text json.RawMessage }

// rawDefinitions has each text once that definitions of users have alike: thousands of users may
// each have a server of their own that lists the same tools. It keeps no text alive that no
// definition has. A nil one keeps nothing.
type rawDefinitions struct {
	mu     sync.Mutex
	byHash map[uint64]weak.Pointer[rawDefinition]
	room   int // for so many texts before those that are gone are forgotten: less memory than a cleanup of each
}

var rawSeed = maphash.MakeSeed()

// parse is [parseDefinition] of what is kept of raw.
func (all *rawDefinitions) parse(server string, raw json.RawMessage, maxBytes int) (*definition, error) {
	if all == nil {
		return parseDefinition(server, raw, maxBytes)
	}
	t := all.once(raw)
	d, err := parseDefinition(server, t.text, maxBytes)
	if err == nil {
		d.raw = t
	}
	return d, err
}

// once returns the text that is like raw. It is shared and must not be changed.
func (all *rawDefinitions) once(raw json.RawMessage) *rawDefinition {
	hash := maphash.Bytes(rawSeed, raw)
	all.mu.Lock()
	defer all.mu.Unlock()
	if t := all.byHash[hash].Value(); t != nil && bytes.Equal(t.text, raw) {
		return t
	}
	if all.byHash == nil {
		all.byHash = make(map[uint64]weak.Pointer[rawDefinition])
	}
	if len(all.byHash) >= all.room {
		maps.DeleteFunc(all.byHash, func(_ uint64, t weak.Pointer[rawDefinition]) bool { return t.Value() == nil })
		all.room = 2*len(all.byHash) + 64
	}
	t := &rawDefinition{raw}
	all.byHash[hash] = weak.Make(t)
	return t
}
