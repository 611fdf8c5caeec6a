package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// layouts are the formats in which a time is accepted.
var layouts = []string{
	time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700",
	"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly,
	"2006/01/02 15:04:05", "2006/01/02", "20060102T150405Z0700", "20060102",
	"January 2, 2006 3:04 PM", "January 2, 2006", "Jan 2, 2006", "2 January 2006 15:04", "2 January 2006", "2 Jan 2006",
	time.RFC1123Z, time.RFC1123, time.RFC850, time.ANSIC, time.UnixDate, time.RFC822Z, time.RFC822,
}

type clock struct{ now func() time.Time }

// A moment is a time as the tools return it.
type moment struct {
	Time    string `json:"time"`
	Weekday string `json:"weekday"`
	Zone    string `json:"zone,omitempty"`
}

func newMoment(t time.Time, zone string) (any, error) {
	if t.Year() < 1 || t.Year() > 9999 {
		return nil, errors.New("the result is not between the years 1 and 9999")
	}
	return moment{t.Format(time.RFC3339Nano), t.Weekday().String(), zone}, nil
}

func location(zone string) (*time.Location, error) {
	loc, err := time.LoadLocation(zone)
	if err != nil || loc == time.Local {
		return nil, fmt.Errorf("unknown time zone %q; use an IANA name such as America/New_York", zone)
	}
	return loc, nil
}

// parse returns the time that text tells, in the given zone unless it says otherwise.
func (c clock) parse(text, zone string) (time.Time, error) {
	loc, err := location(zone)
	if err != nil {
		return time.Time{}, err
	}
	text = strings.TrimSpace(text)
	if strings.EqualFold(text, "now") {
		return c.now().In(loc).Truncate(time.Second), nil
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, text, loc); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a known format of a time; write it like 2006-01-02T15:04:05Z or 2006-01-02", text)
}

// date returns midnight UTC of the day that text tells.
func (c clock) date(text string) (time.Time, error) {
	t, err := c.parse(text, "UTC")
	year, month, day := t.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC), err
}

func (c clock) parseLayout(text, layout, zone string) (any, error) {
	if layout == "" {
		t, err := c.parse(text, zone)
		return t.Format(time.RFC3339Nano), err
	}
	loc, err := location(zone)
	if err != nil {
		return nil, err
	}
	t, err := time.ParseInLocation(layout, text, loc)
	return t.Format(time.RFC3339Nano), err
}

// in converts the time that text tells from one zone to another.
func (c clock) in(text, from, to string) (any, error) {
	loc, err := location(to)
	if err != nil {
		return nil, err
	}
	t, err := c.parse(text, from)
	if err != nil {
		return nil, err
	}
	return newMoment(t.In(loc), to)
}

func (c clock) offset(zone, text string) (any, error) {
	t, err := c.parse(text, "UTC")
	if err != nil {
		return nil, err
	}
	loc, err := location(zone)
	if err != nil {
		return nil, err
	}
	t = t.In(loc)
	abbreviation, _ := t.Zone()
	result := map[string]any{
		"offset":          t.Format("-07:00"),
		"abbreviation":    abbreviation,
		"daylight_saving": t.IsDST(),
	}
	if _, end := t.ZoneBounds(); !end.IsZero() {
		result["next_change"] = end.Format(time.RFC3339)
	}
	return result, nil
}

type duration struct {
	Time, Zone                                   string
	Years, Months, Days, Hours, Minutes, Seconds int
}

func (c clock) add(in duration) (any, error) {
	t, err := c.parse(in.Time, in.Zone)
	if err != nil {
		return nil, err
	}
	t = addMonths(t, 12*in.Years+in.Months).AddDate(0, 0, in.Days)
	t = t.Add(time.Duration(in.Hours)*time.Hour + time.Duration(in.Minutes)*time.Minute + time.Duration(in.Seconds)*time.Second)
	return newMoment(t, "")
}

// addMonths adds n months to t, but stays within the last of them.
func addMonths(t time.Time, n int) time.Time {
	first := t.AddDate(0, n, 1-t.Day())
	return first.AddDate(0, 0, min(t.Day(), daysIn(first.Year(), first.Month()))-1)
}

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

func (c clock) difference(in periodArgs) (any, error) {
	start, errStart := c.parse(in.Start, in.Zone)
	end, errEnd := c.parse(in.End, in.Zone)
	if err := errors.Join(errStart, errEnd); err != nil {
		return nil, err
	}
	total := end.Unix() - start.Unix() // a time.Duration ends after 292 years
	sign, rest := "", total
	if total < 0 {
		sign, rest = "minus ", -total
	}
	return map[string]any{
		"text":    sign + strings.Join([]string{count(rest/86400, "day"), count(rest/3600%24, "hour"), count(rest/60%60, "minute"), count(rest%60, "second")}, ", "),
		"seconds": total,
		"hours":   tidy(float64(total) / 3600),
		"days":    tidy(float64(total) / 86400),
	}, nil
}

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// businessDay returns a function that tells business days from others.
func (c clock) businessDay(holidays []string) (func(time.Time) bool, error) {
	off := map[int64]bool{}
	for _, holiday := range holidays {
		day, err := c.date(holiday)
		if err != nil {
			return nil, err
		}
		off[day.Unix()] = true
	}
	return func(day time.Time) bool {
		return day.Weekday() != time.Saturday && day.Weekday() != time.Sunday && !off[day.Unix()]
	}, nil
}

func (c clock) countBusinessDays(in periodArgs) (any, error) {
	start, errStart := c.date(in.Start)
	end, errEnd := c.date(in.End)
	isBusinessDay, err := c.businessDay(in.Holidays)
	if err := errors.Join(errStart, errEnd, err); err != nil {
		return nil, err
	}
	days := 0
	for day := start; !day.After(end); day = day.AddDate(0, 0, 1) {
		if isBusinessDay(day) {
			days++
		}
	}
	return days, nil
}

func (c clock) addBusinessDays(date string, days int, holidays []string) (any, error) {
	day, errDate := c.date(date)
	isBusinessDay, err := c.businessDay(holidays)
	if err := errors.Join(errDate, err); err != nil {
		return nil, err
	}
	step := 1
	if days < 0 {
		step = -1
	}
	for days != 0 {
		if day = day.AddDate(0, 0, step); isBusinessDay(day) {
			days -= step
		}
	}
	return day.Format("2006-01-02 (Monday)"), nil
}

func (c clock) age(born, on string) (any, error) {
	birth, errBirth := c.date(born)
	day, errDay := c.date(on)
	if err := errors.Join(errBirth, errDay); err != nil {
		return nil, err
	}
	if day.Before(birth) {
		return nil, errors.New("the date is before the birth")
	}
	months := 12*(day.Year()-birth.Year()) + int(day.Month()-birth.Month())
	if addMonths(birth, months).After(day) {
		months--
	}
	days := int(day.Sub(addMonths(birth, months)).Hours() / 24)
	return map[string]int{"years": months / 12, "months": months % 12, "days": days}, nil
}
