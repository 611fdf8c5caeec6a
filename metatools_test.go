package mcphybrid

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each meta tool has its words, and its name leads to it.
func TestMetaToolsHaveTheirWords(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	for kind := range metaKinds {
		tool := metaTool{m.Default(), kind}
		found, ok := metaKindOf(tool.Name())
		assert.True(t, ok && found == kind, tool.Name())
		assert.NotEmpty(t, tool.Description(), tool.Name())
		assert.NotEmpty(t, metaWords[kind].example, tool.Name())
	}
	_, ok := metaKindOf("")
	assert.False(t, ok)
}

// Some clients read an object without properties as one that must be empty.
func TestFreeObjectsAreOpen(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	for kind := range metaKinds {
		var schema struct{ Properties map[string]map[string]any }
		require.NoError(t, json.Unmarshal(metaTool{m.Default(), kind}.InputSchema(), &schema), kind.name())
		require.NotEmpty(t, schema.Properties, kind.name())
		for name, property := range schema.Properties {
			if property["type"] == "object" && property["properties"] == nil {
				assert.Equal(t, true, property["additionalProperties"], "%s: %s", kind.name(), name)
			}
		}
	}
}
