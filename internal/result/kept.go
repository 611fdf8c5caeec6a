package result

import (
	"slices"
	"sync"
	"sync/atomic"
	"weak"
)

// A KeptText is the whole text of a result that was cut.
type KeptText struct {
	ID   string
	text atomic.Pointer[string] // nil once it is dropped
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

// Text returns the text with that ID.
func (k Kept) Text(id string) (text string, ok bool) {
	for _, r := range k {
		if text := r.text.Load(); r.ID == id && text != nil {
			return *text, true
		}
	}
	return "", false
}
