package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		`{"name":"a"}`: "", `{"name":"a","more":1}`: "", `{}`: `"name" is missing or empty`, `{"name":""}`: `"name" is missing or empty`,
		`{"name":5}`: `"Name" is a JSON number, want a string`, `[]`: "the arguments are not a JSON object", `{"name":`: "unexpected end", ``: "unexpected end",
	} {
		var in struct{ Name string }
		err := Members([]byte(args), &in, "name", func() bool { return in.Name == "" })
		if want == "" {
			assert.NoError(t, err, args)
			assert.Equal(t, "a", in.Name)
			continue
		}
		assert.ErrorContains(t, err, want, args)
	}
}

// At its limits a value is judged, and one more is refused, whatever the schema says.
func TestAllowsLimits(t *testing.T) {
	t.Parallel()
	any := Allows([]byte(`{}`))
	nested := func(n int) string { return strings.Repeat("[", n) + "1" + strings.Repeat("]", n) }
	number := func(n int) string { return "1" + strings.Repeat("0", n-1) }
	for name, of := range map[string]struct {
		most  int
		value func(int) string
	}{
		// A value in the n-th list counts n more.
		"levels": {126, nested}, "digits": {400, number},
		"exponent": {400, func(n int) string { return fmt.Sprintf("1e%d", n) }},
		// A value below a name of 62 bytes counts nine, and the two above it eight.
		"values below a long name": {(1<<13 - 16) / 9, func(n int) string {
			return `{"` + strings.Repeat("x", 62) + `":[` + strings.Join(slices.Repeat([]string{"1"}, n), ",") + "]}"
		}},
		"values": {1 << 13 / 2, func(n int) string { return "[" + strings.Join(slices.Repeat([]string{"1"}, n-1), ",") + "]" }},
	} {
		assert.True(t, any([]byte(of.value(of.most))), "%s at the limit of %d", name, of.most)
		assert.False(t, any([]byte(of.value(of.most+1))), "%s above the limit of %d", name, of.most)
	}
	assert.False(t, any([]byte(`{"a":1,"a":2}`)), "which of two counts")
	assert.False(t, any([]byte(`{`)))
}
