package mcphybrid

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// An eraser makes texts that servers wrote fit to be seen: without secrets, and
// without characters that can't be seen.
type eraser struct {
	mask   *strings.Replacer
	values []string // in lower case
}

// eraser returns one that knows the secrets of all servers, as one server may
// repeat those of another.
func (d *debugger) eraser() *eraser {
	var values []string
	d.m.mu.Lock()
	for _, src := range d.m.sources {
		if src.server != nil {
			values = append(values, src.server.Secrets()...)
		}
	}
	d.m.mu.Unlock()
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

// line returns text as [Line] does. Of what is far too long, only the
// beginning is looked at.
func (e *eraser) line(line string, limit int) string {
	if most := 8*limit + 1<<10; len(line) > most {
		line = line[:most] + "…"
	}
	line = text.Line(line, len(line)) // without what can't be seen, it may have a secret only now
	return text.Line(e.beginnings(e.mask.Replace(line)), limit)
}

// beginnings hides the beginning of a secret that an ellipsis has cut: whoever
// cut it may not have known.
func (e *eraser) beginnings(text string) string {
	parts := strings.Split(text, "…")
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

// name returns the registered name of a tool, as it may be shown, and whether
// that is what it is.
func (e *eraser) name(registered string, d *definition) (shown string, ok bool) {
	if own := text.Line(d.name, len(d.name)); e.mask.Replace(own) != own { // cut or spelled otherwise in the registered one
		return upstream.Masked, false
	}
	shown = e.line(registered, maxNameLength)
	return shown, shown == registered
}

// spelled are characters in marks.
var spelled = regexp.MustCompile(`U\+[0-9A-F]{4,6}`)

// mark returns the text of a mark.
func (e *eraser) mark(text string) string {
	if plain := spelled.ReplaceAllString(text, "") + "…"; e.line(plain, len(plain)) != plain {
		return upstream.Masked
	}
	return e.line(text, maxNameLength)
}

// lines returns text line by line, at most limit characters and 400 lines of
// it, each with the spaces that it begins with.
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

// escaped are characters in JSON.
var escaped = regexp.MustCompile(`(\\u[0-9a-fA-F]{4})+`)

// schema returns a JSON text to be read.
func (e *eraser) schema(raw json.RawMessage) string {
	raw = escaped.ReplaceAllFunc(raw, func(b []byte) []byte {
		var text string
		if json.Unmarshal([]byte(`"`+string(b)+`"`), &text) != nil || strings.ContainsAny(text, "\"\\") || strings.ContainsFunc(text, unicode.IsControl) {
			return b
		}
		return []byte(text)
	})
	var b bytes.Buffer
	if len(raw) > maxDebugText || json.Indent(&b, raw, "", "  ") != nil {
		return e.lines(string(raw), maxDebugText)
	}
	return e.lines(b.String(), maxDebugText)
}

// maxDebugText is how many characters of one text a page has.
const maxDebugText = 16 << 10

// term returns a term of a document, unless it may be a piece of a secret that
// who asks doesn't know.
func (e *eraser) term(term, query string) string {
	if len(term) >= upstream.MinNamedSecret && term != query {
		for _, v := range e.values {
			if strings.Contains(v, term) {
				return upstream.Masked
			}
		}
	}
	return e.line(term, maxNameLength)
}

// count returns n with spaces between thousands, at which no line is broken.
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// ago returns how long ago t was.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	if d < 0 {
		return "in " + short(-d)
	}
	return short(d) + " ago"
}

// short returns d in one unit.
func short(d time.Duration) string {
	unit := func(n float64, name string) string { return strconv.FormatFloat(n, 'f', 0, 64) + "\u00a0" + name }
	switch {
	case d < time.Millisecond:
		return unit(float64(d)/float64(time.Microsecond), "µs")
	case d < time.Second:
		return unit(float64(d)/float64(time.Millisecond), "ms")
	case d < 2*time.Minute:
		return unit(d.Seconds(), "s")
	case d < 2*time.Hour:
		return unit(d.Minutes(), "min")
	case d < 48*time.Hour:
		return unit(d.Hours(), "h")
	}
	return unit(d.Hours()/24, "days")
}
