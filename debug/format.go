package debug

import (
	"strconv"
	"time"
)

// count formats n with a no-break space between thousands.
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// ago says how long before now t was.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	if d < 0 {
		return "in " + short(-d)
	}
	return short(d) + " ago"
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
