package upstream

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
)

// How deep a text is, and how long the paths in it are.
func TestExtent(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][2]int{
		`{}`: {1, 0}, `5`: {0, 0}, ``: {0, 0}, `[[]]`: {2, 0}, `{"ab":1}`: {1, 0}, `{"ab":{}}`: {2, 2}, `{"ab":{"c":[]}}`: {3, 5},
		`{"ab":{},"c":{}}`: {2, 3}, `{"ab":{"c":{}},"d":{}}`: {3, 6}, `{"ab":5,"c":{}}`: {2, 1}, `{"ab":[5,{}]}`: {3, 4}, `{"ab":{`: {2, 2}, `]`: {0, 0},
	} {
		deepest, paths := extent(json.RawMessage(raw))
		assert.Equal(t, want, [2]int{deepest, paths}, raw)
	}
}
