package config

import (
	"encoding/json"
	"fmt"
	"time"
)

// timeouts takes the keys that bound the start and the calls. What a number as
// "timeout" means, the client says. A text such as "20s" is ours.
func (e *entry) timeouts() {
	unit := time.Millisecond
	if e.dialect.seconds {
		unit = time.Second
	}
	raw := e.values["timeout"]
	ours := kind(raw) == "string"
	if len(raw) > len("{}") && kind(raw) == "object" {
		for _, key := range e.open("timeout") { // opencode
			if key != "timeout.startup" && key != "timeout.request" {
				e.problem(`%q is not known here: want "startup" and "request"`, key)
			}
		}
	} else if d := e.duration("timeout", unit); d > 0 {
		if ours || e.dialect.start {
			e.StartTimeout = d
		}
		if !ours && e.dialect.call {
			e.CallTimeout = d
		}
	}
	for _, key := range []struct {
		name string
		unit time.Duration
		into *time.Duration
	}{
		{"timeout.startup", time.Millisecond, &e.StartTimeout},
		{"timeout.request", time.Millisecond, &e.CallTimeout},
		{"connectionTimeout", time.Millisecond, &e.StartTimeout}, // Continue
		{"callTimeout", time.Millisecond, &e.CallTimeout},
		{"startup_timeout_ms", time.Millisecond, &e.StartTimeout},
		{"startup_timeout_sec", time.Second, &e.StartTimeout}, // wins over the other
		{"tool_timeout_sec", time.Second, &e.CallTimeout},
	} {
		if d := e.duration(key.name, key.unit); d > 0 {
			*key.into = d
		}
	}
}

// minMilliseconds is the least number that we take for milliseconds. The author of a
// smaller one most likely meant seconds, as some clients read it.
const minMilliseconds = 100

// duration takes a text such as "20s", or a number of units, of at most a day.
func (e *entry) duration(key string, unit time.Duration) time.Duration {
	raw := e.values[key]
	if kind(raw) == "string" {
		d, err := time.ParseDuration(e.string(key))
		if err != nil || d <= 0 {
			if len(raw) > len(`"-1000h0m0s"`) {
				raw = json.RawMessage(hidden)
			}
			e.problem(`%q: timeout %s: want a positive duration such as "20s"`, key, raw)
			return 0
		}
		return d
	}
	name, least, most, day := "seconds", 0.001, 24*time.Hour, "a day"
	if unit == time.Millisecond {
		name, least = "milliseconds", minMilliseconds
	} else if key == "timeout" { // more would be milliseconds
		most, day = time.Hour, "an hour"
	}
	var n json.Number
	if !e.take(key, &n, `a duration such as "20s", or `+name) {
		return 0
	}
	number, err := n.Float64()
	if err != nil || number < least || number*unit.Seconds() > most.Seconds() {
		hint := ""
		if unit == time.Millisecond && number >= 1 && number < least {
			hint = fmt.Sprintf(`; or write "%vs"`, number)
		}
		e.problem("%q: timeout %s: a number means %s, from %v up to %s%s", key, n, name, least, day, hint)
		return 0
	}
	return time.Duration(number * float64(unit))
}
