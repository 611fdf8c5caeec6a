package saved

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/store"
)

// A Prefix is that of a prompt: what a conversation began with. Many begin with the same.
type Prefix struct {
	Tools list[Tool] `json:"tools,omitempty"` // none of them gone
	Shown list[Item] `json:"shown,omitempty"`
}

// A PrefixLen says how much of a [State] is its prefix: the first items, and the first
// tools, which are those of these items.
type PrefixLen struct {
	Items, Tools int
	Of           *Key // of the prefix
}

// A Key is the key of a prefix, which many states share. The zero value is not
// computed yet.
type Key struct {
	once sync.Once
	key  string
	size int

	mu   sync.Mutex
	part weak.Pointer[[]byte] // the prefix as JSON, until the next collection: it may be large, and who saves one state saves others
}

// keyOf returns [store.KeyOf] of what has that sum.
func keyOf(sum *Sum) []byte {
	return base64.RawURLEncoding.AppendEncode(make([]byte, 0, 43), sum[:])
}

// part returns the key of t's definition.
func (t *Tool) part() string {
	if t.Sum == nil {
		return store.KeyOf(t.Definition)
	}
	return string(keyOf(t.Sum))
}

// Is reports whether t has that definition, which has that sum, or none.
func (t *Tool) Is(definition []byte, sum *Sum) bool {
	if t.Part != "" {
		return string(keyOf(sum)) == t.Part
	}
	return t.Definition == nil || bytes.Equal(definition, t.Definition)
}

// Same reports whether o is the same version of the same tool. Neither has a Part.
func (t *Tool) Same(o *Tool) bool {
	return t.Name == o.Name && t.Server == o.Server && t.Own == o.Own && t.OfUser == o.OfUser && bytes.Equal(t.Definition, o.Definition)
}

// prefix returns the prefix of s.
func (s *State) prefix() *Prefix {
	p := &Prefix{slices.Clone(s.Tools[:s.PrefixLen.Tools]), s.Shown[:s.PrefixLen.Items]}
	for i := range p.Tools {
		p.Tools[i].Gone = false
	}
	return p
}

// prefixPart returns the prefix of s as JSON, which is shared and must not be changed.
func (s *State) prefixPart() []byte {
	of := s.PrefixLen.Of
	of.mu.Lock()
	defer of.mu.Unlock()
	if made := of.part.Value(); made != nil {
		return *made
	}
	part := []byte(text.RawJSON(s.prefix()))
	of.part = weak.Make(&part)
	return part
}

// Key returns the key of the prefix of s.
func (s *State) Key() string {
	of := s.PrefixLen.Of
	of.once.Do(func() {
		part := s.prefixPart()
		of.key, of.size = store.KeyOf(part), len(part)
	})
	return of.key
}

// afterPrefix returns s without its prefix, and with the key of it.
func (s *State) afterPrefix() *State {
	p := *s
	p.Version = versionParts
	p.Tools, p.Shown = slices.Clone(s.Tools[s.PrefixLen.Tools:]), s.Shown[s.PrefixLen.Items:]
	if s.PrefixLen.Items > 0 {
		p.PrefixKey, p.PrefixTools = s.Key(), s.PrefixLen.Tools
	}
	for i, t := range s.Tools[:p.PrefixTools] {
		if t.Gone {
			p.Gone = append(p.Gone, i+1)
		}
	}
	return &p
}

// withPrefix returns s as JSON, with the prefix at the end, or nil if it has none.
func (s *State) withPrefix() json.RawMessage {
	if s.PrefixLen.Items == 0 {
		return nil
	}
	head := bytes.TrimSuffix(text.RawJSON(s.afterPrefix()), []byte("}"))
	return slices.Clip(slices.Concat(head, []byte(beforePrefix), s.prefixPart(), []byte("}")))
}

