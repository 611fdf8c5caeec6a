package doctor

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIsSecret(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, value string
		want        bool
	}{
		{"API_KEY", "12345678", true},
		{"API_KEY", "1234567", false}, // too short
		{"NAME", "12345678", false},
		{"API_KEY", "/run/key1", false},
		{"API_KEY", "./run/key1", false},
		{"API_KEY", "~/run/key1", false},
		{"API_KEY", "http://a.example", false},
		{"a_pat", "12345678", true},
		{"pattern", "12345678", false},
		{"NAME", "sk-12345678", true},
		{"NAME", "sk-1234567", false}, // the look needs 8 behind it
		{"NAME", "a sk-12345678", false},
	} {
		assert.Equal(t, test.want, isSecret(test.name, test.value), "%s=%s", test.name, test.value)
	}
}

// A variable has the server's name in capitals, with an underscore for whatever is no letter
// or digit of ASCII. A variable that is there keeps its name.
func TestVariable(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "AZAZ09_________TOKEN", variable("azAZ09@[`{/:-é", "header", "Authorization"))
	assert.Equal(t, "my-key", variable("x", "env", "my-key"))
}
