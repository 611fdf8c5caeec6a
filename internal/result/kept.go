package result

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"weak"
)

// A KeptText is the whole text of a result that was cut.
type KeptText struct {
	ID   string
	text atomic.Pointer[string] // nil once it is dropped
	part atomic.Pointer[string] // the key under which a store has it, or nil
}

// Kept holds the newest texts of a session. A Kept is never changed, so its readers hold
// no lock; but its texts may be dropped.
type Kept []*KeptText

// The limits of [Kept]. It keeps the newest texts within both limits, and always the
// very newest.
const (
	MaxKept      = 8
	MaxKeptBytes = 16 << 20
)

// A Shelf bounds the texts of all sessions together: it drops the oldest. It keeps none
// alive that its session has lost.
type Shelf struct {
	max int // bytes

	mu    sync.Mutex
	texts []weak.Pointer[KeptText] // oldest first
	bytes int                      // of the texts, at most
	room  int                      // for so many texts before those that are gone are counted out
}

// NewShelf returns a Shelf for texts of max bytes. It always keeps the newest.
func NewShelf(max int) *Shelf { return &Shelf{max: max} }

func (s *Shelf) add(t *KeptText, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, weak.Make(t))
	s.bytes += size
	if s.bytes <= s.max && len(s.texts) <= s.room {
		return
	}
	s.bytes = 0
	var left []weak.Pointer[KeptText]
	full := false
	for _, p := range slices.Backward(s.texts) {
		old := p.Value()
		if old == nil || old.size() == 0 {
			continue
		}
		if full = full || old != t && old.size() > s.max-s.bytes; full {
			old.text.Store(nil)
			continue
		}
		s.bytes += old.size()
		left = append(left, p)
	}
	slices.Reverse(left)
	s.texts, s.room = left, 2*len(left)+MaxKept
}

// size returns how many bytes are kept.
func (t *KeptText) size() int {
	if text := t.text.Load(); text != nil {
		return len(*text)
	}
	return 0
}

// With returns the texts of k and one more, without the oldest beyond the limits.
func (k Kept) With(s *Shelf, id, text string) Kept {
	t := &KeptText{ID: id}
	t.text.Store(&text)
	s.add(t, len(text))
	k = append(slices.Clip(k), t)
	size := 0
	for i, r := range slices.Backward(k) {
		if size += r.size(); i < len(k)-1 && (len(k)-i > MaxKept || size > MaxKeptBytes) {
			k[:i+1].Drop()
			return slices.Clone(k[i+1:])
		}
	}
	return k
}

// Drop drops all texts.
func (k Kept) Drop() {
	for _, t := range k {
		t.text.Store(nil)
	}
}

// Text returns the text with that ID. If it is only in a store, load returns it.
func (k Kept) Text(id string, load func(key string) (text string, ok bool)) (text string, ok bool) {
	for _, r := range k {
		if r.ID != id {
			continue
		}
		if text := r.text.Load(); text != nil {
			return *text, true
		}
		if key := r.part.Load(); key != nil {
			return load(*key)
		}
	}
	return "", false
}

// Saved returns k as a text that [Restored] reads, without the texts that are in no store.
// put puts a text into one and returns its key, or "". It is given the key if it is known.
func (k Kept) Saved(put func(key, text string) string) string {
	var b strings.Builder
	for _, t := range k {
		key := ""
		if known := t.part.Load(); known != nil {
			key = *known
		}
		if text := t.text.Load(); text != nil {
			key = put(key, *text)
		}
		if key != "" {
			t.part.Store(&key)
			b.WriteString(t.ID + "=" + key + " ")
		}
	}
	return strings.TrimSuffix(b.String(), " ")
}

// Restored returns what [Kept.Saved] returned, at most MaxKept texts.
func Restored(saved string) (k Kept) {
	for len(k) < MaxKept && saved != "" {
		var one string
		one, saved, _ = strings.Cut(saved, " ")
		if id, key, ok := strings.Cut(one, "="); ok {
			t := &KeptText{ID: id}
			t.part.Store(&key)
			k = append(k, t)
		}
	}
	return k
}