// inParts returns s as JSON, with the prefix and the definitions in parts. It returns
// nil if that has more than limit bytes, those of its parts included, or if a part can't
// be put.
func (s *State) inParts(limit int, parts *Parts) json.RawMessage {
	p, size := s.afterPrefix(), 0
	if p.PrefixKey != "" {
		size = s.PrefixLen.Of.size
	}
	for i := range p.Tools {
		if t := &p.Tools[i]; t.Definition != nil {
			size += len(t.Definition)
			t.Part, t.Definition = t.part(), nil
		}
	}
	data := text.RawJSON(p)
	if len(data)+size > limit {
		return nil
	}
	if p.PrefixKey != "" && !parts.keep(p.PrefixKey, s.prefixPart) {
		return nil
	}
	for i, t := range p.Tools {
		if t.Part != "" && !parts.keep(t.Part, func() []byte { return s.Tools[p.PrefixTools+i].Definition }) {
			return nil
		}
	}
	if s.Texts != nil { // last: a text may be too large for the store
		p.Cut = s.Texts(func(key string, last time.Time, text *string) (string, time.Time) {
			return parts.keepText(key, last, text, min(limit, maxText))
		})
		if whole := text.RawJSON(p); len(whole)+size <= limit {
			data = whole
		}
	}
	return data
}

// Begin puts a prefix before what s has. s.Tools then has all tools.
func (s *State) Begin(p Prefix) error {
	if len(p.Tools) != s.PrefixTools {
		return fmt.Errorf("its prefix has %d tools, want %d", len(p.Tools), s.PrefixTools)
	}
	if err := checkTools(p.Tools); err != nil {
		return err
	}
	if err := checkItems(p.Shown, len(p.Tools)); err != nil {
		return err
	}
	for _, i := range s.Gone {
		p.Tools[i-1].Gone = true
	}
	s.Tools, s.Shown = slices.Concat(p.Tools, s.Tools), slices.Concat(p.Shown, s.Shown)
	s.PrefixLen = PrefixLen{Items: len(p.Shown), Tools: len(p.Tools), Of: new(Key)}
	s.PrefixKey, s.PrefixTools, s.Gone, s.Prefix, s.unread = "", 0, nil, nil, nil
	return nil
}

// Whole reads the prefix of s, if it has one, from s itself or from parts, and
// begins with it.
func (s *State) Whole(parts *Parts) error {
	if s.PrefixKey == "" {
		return nil
	}
	if s.unread != nil {
		var whole struct {
			Prefix *Prefix `json:"began"`
		}
		if err := json.Unmarshal(s.unread, &whole); err != nil {
			return text.JSONError(s.unread, err)
		}
		s.Prefix = whole.Prefix
	}
	if s.Prefix == nil {
		data, err := s.load(s.PrefixKey, parts)
		if err == nil {
			err = json.Unmarshal(data, &s.Prefix)
		}
		if err == nil && s.Prefix == nil {
			err = errors.New("it is null")
		}
		if err != nil {
			return fmt.Errorf("its prefix: %w", err)
		}
	}
	return s.Begin(*s.Prefix)
}

// Load reads the definition of a tool of s from parts, if it is there.
func (s *State) Load(t *Tool, parts *Parts) error {
	if t.Part == "" {
		return nil
	}
	part, err := s.load(t.Part, parts)
	if err == nil {
		t.Definition, t.Part = part, ""
	}
	return err
}

func (s *State) load(key string, parts *Parts) ([]byte, error) {
	part, err := parts.get(key)
	if err != nil {
		return nil, err
	}
	if s.left -= len(part); s.left < 0 {
		return nil, errors.New("with its parts, the state exceeds the limit")
	}
	return part, nil
}

const (
	// again is the age at which a part is put again.
	again = time.Hour

	// pause is how long we put no part after a Put failed.
	pause = time.Second

	// maxText is how many bytes a text may have.
	maxText = 4 << 20

	// maxPut is the number of parts whose last Put we remember.
	maxPut = 10_000
)

// Parts are those of a host's store. A part that goes on being used is put once in an hour. nil
// has no parts.
type Parts struct {
	of  store.Parts
	log *slog.Logger

	mu     sync.Mutex
	last   map[string]time.Time // when parts were put last, by key
	puts   []put                // in their order, and each of last among them
	failed time.Time            // when a part could not be put; zero if the last one could
	texts  time.Time            // when a text could not be put
}

// A put is one that succeeded.
type put struct {
	key string
	at  time.Time
}

