//go:build unix && !before

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each goal is of a row that there is.
func TestGoalsHaveRows(t *testing.T) {
	t.Parallel()
	rows := make(map[string]bool)
	measure([]string{"40"}, "", func(row string) bool {
		rows[strings.TrimPrefix(row, "40 ")] = true
		return false
	})
	assert.NotEmpty(t, goals)
	for _, of := range []map[string]float64{goals, shares} {
		for goal := range of {
			_, row, _ := strings.Cut(goal, " ")
			assert.True(t, rows[row], goal)
		}
	}
}

// A goal is judged by the row of its name, and one without a row is an error.
func TestJudge(t *testing.T) {
	t.Parallel()
	const row, turn = "4000 tools: turn, mallocs", "4000 tools: turn, µs"
	assert.Equal(t, "900\tmet\t", judge(row, 900, 0))
	assert.Equal(t, "900\tmissed\t", judge(row, 901, 5000))
	assert.Equal(t, "\t\t", judge("40 tools: turn, mallocs", 1, 1))
	assert.Equal(t, "360\tmet\t", judge(turn, 360, 1000))
	assert.Equal(t, "360\tmissed\t", judge(turn, 361, 1000))
	assert.Equal(t, "\t\t", judge(turn, 1, 0))

	wanted := func(name string) bool { return name == row || name == turn }
	assert.NoError(t, allMeasured(map[string]float64{row: 1, turn: 1}, wanted))
	assert.ErrorContains(t, allMeasured(map[string]float64{turn: 1}, wanted), row)
	assert.ErrorContains(t, allMeasured(map[string]float64{row: 1}, wanted), turn)
}
