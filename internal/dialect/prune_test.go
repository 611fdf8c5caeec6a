package dialect

import (
	"encoding/json"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/require"
)

// What is pruned is JSON, no larger, means nothing less to a provider, and is not pruned
// further.
func FuzzPrune(f *testing.F) {
	f.Add(`{"$defs":{"A":{"$ref":"#/$defs/B"},"B":{},"C":{}},"$schema":"https://json-schema.org/draft/2020-12/schema","items":{"$ref":"#/$defs/A"}}`)
	f.Add(`{"definitions":{"A":{}},"definitions":{"A":{"$ref":"#/$defs/~0"}},"$defs":{"~":true},"allOf":[{"$ref":"#/definitions/A"}]}`)
	f.Add(`{"$ref":"#/a","$defs":{"":{}},"x":{"$ref":"#/$defs/"}}`)
	f.Fuzz(func(t *testing.T, written string) {
		given := text.Compact(json.RawMessage(written))
		if !json.Valid(given) || given[0] != '{' {
			return
		}
		pruned := schema.Prune(given)
		require.True(t, json.Valid(pruned), "%s", pruned)
		require.LessOrEqual(t, len(pruned), len(given))
		require.Equal(t, string(pruned), string(schema.Prune(pruned)))
		whole, _ := Convert(given, Gemini) // has no definitions
		same, _ := Convert(pruned, Gemini)
		require.Equal(t, string(whole), string(same), "%s\n%s", given, pruned)
	})
}
