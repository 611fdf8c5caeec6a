package golden

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestText(t *testing.T) {
	type inner struct {
		Names []string
		Any   any
	}
	number := 3
	for want, v := range map[string]any{
		`nil`:                             nil,
		`{}`:                              inner{},
		`{Names: []}`:                     inner{Names: []string{}},
		`{Names: ["a", "b"], Any: 1m0s}`:  inner{[]string{"a", "b"}, time.Minute},
		`[nil, 3]`:                        []any{nil, &number},
		"{\"a\": true, \"b\": nil}":       map[string]any{"b": []string(nil), "a": true},
		"[`{\"a\":1}`, error \"no \\n\"]": []any{json.RawMessage(`{"a":1}`), errors.New("no \n")},
	} {
		assert.Equal(t, want, Text(v))
	}
}
