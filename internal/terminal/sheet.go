// Package terminal writes lines for people. On a terminal they fit its width; in a pipe
// or a file nothing is cut, and there are no escape sequences.
package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
)

const usualColumns, usualRows = 80, 24

// A Sheet is where lines for people go. It keeps the first error.
type Sheet struct {
	w       io.Writer
	columns int // 0 in a pipe
	err     error
}

// NewSheet returns a Sheet that writes to f.
func NewSheet(f *os.File) *Sheet {
	columns, _, _ := Size(f)
	return Paper(f, columns)
}

// Paper returns a Sheet for w that has so many columns or, if 0, any number.
func Paper(w io.Writer, columns int) *Sheet { return &Sheet{w: w, columns: columns} }

// Columns returns how many columns the lines should have, and whether they must not
// have more.
func (s *Sheet) Columns() (n int, strict bool) {
	if s.columns == 0 {
		return usualColumns, false
	}
	return s.columns, true
}

// Err returns the first error of writing.
func (s *Sheet) Err() error { return s.err }

// Row writes one line. A terminal shows as much of it as fits.
func (s *Sheet) Row(format string, args ...any) {
	line := strings.TrimRight(Clean(fmt.Sprintf(format, args...)), " ")
	if s.columns > 0 {
		line = Cut(line, s.columns)
	}
	s.write(line)
}

// Text writes one line of several parts, two spaces between them. On a terminal each
// part begins a line, and goes on below where it does not fit.
func (s *Sheet) Text(parts ...string) {
	var whole []string
	for _, part := range parts {
		if part = strings.TrimRight(Clean(part), " "); part != "" {
			whole = append(whole, part)
		}
	}
	if s.columns == 0 {
		s.write(strings.Join(whole, "  "))
		return
	}
	for i, part := range whole {
		if i > 0 {
			part = indent + part
		}
		for _, line := range Fold(part, s.columns, indent) {
			s.write(line)
		}
	}
}

// indent stands before what belongs to the line above.
const indent = "    "

// Block writes a text of several lines. A terminal folds the long ones.
func (s *Sheet) Block(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(Clean(strings.ReplaceAll(line, "\t", "    ")), " ")
		if s.columns == 0 {
			s.write(line)
			continue
		}
		for _, part := range Fold(line, s.columns, "") {
			s.write(part)
		}
	}
}

// Gap writes an empty line.
func (s *Sheet) Gap() { s.write("") }

func (s *Sheet) write(line string) {
	if _, err := io.WriteString(s.w, line+"\n"); s.err == nil {
		s.err = err
	}
}

// PrintJSON writes v for programs: the same to a terminal and to a pipe. What a terminal would
// obey or not show is escaped.
func PrintJSON(w io.Writer, v any) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, escaped(b.String()))
	return err
}

// escaped returns JSON in which each character that a terminal would obey or not show, and that
// is not escaped yet, is. Such characters are in strings only.
func escaped(written string) string {
	var b strings.Builder
	for _, r := range written {
		if r < unicode.MaxASCII || !isObeyed(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
