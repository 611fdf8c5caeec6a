package mcphybrid

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"runtime"
	"sync"
	"weak"
)

// A rawDefinition is a definition as a server sent it.
type rawDefinition struct{ text json.RawMessage }

// rawDefinitions has each text once that definitions of users have alike: thousands of users may
// each have a server of their own that lists the same tools. It forgets a text with its last
// definition. A nil one keeps nothing.
type rawDefinitions struct {
	mu     sync.Mutex
	byHash map[uint64]weak.Pointer[rawDefinition]
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
	t := &rawDefinition{raw}
	all.byHash[hash] = weak.Make(t)
	runtime.AddCleanup(t, all.forget, hash)
	return t
}

func (all *rawDefinitions) forget(hash uint64) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byHash[hash].Value() == nil { // else there is another one by now
		delete(all.byHash, hash)
	}
}
