package login

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSameService(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"https://a.example/authorize", "https://a.example/token", true},
		{"https://A.example", "https://a.EXAMPLE", true},
		{"https://www.a.example", "https://a.example", true},
		{"https://mcp.a.example", "https://cf.mcp.a.example", true},
		{"https://a.example:8443", "https://a.example", false},
		{"https://a.example:8443", "https://b.a.example:8443", true},
		{"https://a.example", "http://a.example", false},
		{"https://one.workers.dev", "https://two.workers.dev", false},
		{"https://a.example", "https://aa.example", false},
		{"https://a.example", "https://a.example.evil.example", false},
		{"https://www.com", "https://evil.com", false},
		{"https://a.example", "https://b.example", false},
		{"https://a.example", "", false},
		{"", "", false},
		{"https:///authorize", "https://a.example./token", false},
		{"https://", "https://.", false},
		{"https://%zz", "https://%zz", false},
		{"http://127.0.0.1:1", "http://127.0.0.1:2", false},
	} {
		assert.Equal(t, c.same, sameService(c.a, c.b), "%s %s", c.a, c.b)
		assert.Equal(t, c.same, sameService(c.b, c.a), "%s %s", c.b, c.a)
	}
	assert.True(t, sameService("https://www.a.example", "https://api.a.example"))
	assert.False(t, sameService("https://one.workers.dev", "https://www.workers.dev"), "www is a host like others, which somebody may have")
}
