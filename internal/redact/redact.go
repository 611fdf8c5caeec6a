// Package redact removes secrets and invisible characters from texts, for people who
// look at what servers wrote.
package redact

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

// A Redactor hides some secrets.
type Redactor struct {
	mask   *strings.Replacer
	values []string // the secrets in lower case, longest first
}

// New returns a Redactor of these secrets. It changes the slice.
func New(values []string) *Redactor {
	slices.SortFunc(values, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	values = slices.Compact(values)
	e := new(Redactor)
	var pairs []string
	for i, v := range values {
		pairs = append(pairs, v, upstream.Masked)
		values[i] = strings.ToLower(v)
	}
	e.mask, e.values = strings.NewReplacer(pairs...), values
	return e
}

// Line returns raw as one line of at most limit characters. A longer one ends in an
// ellipsis.
func (e *Redactor) Line(raw string, limit int) string {
	if most := 8*limit + 1<<10; len(raw) > most {
		raw = raw[:most] + "…"
	}
	line := text.Line(raw, len(raw)) // invisible characters may have split a secret
	return text.Line(e.beginnings(e.mask.Replace(line)), limit)
}

// beginnings hides the beginning of a secret that was cut by an ellipsis. The code
// that cut the text may not have known the secret.
func (e *Redactor) beginnings(line string) string {
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

// Name returns the registered name of a tool without secrets, and whether that is
// the unchanged name. own is the tool's name on its server.
func (e *Redactor) Name(registered, own string) (shown string, ok bool) {
	if !text.IsSafeName(own) {
		own = text.Line(own, len(own))
	}
	if e.mask.Replace(own) != own { // the registered name may hold the secret cut or respelled
		return upstream.Masked, false
	}
	if text.IsSafeName(registered) && e.mask.Replace(registered) == registered {
		return registered, true // the fast path for most names
	}
	shown = e.Line(registered, text.MaxName)
	return shown, shown == registered
}

// spelled matches characters as marks spell them.
var spelled = regexp.MustCompile(`U\+[0-9A-F]{4,6}`)

// Mark returns the text of a mark without secrets.
func (e *Redactor) Mark(of string) string {
	if plain := spelled.ReplaceAllLiteralString(of, "") + "…"; e.Line(plain, len(plain)) != plain {
		return upstream.Masked
	}
	return e.Line(of, text.MaxName)
}

// Lines returns text with its line breaks and the spaces at the beginning of each
// line. It is cut to about limit characters and to 400 lines.
func (e *Redactor) Lines(text string, limit int) string {
	if most := 8*limit + 1<<10; len(text) > most {
		text = text[:most] + "…"
	}
	text = e.mask.Replace(text)
	var b strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		spaces := len(line) - len(strings.TrimLeft(line, " "))
		line = strings.Repeat(" ", min(spaces, 40)) + e.Line(line, limit)
		b.WriteString(line + "\n")
		if n++; n >= 400 || b.Len() >= limit {
			b.WriteString("…")
			break
		}
	}
	return e.mask.Replace(strings.TrimSpace(b.String()))
}

// escaped matches escaped characters in JSON, and an escaped backslash, after which none begins.
var escaped = regexp.MustCompile(`\\\\|(\\u[0-9a-fA-F]{4})+`)

// Schema is Lines for a JSON text, which it indents.
func (e *Redactor) Schema(raw json.RawMessage, limit int) string {
	raw = escaped.ReplaceAllFunc(raw, func(b []byte) []byte {
		var text string
		_ = json.Unmarshal([]byte(`"`+string(b)+`"`), &text) // escapes are JSON
		if strings.ContainsAny(text, "\"\\") || strings.ContainsFunc(text, unicode.IsControl) {
			return b
		}
		return []byte(text)
	})
	var b bytes.Buffer
	if len(raw) > limit || json.Indent(&b, raw, "", "  ") != nil {
		return e.Lines(string(raw), limit)
	}
	return e.Lines(b.String(), limit)
}

// Term returns a term of a document. It hides a term that may be a piece of a
// secret, unless the query has the same term.
func (e *Redactor) Term(term, query string) string {
	if len(term) >= upstream.MinNamedSecret && term != query {
		for _, v := range e.values {
			if strings.Contains(v, term) {
				return upstream.Masked
			}
		}
	}
	return e.Line(term, text.MaxName)
}
