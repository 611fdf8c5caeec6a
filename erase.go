package mcphybrid

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// A SafeText is a text for people that a server may have written. Its methods hide
// the secrets of all configurations and drop characters that are invisible or
// change how others look. The text may still hold anything else, such as HTML or
// lies.
type SafeText struct {
	text   string
	eraser *eraser
}

// Line returns the text as one line of at most limit characters. A longer one ends
// in an ellipsis.
func (t SafeText) Line(limit int) string {
	if t.text == "" {
		return ""
	}
	return t.eraser.line(t.text, limit)
}

// String returns the text as one line of at most 2,000 characters.
func (t SafeText) String() string { return t.Line(text.MaxError) }

// Lines returns the text with its line breaks and the spaces at the beginning of
// each line. It is cut to about limit characters and to 400 lines.
func (t SafeText) Lines(limit int) string {
	if t.text == "" {
		return ""
	}
	return t.eraser.lines(t.text, limit)
}

// An eraser removes secrets and invisible characters from texts of servers.
type eraser struct {
	mask   *strings.Replacer
	values []string // the secrets in lower case, longest first
}

// eraser returns an eraser for the secrets of all servers: one server may repeat
// the secrets of another.
func (m *Manager) eraser() *eraser {
	values := m.secretValues()
	slices.SortFunc(values, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	values = slices.Compact(values)
	e := new(eraser)
	var pairs []string
	for i, v := range values {
		pairs = append(pairs, v, upstream.Masked)
		values[i] = strings.ToLower(v)
	}
	e.mask, e.values = strings.NewReplacer(pairs...), values
	return e
}

// secretValues returns the secrets of all servers. A user's Manager includes those
// of its system, whose tools the user sees.
func (m *Manager) secretValues() (values []string) {
	if m.system != nil {
		values = m.system.secretValues()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, src := range m.sources {
		if src.server != nil {
			values = append(values, src.server.Secrets()...)
		}
	}
	return values
}

// line is [SafeText.Line].
func (e *eraser) line(raw string, limit int) string {
	if most := 8*limit + 1<<10; len(raw) > most {
		raw = raw[:most] + "…"
	}
	line := text.Line(raw, len(raw)) // invisible characters may have split a secret
	return text.Line(e.beginnings(e.mask.Replace(line)), limit)
}

// beginnings hides the beginning of a secret that was cut by an ellipsis. The code
// that cut the text may not have known the secret.
func (e *eraser) beginnings(line string) string {
	parts := strings.Split(line, "…")
	for i, part := range parts[:len(parts)-1] {
		for _, v := range e.values {
			n := min(len(v), len(part))
			for ; n >= upstream.MinNamedSecret; n-- {
				if strings.EqualFold(part[len(part)-n:], v[:n]) {
					parts[i] = part[:len(part)-n] + upstream.Masked
					break
				}
			}
			if n >= upstream.MinNamedSecret {
				break
			}
		}
	}
	return strings.Join(parts, "…")
}

// name returns the registered name of a tool without secrets, and whether that is
// the unchanged name.
func (e *eraser) name(registered string, d *definition) (shown string, ok bool) {
	own := d.name
	if !text.IsSafeName(own) {
		own = text.Line(own, len(own))
	}
	if e.mask.Replace(own) != own { // the registered name may hold the secret cut or respelled
		return upstream.Masked, false
	}
	if text.IsSafeName(registered) && e.mask.Replace(registered) == registered {
		return registered, true // the fast path for most names
	}
	shown = e.line(registered, text.MaxName)
	return shown, shown == registered
}

// spelled matches characters as marks spell them.
var spelled = regexp.MustCompile(`U\+[0-9A-F]{4,6}`)

// mark returns the text of a mark without secrets.
func (e *eraser) mark(of string) string {
	if plain := spelled.ReplaceAllString(of, "") + "…"; e.line(plain, len(plain)) != plain {
		return upstream.Masked
	}
	return e.line(of, text.MaxName)
}

// lines is [SafeText.Lines].
func (e *eraser) lines(text string, limit int) string {
	if most := 8*limit + 1<<10; len(text) > most {
		text = text[:most] + "…"
	}
	text = e.mask.Replace(text)
	var b strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		spaces := len(line) - len(strings.TrimLeft(line, " "))
		line = strings.Repeat(" ", min(spaces, 40)) + e.line(line, limit)
		b.WriteString(line + "\n")
		if n++; n >= 400 || b.Len() >= limit {
			b.WriteString("…")
			break
		}
	}
	return e.mask.Replace(strings.TrimSpace(b.String()))
}

// escaped matches escaped characters in JSON.
var escaped = regexp.MustCompile(`(\\u[0-9a-fA-F]{4})+`)

// schema is lines for a JSON text, which it indents.
func (e *eraser) schema(raw json.RawMessage, limit int) string {
	raw = escaped.ReplaceAllFunc(raw, func(b []byte) []byte {
		var text string
		if json.Unmarshal([]byte(`"`+string(b)+`"`), &text) != nil || strings.ContainsAny(text, "\"\\") || strings.ContainsFunc(text, unicode.IsControl) {
			return b
		}
		return []byte(text)
	})
	var b bytes.Buffer
	if len(raw) > limit || json.Indent(&b, raw, "", "  ") != nil {
		return e.lines(string(raw), limit)
	}
	return e.lines(b.String(), limit)
}

// term returns a term of a document. It hides a term that may be a piece of a
// secret, unless the query has the same term.
func (e *eraser) term(term, query string) string {
	if len(term) >= upstream.MinNamedSecret && term != query {
		for _, v := range e.values {
			if strings.Contains(v, term) {
				return upstream.Masked
			}
		}
	}
	return e.line(term, text.MaxName)
}
