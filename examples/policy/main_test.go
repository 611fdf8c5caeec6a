package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	toolsFile   = "../../testdata/corpus/tools.jsonl"
	queriesFile = "../../testdata/corpus/queries.jsonl"
)

func TestPolicies(t *testing.T) {
	tools, err := readLines[tool](toolsFile)
	require.NoError(t, err)
	queries, err := readLines[query](queriesFile)
	require.NoError(t, err)
	var rows []*row
	for i := range policies(nil) {
		r, err := newRow(tools, queries, i)
		require.NoError(t, err)
		rows = append(rows, r)
		total := 0
		for _, n := range r.standing {
			total += n
		}
		assert.Equal(t, len(tools), total)
		assert.Less(t, r.tokens, r.all)
	}
	first, budget, most, rules := rows[0], rows[2], rows[3], rows[4]
	assert.Equal(t, 40, first.standing["inline"])
	assert.Less(t, budget.tokens, first.tokens)
	assert.NotEqual(t, first.atOnce, most.atOnce)
	assert.Less(t, most.atOnce, 2*first.atOnce, "it has not seen the requests that it is judged on")
	assert.Equal(t, 12, rules.standing["summarized"])
	assert.Zero(t, rules.standing["deferred"])
}

func TestShow(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, show(&b, toolsFile, queriesFile))
	assert.Equal(t, 8, strings.Count(b.String(), "\n"))
	assert.Error(t, show(&b, "none", queriesFile))
	assert.ErrorContains(t, show(&b, "main.go", queriesFile), "main.go:1: ")
}