// PartsOf returns the parts of p, or nil for nil.
func PartsOf(p store.Parts, log *slog.Logger) *Parts {
	if p == nil {
		return nil
	}
	return &Parts{of: p, log: log}
}

// keep reports whether the store has a part. If it was not put within the hour, keep
// puts it.
func (p *Parts) keep(key string, part func() []byte) bool {
	_, ok := p.keepAs(key, time.Time{}, func() ([]byte, error) { return part(), nil }, &p.failed)
	return ok
}

// keepAs is keep, and also returns when the part was put last. last is when a process may have
// put it before. failed points to the time of the last failure of its kind: p.failed, or p.texts
// for a text. A text that can't be put does not stop other parts. An error of part counts as no
// failure.
func (p *Parts) keepAs(key string, last time.Time, part func() ([]byte, error), failed *time.Time) (time.Time, bool) {
	now := time.Now()
	p.mu.Lock()
	if put := p.last[key]; put.After(last) {
		last = put
	}
	down := now.Sub(p.failed) < pause || now.Sub(*failed) < pause
	p.mu.Unlock()
	if since := now.Sub(last); since < again && since > -again {
		return last, true
	}
	if down {
		return last, false
	}
	data, err := part()
	if err != nil || !p.put(key, data, now, failed) {
		return last, false
	}
	return now, true
}

// keepText keeps a text of at most max bytes as a part, and returns its key, or "", and when
// it was put last. If text is nil, only the store has it, under key: after an hour it is read
// and put again. If that fails, the next save tries again.
func (p *Parts) keepText(key string, last time.Time, text *string, max int) (string, time.Time) {
	switch {
	case text == nil:
	case len(*text) > max:
		return "", last
	case key == "":
		key = store.KeyOf([]byte(*text))
	}
	last, ok := p.keepAs(key, last, func() ([]byte, error) {
		if text == nil {
			return p.get(key)
		}
		return []byte(*text), nil
	}, &p.texts)
	if !ok && text != nil {
		return "", last
	}
	return key, last
}

// Text returns a text that a state has kept as a part. p may be nil.
func (p *Parts) Text(key string) (text string, ok bool) {
	part, err := p.get(key)
	return string(part), err == nil
}

func (p *Parts) put(key string, part []byte, now time.Time, failed *time.Time) bool {
	err := p.of.Put(key, bytes.Clone(part)) // the host may keep it
	p.mu.Lock()
	news := err != nil && failed.IsZero()
	*failed = time.Time{}
	if err != nil {
		*failed = now
	} else {
		p.remember(put{key, now})
	}
	p.mu.Unlock()
	if news {
		if failed == &p.texts {
			p.log.Warn("mcphybrid: the text of a result is not kept with its state: it could not be put", "error", err)
		} else {
			p.log.Warn("mcphybrid: states have all their parts themselves: one could not be put", "error", err)
		}
	}
	return err == nil
}

// remember adds the newest put. It forgets those after which a part is put again, and the
// oldest ones if there are more than maxPut. The caller holds mu.
func (p *Parts) remember(newest put) {
	if p.last == nil {
		p.last = make(map[string]time.Time)
	}
	p.last[newest.key] = newest.at
	p.puts = append(p.puts, newest)
	for oldest := p.puts[0]; len(p.last) > maxPut || newest.at.Sub(oldest.at) >= again; oldest = p.puts[0] {
		p.puts = p.puts[1:]
		if p.last[oldest.key].Equal(oldest.at) { // else it was put again
			delete(p.last, oldest.key)
		}
	}
}

// get returns the part with that key.
func (p *Parts) get(key string) ([]byte, error) {
	if !store.IsKey(key) {
		return nil, fmt.Errorf("%q is no key of a part", text.Line(key, text.MaxName))
	}
	if p == nil {
		return nil, fmt.Errorf("it is the part %q of a store, and there is none here", key)
	}
	part, err := p.of.Get(key)
	switch {
	case err != nil:
		return nil, err
	case part == nil:
		return nil, fmt.Errorf("the store has no part %q", key)
	case store.KeyOf(part) != key:
		return nil, fmt.Errorf("the store has something else as the part %q", key)
	}
	return bytes.Clone(part), nil
}
