package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/billing"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// played plays one conversation of each kind over invented tools.
func played(t *testing.T, sizes ...int) (rows []row, out string) {
	source, err := readSource("", "", "../"+invented)
	require.NoError(t, err)
	var b bytes.Buffer
	rows, err = run(options{source: source, sizes: sizes, seeds: 1}, &b)
	require.NoError(t, err)
	return rows, b.String()
}

func TestInvariants(t *testing.T) {
	t.Parallel()
	rows, out := played(t, 36, 80)
	assert.Contains(t, out, "invented tools")
	of := func(rule billing.Rule, kind string, tools int, form string) row {
		for _, r := range rows {
			if r.Rule == rule.Name && r.Kind == kind && r.Tools == tools && r.Form == form {
				return r
			}
		}
		require.Fail(t, "there is no such row", "%s, %s, %d, %s", rule.Name, kind, tools, form)
		return row{}
	}
	for _, r := range rows {
		about := r.Rule + ", " + r.Kind + ", " + r.Form
		assert.Positive(t, r.Billed, about)
		assert.LessOrEqual(t, r.Refused, r.Requests, about)
		grows := strings.HasPrefix(r.Form, "activation")
		if r.Form == "raw" {
			assert.Equal(t, 1.0, r.Ratio, about)
		}
		if r.Form == "default" && r.Tools == 36 {
			assert.LessOrEqual(t, r.Ratio, 1.02, about)
		}
		if !grows || r.Rule == billing.NoCache.Name {
			assert.Zero(t, r.Lost, about)
			assert.Zero(t, r.Refused, about)
		}
	}
	for _, k := range kinds {
		// Each search adds to the list, and takes the cache of all messages away.
		for _, form := range []string{"activation", "activation-none"} {
			grown := of(billing.Anthropic55Automatic, k.name, 80, form)
			assert.Positive(t, grown.Lost, form)
			assert.Greater(t, grown.Refused, grown.Lost, form)
			assert.LessOrEqual(t, grown.Lost, float64(k.searches), form)
			assert.Zero(t, of(billing.AnthropicAutomatic, k.name, 80, form).Refused, form)
		}
		// Where all is inline, no form searches.
		for _, form := range []string{"default", "activation", "bridge", "addition", "provider"} {
			inline := of(billing.Anthropic, k.name, 36, form)
			assert.Equal(t, of(billing.Anthropic, k.name, 36, "raw").Requests, inline.Requests, form)
			assert.InDelta(t, 1, inline.Ratio, .03, form)
		}
		// Who deferred something searched for it.
		for _, form := range []string{"native", "default", "bridge", "bridge-none", "addition", "provider-none"} {
			deferred := of(billing.Anthropic, k.name, 80, form)
			raw := of(billing.Anthropic, k.name, 80, "raw")
			assert.Greater(t, deferred.Requests, raw.Requests+1, form)
			assert.Less(t, deferred.First, raw.First, form)
		}
		// A script's definition is all that is there, however many tools there are.
		few, many := of(billing.Anthropic, k.name, 36, "code"), of(billing.Anthropic, k.name, 80, "code")
		assert.InDelta(t, few.First, many.First, 20) // what the user says differs
		assert.Less(t, many.First, of(billing.Anthropic, k.name, 80, "bridge-none").First)
		assert.Greater(t, many.Requests, of(billing.Anthropic, k.name, 80, "raw").Requests)
		// A rule without a cache bills each token of each request.
		assert.Greater(t, of(billing.NoCache, k.name, 36, "raw").Billed, of(billing.GPT4o, k.name, 36, "raw").Billed)
	}
}

func TestDeterministic(t *testing.T) {
	t.Parallel()
	first, out := played(t, 36)
	second, again := played(t, 36)
	assert.Equal(t, first, second)
	assert.Equal(t, out, again)
}

func TestJSON(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rows.json")
	require.NoError(t, writeJSON(path, []row{{Rule: "a", Kind: "focused", Tools: 36, Form: "raw", Billed: 2, Ratio: 1}}))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.JSONEq(t, `[{"rule":"a","kind":"focused","tools":36,"form":"raw","billed":2,"ratio":1,"lost":0,"refused":0,"requests":0,"first":0}]`, string(data))
}
