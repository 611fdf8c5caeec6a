package result

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// A KeptText is the whole text of a result that was cut.
type KeptText struct {
	ID   string
	text atomic.Pointer[string] // nil once it is dropped
	part atomic.Pointer[part]   // where a store has it, or nil
}

// A part is where a store has a text.
type part struct {
	key string
	put time.Time // last; to the second
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
		if in := r.part.Load(); in != nil {
			return load(in.key)
		}
	}
	return "", false
}

// Saved returns k as a text that [Restored] reads, without the texts that are in no store.
// put sees to it that a store has a text, and returns its key, or "", and when it was put
// last. It is given what is known of both, and nil if only the store has the text.
func (k Kept) Saved(put func(key string, last time.Time, text *string) (string, time.Time)) string {
	var b strings.Builder
	for _, t := range k {
		var in part
		if known := t.part.Load(); known != nil {
			in = *known
		}
		text := t.text.Load()
		if text == nil && in.key == "" {
			continue // it was dropped
		}
		if in.key, in.put = put(in.key, in.put, text); in.key != "" {
			t.part.Store(&in)
			b.WriteString(t.ID + "=" + in.key + "@" + strconv.FormatInt(in.put.Unix(), 36) + " ")
		}
	}
	return strings.TrimSuffix(b.String(), " ")
}

// Restored returns what [Kept.Saved] returned, at most MaxKept texts.
func Restored(saved string) (k Kept) {
	for len(k) < MaxKept && saved != "" {
		var one string
		one, saved, _ = strings.Cut(saved, " ")
		if id, in, ok := strings.Cut(one, "="); ok {
			key, last, _ := strings.Cut(in, "@")
			seconds, _ := strconv.ParseInt(last, 36, 64)
			t := &KeptText{ID: id}
			t.part.Store(&part{key, time.Unix(seconds, 0)})
			k = append(k, t)
		}
	}
	return k
}
