//go:build unix

package main

import (
	"fmt"
	"maps"
	"slices"
)

// goals has what a row may take at most, where that was decided: microseconds, bytes or mallocs.
// A session, a user and a conversation pay for what they have of their own. So with ten times the tools
// and servers, a look after a change may take three times as long, and a user 1.2 times the memory.
var goals = map[string]float64{
	"4000 tools: turn, mallocs":          900,
	"4000 tools: turn in parts, mallocs": 900,

	"4000 tools: next look after a change, alike, µs":       20,
	"4000 tools: next look after a change, users, µs":       60,
	"4000 tools: next look after a change, own rights, µs":  150,
	"40000 tools: next look after a change, alike, µs":      60,
	"40000 tools: next look after a change, users, µs":      180,
	"40000 tools: next look after a change, own rights, µs": 450,

	"4000 tools: idle session, bytes":           2_000,
	"40000 tools: idle session, bytes":          2_000,
	"4000 tools: session after Compact, bytes":  2_000,
	"40000 tools: session after Compact, bytes": 2_000,

	"4000 tools: state with 3 active, 20 tools a server, stored by an engine, bytes":       2_500,
	"4000 tools: state with 3 active, 20 tools a server, stored by an engine, compressed":  800,
	"40000 tools: state with 3 active, 20 tools a server, stored by an engine, bytes":      2_500,
	"40000 tools: state with 3 active, 20 tools a server, stored by an engine, compressed": 800,

	"4000 tools: restore, 20 tools a server, and look, µs":           140,
	"4000 tools: restore in parts, 20 tools a server, and look, µs":  140,
	"40000 tools: restore, 20 tools a server, and look, µs":          300,
	"40000 tools: restore in parts, 20 tools a server, and look, µs": 300,

	"4000 tools: memory of a user with 50 tools beside all of these, bytes":  100_000,
	"40000 tools: memory of a user with 50 tools beside all of these, bytes": 120_000,

	"40000 tools: page with 10,000 sessions, µs": 20_000,

	"4000 tools: 500 rules with a glob each, µs":  100_000,
	"40000 tools: 500 rules with a glob each, µs": 400_000,
}

// shares has what share a row may take of what it took in the version of 2026-11-23, 50c6343: of 440 µs
// then 160, and of 600 then 300. A turn is much code, so that the time depends on the machine and on
// what else it does.
var shares = map[string]float64{
	"4000 tools: turn, µs":          0.36,
	"4000 tools: turn in parts, µs": 0.5,
}

// goalOf returns the goal of a row, given what another commit took, or 0 if that is not known. Without
// a goal it is not ok.
func goalOf(row string, old float64) (goal float64, ok bool) {
	if goal, ok = goals[row]; ok {
		return goal, true
	}
	return shares[row] * old, old > 0 && shares[row] > 0
}

// hasGoal reports whether a row has a goal, by itself or beside another commit.
func hasGoal(row string) bool { return goals[row]+shares[row] > 0 }

// judge returns the last two cells of a row: its goal and whether it is met.
func judge(row string, value, old float64) string {
	goal, ok := goalOf(row, old)
	switch {
	case !ok:
		return "\t\t"
	case value > goal:
		return fmt.Sprintf("%.0f\tmissed\t", goal)
	}
	return fmt.Sprintf("%.0f\tmet\t", goal)
}

// allMeasured returns an error if no row has the name of one of the goals.
func allMeasured(rows map[string]float64, wanted func(row string) bool) error {
	for _, of := range []map[string]float64{goals, shares} {
		for _, row := range slices.Sorted(maps.Keys(of)) {
			if _, ok := rows[row]; !ok && wanted(row) {
				return fmt.Errorf("no row %q was measured, which has a goal", row)
			}
		}
	}
	return nil
}
