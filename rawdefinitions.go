package mcphybrid

import (
	"crypto/sha256"
	"encoding/json"
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
	mu    sync.Mutex
	bySum map[[sha256.Size]byte]weak.Pointer[rawDefinition]
}

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
	sum := sha256.Sum256(raw)
	all.mu.Lock()
	defer all.mu.Unlock()
	if t := all.bySum[sum].Value(); t != nil {
		return t
	}
	if all.bySum == nil {
		all.bySum = make(map[[sha256.Size]byte]weak.Pointer[rawDefinition])
	}
	t := &rawDefinition{raw}
	all.bySum[sum] = weak.Make(t)
	runtime.AddCleanup(t, all.forget, sum)
	return t
}

func (all *rawDefinitions) forget(sum [sha256.Size]byte) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.bySum[sum].Value() == nil { // else there is another one by now
		delete(all.bySum, sum)
	}
}
