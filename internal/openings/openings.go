// Package openings keeps once, under its hash, what many stored states have alike: the opening, which is what
// conversations began with. A store of sessions stores the rest, and gives back each byte.
//
//	{"version":5,…,"opening":KEY,"began":{…}}     a state, of which most is the opening
//	KEY 1234 {"version":5,…,"opening":KEY}        what is stored in its place
//	{…}                                           the opening, stored once
//
// What has no opening is stored whole.
package openings

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
)

// A Keeper keeps openings in an engine.
type Keeper interface {
	// PutOpening keeps an opening under its key, longer by more than an hour than states that are put now.
	// Several processes may put the same one at once.
	PutOpening(ctx context.Context, key string, opening []byte) error

	// GetOpening returns the opening with that key, or nil if there is none.
	GetOpening(ctx context.Context, key string) ([]byte, error)
}

// The bounds of Openings.
const (
	// putAgain is the age at which an opening is put again, so that it outlives all states that name it.
	putAgain = time.Hour

	// least is how many bytes of an opening are worth storing apart.
	least = 1 << 10

	// maxKept and maxKeptBytes are how many openings are remembered, and their bytes.
	maxKept      = 1_000
	maxKeptBytes = 16 << 20
)

// Openings stores and reads states for one store. The zero value is not usable: see [New].
type Openings struct {
	keeper Keeper
	now    func() time.Time

	mu    sync.Mutex
	known map[string]*opening // by key
	bytes int                 // of these
}

type opening struct {
	data []byte
	put  time.Time // when this process put it last; zero if it never did
}

// New returns the openings of an engine.
func New(k Keeper) *Openings {
	return &Openings{keeper: k, now: func() time.Time { return time.Now().Round(0) }, known: make(map[string]*opening)} // of the wall: a suspended machine's other clock stands still
}

// What is stored in the place of a state begins with one of these, or it is the state itself. No JSON
// begins so. A later version may have further ones, of the same form: see [isMarked].
var (
	short = []byte("\x00short\x00") // the key, where the opening was, in four bytes, and the rest follow
	whole = []byte("\x00whole\x00") // a state that begins like one of these follows
)

const keyBytes = 43 // see store.KeyOf

// Shorten returns what to store in the place of a state. It puts the opening first, if there is one.
func (o *Openings) Shorten(ctx context.Context, state []byte) ([]byte, error) {
	from, to, ok := find(state)
	if !ok {
		if isMarked(state) {
			return append(bytes.Clone(whole), state...), nil
		}
		return state, nil
	}
	key := store.KeyOf(state[from:to])
	if err := o.keep(ctx, key, state[from:to]); err != nil {
		return nil, fmt.Errorf("the opening %s: %w", key, err)
	}
	stored := make([]byte, 0, len(short)+keyBytes+4+len(state)-(to-from))
	stored = append(append(stored, short...), key...)
	stored = binary.BigEndian.AppendUint32(stored, uint32(from))
	return append(append(stored, state[:from]...), state[to:]...), nil
}

// Lengthen returns the state in whose place something was stored.
func (o *Openings) Lengthen(ctx context.Context, stored []byte) ([]byte, error) {
	if state, ok := bytes.CutPrefix(stored, whole); ok {
		return state, nil
	}
	rest, ok := bytes.CutPrefix(stored, short)
	switch {
	case !ok && isMarked(stored):
		return nil, errNewer
	case !ok:
		return stored, nil
	}
	if len(rest) < keyBytes+4 {
		return nil, errDamaged
	}
	key, at, rest := string(rest[:keyBytes]), binary.BigEndian.Uint32(rest[keyBytes:]), rest[keyBytes+4:]
	if uint64(at) > uint64(len(rest)) || !store.IsKey(key) {
		return nil, errDamaged
	}
	opening, err := o.get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("the opening %s: %w", key, err)
	}
	if len(rest)+len(opening) > store.MaxState {
		return nil, fmt.Errorf("with its opening it has %d bytes, more than %d", len(rest)+len(opening), store.MaxState)
	}
	state := make([]byte, 0, len(rest)+len(opening))
	return append(append(append(state, rest[:at]...), opening...), rest[at:]...), nil
}

// isMarked reports whether data begins with five small letters between two NULs.
func isMarked(data []byte) bool {
	if len(data) < len(short) || data[0] != 0 || data[len(short)-1] != 0 {
		return false
	}
	for _, c := range data[1 : len(short)-1] {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

var (
	errNewer   = errors.New("a newer version of the library has put it in a form that this one can't read")
	errDamaged = errors.New("it is not what was stored")
	errLost    = errors.New("it is not in the store: what the conversation began with, its first tools and sections, is lost, and without it the state can't be read")
)

// keep puts an opening, unless this process has put it within the hour.
func (o *Openings) keep(ctx context.Context, key string, data []byte) error {
	o.mu.Lock()
	known := o.known[key]
	now := o.now()
	if known != nil {
		if age := now.Sub(known.put); age < putAgain && age > -putAgain {
			o.mu.Unlock()
			return nil
		}
	}
	o.mu.Unlock()
	if err := o.keeper.PutOpening(ctx, key, data); err != nil {
		return err
	}
	o.remember(key, bytes.Clone(data), now)
	return nil
}

// get returns an opening.
func (o *Openings) get(ctx context.Context, key string) ([]byte, error) {
	o.mu.Lock()
	known := o.known[key]
	o.mu.Unlock()
	if known != nil {
		return known.data, nil
	}
	data, err := o.keeper.GetOpening(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case data == nil:
		return nil, errLost
	case store.KeyOf(data) != key:
		return nil, errDamaged
	}
	o.remember(key, data, time.Time{})
	return data, nil
}

// remember remembers an opening, in the place of others if there are too many.
func (o *Openings) remember(key string, data []byte, put time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known := o.known[key]; known != nil {
		o.bytes -= len(known.data)
		if put.IsZero() {
			put = known.put
		}
		delete(o.known, key)
	}
	for other, known := range o.known { // any one makes room
		if len(o.known) < maxKept && o.bytes+len(data) <= maxKeptBytes {
			break
		}
		delete(o.known, other)
		o.bytes -= len(known.data)
	}
	if len(data) <= maxKeptBytes {
		o.known[key] = &opening{data, put}
		o.bytes += len(data)
	}
}

// The member of a state that is its opening, and that which names it: see internal/saved.
var (
	began = []byte(`,"began":{`)
	named = []byte(`"opening":"`)
)

// find returns where the opening of a state is. A host's document may have the state inside, as JSON. If
// it has several, find returns the first opening. No string has what find looks for: there, quotes
// are escaped.
func find(state []byte) (from, to int, ok bool) {
	at := bytes.Index(state, began)
	if at < 0 || bytes.LastIndex(state[:at], named) < 0 {
		return 0, 0, false
	}
	from = at + len(began) - 1
	n := objectLength(state[from:])
	return from, from + n, n >= least && n <= store.MaxDocument
}

// objectLength returns how many bytes the JSON object has with which data begins, or 0 if it has no end.
func objectLength(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		}
	}
	return 0
}
