package words

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Some clients read an object without properties as one that must be empty.
func TestFreeObjectsAreOpen(t *testing.T) {
	t.Parallel()
	for _, tool := range Tools {
		if tool.Schema == "" {
			continue
		}
		var schema struct{ Properties map[string]map[string]any }
		require.NoError(t, json.Unmarshal([]byte(tool.Schema), &schema))
		for name, property := range schema.Properties {
			if property["type"] == "object" && property["properties"] == nil {
				assert.Equal(t, true, property["additionalProperties"], "%s: %s", tool.Name, name)
			}
		}
	}
}
