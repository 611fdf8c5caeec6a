package terminal

import (
	"strings"
	"unicode"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"golang.org/x/text/width"
)

// Width returns how many columns a line takes.
func Width(line string) (columns int) {
	for _, r := range line {
		columns += runeWidth(r)
	}
	return columns
}

func runeWidth(r rune) int {
	switch kind := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut returns line if it has at most so many columns, and else its beginning and an
// ellipsis.
func Cut(line string, columns int) string {
	if Width(line) <= columns {
		return line
	}
	return line[:fit(line, columns-1)] + "…"
}

// fit returns how many bytes of line fit in so many columns.
func fit(line string, columns int) int {
	for at, r := range line {
		if columns -= runeWidth(r); columns < 0 {
			return at
		}
	}
	return len(line)
}

// Fold breaks line between words, so that each part has at most so many columns. A
// word that is longer is broken too. Every part but the first begins with indent.
func Fold(line string, columns int, indent string) (parts []string) {
	lead, room := "", columns
	for Width(line) > room {
		end := max(fit(line, room), len(string([]rune(line)[:1])))
		if space := strings.LastIndexByte(line[:min(end+1, len(line))], ' '); space > 0 && strings.TrimSpace(line[:space]) != "" {
			end = space
		}
		parts = append(parts, lead+strings.TrimRight(line[:end], " "))
		line = strings.TrimLeft(line[end:], " ")
		lead, room = indent, max(columns-Width(indent), 1)
	}
	if line == "" && parts != nil {
		return parts
	}
	return append(parts, lead+line)
}

// Pad returns line with spaces behind it, so that it has at least so many columns.
func Pad(line string, columns int) string {
	return line + strings.Repeat(" ", max(columns-Width(line), 0))
}

// Clean returns line without what a terminal would obey or not show: a question mark
// stands in the place of each such character, and a space in that of a line break.
func Clean(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case isObeyed(r):
			return '?'
		}
		return r
	}, strings.ToValidUTF8(line, "?"))
}

// isObeyed reports whether a terminal would obey r, or not show it.
func isObeyed(r rune) bool { return !unicode.IsPrint(r) || text.IsInvisible(r) }
