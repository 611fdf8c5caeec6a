package debug

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// count formats n with a no-break space between thousands.
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// ago says how long before now t was, in seconds or more.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	text := "0\u00a0s"
	if d.Abs() >= time.Second {
		text = short(d.Abs())
	}
	if d < 0 {
		return "in " + text
	}
	return text + " ago"
}

// short formats d in one unit.
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

// name returns a text with names that may be broken behind separators, and within their words
// only if one of them is longer than a line. No line ends with the slash that a path begins with.
func name(text string) template.HTML {
	var b strings.Builder
	runes := []rune(text)
	at := func(i int) rune {
		if i < 0 || i >= len(runes) {
			return ' '
		}
		return runes[i]
	}
	isOfWord := func(i int) bool { return unicode.IsLetter(at(i)) || unicode.IsDigit(at(i)) }
	isRoot := func(i int) bool { return at(i) == '/' && strings.ContainsRune(` "'(=`, at(i-1)) && isOfWord(i+1) }
	for i, r := range runes {
		if isOfWord(i) && strings.ContainsRune("_-/.:", at(i-1)) && !isRoot(i-1) {
			b.WriteString("<wbr>")
		}
		if isRoot(i) {
			b.WriteString(`<span class="root">`)
		}
		b.WriteString(template.HTMLEscapeString(string(r)))
		if isRoot(i - 1) {
			b.WriteString("</span>")
		}
	}
	return template.HTML(b.String())
}

// date returns a time with its day, and clock one without. A browser shows them in its own
// time zone.
func date(t time.Time) template.HTML  { return moment(t, "date", time.DateTime) }
func clock(t time.Time) template.HTML { return moment(t, "clock", time.TimeOnly) }

func moment(t time.Time, as, layout string) template.HTML {
	t = t.UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s" data-as="%s">%s UTC</time>`, t.Format(time.RFC3339), as, t.Format(layout)))
}
