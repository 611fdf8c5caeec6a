package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What was recorded still gives the answers, for a fifth of the tokens at most.
func TestSelectionSaves(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, run(t.Context(), "", &out))
	t.Log("\n" + out.String())
	assert.Equal(t, 2+len(cases), strings.Count(out.String(), "|\n"))
	said := regexp.MustCompile(`median of 10: ([\d.]+) % fewer`).FindStringSubmatch(out.String())
	require.NotNil(t, said)
	saved, err := strconv.ParseFloat(said[1], 64)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, saved, 80.0)
}

// What is shown is what the expressions were written from.
func TestShow(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, run(t.Context(), "orders", &out))
	assert.Contains(t, out.String(), "rows: [600 × {city: string")
	assert.Less(t, len(out.String()), 6000)
	assert.Error(t, run(t.Context(), "nothing", &out))
}
