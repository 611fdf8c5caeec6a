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
	"unicode/utf8"
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
	enc := json.NewEncoder(EscapedJSON(w))
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// EscapedJSON returns a writer to w for JSON, whole characters at a time. In what w gets, each
// character that a terminal would obey or not show is escaped: such are in strings only.
func EscapedJSON(w io.Writer) io.Writer { return escapes{w} }

type escapes struct{ w io.Writer }

func (e escapes) Write(written []byte) (int, error) {
	if _, err := e.w.Write(escaped(written)); err != nil {
		return 0, err
	}
	return len(written), nil
}

func escaped(written []byte) []byte {
	b := make([]byte, 0, len(written))
	for _, r := range string(written) {
		if r < unicode.MaxASCII || !isObeyed(r) { // below are line breaks between values
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	return b
}
