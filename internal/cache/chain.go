package cache

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
)

// maxChanges is how many changes of a list the store has. Reading a list means reading
// them, and a list of n tools costs n/maxChanges tools with each change of one.
const maxChanges = 32

// A part says how lists differ from those of another part or, if it is the first, has them.
type part struct {
	Of     string             `json:"of,omitempty"` // key of the other part
	Server string             `json:"server"`       // with Listed: nobody else puts the same part
	Listed time.Time          `json:"listed"`
	Lists  map[string][]piece `json:"lists"`
}

// A piece of a list is elements of the list before, or one that is new.
type piece struct {
	From int    `json:"from,omitempty"`
	N    int    `json:"n,omitempty"` // 0 for a new one
	New  string `json:"new,omitempty"`
}

// A chain is the parts that lead to lists: whole ones, and changes, each of what was
// before. It is immutable.
type chain struct {
	keys  []string                      // of the parts
	size  int                           // bytes of the first part
	spent int                           // bytes of the others
	at    map[string]map[[16]byte]int32 // where the elements are, by their hashes
	n     map[string]int                // lengths of the lists
}

// newChain returns a chain of no parts that leads to lists.
func newChain(lists map[string][]string) *chain {
	c := &chain{at: make(map[string]map[[16]byte]int32, len(lists)), n: make(map[string]int, len(lists))}
	for kind, list := range lists {
		at := make(map[[16]byte]int32, len(list))
		for i, e := range list {
			at[short(e)] = int32(i)
		}
		c.at[kind], c.n[kind] = at, len(list)
	}
	return c
}

func short(element string) [16]byte {
	sum := sha256.Sum256([]byte(element))
	return [16]byte(sum[:])
}

func (c *chain) head() string { return c.keys[len(c.keys)-1] }

// with returns c with one more part, which leads to lists. If another one follows, lists
// may be nil.
func (c *chain) with(part []byte, lists map[string][]string) *chain {
	next := newChain(lists)
	next.keys = append(c.keys[:len(c.keys):len(c.keys)], store.KeyOf(part))
	if next.size, next.spent = c.size, c.spent+len(part); len(c.keys) == 0 {
		next.size, next.spent = len(part), 0
	}
	return next
}

// takes reports whether c has room for one more part. Once the changes have taken as many
// bytes as the lists, new lists cost no more than they did.
func (c *chain) takes(part []byte) bool {
	return len(c.keys) <= maxChanges && c.spent+len(part) <= c.size
}

type pieces map[string][]piece

// diff returns how lists differ from what c leads to. c may be nil.
func (c *chain) diff(lists map[string][]string) pieces {
	to := make(pieces, len(lists))
	for kind, list := range lists {
		of := []piece{}
		for _, e := range list {
			var i int32
			known := false
			if c != nil {
				i, known = c.at[kind][short(e)]
			}
			last := len(of) - 1
			switch {
			case !known:
				of = append(of, piece{New: e})
			case last >= 0 && of[last].N > 0 && of[last].From+of[last].N == int(i):
				of[last].N++
			default:
				of = append(of, piece{From: int(i), N: 1})
			}
		}
		to[kind] = of
	}
	return to
}

// is reports whether p is all that c leads to, unchanged.
func (p pieces) is(c *chain) bool {
	for kind, of := range p {
		n, known := c.n[kind]
		whole := len(of) == 0 && n == 0 || len(of) == 1 && of[0] == (piece{N: n})
		if !known || !whole {
			return false
		}
	}
	return len(p) == len(c.n)
}

var errPieces = errors.New("the changes do not fit the list")

// apply returns the lists after old ones.
func (p pieces) apply(old map[string][]string) (map[string][]string, error) {
	next := make(map[string][]string, len(p))
	for kind, of := range p {
		old := old[kind]
		list := []string{}
		for _, p := range of {
			switch {
			case p.N == 0:
				list = append(list, p.New)
			case p.From < 0 || p.N < 0 || p.N > len(old)-p.From || len(list)+p.N > len(old)+len(of):
				return nil, errPieces // no element of old is there twice
			default:
				list = append(list, old[p.From:p.From+p.N]...)
			}
		}
		next[kind] = list
	}
	return next, nil
}

// part returns the part with that key.
func (k *Keeper) part(key string) ([]byte, error) {
	if k.parts == nil || !store.IsKey(key) { // it may be the path of a file
		return nil, errGone
	}
	data, err := k.parts.Get(key)
	if err == nil && store.KeyOf(data) != key {
		err = errGone
	}
	return data, err
}

// follow returns what the part with that key leads to. It reads those that are not in c,
// which leads to known; both may be nil.
func (k *Keeper) follow(key string, c *chain, known map[string][]string) (map[string][]string, *chain, error) {
	var read [][]byte // the newest first
	var lists []pieces
	for key != "" && (c == nil || key != c.head()) {
		data, err := k.part(key)
		var p part
		if err == nil {
			err = json.Unmarshal(data, &p)
		}
		if err == nil && len(read) > maxChanges {
			err = errGone
		}
		if err != nil {
			return nil, nil, err
		}
		read, lists, key = append(read, data), append(lists, p.Lists), p.Of
	}
	if key == "" {
		c, known = new(chain), nil
	}
	for i := len(read) - 1; i >= 0; i-- {
		var err error
		if known, err = lists[i].apply(known); err != nil {
			return nil, nil, err
		}
		if i > 0 {
			c = c.with(read[i], nil)
		} else {
			c = c.with(read[i], known)
		}
	}
	return known, c, nil
}

// remove removes parts, but for those of c.
func (k *Keeper) remove(keys []string, but *chain) {
	for _, key := range keys {
		kept := key == ""
		for i := 0; but != nil && i < len(but.keys); i++ {
			kept = kept || but.keys[i] == key
		}
		if !kept {
			_ = k.parts.Put(key, nil) // a part that stays costs only room
		}
	}
}
