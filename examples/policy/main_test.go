package main

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	toolsFile   = "../../testdata/corpus/tools.jsonl"
	queriesFile = "../../testdata/corpus/queries.jsonl"
)

var update = flag.Bool("update", false, "write the golden file")

// In each row, all 308 tools are somewhere. The most used tools do not win as if the policy
// had seen the requests on which it is judged, and rules leave nothing to search for.
func TestPolicies(t *testing.T) {
	const golden = "testdata/policies.golden"
	var b bytes.Buffer
	require.NoError(t, show(&b, toolsFile, queriesFile))
	if *update {
		require.NoError(t, os.WriteFile(golden, b.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), b.String())
}

func TestErrors(t *testing.T) {
	var b bytes.Buffer
	assert.Error(t, show(&b, "none", queriesFile))
	assert.ErrorContains(t, show(&b, "main.go", queriesFile), "main.go:1: ")
}
