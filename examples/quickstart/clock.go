package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // works without a time zone database on the machine

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

var weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// styles are the layouts of format_time by name.
var styles = map[string]string{
	"iso":   time.RFC3339,
	"date":  time.DateOnly,
	"time":  time.TimeOnly,
	"long":  "Monday, January 2, 2006 at 3:04 PM",
	"short": "Jan 2, 2006",
	"email": time.RFC1123Z,
}

type (
	timeArg    struct{ Time, Zone string }
	dateArg    struct{ Date string }
	monthArg   struct{ Year, Month int }
	unixArgs   struct{ Time, Unit, Zone string }
	periodArgs struct {
		Start, End, Zone string
		Holidays         []string
	}
)

// clockServer serves the time that now tells and calculations with dates.
func clockServer(now func() time.Time) *server.MCPServer {
	s := newServer("clock", "Tells the time and calculates with dates, time zones and calendars.")
	c := clock{now}
	zone := str("zone", "IANA name of the time zone, such as Europe/Berlin.", mcp.DefaultString("UTC"))
	at := str("time", "Date and time such as 2024-05-31T18:30:00Z or 2024-05-31 18:30, or now.", required)
	zoneOf := str("zone", "Time zone of a time without an offset, by IANA name.", mcp.DefaultString("UTC"))
	date := str("date", "Date as YYYY-MM-DD, or now.", mcp.DefaultString("now"))
	holidays := strs("holidays", "Public holidays to leave out, as YYYY-MM-DD.")
	year := integer("year", "Year of the Gregorian calendar.", 1, 9999, required)
	month := integer("month", "Month from 1 to 12.", 1, 12, required)
	unit := str("unit", "Unit of the timestamp.", mcp.Enum("seconds", "milliseconds"), mcp.DefaultString("seconds"))

	query(s, "current_time", "Tell what time and date it is now in a time zone.",
		func(in timeArg) (any, error) { return c.in("now", "UTC", in.Zone) }, zone)

	query(s, "convert_timezone",
		"Convert a time between two time zones, for example to schedule a meeting with participants in New York and Tokyo. Daylight saving time is taken into account. If the time has a UTC offset of its own, that takes precedence over the zone to convert from.",
		func(in struct{ Time, From, To string }) (any, error) { return c.in(in.Time, in.From, in.To) },
		at,
		str("from", "Time zone of the given time, by IANA name.", mcp.DefaultString("UTC")),
		str("to", "Time zone to convert to, by IANA name.", required))

	query(s, "timezone_offset", "Look up the UTC offset and abbreviation of a time zone, whether daylight saving time is in effect and when the clocks change next.",
		func(in struct{ Zone, Time string }) (any, error) { return c.offset(in.Zone, in.Time) },
		str("zone", "IANA name of the time zone, such as America/Sao_Paulo.", required),
		str("time", "Point in time to look at, or now.", mcp.DefaultString("now")))

	steps := []mcp.ToolOption{at, zoneOf}
	for _, unit := range []string{"years", "months", "days", "hours", "minutes", "seconds"} {
		steps = append(steps, integer(unit, "How many "+unit+" to add.", -1e6, 1e6, mcp.DefaultNumber(0)))
	}
	query(s, "add_duration", "Add years, months, days, hours, minutes and seconds to a time; negative numbers subtract. One month after January 31 is the last day of February.",
		func(in duration) (any, error) { return c.add(in) }, steps...)

	query(s, "time_difference", "Calculate how much time passes between two points in time, such as the days until a deadline.",
		func(in periodArgs) (any, error) { return c.difference(in) },
		str("start", "First point in time, or now.", mcp.DefaultString("now")),
		str("end", "Second point in time, or now.", required), zoneOf)

	query(s, "day_of_week", "Tell the day of the week of a date, and the number of the day in its year.",
		func(in dateArg) (any, error) {
			t, err := c.parse(in.Date, "UTC")
			return map[string]any{"weekday": t.Weekday().String(), "day_of_year": t.YearDay()}, err
		},
		date)

	query(s, "count_business_days", "Count the business days, Monday to Friday except holidays, from one date to another, both included.",
		func(in periodArgs) (any, error) { return c.countBusinessDays(in) },
		str("start", "First date as YYYY-MM-DD, or now.", required),
		str("end", "Last date as YYYY-MM-DD, or now.", required), holidays)

	query(s, "add_business_days", "Find the date that is a number of business days, that is, neither weekends nor holidays, after another date, or before it if the number is negative. Good for due dates of invoices and deliveries.",
		func(in struct {
			Date     string
			Days     int
			Holidays []string
		}) (any, error) {
			return c.addBusinessDays(in.Date, in.Days, in.Holidays)
		},
		date, integer("days", "Number of business days to add.", -10000, 10000, required), holidays)

	query(s, "iso_week", "Find the ISO 8601 calendar week of a date, with its first and last day.",
		func(in dateArg) (any, error) {
			t, err := c.parse(in.Date, "UTC")
			year, week := t.ISOWeek()
			monday := t.AddDate(0, 0, -(int(t.Weekday())+6)%7)
			return map[string]any{
				"week":  fmt.Sprintf("%04d-W%02d", year, week),
				"start": monday.Format(time.DateOnly),
				"end":   monday.AddDate(0, 0, 6).Format(time.DateOnly),
			}, err
		},
		date)

	query(s, "parse_time", "Parse a date and time in one of many common formats, or in a given layout, and return it in ISO 8601 format.",
		func(in struct{ Text, Layout, Zone string }) (any, error) {
			return c.parseLayout(in.Text, in.Layout, in.Zone)
		},
		str("text", "Text that contains nothing but a date or time.", required),
		str("layout", "Layout of the text, written as the reference time Mon Jan 2 15:04:05 MST 2006 would be."), zoneOf)

	query(s, "format_time", "Format a time for people or for other programs to read.",
		func(in struct{ Time, Zone, Style, Layout string }) (any, error) {
			t, err := c.parse(in.Time, in.Zone)
			if in.Layout != "" {
				return t.Format(in.Layout), err
			}
			return t.Format(styles[in.Style]), err
		},
		at, zoneOf,
		str("style", "Predefined format.", mcp.Enum("iso", "date", "time", "long", "short", "email"), mcp.DefaultString("long")),
		str("layout", "Layout to use instead, written as the reference time Mon Jan 2 15:04:05 MST 2006 would be.", mcp.MaxLength(200)))

	query(s, "is_leap_year", "Tell whether a year is a leap year with 366 days.",
		func(in monthArg) (any, error) { return daysIn(in.Year, time.February) == 29, nil }, year)

	query(s, "days_in_month", "Tell how many days a month has.",
		func(in monthArg) (any, error) { return daysIn(in.Year, time.Month(in.Month)), nil }, year, month)

	query(s, "month_calendar", "Print the calendar of a month as a table with one row per week.",
		func(in struct {
			Year, Month int
			First       string `json:"first_weekday"`
		}) (any, error) {
			return calendar(in.Year, time.Month(in.Month), slices.Index(weekdays, in.First)), nil
		},
		year, month, str("first_weekday", "Day that the weeks start with.", mcp.Enum("monday", "sunday", "saturday"), mcp.DefaultString("monday")))

	query(s, "unix_to_time", "Convert a Unix timestamp, counted since 1970, to a date and time.",
		func(in struct {
			Timestamp  int64
			Unit, Zone string
		}) (any, error) {
			loc, err := location(in.Zone)
			if err != nil {
				return nil, err
			}
			if in.Unit == "milliseconds" {
				return newMoment(time.UnixMilli(in.Timestamp).In(loc), in.Zone)
			}
			return newMoment(time.Unix(in.Timestamp, 0).In(loc), in.Zone)
		},
		integer("timestamp", "Unix timestamp.", -62135596800, 253402300799999, required), unit, zone)

	query(s, "time_to_unix", "Convert a date and time to a Unix timestamp, also known as epoch time.",
		func(in unixArgs) (any, error) {
			t, err := c.parse(in.Time, in.Zone)
			if in.Unit == "milliseconds" {
				return t.UnixMilli(), err
			}
			return t.Unix(), err
		},
		at, unit, zoneOf)

	query(s, "calculate_age", "Calculate the age of a person or thing in years, months and days.",
		func(in struct{ Born, On string }) (any, error) { return c.age(in.Born, in.On) },
		str("born", "Date of birth as YYYY-MM-DD.", required),
		str("on", "Date to calculate the age on, or now.", mcp.DefaultString("now")))

	query(s, "next_weekday", "Find the next date that falls on a given day of the week, for instance next Friday.",
		func(in struct{ Weekday, Date string }) (any, error) {
			t, err := c.parse(in.Date, "UTC")
			days := (slices.Index(weekdays, in.Weekday) - int(t.Weekday()) + 6) % 7
			return t.AddDate(0, 0, days+1).Format(time.DateOnly), err
		},
		str("weekday", "Day of the week to find.", required, mcp.Enum(weekdays...)),
		str("date", "Date as YYYY-MM-DD to start after, or now.", mcp.DefaultString("now")))

	return s
}

// calendar prints a month in weeks that start with the weekday first.
func calendar(year int, month time.Month, first int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %d\n", month, year)
	for i := range 7 {
		name := weekdays[(first+i)%7]
		fmt.Fprintf(&out, " %s%c", strings.ToUpper(name[:1]), name[1])
	}
	start := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	column := (int(start.Weekday()) - first + 7) % 7
	out.WriteString("\n" + strings.Repeat("   ", column))
	for day := 1; day <= daysIn(year, month); day++ {
		if column == 7 {
			out.WriteString("\n")
			column = 0
		}
		fmt.Fprintf(&out, " %2d", day)
		column++
	}
	return out.String()
}
