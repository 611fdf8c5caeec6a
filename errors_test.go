package mcphybrid

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
)

func TestArgumentsErrorIsBounded(t *testing.T) {
	t.Parallel()
	found := []Violation{{"", `is missing the property "b"`}, {"/a/0", "is a number, want string"}}
	err := error(&ArgumentsError{Tool: "mcp_a__b", Violations: found, More: 29})
	assert.ErrorIs(t, err, ErrBadArguments)
	assert.EqualError(t, err, `mcphybrid: bad arguments for "mcp_a__b": the object is missing the property "b"; /a/0 is a number, want string; and 29 more`)
	long := &ArgumentsError{Violations: slices.Repeat([]Violation{{Problem: strings.Repeat("x", 500)}}, 16)}
	assert.LessOrEqual(t, len([]rune(long.Error())), text.MaxError)
}
